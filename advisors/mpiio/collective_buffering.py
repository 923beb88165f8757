"""MIO001: small accesses to a shared file through MPI-IO that no aggregator joins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, data_s, listed, target_of
from vani.advisors.mpiio.mpiio_files import (
    DIRECT,
    Use,
    calls_collectively_later,
    collective_share,
    direct_mpiio_files,
    hint_lines,
    in_mpiio_s,
    leaves_sieving,
    mpiio_uses,
    set_hints,
    sieves,
)
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Value, Verdict
from vani.advisors.small_requests import (
    aggregated,
    moved_one_way,
    process_rate,
    sizes_of,
    usual_at_most,
    usual_text,
)
from vani.units import KiB, format_bytes, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import System


@dataclass(frozen=True)
class Moved:
    """One direction of I/O on a file."""

    item: Item
    reads: bool

    @property
    def moved(self) -> tuple[int, int, float]:
        """Bytes, requests, and their seconds summed over processes."""
        return moved_one_way(self.item.file.io, reads=self.reads)

    @property
    def evidence(self) -> list[Evidence]:
        """The numbers of the profile."""
        kind = "read" if self.reads else "write"
        io, where = self.item.file.io, f"{self.item.where}.io"
        sizes = sizes_of(io, reads=self.reads)
        evidence = [Evidence(f"{self.item.where}.path", self.item.file.path)]
        if sizes is not None:
            evidence.append(Evidence(f"{where}.transfer_size.{kind}.p50", sizes.p50))
        if io.access_pattern is not None:
            evidence += [
                Evidence(f"{where}.access_pattern.strided", io.access_pattern.strided),
                Evidence(f"{where}.access_pattern.random", io.access_pattern.random),
            ]
        return [*evidence, Evidence(f"{where}.busy_s.{kind}", getattr(io.busy_s, kind))]


class CollectiveBuffering(Rule):
    """Processes reach a shared file through MPI-IO in small pieces that no aggregator joins.

    Looks at
        Shared files that are accessed through MPI-IO (or PnetCDF): the usual size of the requests that reach the file
        system, below `max_request`, at least `min_operations` of them; the share of them that is strided or random,
        `min_interleaved` where pieces are between those of others; and the share of MPI-IO calls that are collective.
        If they are independent, also whether at least twice as much moves as they request; requests may then be large.
    Why
        Every small piece is a separate request, even if a process's pieces are consecutive, and neighbours in one
        stripe or block wait for each other's lock. Independent calls in a view with holes move the holes, too (data
        sieving, MIO003). With collective buffering a few aggregators exchange the pieces in memory and access the file
        in large contiguous ones.
    Recommends
        Collective buffering and no data sieving of writes. Where fewer than `min_collective` of the calls are
        collective, the calls must become collective first (`MPI_File_write_at_all`), because hints affect only those.
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; requests are large or few; each file is moved by one
        process, unless that is an aggregator whose requests outnumber the calls of MPI-IO; the
        program sets these hints, or calls non-blocking collective functions already.
    Source
        ROMIO users guide (`romio_cb_write`, `romio_ds_write`). Gain: `vani/models/small_io.py`.
    Example
        Four processes write every fourth piece of 64 KiB of `indep.out` with `MPI_File_write_at`: with
        `MPI_File_write_at_all` and `romio_cb_write enable` few requests of 4 MiB are left.

            MPI_File_write_at(file, offset, piece, n, type, &status);    // before
            MPI_File_write_at_all(file, offset, piece, n, type, &status);  // after, with romio_cb_write = enable
    """

    id = "MIO001"
    name = "collective-buffering"
    family = "mpiio"
    needs = ("files", "interfaces", direct_mpiio_files)
    settles = "transfer"
    sources = ("ROMIO users guide", "HPE intro_mpi, MPICH_MPIIO_HINTS")

    # Half an RPC of 1 MiB, the smallest stripe that makes sense (Lustre manual, section 19.2).
    max_request = 512 * KiB
    # Our choice: most of the accesses.
    min_interleaved = 0.5
    # Our choice: fewer requests are headers.
    min_operations = 16
    # Our choice: most of the calls. With fewer, hints alone change little.
    min_collective = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:
        findings: list[Finding] = []
        reasons: list[str] = []
        for use in mpiio_uses(profile, DIRECT):
            if use.layer.collective_share is None:
                reasons.append(
                    f"{use.where}.collective_share is not known; supply a trace with the data calls of MPI-IO"
                )
                continue
            sieved = [reads for reads in (False, True) if sieves(use, profile, reads=reads)]
            moved = [
                Moved(item, reads)
                for reads in sieved or (False, True)
                for item in use.items
                if self._is_wanted(item, use, reasons, reads=reads, sieved=bool(sieved))
            ]
            if moved:
                shares = [collective_share(use, profile, reads=reads) or 0.0 for reads in {m.reads for m in moved}]
                if min(shares) < self.min_collective and calls_collectively_later(use, profile):
                    reasons.append(f"{use.app.name} calls collective functions already, without waiting for them")
                    continue
                verdict = self._judge(use, moved, min(shares), bool(sieved), profile, system)
                findings.append(verdict) if isinstance(verdict, Finding) else reasons.append(verdict)
        return self.verdict(findings, reasons)

    def _is_wanted(self, item: Item, use: Use, reasons: list[str], *, reads: bool, sieved: bool) -> bool:
        why = self._objection(item, use, reads=reads, sieved=sieved)
        if why:
            reasons.append(why)
        return why is None

    def _objection(self, item: Item, use: Use, *, reads: bool, sieved: bool) -> str | None:
        file, pattern = item.file, item.file.io.access_pattern
        movers = file.readers if reads else file.writers
        if movers < 2 and not (movers and self._is_split(file, use, reads=reads)):
            return "each file is moved by at most one process per direction"
        sizes = sizes_of(file.io, reads=reads)
        usual = usual_at_most(sizes)
        if not sieved and (pattern is None or usual is None):
            return "access pattern and sizes of the shared files are not known; supply a trace with offsets"
        if not sieved and usual is not None and usual >= self.max_request:
            return f"requests to the shared files have {format_bytes(self.max_request)} or more"
        operations = file.io.ops.read if reads else file.io.ops.write
        if operations < self.min_operations:
            return f"the shared files have fewer than {self.min_operations} requests in a direction"
        share = use.layer.collective_share or 0.0
        if share >= self.min_collective and operations <= (1 - share) * use.layer.calls:
            return "the few small requests may be from the few independent calls"
        return None

    def _is_split(self, file: FileEntity, use: Use, *, reads: bool) -> bool:
        """True if one process moves the data of all in collective calls, with more requests than there are calls."""
        collective = (use.layer.collective_share or 0.0) >= self.min_collective
        return collective and (file.io.ops.read if reads else file.io.ops.write) > use.layer.calls

    def _kind(self, items: list[Item]) -> str:
        """Access pattern of the file with most requests."""
        pattern = items[0].file.io.access_pattern
        between = pattern is not None and pattern.strided + pattern.random >= self.min_interleaved
        return "interleaved" if between else "small contiguous"

    def _judge(
        self,
        use: Use,
        moved: list[Moved],
        collective: float,
        sieved: bool,
        profile: Profile,
        system: System,
    ) -> Finding | str:
        hints: dict[str, str] = {}
        if not all(transfer.reads for transfer in moved):
            hints["romio_cb_write"] = "enable"
            if not leaves_sieving(moved[0].item.file.path, profile, system):
                hints["romio_ds_write"] = "disable"
        if any(transfer.reads for transfer in moved):
            hints["romio_cb_read"] = "enable"
        own = set_hints(use.layer, hints)
        is_independent = collective < self.min_collective
        if own == hints and not is_independent:
            return "the program sets the hints of collective buffering itself"
        items = list(dict.fromkeys(transfer.item for transfer in moved))
        before = data_s(
            [transfer.item for transfer in moved if transfer.reads],
            [transfer.item for transfer in moved if not transfer.reads],
            use.app,
        )
        gain = aggregated(
            "data_time_s",
            before,
            [transfer.moved for transfer in moved],
            process_rate(items[0].file.path, system, reads=moved[0].reads),
        )
        if sieved:
            before = in_mpiio_s(use, items)
            gain = _without_holes(use, before, moved[0].reads)
        size = sizes_of(items[0].file.io, reads=moved[0].reads)
        reason = _sieving(use, items, moved[0].reads) if sieved else (
            f"{use.app.name} accesses {listed(use.folder, items)} in "
            f"{format_count(sum(transfer.moved[1] for transfer in moved))} {self._kind(items)} requests, usually of "
            f"{usual_text(size)}, and {format_share(use.layer.collective_share)} of its MPI-IO calls are "
            "collective. "
        )
        if is_independent:
            reason += "Collective calls with aggregators would join them."
        else:
            reason += "No aggregator joins them: collective buffering is off for them."
        share = use.layer.collective_share
        current: dict[str, Value] = {"collective_share": share, **own}
        settings: dict[str, Value] = {**hints, **({"calls": "collective"} if is_independent else {})}
        return Finding(
            target=target_of(use.folder, items, use.app),
            reason=reason,
            confidence=0.6 if is_independent else 0.7,
            touched_s=before,
            # Locks and copying the gaps between pieces take time outside file-system calls.
            acts_on="libraries" if sieved else "file_system",
            recommended=settings,
            current=current,
            evidence=[
                Evidence(f"{use.where}.collective_share", share),
                *(_requested(use, reads=moved[0].reads) if sieved else ()),
                *(entry for transfer in moved[:3] for entry in transfer.evidence),
            ],
            gain=gain or "supply a trace with times",
            apply=_lines(hints, moved, items, is_independent=is_independent, own=bool(own)),
            files=frozenset(item.file.path for item in items),
        )


def _sieving(use: Use, items: list[Item], reads: bool) -> str:
    wanted, moved, factor = _figures(use, reads=reads)
    verb = "read" if reads else "written"
    also_read = "" if reads or not use.layer.bytes.read else f" and {format_bytes(use.layer.bytes.read)} read"
    return (
        f"{use.app.name} requests {format_bytes(wanted)} of {listed(use.folder, items)} from MPI-IO in independent "
        f"calls, but {format_bytes(moved)} are {verb}{also_read}: {format_number(factor or 0, 2)} times as much, "
        "since MPI-IO "
        "moves the holes between the pieces as well (data sieving). "
    )


def _figures(use: Use, *, reads: bool) -> tuple[int | None, int | None, float | None]:
    """Bytes requested, bytes moved, and the factor between them."""
    layer = use.layer
    if layer.asked is None or layer.amplification is None:
        return None, None, None
    if reads:
        return layer.asked.read, layer.bytes.read, layer.amplification.read
    return layer.asked.written, layer.bytes.written, layer.amplification.written


def _requested(use: Use, *, reads: bool) -> list[Evidence]:
    names = (f"{use.where}.{name}.{'read' if reads else 'written'}" for name in ("asked", "bytes", "amplification"))
    return [Evidence(name, value) for name, value in zip(names, _figures(use, reads=reads), strict=True)]


def _without_holes(use: Use, before_s: float, reads: bool) -> Gain | None:
    """The gain if only the requested bytes move, at the present rate of all bytes."""
    factors = use.layer.amplification
    factor = None if factors is None else factors.read if reads else factors.total or factors.written
    if not before_s or not factor:
        return None
    best = before_s / factor
    return Gain(
        metric="data_time_s",
        before_s=before_s,
        # Our choice: passing pieces to aggregators takes a tenth of the saving, as in two-phase I/O with small pieces.
        after_s=best + 0.1 * (before_s - best),
        best_s=best,
        worst_s=before_s,
        method=f"requested bytes at the present rate, {format_number(factor)} times less, and a tenth of the "
        "difference "
        "for the exchange; high: without it, low: as long as now",
    )


def _lines(
    hints: dict[str, str], moved: list[Moved], items: list[Item], *, is_independent: bool, own: bool
) -> list[str]:
    lines = []
    if is_independent:
        verbs = ["read" if reads else "write" for reads in sorted({transfer.reads for transfer in moved})]
        lines += comment(
            "\n".join(
                [
                    "in the program, with all processes of the communicator taking part:",
                    *(f"  MPI_File_{verb}_at(...)  ->  MPI_File_{verb}_at_all(...)" for verb in verbs),
                ]
            )
        )
    if own:
        lines += comment("the program sets some of these with MPI_Info_set itself: change them there")
    return lines + hint_lines(hints, items[0].file.path if len(items) == 1 else None)
