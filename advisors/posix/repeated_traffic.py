"""POS011: the same bytes are read or written again and again."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.advisors.commands import comment
from vani.advisors.data_files import Item, by_folder, data_files, data_s, listed, target_of
from vani.advisors.movers import is_moved_within
from vani.advisors.rule import Evidence, Finding, Gain, Rule, Target, Value, Verdict
from vani.models.run_time import seconds
from vani.models.small_io import COPY_RATE
from vani.units import MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import App, FileEntity, IOStats, Profile
    from vani.schema.system import System


_NETCDF: Final = frozenset({"netcdf", "pnetcdf"})
_REDEFINES: Final = frozenset({"nc_redef", "ncmpi_redef"})
_DEFINED_FIRST: Final = (
    "in the program: define all dimensions, variables and attributes, then leave define mode once, before any data\n"
    "  (nc_enddef, ncmpi_enddef; in netCDF4-python all createVariable and attributes before the first assignment),\n"
    "  or reserve room for a header that grows: nc__enddef(ncid, 65536, 4, 0, 4)"
)


@dataclass(frozen=True)
class Again:
    """One direction of I/O: calls moved `moved` bytes where `needed` are enough, in `seconds` summed over processes."""

    item: Item | None
    reads: bool
    moved: int
    needed: int
    seconds: float


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
        Read once and keep the needed bytes in memory, and write when the bytes are final. For a file that a process
        copies over itself: define all of it before the first data, because a library without room for a longer header
        moves everything behind it (netCDF's define mode).
    Stays silent when
        Bytes are moved once; little is moved; a file is opened for each time that it is written, as checkpoints are;
        distinct bytes are not known; all processes read the same file once each (POS001); most accesses are at random
        places (POS005); files belong to MPI-IO (MIO003) or HDF5 (HD5004).
    Source
        Vani paper, section IV (Montage reads its images several times over). Estimate: each time costs the same, less
        a copy of the bytes in memory (`vani/models/small_io.py`).
    Example
        Eight processes read 1.9 GB of files of 49 MB: each byte 38 times, each process each byte 5 times.

            for epoch in range(5): train(load(name))    # before: reads the file in each epoch
            data = load(name)    # after
            for epoch in range(5): train(data)
    """

    id = "POS011"
    name = "repeated-traffic"
    family = "posix"
    needs = ("files",)
    settles = "reuse"
    sources = ("Vani paper, section IV",)

    # Our choice: moving bytes twice may be two steps of a program, a benchmark's repetition or a restart.
    min_times = 3.0
    # Our choice: at the 300 MB/s of one process (OPRAEL) a twentieth of a second.
    min_bytes = 16 * MiB
    # As in POS001: small files that this many processes read once each are broadcast.
    broadcast_readers = 4
    broadcast_bytes = 64 * MiB  # see broadcast_readers
    # Our choice: most of the accesses, which POS005 covers.
    max_random = 0.5

    def check(self, profile: Profile, system: System) -> Verdict:  # noqa: ARG002 - applies on every machine
        redefining = {trace.app for trace in profile.traces if not _REDEFINES.isdisjoint(trace.functions)}
        accessed = data_files(
            profile,
            lambda file: (
                file.interface in (None, "posix", "stdio")
                or (file.interface in _NETCDF and not redefining.isdisjoint(file.apps) and is_moved_within(file))
            ),
        )
        moved = [item for item in accessed if item.file.io.ops.read + item.file.io.ops.write]
        if not moved:
            return self.nothing("no data file is accessed by POSIX or stdio calls")
        known = [i for i in moved if i.file.io.footprint.read or i.file.io.footprint.written]
        if not known:
            return self.nothing("files[].io.footprint is not known; supply a trace with offsets")
        by_item: defaultdict[Item, list[Again]] = defaultdict(list)
        for item in known:
            for reads in (True, False):
                if (traffic := self._again(item, reads=reads)) is not None:
                    by_item[item].append(traffic)
        findings = []
        named: set[str] = set()
        for app, folder, items in by_folder(by_item, profile):
            again = [traffic for item in items for traffic in by_item[item]]
            if sum(traffic.moved - traffic.needed for traffic in again) >= self.min_bytes:
                findings.append(self._finding(app, folder, items, again))
                named.update(name for item in items for name in item.file.apps)
        for number, app in enumerate(profile.apps):
            if app.name not in named and (total := self._of_app(app, profile)):
                findings.append(self._of_whole(number, app, total))
        return findings or self.nothing(
            f"no app's files move {format_bytes(self.min_bytes)} or more again, and each byte "
            f"{self.min_times:g} times or more"
        )

    def _again(self, item: Item, *, reads: bool) -> Again | None:
        io = item.file.io
        moved = (io.bytes.read if reads else io.bytes.written) or 0
        distinct = (io.footprint.read if reads else io.footprint.written) or 0
        if not distinct or moved < self.min_times * distinct:
            return None
        moved_within = is_moved_within(item.file)
        if not moved_within and io.access_pattern is not None and io.access_pattern.random >= self.max_random:
            return None
        if not moved_within and _is_recreated(item.file):
            return None
        needed = distinct
        if reads:
            if self._is_broadcast(item.file, moved, distinct):
                return None
            # Each reader may need the whole file, and cannot share reads with other apps or nodes.
            each = distinct * max(1, item.file.readers)
            needed = each if moved >= self.min_times * each else distinct
        return Again(item, reads, moved, needed, seconds(io.time_s.read if reads else io.time_s.write))

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
        own_files = [file for file in profile.files if app.name in file.apps]
        other = [
            file
            for file in own_files
            if file.interface not in (None, "posix", "stdio")
            or file.apps != [app.name]
            or self._is_broadcast(file, file.io.bytes.read or 0, file.io.footprint.read or 0)
            or (file.io.access_pattern is not None and file.io.access_pattern.random >= self.max_random)
        ]
        traffic_found = []
        for reads in (True, False):
            moved = _bytes(app.io, reads=reads) - sum(_bytes(file.io, reads=reads) for file in other)
            distinct = _distinct(app.io, reads=reads) - sum(_distinct(file.io, reads=reads) for file in other)
            each = distinct * (max(1, app.processes) if reads else 1)
            if distinct > 0 and moved >= self.min_times * each and moved - each >= self.min_bytes:
                time = app.io.time_s.read if reads else app.io.time_s.write
                traffic_found.append(Again(None, reads, moved, each, seconds(time)))
        return traffic_found

    def _finding(self, app: App | None, folder: str, items: list[Item], again: list[Again]) -> Finding:
        before = data_s(
            [traffic.item for traffic in again if traffic.item and traffic.reads],
            [traffic.item for traffic in again if traffic.item and not traffic.reads],
            app,
        )
        evidence = [
            entry
            for traffic in again[:5]
            if traffic.item
            for entry in _evidence(traffic.item, reads=traffic.reads)
        ]
        return self._finding_on(
            target_of(folder, items, app),
            listed(folder, items, app),
            again,
            before,
            evidence,
            frozenset(item.file.path for item in items),
            within=all(is_moved_within(item.file) for item in items),
        )

    def _of_whole(self, number: int, app: App, again: list[Again]) -> Finding:
        kinds = [("read", traffic) if traffic.reads else ("write", traffic) for traffic in again]
        before = sum(min(seconds(getattr(app.io.busy_s, kind)), traffic.seconds) for kind, traffic in kinds)
        names = ["read" if traffic.reads else "written" for traffic in again]
        evidence = [
            Evidence(f"apps[{number}].io.{group}.{name}", getattr(getattr(app.io, group), name))
            for name in names
            for group in ("bytes", "footprint")
        ]
        return self._finding_on(
            Target("app", None, app.name), f"the files of {app.name}", again, before, evidence, frozenset()
        )

    def _finding_on(
        self,
        target: Target,
        group: str,
        again: list[Again],
        before: float,
        evidence: list[Evidence],
        files: frozenset[str],
        *,
        within: bool = False,
    ) -> Finding:
        parts = []
        for reads, verb in ((True, "read"), (False, "written")):
            of_kind = [traffic for traffic in again if traffic.reads is reads]
            if of_kind:
                moved, needed = (
                    sum(traffic.moved for traffic in of_kind),
                    sum(traffic.needed for traffic in of_kind),
                )
                parts.append(f"{format_bytes(moved)} are {verb} where {format_bytes(needed)} are enough")
        moved, needed = sum(traffic.moved for traffic in again), sum(traffic.needed for traffic in again)
        gain = _gain(again, before)
        current: dict[str, Value] = {"bytes": moved, "times": moved / needed}
        settings: dict[str, Value] = {"bytes": needed}
        lines = ["in the program:"]
        if any(traffic.reads for traffic in again):
            lines.append(
                "  read the data once, keep it in memory, and reuse it"
            )
        if any(not traffic.reads for traffic in again):
            lines.append("  change data in memory, and write it when it is final")
        if within:
            lines = [_DEFINED_FIRST]
            settings = {"bytes": needed, "define": "before the first data"}
        why = "a library copies data after a growing object" if within else "the same bytes again and again"
        return Finding(
            target=target,
            reason=f"Of {group}, {' and '.join(parts)}: {why}.",
            confidence=0.6,
            touched_s=before,
            recommended=settings,
            current=current,
            evidence=evidence,
            gain=gain or "supply a trace with times",
            apply=comment("\n".join(lines)),
            files=files,
        )


def _is_recreated(file: FileEntity) -> bool:
    """True if writers open the file at least as often as they write its bytes, as for checkpoints or repetitions."""
    written, distinct = _bytes(file.io, reads=False), _distinct(file.io, reads=False)
    return written > distinct > 0 and file.opens * distinct >= written * file.writers


def _evidence(item: Item, *, reads: bool) -> list[Evidence]:
    kind, io = "read" if reads else "written", item.file.io
    return [
        Evidence(f"{item.where}.path", item.file.path),
        Evidence(f"{item.where}.io.bytes.{kind}", _bytes(io, reads=reads)),
        Evidence(f"{item.where}.io.footprint.{kind}", _distinct(io, reads=reads)),
    ]


def _gain(again: list[Again], before: float) -> Gain | None:
    moved, needed = sum(traffic.moved for traffic in again), sum(traffic.needed for traffic in again)
    time = sum(traffic.seconds for traffic in again)
    if not before or not time:
        return None
    once = needed / moved
    copies = (moved - needed) / COPY_RATE / time
    return Gain(
        metric="data_time_s",
        before_s=before,
        after_s=before * min(1.0, once + copies),
        best_s=before * once,
        worst_s=before,
        method="each time costs the same, and taking bytes from memory instead at least a copy; low: a cache serves "
        "all but the first as fast, high: without the copies",
    )


def _bytes(io: IOStats, *, reads: bool) -> int:
    return (io.bytes.read if reads else io.bytes.written) or 0


def _distinct(io: IOStats, *, reads: bool) -> int:
    return (io.footprint.read if reads else io.footprint.written) or 0
