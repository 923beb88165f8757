"""MIO001: small accesses to a shared file through MPI-IO that no aggregator joins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from vani.advisors import mpiio
from vani.advisors.access_table import Traffic
from vani.advisors.commands import comment
from vani.advisors.data_files import Access, Item, LayerGroup, functions_of
from vani.advisors.rule import Answer, Evidence, Finding, Gain, Rule, Verdict, known_figures
from vani.advisors.small_requests import usual_at_most, usual_text
from vani.models.run_time import seconds
from vani.units import KiB, MiB, format_bytes, format_count, format_number, format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System


class CollectiveBuffering(Rule):
    """Processes reach a shared file through MPI-IO in small pieces that no aggregator joins.

    Looks at
        Shared files that are accessed through MPI-IO (or PnetCDF): the usual size of the requests that reach the file
        system, below `max_request`, at least `min_operations` of them; the share of them that is strided or random,
        `min_interleaved` where pieces are between those of others; and the share of MPI-IO calls that are collective.
        If they are independent, also whether at least twice as much moves as they request; requests may then be large.
        Independent calls in views whose requests are in no record count, too.
    Why
        Every small piece is a separate request, even if a process's pieces are consecutive, and neighbours in one
        stripe or block wait for each other's lock. Independent calls in a view with holes move the holes, too (data
        sieving, MIO003). With collective buffering a few aggregators exchange the pieces in memory and access the file
        in large contiguous ones.
    Recommends
        Collective buffering and no data sieving of writes. Where fewer than `min_collective` of the calls are
        collective, the calls must become collective first (`MPI_File_write_at_all`), because hints affect only those.
        Where one call of all processes moves less than `stripe`: one call with a view of many pieces, since a
        collective call joins only what that call moves.
    Stays silent when
        No app uses MPI-IO, or no file is shared through it; requests are large or few; each file is moved by one
        process, unless that is an aggregator whose requests outnumber the calls of MPI-IO; the
        program sets these hints, or calls non-blocking collective functions already.
    Source
        ROMIO users guide (`romio_cb_write`, `romio_ds_write`). No gain is promised: three pairs of runs got slower.
    Example
        Four processes write every fourth piece of 64 KiB of `indep.out` with `MPI_File_write_at`: with
        `MPI_File_write_at_all` and `romio_cb_write enable` few requests of 4 MiB are left.

            MPI_File_write_at(file, offset, piece, n, type, &status);    // before
            MPI_File_write_at_all(file, offset, piece, n, type, &status);  // after, with romio_cb_write = enable

            for (i = 0; i < n; i++) MPI_File_write_at(file, offset[i], piece[i], 1000, MPI_BYTE, &status);   // before
            MPI_File_set_view(file, 0, MPI_BYTE, many_pieces, "native", info);      // after: one call for all of them
            MPI_File_write_all(file, pieces, n * 1000, MPI_BYTE, &status);
    """

    id = "MIO001"
    needs = ("interfaces", mpiio.direct_mpiio_files)
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
    # Lustre's default stripe. Collective calls that move less were four to eight times slower than independent ones.
    stripe = MiB

    def check(self, profile: Profile, system: System) -> Verdict:
        return self.among(
            answer for use in mpiio.mpiio_uses(profile, directly=True) for answer in self._answers(use, profile, system)
        )

    def _answers(self, use: LayerGroup, profile: Profile, system: System) -> Iterator[Answer]:
        if why := use.missing("collective_share"):
            yield why
            return
        if unseen := self._in_views(use, profile):
            yield unseen
            return
        sieved = [reads for reads in (False, True) if mpiio.sieves(use, profile, reads=reads)]
        moved = []
        for access in (Access(item, reads) for reads in sieved or (False, True) for item in use.items):
            if why := self._objection(access, use, sieved=bool(sieved)):
                yield why
            else:
                moved.append(access)
        if moved:
            shares = [mpiio.collective_share(use, profile, reads=reads) or 0.0 for reads in {m.reads for m in moved}]
            if min(shares) < self.min_collective and mpiio.calls_collectively_later(use, profile):
                yield f"{use.app.name} calls collective functions already, without waiting for them"
            else:
                yield self._judge(use, moved, min(shares), bool(sieved), profile, system)

    def _in_views(self, use: LayerGroup, profile: Profile) -> Finding | None:
        """The finding on independent calls in views, if no file-system call below them is recorded."""
        traffic = Traffic.on(profile, use.paths)
        rows = traffic.of("mpiio")
        calls, moved = sum(row.calls for row in rows), traffic.requested or 0
        if traffic.moved or not moved or (traffic.collective or 0.0) >= self.min_collective:
            return None
        if calls < self.min_operations or max(row.processes or 0 for row in rows) < 2:
            return None
        if not any(name.startswith("MPI_File_set_view") for name in functions_of(use.app, profile)):
            return None
        return Finding(
            **use.affected,
            reason=f"{use.app.name} makes {format_count(calls)} independent calls in views of {use.words}, for "
            f"{format_bytes(moved)}. The requests below them are in no record. In a view with gaps, MPI-IO sends one "
            "for each piece; collective calls join the pieces of all processes.",
            confidence=0.4,
            touched_s=sum(seconds(row.time_s) for row in rows) / use.app.processes,
            acts_on="libraries",
            recommended={"calls": "collective"},
            current={"collective_share": traffic.collective},
            evidence=[*use.layer_figures("collective_share", "asked.total"), *use.figures("path", "processes")],
            gain="a trace by strace has the requests",
            apply=comment(_calls(sorted({"read", "write"} & {row.direction for row in rows}, reverse=True), "")),
        )

    def _objection(self, access: Access, use: LayerGroup, *, sieved: bool) -> str | None:
        pattern, share = access.item.io.access_pattern, use.layer.collective_share or 0.0
        # One process may move the data of all in collective calls, with more requests than there are calls.
        is_split = share >= self.min_collective and access.requests > use.layer.calls
        if access.processes < 2 and not (access.processes and is_split):
            return "each file is moved by at most one process per direction"
        usual = usual_at_most(access.sizes)
        if not sieved and (pattern is None or usual is None):
            return "access pattern and sizes of the shared files are not known; supply a trace with offsets"
        if not sieved and usual is not None and usual >= self.max_request:
            return f"requests to the shared files have {format_bytes(self.max_request)} or more"
        if access.requests < self.min_operations:
            return f"the shared files have fewer than {self.min_operations} requests in a direction"
        if share >= self.min_collective and access.requests <= (1 - share) * use.layer.calls:
            return "the few small requests may be from the few independent calls"
        return None

    def _kind(self, item: Item) -> str:
        """Access pattern of a file."""
        pattern = item.io.access_pattern
        between = pattern is not None and pattern.strided + pattern.random >= self.min_interleaved
        return "interleaved" if between else "small contiguous"

    def _judge(
        self, use: LayerGroup, moved: list[Access], collective: float, sieved: bool, profile: Profile, system: System
    ) -> Answer:
        hints: dict[str, str] = {}
        if not all(access.reads for access in moved):
            hints["romio_cb_write"] = "enable"
            if not mpiio.leaves_sieving(moved[0].item.path, profile, system):
                hints["romio_ds_write"] = "disable"
        if any(access.reads for access in moved):
            hints["romio_cb_read"] = "enable"
        own = mpiio.set_hints(use.layer, hints)
        is_independent = collective < self.min_collective
        if own == hints and not is_independent:
            return "the program sets the hints of collective buffering itself"
        use, share = use.of(dict.fromkeys(access.item for access in moved)), use.layer.collective_share
        first = Access(use.items[0], moved[0].reads)
        traffic = Traffic.on(profile, use.paths, reads=first.reads)
        callers, usual = traffic.callers or first.processes, usual_at_most(first.sizes)
        at_once = None if sieved else traffic.at_once or (usual and usual * callers)
        gain: Gain | str | None = "the gain depends on how much one call of all processes moves"
        if sieved:
            before = mpiio.in_mpiio_s(use)
            gain = _without_holes(traffic, use, before, reads=first.reads)
            reason = _sieving(traffic, use, reads=first.reads)
        else:
            before, of = use.data_s(moved), "bytes" if traffic.collective is not None else "calls"
            times = traffic.fan_out or 0.0
            each = f", {format_count(round(times))} for each call" if times >= _SPLIT else ""
            reason = (
                f"{use.app.name} accesses {use.words} in {format_count(sum(access.requests for access in moved))} "
                f"{self._kind(first.item)} requests, usually of {usual_text(first.sizes)}{each}, and "
                f"{format_share(share)} of its MPI-IO {of} are collective. "
            )
        joins_little = at_once is not None and at_once < self.stripe
        in_library = sieved or (joins_little and not is_independent)
        if in_library:
            before = mpiio.in_mpiio_s(use)
        if joins_little:
            reason += (
                f"One call of all {format_count(callers)} processes moves {format_bytes(at_once)}, less than a "
                "stripe: describe many pieces in one call first. Collective calls of single pieces may be slower."
            )
        elif is_independent:
            reason += "Collective calls with aggregators would join them."
        elif first.processes < callers:
            reason += (
                f"Only {format_count(first.processes)} of {format_count(callers)} processes {first.kind} them, for "
                "all, and one by one: the pieces of a call have gaps between them."
            )
        else:
            reason += "No aggregator joins them: collective buffering is off for them."
        calls = _calls(sorted({access.kind for access in moved}, reverse=True), "_at")
        lines = comment(calls) if is_independent else []
        if own:
            lines += comment("the program sets some of these with MPI_Info_set itself: change them there")
        return Finding(
            **use.affected,
            reason=reason,
            confidence=0.6 if is_independent else 0.7,
            touched_s=before,
            # Locks and copying the gaps between pieces take time outside file-system calls.
            acts_on="libraries" if in_library else "file_system",
            recommended={"calls": "one for many pieces"}
            if joins_little
            else {**hints, **({"calls": "collective"} if is_independent else {})},
            current={"collective_share": share, **own},
            evidence=[
                *use.layer_figures("collective_share"),
                *(figure for access in moved[:3] for figure in _figures(access)),
            ],
            gain=gain or "supply a trace with times",
            apply=comment(_VIEW) if joins_little else lines + mpiio.hint_lines(hints, use.path, profile),
        )


_SPLIT: Final = 2.0
"""Least requests for each call of MPI-IO that are worth a word (our choice)."""
_VIEW: Final = (
    "in the program, all pieces of a process in one call, and all processes together:\n"
    "  MPI_Type_create_hindexed_block(n, length, offsets, MPI_BYTE, &pieces);  MPI_Type_commit(&pieces);\n"
    '  MPI_File_set_view(file, 0, MPI_BYTE, pieces, "native", info);\n'
    "  MPI_File_write_all(file, buffer, n * length, MPI_BYTE, &status);   // or MPI_File_read_all"
)


def _figures(access: Access) -> list[Evidence]:
    return [
        *access.figures("path"),
        *(access.figures("io.transfer_size.{kind}.p50") if access.sizes is not None else ()),
        *known_figures(access.item.file, access.item.where, "io.access_pattern.strided", "io.access_pattern.random"),
        *access.figures("io.busy_s.{kind}"),
    ]


def _sieving(traffic: Traffic, use: LayerGroup, *, reads: bool) -> str:
    verb, read = "read" if reads else "written", use.total("io.bytes.read")
    also_read = "" if reads or not read else f" and {format_bytes(read)} read"
    return (
        f"{use.app.name} requests {format_bytes(traffic.requested)} of {use.words} from MPI-IO in independent "
        f"calls, but {format_bytes(traffic.moved)} are {verb}{also_read}: "
        f"{format_number(traffic.sieving or 0, 2)} times as much, since MPI-IO moves the holes between the pieces as "
        "well (data sieving). "
    )


def _without_holes(traffic: Traffic, use: LayerGroup, before_s: float, *, reads: bool) -> Gain | None:
    """The gain if only the requested bytes move, at the present rate of all bytes."""
    read = 0 if reads else use.total("io.bytes.read")
    factor = (traffic.moved + read) / traffic.requested if traffic.requested else None
    if not factor:
        return None
    best = before_s / factor
    return Gain.at_best(
        "data_time_s",
        before_s,
        # Our choice: passing pieces to aggregators takes a tenth of the saving, as in two-phase I/O with small pieces.
        after=best + 0.1 * (before_s - best),
        best=best,
        method=f"requested bytes at the present rate, {format_number(factor)} times less, and a tenth of the "
        "difference for the exchange; high: without it, low: as long as now",
    )


def _calls(kinds: Sequence[str], place: str) -> str:
    """Calls before and after, for "read" and "write"; `place` is "_at" for those with an offset."""
    calls = [f"  MPI_File_{kind}{place}(...)  ->  MPI_File_{kind}{place}_all(...)" for kind in kinds]
    return "\n".join(["in the program, with all processes of the communicator taking part:", *calls])
