"""Files in a profile that are data of the program, what they represent, and their share of the run.

A profile lists every path that is not a device, including configuration of the machine, Python modules and helper
files of MPI libraries, for which no setting makes sense.

The list of files ends at a hundred, so a rule's sums over it would cover only a hundred files. Each listed file
therefore represents a part of its name pattern: the parts of all listed files of a pattern add up exactly to the
figures in `profile.patterns`. If all files of a run are listed, each part is one file.

The metadata server handles names and attributes: open and close, stat, folders, remove and rename. A seek stays in the
client, and truncations, locks and mappings are separate. Flushing is not metadata.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, Self, TypedDict

from vani.advisors.access_table import joint_files
from vani.advisors.rule import Evidence, Target, figures, value_at
from vani.models.run_time import Kind, cost_s, files_s, seconds, seconds_of
from vani.units import format_count, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import (
        App,
        FileEntity,
        Interface,
        IOStats,
        MetadataKinds,
        NamePattern,
        Profile,
        Sizes,
    )
    from vani.schema.system import System


_SHOWN: Final = 3
_WILD: Final = re.compile(r"%d|%0([0-9]+)d|\*\*|\*")


@dataclass(frozen=True)
class PatternShare:
    """The part of its pattern that a listed file represents, as factors on its own figures."""

    folder: str | None = None
    """Deepest folder that contains all files of the pattern."""
    pattern: int | None = None
    """Index of the pattern in the profile."""
    files: float = 1.0
    reads: float = 1.0
    writes: float = 1.0
    opens: float = 1.0
    read: float = 1.0
    """Factor on the bytes read."""
    written: float = 1.0
    time: float = 1.0
    metadata_time: float = 1.0
    flushes: float = 1.0


ALONE: Final = PatternShare()
"""A file that represents only itself."""


def large_shared_files(profile: Profile, least: int) -> list[tuple[int, FileEntity]] | str:
    """Files of at least `least` bytes that several processes write, with their indexes; a sentence if none."""
    files = [(index, file) for index, file in enumerate(profile.files) if file.access == "shared" and file.writers > 1]
    large = [(index, file) for index, file in files if (extent(file) or 0) >= least]
    return large or f"no shared file of {lfs_size(least)}iB or more is written by several processes"


def parts_of(profile: Profile) -> list[PatternShare]:
    """The part of each listed file, in profile order."""
    if not profile.patterns:
        return [ALONE] * len(profile.files)
    patterns = _Patterns(profile.patterns)
    members: defaultdict[int, list[int]] = defaultdict(list)
    for position, file in enumerate(profile.files):
        number = patterns.of(file.path)
        if number is not None:
            members[number].append(position)
    parts = [ALONE] * len(profile.files)
    for number, positions in members.items():
        pattern = profile.patterns[number]
        part = _part(number, pattern, [profile.files[position] for position in positions])
        for position in positions:
            parts[position] = part
    return parts


def pattern_evidence(parts: Sequence[PatternShare], profile: Profile) -> list[Evidence]:
    """Number of files in the patterns that some listed files represent, or of all files if there are no patterns."""
    numbers = dict.fromkeys(part.pattern for part in parts if part.pattern is not None)
    if not numbers or not profile.patterns:
        return [Evidence("dataset.files", profile.dataset.files)]
    return [
        Evidence(f"patterns[{number}].{attribute}", getattr(profile.patterns[number], attribute))
        for number in list(numbers)[:_SHOWN]
        for attribute in ("pattern", "files")
    ]


def folder_of_pattern(pattern: str) -> str:
    """The deepest folder that contains all files of a pattern; `.` for bare names."""
    wild = _WILD.search(pattern)
    return posixpath.dirname(pattern[: wild.start()] if wild else pattern) or "."


def _part(number: int, pattern: NamePattern, files: Sequence[FileEntity]) -> PatternShare:
    if pattern.files <= len(files):
        return PatternShare(folder_of_pattern(pattern.pattern), number)
    io = [file.io for file in files]
    return PatternShare(
        folder_of_pattern(pattern.pattern),
        number,
        files=pattern.files / len(files),
        reads=_factor(pattern.reads, [stats.ops.read for stats in io]),
        writes=_factor(pattern.writes, [stats.ops.write for stats in io]),
        flushes=_factor(pattern.flushes, [stats.ops.sync for stats in io]),
        opens=_factor(pattern.opens, [file.opens for file in files]),
        read=_factor(pattern.bytes.read, [stats.bytes.read for stats in io]),
        written=_factor(pattern.bytes.written, [stats.bytes.written for stats in io]),
        time=_factor(pattern.time_s, [stats.time_s.total for stats in io]),
        metadata_time=_factor(pattern.metadata_time_s, [stats.time_s.metadata for stats in io]),
    )


def _factor(whole: float | None, parts: Sequence[float | None]) -> float:
    listed = sum(part or 0.0 for part in parts)
    return max(1.0, whole / listed) if whole and listed else 1.0


class _Patterns:
    """Finds the pattern of a path. If several match, it is the one with most literal characters."""

    def __init__(self, patterns: Sequence[NamePattern]) -> None:
        self._single = {pattern.pattern: n for n, pattern in enumerate(patterns) if pattern.files == 1}
        several = [(n, pattern.pattern) for n, pattern in enumerate(patterns) if pattern.files > 1]
        several.sort(key=lambda row: -len(_WILD.sub("", row[1])))
        self._several = [(n, _WILD.split(text, 1)[0], _expression(text)) for n, text in several]

    def of(self, path: str) -> int | None:
        """Index of the path's pattern; None if the profile does not list it."""
        if path in self._single:
            return self._single[path]
        for number, begin, expression in self._several:
            if path.startswith(begin) and expression.fullmatch(path):
                return number
        return None


def _expression(pattern: str) -> re.Pattern[str]:
    text, at = "", 0
    for wild in _WILD.finditer(pattern):
        text += re.escape(pattern[at : wild.start()])
        digits = f"[0-9]{{{wild[1]},}}" if wild[1] else "[0-9]+"
        text += ".*" if wild[0].startswith("*") else digits
        at = wild.end()
    return re.compile(text + re.escape(pattern[at:]), re.DOTALL)


OPENING: Final = ("open", "close")
"""Operations that become fewer if files are opened less often."""

SERVED: Final = ("open", "close", "stat", "directory", "remove")
"""Operations that a metadata server answers."""

def share_of(parts: Iterable[IOStats], kinds: Sequence[str]) -> float:
    """Share of `kinds` in the time of metadata operations, 0..1; 1 if unknown."""
    known = [io.metadata_kinds for io in parts if io.metadata_kinds is not None]
    total = sum(_time(table, name) for table in known for name in type(table).model_fields)
    return sum(_time(table, name) for table in known for name in kinds) / total if total else 1.0


def time_of(parts: Sequence[IOStats], kinds: Sequence[str]) -> float:
    """Seconds in metadata operations of `kinds`, summed over processes; of all kinds if these are not separate."""
    return sum((io.time_s.metadata or 0.0) * share_of([io], kinds) for io in parts)


def count_of(io: IOStats, kinds: Sequence[str]) -> int:
    """Number of metadata operations of `kinds`; of all kinds if these are not separate."""
    if io.metadata_kinds is None:
        return io.ops.metadata
    return sum(getattr(io.metadata_kinds, name).count for name in kinds)


def flushes_most(io: IOStats, share: float) -> bool:
    """True if at least `share` of the I/O time is flushing, which fewer metadata operations do not shorten."""
    return bool(io.time_s.sync and io.time_s.total and io.time_s.sync >= share * io.time_s.total)


def _time(kinds: MetadataKinds, name: str) -> float:
    return float(getattr(kinds, name).time_s or 0.0)


SHOWN = 10
"""Most files in a recommendation's evidence, for one screen. The command covers all of them."""

# Filesystem Hierarchy Standard 3.0: folders of the machine and its software, without data of programs.
_MACHINE: Final = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr")

# Folders of installed software anywhere, in Python's and Conda's layout.
_SOFTWARE: Final = frozenset({"__pycache__", "dist-packages", "site-packages", "conda-meta"})
_PYTHON: Final = re.compile(r"/lib(?:64)?/python[0-9][0-9.]*/|(?:^|/)pyvenv\.cfg$")


# Most app names to list.
_NAMED: Final = 2


class Affected(TypedDict):
    """Keywords of `Finding` for its target and files."""

    target: Target
    files: frozenset[str]


@dataclass(frozen=True, eq=False)
class Item:
    """A file and its index in the profile."""

    index: int
    file: FileEntity
    part: PatternShare = ALONE
    """Part of its name pattern that the file represents, for patterns with unlisted files."""

    @property
    def where(self) -> str:
        """Path of the file's entry in the profile."""
        return f"files[{self.index}]"

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def io(self) -> IOStats:
        return self.file.io

    @property
    def reads(self) -> float:
        """Number of reads of the file and those that it represents, as for the properties below."""
        return self.io.ops.read * self.part.reads

    @property
    def writes(self) -> float:
        return self.io.ops.write * self.part.writes

    @property
    def waiting_writes(self) -> float:
        """Writes through descriptors opened with O_SYNC or O_DSYNC."""
        return (self.file.synchronous_writes or 0) * self.part.writes

    @property
    def requests(self) -> float:
        return self.reads + self.writes

    @property
    def flushes(self) -> float:
        return self.io.ops.sync * self.part.flushes

    @property
    def opens(self) -> float:
        return self.file.opens * self.part.opens

    @property
    def files(self) -> float:
        return self.part.files

    def moved_by(self, *, reads: bool) -> float:
        """Bytes read, or written."""
        moved, part = self.io.bytes, self.part
        return (moved.read or 0) * part.read if reads else (moved.written or 0) * part.written

    @property
    def moved(self) -> float:
        """Bytes read and written."""
        return self.moved_by(reads=True) + self.moved_by(reads=False)

    def figures(self, *attributes: str) -> list[Evidence]:
        """Attributes of the file as evidence."""
        return figures(self.file, self.where, *attributes)


@dataclass(frozen=True)
class Access:
    """The reads or the writes of a file. Figures are those of the listed file alone."""

    item: Item
    reads: bool

    @property
    def kind(self) -> Literal["read", "write"]:
        return "read" if self.reads else "write"

    @property
    def done(self) -> Literal["read", "written"]:
        return "read" if self.reads else "written"

    @property
    def processes(self) -> int:
        """Number of processes that read, or write."""
        return self.item.file.readers if self.reads else self.item.file.writers

    @property
    def bytes(self) -> int:
        """Bytes moved; 0 if unknown."""
        return getattr(self.item.io.bytes, self.done) or 0

    @property
    def distinct(self) -> int:
        """Bytes of the file that are touched; 0 if unknown."""
        return getattr(self.item.io.footprint, self.done) or 0

    @property
    def times(self) -> float:
        """How often each distinct byte moves; 0 if unknown."""
        return self.bytes / self.distinct if self.distinct else 0.0

    @property
    def requests(self) -> int:
        return int(getattr(self.item.io.ops, self.kind))

    @property
    def sizes(self) -> Sizes | None:
        """Sizes of the requests."""
        sizes: Sizes | None = getattr(self.item.io.transfer_size, self.kind)
        return sizes

    @property
    def row(self) -> tuple[int, int, float]:
        """Bytes, requests, and their seconds summed over processes."""
        return self.bytes, self.requests, seconds(getattr(self.item.io.time_s, self.kind))

    def figures(self, *attributes: str) -> list[Evidence]:
        """Attributes of the file as evidence, with the direction's words in place of {kind}, {done} and {users}."""
        users = "readers" if self.reads else "writers"
        return self.item.figures(*(a.format(kind=self.kind, done=self.done, users=users) for a in attributes))


@dataclass(frozen=True)
class Group:
    """Files of an app in a folder, which one edit of the program changes. Files of several apps have no app."""

    app: App | None
    folder: str
    items: list[Item]

    def of(self, items: Iterable[Item]) -> Self:
        """The group with only these files."""
        return replace(self, items=list(items))

    @property
    def target(self) -> Target:
        """The target of a finding: the file, or the folder if there are several files."""
        name = self.app.name if self.app is not None else None
        path = self.items[0].path if files_of(self.items) == 1 else None
        return Target("directory", self.folder, name) if path is None else Target("file", path, name)

    @property
    def words(self) -> str:
        """The files in words, with their app or apps."""
        return listed(self.folder, self.items, self.app)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(item.path for item in self.items)

    @property
    def affected(self) -> Affected:
        """Target and files of a finding on the whole group."""
        return {"target": self.target, "files": self.paths}

    @property
    def path(self) -> str | None:
        """The path of the only file; None if there are several."""
        return self.items[0].path if len(self.items) == 1 else None

    def wall_s(self, kind: Kind) -> float:
        """Seconds of the run that calls of `kind` on the files cost; see `vani/models/run_time.py`."""
        seconds = files_s([item.file for item in self.items], self.app, kind)
        times = [(item.part, seconds_of(item.io.time_s, kind)) for item in self.items]
        listed_s = sum(time for _, time in times)
        all_s = sum(time * (part.metadata_time if kind == "metadata" else part.time) for part, time in times)
        if not listed_s or all_s <= listed_s:
            return seconds
        most = math.inf if self.app is None else cost_s([self.app.io], self.app.processes, self.app, kind)
        return max(0.0, min(seconds * all_s / listed_s, most))

    def data_s(self, accesses: Iterable[Access] | None = None) -> float:
        """Seconds of the run that reading and writing the files costs, or that these accesses cost."""
        every = (Access(item, side) for item in self.items for side in (True, False))
        used = [*(every if accesses is None else accesses)]
        reads, writes = (Group(self.app, "", [a.item for a in used if a.reads is side]) for side in (True, False))
        both = Group(self.app, "", [*dict.fromkeys(access.item for access in used)])
        return min(reads.wall_s("read") + writes.wall_s("write"), both.wall_s("total"))

    def metadata_s(self, kinds: Sequence[str]) -> float:
        """Seconds of the run that metadata operations of these kinds on the files cost."""
        return self.wall_s("metadata") * share_of((item.io for item in self.items), kinds)

    @property
    def writers(self) -> int:
        """Number of writers, at least one for each file, including unlisted ones."""
        return round(sum(max(1, item.file.writers) * item.part.files for item in self.items))

    def total(self, path: str) -> int:
        """Sum of a number of calls or bytes, such as `io.bytes.read`, over the listed files, with null as 0."""
        return sum(value_at(item.file, path) or 0 for item in self.items)

    def seconds(self, path: str) -> float:
        """Sum of a time, such as `io.time_s.sync`, over the listed files; raises InputError if one is null."""
        return sum(seconds(value_at(item.file, path)) for item in self.items)

    def scaled(self, path: str, weight: str) -> float:
        """Sum of a number over the files and those that they represent, by that factor of their part."""
        parts: Iterator[float] = (
            (value_at(item.file, path) or 0) * getattr(item.part, weight) for item in self.items
        )
        return sum(parts)

    def figures(self, *attributes: str, most: int = 3) -> list[Evidence]:
        """Attributes of the first files as evidence."""
        return [figure for item in self.items[:most] for figure in item.figures(*attributes)]


@dataclass(frozen=True)
class LayerGroup(Group):
    """Files that an app accesses through a library: its `layer`, and the index of that in the profile."""

    app: App
    layer: Interface
    number: int

    @property
    def where(self) -> str:
        """Path of the layer in the profile."""
        return f"interfaces[{self.number}]"

    @property
    def words(self) -> str:
        """The files in words, without the app."""
        return listed(self.folder, self.items)

    def layer_figures(self, *attributes: str) -> list[Evidence]:
        """Attributes of the layer as evidence."""
        return figures(self.layer, self.where, *attributes)

    def missing(self, attribute: str) -> str | None:
        """A sentence with what to supply if an attribute of the layer is null; otherwise None."""
        if value_at(self.layer, attribute) is not None:
            return None
        return f"{self.where}.{attribute} is not known; supply {_SUPPLY[attribute]}"


_SUPPLY: Final = {
    "collective_share": "a trace with the data calls of MPI-IO",
    "data_representation.chunked": "a trace of the run that created the data sets, or ask `h5dump -pH`",
    "granularity.data": "a trace with sizes",
}


def functions_of(app: App | None, profile: Profile) -> set[str]:
    """Names of the functions that traces show an app to call."""
    return {name for trace in profile.traces if app is not None and trace.app == app.name for name in trace.functions}


def not_used(profile: Profile, library: str) -> str:
    """Why a rule about a library has nothing to judge: no app uses it, or calls of it are in no record."""
    why = profile.provenance.get("interfaces.layer", "")
    return f"calls of {library} are not recorded: {why}" if library in why else f"no app uses {library}"


def data_files(profile: Profile, keep: Callable[[FileEntity], bool] = lambda _: True) -> list[Item]:
    """The files that are data of the program and for which `keep` is true."""
    chosen = [i for i, file in enumerate(profile.files) if is_data(file.path) and keep(file)]
    if not chosen:
        return []
    parts = parts_of(profile)
    return [Item(i, profile.files[i], parts[i]) for i in chosen]


def posix_items(profile: Profile) -> list[Item]:
    """The data files whose requests no MPI-IO call of several processes can join."""
    joint = joint_files(profile)
    return data_files(profile, lambda file: file.path not in joint)


NO_POSIX: Final = "every data file is shared by several processes through MPI-IO"
"""Reason of rules about the files of `posix_items`."""


def posix_files(profile: Profile, system: System) -> str | None:  # noqa: ARG001 - a need of rules
    """Requirement: data files that MPI-IO does not share. Return why there are none, or None."""
    if posix_items(profile):
        return None
    return NO_POSIX if data_files(profile) else "no file of the run is data of a program"


def alike(items: Iterable[Item]) -> list[list[Item]]:
    """Groups of files to judge: single files, or all files of a pattern that has unlisted files."""
    groups: defaultdict[tuple[str, int], list[Item]] = defaultdict(list)
    for item in items:
        several = item.part.files > 1 and item.part.pattern is not None
        groups[("pattern", item.part.pattern or 0) if several else ("file", item.index)].append(item)
    return list(groups.values())


def is_journal(path: str) -> bool:
    """True for a SQLite journal: each commit must be on disk (sqlite.org, "Temporary Files Used By SQLite")."""
    return path.endswith(("-journal", "-wal"))


def app_of(file: FileEntity) -> str | None:
    """The app that uses the file; None if several do, because the figures are then of all of them."""
    return file.apps[0] if len(file.apps) == 1 else None


def only(file: FileEntity) -> Affected:
    """A finding about a single file."""
    return {"target": Target("file", file.path, app_of(file)), "files": frozenset({file.path})}


def by_folder(items: Iterable[Item], profile: Profile, among: Collection[str] | None = None) -> list[Group]:
    """Group files by app and folder, in profile order.

    Folders whose names differ only in numbers, like those of their files, are merged into their parent folder.
    Files of several apps have the app None. With `among`, a file belongs to the first of these apps that uses it.
    """
    groups: defaultdict[tuple[str, str], list[Item]] = defaultdict(list)
    for item in items:
        apps_of = item.file.apps
        owners = [app_of(item.file)] if among is None else [name for name in apps_of if name in among]
        groups[next(iter(owners), None) or "", item.part.folder or folder_of(item.file.path)].append(item)
    apps = {app.name: app for app in profile.apps}
    return [Group(apps.get(app), folder, group) for (app, folder), group in groups.items()]


def files_of(items: Sequence[Item]) -> int:
    """Number of files, including unlisted ones with the same patterns."""
    return round(sum(item.part.files for item in items))


def listed(folder: str, items: Sequence[Item], app: App | None = None) -> str:
    """The files in words, with the app if given, or with the apps that share them."""
    apps = dict.fromkeys(name for item in items for name in item.file.apps)
    of_app = f" of {app.name}" if app is not None else ""
    users = f" ({_names(list(apps))})" if app is None and len(apps) > 1 else ""
    number = files_of(items)
    where = items[0].file.path if number == 1 else f"{format_count(number)} files{of_app} in {folder}"
    return where + users


def folder_of(path: str) -> str:
    """The folder of a file; `.` for a bare name."""
    return posixpath.dirname(path) or "."


def extent(file: FileEntity) -> int | None:
    """Size of the file in bytes, or the bytes touched if the size is unknown; None if neither is known."""
    most, touched = file.size, file.io.footprint
    for size in (touched.read, touched.written):
        if size is not None and (most is None or size > most):
            most = size
    return most


def _names(apps: Sequence[str]) -> str:
    """The first few apps in words: a workflow may have hundreds."""
    shown, more = apps[:_NAMED], len(apps) - _NAMED
    return f"used by {', '.join(shown)} and {more} more" if more > 0 else f"used by {' and '.join(shown)}"


# Usual names of checkpoints; nothing else in a profile identifies them.
_CHECKPOINT: Final = re.compile(r"ckpt|chkp|(?<![a-z])chk|checkpoint|restart|(?<![a-z])rst|dmtcp", re.IGNORECASE)


def is_checkpoint(path: str) -> bool:
    """True if the path looks like that of a checkpoint, which contains a program's state."""
    return _CHECKPOINT.search(path) is not None


def generations_of(file: FileEntity) -> int:
    """Files of this name that were each written whole, and not made from the one before: a checkpoint, for one."""
    is_new = (file.io.bytes.read or 0) < (file.io.bytes.written or 0) / 2
    return file.generations or 1 if is_new else 1


def is_recreated(item: Item) -> bool:
    """True if writers open the file at least as often as they write its bytes, as for checkpoints or repetitions."""
    if item.file.generations:
        return generations_of(item.file) > 1
    writes = Access(item, reads=False)
    # Our choice: a library writes a header again, but hardly half of a file.
    again = writes.bytes >= 1.5 * writes.distinct > 0
    return again and item.file.opens * writes.distinct >= writes.bytes * writes.processes


def is_software(path: str) -> bool:
    """True for a file of a Python program or an installed environment in any folder; FLD002 is about these."""
    if path.endswith((".py", ".pyc")):
        return True
    return not _SOFTWARE.isdisjoint(path.split("/")) or _PYTHON.search(path) is not None


def software_share(profile: Profile) -> float:
    """Share of the I/O time, 0..1, of loading programs and environments, with the search for modules."""
    total = seconds(profile.workflow.io.time_s.total)
    loading = sum(seconds(row.time_s) for row in profile.patterns or () if is_software(row.pattern))
    # The excluded part is in no I/O time.
    loading += sum(seconds(r.time_s) - seconds(r.excluded_s) for r in profile.lookups or () if is_software(r.folder))
    return min(1.0, loading / total) if total else 0.0


# Cached because every rule asks about the same files.
@lru_cache(maxsize=1 << 17)
def is_data(path: str) -> bool:
    """True if a path is data of a program rather than software; files of MPI are not in a profile's lists."""
    parts = path.split("/")
    if parts[0] == "" and len(parts) > 1 and parts[1] in _MACHINE:
        # Memory that looks like a device, in which programs do keep data.
        return path.startswith("/dev/shm/")
    return not is_software(path)
