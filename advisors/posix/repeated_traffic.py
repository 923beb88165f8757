"""POS011: the same bytes are read or written again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from vani.advisors import data_files
from vani.advisors.access_table import joint_files
from vani.advisors.movers import is_moved_within
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict, figures
from vani.advisors.small_requests import usual_at_most
from vani.models.io_time import in_turn
from vani.models.run_time import seconds
from vani.units import KiB, MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, Profile
    from vani.schema.system import System


_REDEFINES: Final = frozenset({"nc_redef", "ncmpi_redef"})
_DEFINED_FIRST: Final = (
    "in the program: define all dimensions, variables and attributes, then leave define mode once, before any data\n"
    "  (nc_enddef, ncmpi_enddef; in netCDF4-python all createVariable and attributes before the first assignment),\n"
    "  or reserve room for a header that grows: nc__enddef(ncid, 65536, 4, 0, 4)"
)
_IN_FILE_ORDER: Final = (
    "in the program: a buffer is read, changed in part and written back for each piece, so fill it in one go\n"
    "  write all levels, variables or steps that lie side by side in the file in one call\n"
    "  loop in the file's order of dimensions (the last varies fastest in C, the first in Fortran), or transpose\n"
    "  where a library has the buffer, make it larger: H5Pset_sieve_buf_size(fapl, 16777216)"
)

_EMPTIED: Final[tuple[str, dict[str, Value], str]] = (
    "each seek empties the stream's buffer, and a whole one is read for a record",
    {"seeks": "none before the next record"},
    "in the program: read on without a seek where the next record follows (C++ seekg, C fseek, Python seek)\n"
    "  or read the data once, before the loop, and take the records from memory",
)
_FOR_ALL: Final[tuple[str, dict[str, Value], str]] = (
    "each of the processes, which run one after another, reads it again",
    {},
    "in the script: one run for all items, in place of a process for each, so that the file is read once;\n"
    "  or copy what the loop reads to the node before it: cp FILE $TMPDIR",
)


@dataclass(frozen=True)
class Again:
    """One direction of I/O: calls moved `moved` bytes where `needed` are enough, in `seconds` summed over processes."""

    reads: bool
    moved: int
    needed: int
    seconds: float
    access: data_files.Access | None = None
    """The file; None for all files of an app."""


class RepeatedTraffic(Rule):
    """Calls move the same bytes of files many times over, at consecutive as well as random offsets.

    Looks at
        Bytes that are read (written) against distinct ones, at least `min_times` as many and `min_bytes` more in
        the files of one folder. If several processes read a file, each may need every byte once. Where the
        listed files show nothing, the same of all files of an app together.
    Why
        Each time costs a call, and a trip to the servers if the client's cache has dropped the bytes: the file is
        larger than the memory left for it, others write it, or it is opened again.
    Recommends
        Bytes that are only read, or only written: read once and keep the needed bytes in memory, and write when the
        bytes are final. Bytes that a process reads and writes at the same place again and again are a buffer that each
        piece fills in part: all levels in one call, dimensions in the order of the file. For a file that a process
        copies over itself, read at one place and written further back: define all of it before the first data, because
        a library without room for a longer header moves everything behind it (netCDF's define mode).
    Stays silent when
        Bytes are moved once; little is moved; a file is opened for each time that it is written, as checkpoints are;
        distinct bytes are not known; all processes read the same file once each (POS001); most accesses are small
        and at random places (POS005); files are shared through MPI-IO (MIO003).
    Source
        Vani paper, section IV (Montage reads its images several times over). Estimate: each time costs the same,
        and the first is enough.
    Example
        Eight processes read 1.9 GB of files of 49 MB: each byte 38 times, each process each byte 5 times.

            for epoch in range(5): train(load(name))    # before: reads the file in each epoch
            data = load(name)    # after
            for epoch in range(5): train(data)
    """

    id = "POS011"
    settles = "reuse"
    sources = ("Vani paper, section IV",)

    # Our choice: moving bytes twice may be two steps of a program, a benchmark's repetition or a restart.
    min_times = 3.0
    # Our choice: at the 300 MB/s of one process (OPRAEL) a twentieth of a second.
    min_bytes = 16 * MiB
    # As in POS001: small files that this many processes read once each are broadcast.
    broadcast_readers = 4
    broadcast_bytes = 256 * MiB  # see broadcast_readers
    # Our choice: most of the accesses, which POS005 covers.
    max_random = 0.5
    max_request = 512 * KiB  # see max_random

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        redefining = {trace.app for trace in profile.traces if not _REDEFINES.isdisjoint(trace.functions)}
        joint = joint_files(profile)
        accessed = data_files.data_files(
            profile,
            lambda file: (
                file.path not in joint or (not redefining.isdisjoint(file.apps) and is_moved_within(file))
            ),
        )
        moved = [item for item in accessed if item.io.ops.read + item.io.ops.write]
        if not moved:
            return data_files.NO_POSIX if joint else "no data file is read or written"
        known = [item for item in moved if item.io.footprint.read or item.io.footprint.written]
        if not known:
            return "files[].io.footprint is not known; supply a trace with offsets"
        by_item: defaultdict[data_files.Item, list[Again]] = defaultdict(list)
        for item in known:
            for reads in (True, False):
                takes_turns = in_turn(profile, item.file.apps)
                if (traffic := self._again(data_files.Access(item, reads), takes_turns=takes_turns)) is not None:
                    by_item[item].append(traffic)
        findings = []
        named: set[str] = set()
        for group in data_files.by_folder(by_item, profile):
            again = [traffic for item in group.items for traffic in by_item[item]]
            if sum(traffic.moved - traffic.needed for traffic in again) >= self.min_bytes:
                takes_turns = all(in_turn(profile, item.file.apps) for item in group.items)
                findings.append(self._of_group(group, again, takes_turns=takes_turns))
                named.update(name for item in group.items for name in item.file.apps)
        for number, app in enumerate(profile.apps):
            if app.name not in named and (total := self._of_app(app, profile)):
                findings.append(self._of_whole(number, app, total))
        sides = [data_files.Access(item, reads) for item in known for reads in (True, False)]
        if findings:
            return findings
        if any(a.times >= self.min_times and a.bytes - a.distinct >= self.min_bytes for a in sides):
            return "what is moved again are random accesses, files that are replaced, or inputs of each process"
        return (
            f"no app's files move {format_bytes(self.min_bytes)} or more again, and each byte "
            f"{self.min_times:g} times or more"
        )

    def _again(self, access: data_files.Access, *, takes_turns: bool) -> Again | None:
        file, moved, distinct = access.item.file, access.bytes, access.distinct
        if access.times < self.min_times:
            return None
        pattern = file.io.access_pattern
        usual = usual_at_most(access.sizes)
        is_random = pattern is not None and pattern.random >= self.max_random
        # A large request is no random access, even if each begins at the start of the file again, after a header.
        is_random = is_random and (usual or 0) < self.max_request and moved < self.max_request * access.requests
        # The order in which a library writes its own records is not the program's to change.
        is_random = is_random and file.format not in {"hdf5", "netcdf"}
        if not is_moved_within(file) and (is_random or data_files.is_recreated(access.item)):
            return None
        needed = distinct
        if access.reads:
            if not takes_turns and self._is_broadcast(file, moved, distinct):
                return None
            # Each reader may need the whole file, and cannot share reads with other apps or nodes.
            each = distinct * max(1, 1 if takes_turns else file.readers)
            needed = each if moved >= self.min_times * each else distinct
        return Again(access.reads, moved, needed, access.row[2], access)

    def _is_broadcast(self, file: FileEntity, moved: int, distinct: int) -> bool:
        """True if each of many processes reads the same small file about once."""
        return (
            file.readers >= self.broadcast_readers
            and distinct <= self.broadcast_bytes
            and moved < self.min_times * distinct * file.readers
            and len(file.apps) == 1
        )

    def _of_app(self, app: App, profile: Profile) -> list[Again]:
        """Repeated traffic of the app, including files that the profile does not list; empty if it lists all files."""
        if profile.lists_all_files:
            return []
        joint = joint_files(profile)
        other = [
            file.io
            for file in profile.files
            if app.name in file.apps
            and (
                file.path in joint
                or file.apps != [app.name]
                or self._is_broadcast(file, file.io.bytes.read or 0, file.io.footprint.read or 0)
                or (file.io.access_pattern is not None and file.io.access_pattern.random >= self.max_random)
            )
        ]
        traffic_found = []
        # An environment is FLD002's; its distinct bytes are not known here.
        loaded = [row.bytes for row in profile.patterns or () if not data_files.is_data(row.pattern)]
        for reads, done in ((True, "read"), (False, "written")):
            moved, distinct = (
                (getattr(app_part, done) or 0) - sum(getattr(part, done) or 0 for part in parts)
                for app_part, parts in (
                    (app.io.bytes, [io.bytes for io in other]),
                    (app.io.footprint, [io.footprint for io in other]),
                )
            )
            each = distinct * (max(1, app.processes) if reads else 1)
            moved -= sum(getattr(part, done) or 0 for part in loaded)
            if distinct > 0 and moved >= self.min_times * each and moved - each >= self.min_bytes:
                time = app.io.time_s.read if reads else app.io.time_s.write
                traffic_found.append(Again(reads, moved, each, seconds(time)))
        return traffic_found

    def _of_group(self, group: data_files.Group, again: list[Again], *, takes_turns: bool) -> Finding:
        accesses = [traffic.access for traffic in again if traffic.access]
        finding = self._finding(
            group.target,
            group.words,
            again,
            group.data_s(accesses),
            [figure for a in accesses[:5] for figure in a.figures("path", "io.bytes.{done}", "io.footprint.{done}")],
            remedy=_FOR_ALL if takes_turns else _remedy(group.items, again),
        )
        return replace(finding, files=group.paths, precedes=frozenset({"request-size"}))

    def _of_whole(self, number: int, app: App, again: list[Again]) -> Finding:
        before, names = 0.0, []
        for traffic in again:
            busy = app.io.busy_s.read if traffic.reads else app.io.busy_s.write
            before += min(seconds(busy), traffic.seconds)
            names += [f"{part}.{'read' if traffic.reads else 'written'}" for part in ("bytes", "footprint")]
        evidence = figures(app.io, f"apps[{number}].io", *names)
        return self._finding(Target("app", None, app.name), f"the files of {app.name}", again, before, evidence)

    def _finding(
        self,
        target: Target,
        group: str,
        again: list[Again],
        before: float,
        evidence: list[Evidence],
        *,
        remedy: tuple[str, dict[str, Value], str] = ("the same bytes again and again", {}, ""),
    ) -> Finding:
        parts, lines = [], ["in the program:"]
        for reads, verb, todo in (
            (
                True,
                "read",
                "  read the data once, before the loop, keep it in memory, and reuse it\n"
                "  (Fortran: an array in place of rewind(unit); or access='stream' and pos= for a single record)",
            ),
            (False, "written", "  change data in memory, and write it when it is final"),
        ):
            if of_kind := [traffic for traffic in again if traffic.reads is reads]:
                moved, needed = (sum(getattr(t, name) for t in of_kind) for name in ("moved", "needed"))
                parts.append(f"{format_bytes(moved)} are {verb} where {format_bytes(needed)} are enough")
                lines.append(todo)
        moved, needed = sum(traffic.moved for traffic in again), sum(traffic.needed for traffic in again)
        why, settings, line = remedy
        kinds = {traffic.reads for traffic in again}
        return Finding(
            target=target,
            direction="" if len(kinds) > 1 else "read" if True in kinds else "write",
            reason=f"Of {group}, {' and '.join(parts)}: {why}.",
            confidence=0.6,
            touched_s=before,
            recommended={"bytes": needed, **settings},
            current={"bytes": moved, "times": moved / needed},
            evidence=evidence,
            gain=Gain.at_best(
                "data_time_s", before, after=before * needed / moved, best=before * needed / moved,
                method="each time costs the same; low: a cache serves all but the first as fast as memory",
            ) or "supply a trace with times",
            apply=line or "\n".join(lines),
        )


def _is_emptied(item: data_files.Item) -> bool:
    """True if a seek comes before nearly each read, and the reads overlap: what a stream has ahead is read again."""
    io, stride, kinds = item.io, item.file.stride, item.io.metadata_kinds
    if not stride or kinds is None or item.file.format in {"hdf5", "netcdf"}:
        return False
    return 0 < 2 * stride <= (usual_at_most(io.transfer_size.read) or 0) and kinds.seek.count >= 0.9 * io.ops.read


def _remedy(items: Sequence[data_files.Item], again: Iterable[Again]) -> tuple[str, dict[str, Value], str]:
    """Why the bytes move again, what to set, and lines for the program; no lines where memory is the remedy."""
    read, written = (sum(traffic.moved for traffic in again if traffic.reads is reads) for reads in (True, False))
    if all(is_moved_within(item.file) for item in items):
        return "a library copies data after a growing object", {"define": "before the first data"}, _DEFINED_FIRST
    if all(map(_is_emptied, items)):
        return _EMPTIED
    # In a buffer, as much is written back as was read.
    if min(read, written) >= max(read, written) / 2 and all(item.file.writers == 1 for item in items):
        return "a buffer is read and written back for each piece", {"order": "of the file"}, _IN_FILE_ORDER
    return "the same bytes again and again", {}, ""
