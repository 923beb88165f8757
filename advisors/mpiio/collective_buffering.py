"""MIO001: small interleaved accesses to a shared file that no aggregator joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.advisors.base import Evidence, Finding, Rule, Value, Verdict
from vani.advisors.commands import comment
from vani.advisors.models.data_files import Item, listed, target_of, wall_s
from vani.advisors.models.hints import hint_lines
from vani.advisors.models.mpiio_use import DIRECT, Use, set_hints, uses
from vani.advisors.models.small_io import aggregated, process_rate, sizes_of
from vani.units import KiB, format_bytes, format_count, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class CollectiveBuffering(Rule):
    """Processes reach a shared file through MPI-IO in small pieces that lie between each other's.

    Looks at
        Shared files that are accessed through MPI-IO (or PnetCDF): the usual size of the requests that reach
        the file system, below `max_request`; the share of them that is strided or random, at least
        `min_interleaved`; and the share of MPI-IO calls that are collective.
    Why
        Every small piece is a request of its own, and neighbours that fall into one stripe or block wait for
        each other's lock. With collective buffering a few aggregators exchange the pieces in memory and access
        the file in large contiguous ones.
    Recommends
        Collective buffering and no data sieving of writes. Where fewer than `min_collective` of the calls are
        collective, the calls must become collective first (`MPI_File_write_at_all`), since hints act on those
        alone.
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; requests are large or contiguous; each file is
        moved by one process; the program sets these hints already.
    Source
        ROMIO users guide (`romio_cb_write`, `romio_ds_write`). Gain: `advisors/models/small_io.py`.
    Example
        Four processes write every fourth piece of 64 KiB of `indep.out` with `MPI_File_write_at`: with
        `MPI_File_write_at_all` and `romio_cb_write enable` few requests of 4 MiB are left.
    """

    id = "MIO001"
    name = "collective-buffering"
    family = "mpiio"
    needs = ("files", "interfaces")
    settles = "transfer"
    sources = ("ROMIO users guide", "HPE intro_mpi, MPICH_MPIIO_HINTS")

    # Half an RPC of 1 MiB, the smallest stripe that makes sense (Lustre manual, section 19.2).
    max_request = 512 * KiB
    # Ours: most of the accesses.
    min_interleaved = 0.5
    # Ours: most of the calls; below it hints alone change little.
    min_collective = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        found = uses(profile, DIRECT)
        if isinstance(found, str):
            return self.nothing(found)
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in found:
            if use.layer.collective_share is None:
                reasons.append(
                    f"{use.where}.collective_share is not known; supply a trace with the data calls of MPI-IO"
                )
                continue
            for reads in (False, True):
                items = [item for item in use.items if self._why_not(item, reasons, reads=reads) is None]
                if items:
                    verdict = self._judge(use, items, use.layer.collective_share, system, reads=reads)
                    findings.append(verdict) if isinstance(verdict, Finding) else reasons.append(verdict)
        return findings or self.nothing("; ".join(dict.fromkeys(reasons)))

    def _why_not(self, item: Item, reasons: list[str], *, reads: bool) -> str | None:
        why = self._objection(item, reads=reads)
        if why:
            reasons.append(why)
        return why

    def _objection(self, item: Item, *, reads: bool) -> str | None:
        file, pattern = item.file, item.file.io.access_pattern
        if (file.readers if reads else file.writers) < 2:
            return "each file is moved by at most one process per direction"
        sizes = sizes_of(file.io, reads=reads)
        if pattern is None or sizes is None or sizes.p50 is None:
            return "access pattern and sizes of the shared files are not known; supply a trace with offsets"
        if sizes.p50 >= self.max_request:
            return f"requests to the shared files have {format_bytes(self.max_request)} or more"
        if pattern.strided + pattern.random < self.min_interleaved:
            return "each process moves contiguous pieces of the shared files"
        return None

    def _judge(
        self, use: Use, items: list[Item], collective: float, system: System, *, reads: bool
    ) -> Finding | str:
        kind = "read" if reads else "write"
        hints = (
            {"romio_cb_read": "enable"}
            if reads
            else {"romio_cb_write": "enable", "romio_ds_write": "disable"}
        )
        own = set_hints(use.layer, hints)
        is_independent = collective < self.min_collective
        if own == hints and not is_independent:
            return "the program sets the hints of collective buffering itself"
        requests = sum(i.file.io.ops.read if reads else i.file.io.ops.write for i in items)
        size = sizes_of(items[0].file.io, reads=reads)
        before = wall_s(items, use.app, "read" if reads else "write")
        gain = aggregated(
            f"{kind}_time_s",
            before,
            [
                (i.file.io.bytes.read or 0, i.file.io.ops.read, i.file.io.time_s.read)
                if reads
                else (i.file.io.bytes.written or 0, i.file.io.ops.write, i.file.io.time_s.write)
                for i in items
            ],
            process_rate(items[0].file.path, system, reads=reads),
        )
        reason = (
            f"{use.app.name} {'reads' if reads else 'writes'} {listed(use.folder, items)} in "
            f"{format_count(requests)} interleaved requests, usually of "
            f"{format_bytes(size.p50 if size else None)}, and {format_share(collective)} of its MPI-IO calls are "
            "collective. "
        )
        if is_independent:
            reason += "Collective calls with aggregators would join them."
        else:
            reason += "No aggregator joins them: collective buffering is off for them."
        if gain is None:
            reason += " For an expected gain, supply a trace with times."
        current: dict[str, Value] = {"collective_share": collective, **own}
        wanted: dict[str, Value] = {**hints, **({"calls": "collective"} if is_independent else {})}
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=reason,
            confidence=0.6 if is_independent else 0.7,
            touched_s=before,
            recommended=wanted,
            current=current,
            evidence=[
                Evidence(f"{use.where}.collective_share", collective),
                *(e for item in items[:3] for e in _evidence(item, kind)),
            ],
            gain=gain,
            apply=self._apply(hints, items, is_independent=is_independent, own=own, reads=reads),
            files=frozenset(item.file.path for item in items),
        )

    def _apply(
        self,
        hints: dict[str, str],
        items: list[Item],
        *,
        is_independent: bool,
        own: dict[str, str],
        reads: bool,
    ) -> list[str]:
        verb = "read" if reads else "write"
        lines = []
        if is_independent:
            lines += comment(
                "in the program, with all processes of the communicator taking part:\n"
                f"  MPI_File_{verb}_at(...)  ->  MPI_File_{verb}_at_all(...)"
            )
        if own:
            lines += comment("the program sets some of these with MPI_Info_set itself: change them there")
        return lines + hint_lines(hints, items[0].file.path if len(items) == 1 else None)


def _evidence(item: Item, kind: str) -> list[Evidence]:
    io, where = item.file.io, f"{item.where}.io"
    sizes = sizes_of(io, reads=kind == "read")
    found = [Evidence(f"{item.where}.path", item.file.path)]
    if sizes is not None:
        found.append(Evidence(f"{where}.transfer_size.{kind}.p50", sizes.p50))
    if io.access_pattern is not None:
        found += [
            Evidence(f"{where}.access_pattern.strided", io.access_pattern.strided),
            Evidence(f"{where}.access_pattern.random", io.access_pattern.random),
        ]
    return [*found, Evidence(f"{where}.busy_s.{kind}", getattr(io.busy_s, kind))]
