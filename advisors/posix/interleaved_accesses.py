"""POS009: small interleaved pieces of a shared file without MPI-IO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.advisors.data_files import Access, Group, by_folder, posix_items
from vani.advisors.placement import pieces_of
from vani.advisors.rule import NO_LAYOUTS, Answer, Evidence, Finding, Layouts, MatchingRule, Verdict
from vani.advisors.small_requests import aggregated, usual_at_most, usual_text
from vani.models.savings import LARGE
from vani.models.striping import neighbour_distance
from vani.units import KiB, MiB, format_bytes, format_count

if TYPE_CHECKING:
    from vani.schema.profile import Profile, Sizes
    from vani.schema.system import System


@dataclass(frozen=True)
class _Shared(Access):
    """One direction of I/O on a file in which processes share stripes or blocks."""

    distance: int | None


class InterleavedAccesses(MatchingRule):
    """Processes read or write small interleaved pieces of a shared file without MPI-IO.

    Looks at
        Shared files that, without MPI-IO, several processes of one app write (or read): the usual size of the
        requests, below `max_request`; how far apart the pieces of neighbouring processes are, less than a stripe or
        block (of `unit` at most), or at no constant distance; writes that do not divide a stripe or
        block evenly; at least `min_operations` of them.
    Why
        Processes that write into one stripe or block take its lock from each other, request by request, and servers get
        many small requests at places that are far apart for each of them. No client can join them, since the bytes
        between are another process's.
    Recommends
        Collective calls of MPI-IO with collective buffering (`MPI_File_write_at_all`): a few aggregators exchange the
        pieces in memory and access the file in whole stripes or blocks. If that is not possible: one process per node
        that gathers, records padded to a stripe or block, or a file per node.
    Stays silent when
        No file is shared by processes of one app without MPI-IO; requests are large, or few; each process has its own
        whole stripes or blocks; the offsets of accesses are not known.
    Source
        Lustre manual, section 19.2 (one client per stripe); IBM, GPFS byte-range tokens; ROMIO users guide. Gain:
        `vani/models/savings.py`.
    Example
        `ior -a POSIX -b 64k -t 64k -s 16` with eight processes: eight of them write into every stripe of 1 MiB.

            pwrite(fd, row, size, offset);    // before: between others' rows
            MPI_File_write_at_all(file, offset, row, size, MPI_BYTE, &status);   // after: whole stripes
    """

    id = "POS009"
    settles = "transfer"
    sources = ("Lustre manual, section 19.2", "ROMIO users guide")

    # Half an RPC of 1 MiB, the smallest stripe that makes sense (Lustre manual, section 19.2), as in MIO001.
    max_request = 512 * KiB
    # Lustre's default stripe. Processes with larger pieces share a larger block only briefly.
    unit = MiB
    # Our choice: fewer requests are headers.
    min_operations = 32

    def check(self, profile: Profile, system: System, layouts: Layouts = NO_LAYOUTS) -> Verdict:
        runs = {app.name: app.instances for app in profile.apps}
        # As many users as runs may be one process of each run.
        data = [
            item
            for item in posix_items(profile)
            if item.file.access == "shared" and item.file.processes > sum(runs.get(name, 1) for name in item.file.apps)
        ]
        if not data:
            return "no file is shared by processes of one app without MPI-IO"
        answers: list[Answer] = []
        for group in by_folder(data, profile):
            pieces = pieces_of(group.items, profile, system, layouts)
            unit = int(self.unit) if isinstance(pieces, str) else min(int(self.unit), pieces.size)
            sides = [Access(item, reads) for item in group.items for reads in (False, True)]
            judged = [self._shared(access, unit) for access in sides if access.requests]
            answers += [answer for answer in judged if isinstance(answer, str)]
            if shared := [access for access in judged if isinstance(access, _Shared)]:
                known = () if isinstance(pieces, str) else pieces.evidence
                answers.append(_finding(group, shared, unit, known, system))
        return self.among(answers, "no shared file is read or written")

    def _shared(self, access: Access, unit: int) -> _Shared | str:
        item, reads = access.item, access.reads
        if access.processes < 2:
            return "one process reads, or writes, a shared file"
        usual = usual_at_most(access.sizes)
        if access.sizes is None or usual is None or item.io.access_pattern is None:
            return "access pattern and sizes of the shared files are not known; supply a trace with offsets"
        if access.requests < self.min_operations:
            return f"the shared files have fewer than {format_count(self.min_operations)} requests"
        if usual >= self.max_request:
            return f"requests to the shared files have {format_bytes(self.max_request)} or more"
        distance = neighbour_distance(item.file, access.processes, reads=reads)
        # Neighbours share the stripes or blocks in which a process's written pieces begin and end.
        if (reads or _fits(access.sizes, unit, access.requests)) and (
            # If the distance of reads is unknown, all processes mostly read the same bytes.
            (distance is None and reads) or (distance is not None and distance >= unit)
        ):
            return "each process has whole stripes or blocks of the shared files to itself"
        return _Shared(item, reads, distance)


def _fits(sizes: Sizes, unit: int, operations: int) -> bool:
    """True if requests have no usual size, or one that divides a stripe or block evenly."""
    if not sizes.common or 2 * sizes.common[0][1] < operations:
        return True
    usual = sizes.common[0][0]
    return usual % unit == 0 or (usual > 0 and unit % usual == 0)


def _finding(group: Group, shared: list[_Shared], unit: int, known: tuple[Evidence, ...], system: System) -> Finding:
    group = group.of(dict.fromkeys(access.item for access in shared))
    first, before = shared[0], group.data_s(shared)
    usual = first.sizes.p50 if first.sizes else None
    spacing = (
        f"neighbours' pieces begin {format_bytes(first.distance)} apart"
        if first.distance
        else "their pieces are at no constant distance"
    )
    fits = "" if usual is None or unit % usual == 0 else ", and no whole number of them makes a stripe or block"
    calls = "\n".join(
        f"  MPI_File_{kind}_at_all(file, offset, buffer, count, type, &status)"
        for kind in sorted({access.kind for access in shared}, reverse=True)
    )
    return Finding(
        **group.affected,
        reason=f"{first.processes} processes {first.kind} {group.words} in "
        f"{format_count(sum(access.requests for access in shared))} requests, usually of {usual_text(first.sizes)}"
        f"{fits}; {spacing}, so several processes share each stripe or block of {format_bytes(unit)} and wait for its "
        "lock. Collective buffering would join them.",
        confidence=0.6,
        touched_s=before,
        recommended={"calls": "collective", "request_bytes": max(LARGE, unit)},
        current={"request_bytes": usual, "distance_bytes": first.distance},
        evidence=[*(figure for access in shared[:3] for figure in access.figures(*_FIGURES)), *known],
        gain=aggregated("data_time_s", before, [access.row for access in shared], first, system),
        apply="in the program, all processes of the communicator together, with the hint romio_cb_write "
        f"(romio_cb_read) enable:\n{calls}\n{_IN_A_VIEW if first.distance else _AT_OFFSETS}"
        f"or gather the pieces of a node in one process, which moves multiples of {unit} bytes from such offsets on",
    )


_IN_A_VIEW = (
    "  many pieces in one call: MPI_Type_vector or MPI_Type_create_subarray, and MPI_File_set_view before it\n"
)
_AT_OFFSETS = (
    "  many records in one call, at offsets of each process (MPI_Exscan of their sizes); a shared file pointer\n"
    "  (MPI_File_write_shared) locks a hidden file for each call\n"
)
_FIGURES = ("path", "{users}", "io.transfer_size.{kind}.p50", "io.access_pattern.consecutive", "io.busy_s.{kind}")
