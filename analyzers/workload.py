"""The workload: its files, apps and processes, renamed files, and the findings of the first pass over its calls.

Names denote files over time: a renamed file stays the same file. A file is listed, counted and measured under its
last name: if `x.tmp` is written and renamed to `x`, it is `x` from its first byte on. Earlier names are not kept.

- Reused names denote several files in sequence. If each step's checkpoint is written to `x.tmp` and renamed to `x.1`,
  `x.2` and so on, each is a separate file. If a `log` is renamed to `log.1`, it is `log.1` until then, and the `log`
  that is created afterwards is another file. Chains, rotations and swaps follow from this.
- A file that is replaced by a rename is gone; as for a file that is removed and recreated, facts about both
  are under the one name, and the size is the last file's.
- The name denotes the new file from its first open after the rename: earlier writes and closes
  go through descriptors that were open during the rename, whose calls the tracer still records under the old
  name. Calls that name a path (stat, unlink, rename) refer to the new file from the rename on.
- Files in a renamed folder are renamed with it if calls name them in both places; otherwise, and if
  more than a thousand folders with files are renamed, they keep the name used in calls.
- Every rename is assumed to have succeeded, and clocks of ranks and traces to agree. Names that `link` and `symlink`
  add are not tracked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from vani.analyzers.int_table import NO_VALUE, key_widths, pack, unpack
from vani.calls import FileClass, Flag
from vani.columns import Bools, Int8s, Int32s, Ints, Numbers, Texts, distinct, texts, to_numpy

BUCKETS = 4096
"""Maximum number of moments at which the ends of files are known: the run is divided into this many equal pieces."""
MOMENTS = key_widths(BUCKETS + 1)
"""Widths of keys of an entity and a moment."""


@dataclass(frozen=True, eq=False)
class Ends:
    """Reach of each file over time; reads beyond it returned nothing."""

    known: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether the run created the file, or its earlier size is known, and all writes are visible."""
    since: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Shape (files,): time from which the end is known: earlier reads may have returned data."""
    always: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether no read came before that time."""
    keys: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Keys of file and moment, see `MOMENTS`; ascending."""
    reach: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Largest end so far at each key."""
    bucket_ns: int = 1
    level: int = 0
    """A moment is 2 ** level pieces of the run, each of `bucket_ns`."""

    def at(self, file: Ints, time_ns: Ints) -> Ints:
        """End of each file at a time, 0 before anything was written; valid where `known`."""
        ends = np.zeros(len(file), np.int64)
        if len(self.keys):
            moment = np.minimum(time_ns // self.bucket_ns, BUCKETS) >> self.level
            wanted = pack((file, moment), MOMENTS)
            place = np.searchsorted(self.keys, wanted, side="right") - 1
            # The previous key belongs to the same file unless the time is before the file's first moment.
            same = np.flatnonzero((place >= 0) & (self.keys[place] >= wanted - moment))
            ends[same] = self.reach[place[same]]
        return ends

    def for_kernel(self) -> dict[str, Any]:
        """Arguments of kernels that need ends over time."""
        own = ("known", "since", "keys", "reach", "bucket_ns", "level")
        return {name: getattr(self, name) for name in own} | {"buckets": BUCKETS, "moments": MOMENTS[1]}

    def last(self) -> Ints:
        """Largest end that each file ever had, shape (files,); `NO_VALUE` if unknown."""
        ends = np.where(self.known, 0, NO_VALUE)
        owner, _ = unpack(self.keys, MOMENTS)
        if len(owner):
            final = np.flatnonzero(np.append(owner[1:] != owner[:-1], True))
            keep = self.known[owner[final]]
            ends[owner[final][keep]] = self.reach[final][keep]
        return ends


@dataclass(frozen=True, eq=False)
class SurveyFindings:
    """Findings of the first pass, for the second one."""

    phase_start: Ints
    """Shape (phases,): start of each phase in ns, app by app, ascending within an app."""
    phase_app: Ints
    first_phase: Ints
    """Shape (apps + 1,): phases of app a are first_phase[a] .. first_phase[a + 1]."""
    ends: Ends = field(default_factory=Ends)
    linked: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): whether a file is both written and read, and by several processes, which can depend on each other
    through it."""
    linked_by_open: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes or reads left no records except the opens around them."""
    written_by_open: Bools = field(default_factory=lambda: np.empty(0, np.bool_))
    """Shape (files,): of these, files whose writes left no records."""
    threaded: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Processes that run calls concurrently, ascending."""
    listed_as: Int32s | None = None
    """Shape (files + 1,): the code under which `Batch.listed_phase_file` counts a file: its own if it is listed or
    not in the data set, else -1. The last entry is for no file. None if all files are listed."""
    linked_calls: int = 0
    """Number of data operations on `linked` files."""

    @property
    def phases(self) -> int:
        return len(self.phase_start)


NEVER = np.iinfo(np.int64).max
_MAX_FOLDERS = 1000
_BY_PATH = Flag.STAT | Flag.REMOVE | Flag.RENAME | Flag.DIRECTORY


@dataclass(frozen=True, eq=False)
class Renames:
    """Renames of data set files in time order; shape (n,) each."""

    time: Ints
    """Nanoseconds since the start of the workload; 0 if times are unknown."""
    old: Ints
    new: Ints

    def __len__(self) -> int:
        return len(self.old)

    @staticmethod
    def none() -> Renames:
        """No renames."""
        nothing = np.empty(0, np.int64)
        return Renames(nothing, nothing, nothing)


def renames_of(
    tables: Sequence[pa.Table],
    local: Sequence[Ints],
    shifts: Sequence[int],
    paths: Texts,
    classes: Int8s,
) -> Renames:
    """The renames of all traces.

    Parameters
    ----------
    tables
        `vani.calls.RENAMES` of each trace.
    local
        Global code for each of a trace's own file codes.
    shifts
        Start of each trace relative to the first, in ns.
    paths, classes
        Path and `FileClass` of each file.
    """
    none = Renames.none()
    parts = [(none.time, none.old, none.new)]
    for table, codes, shift in zip(tables, local, shifts, strict=True):
        if not len(table):
            continue
        old, new = (to_numpy(table[name].combine_chunks()) for name in ("old", "new"))
        named = (old >= 0) & (new >= 0)
        time = to_numpy(table["start_ns"].combine_chunks()).astype(np.int64)
        parts.append((time[named] + shift, codes[old[named]], codes[new[named]]))
    time, old, new = (np.concatenate([p[i] for p in parts]) for i in range(3))
    if len(time):
        inside = _of_folders(time, old, new, paths)
        time, old, new = (np.concatenate(both) for both in zip((time, old, new), inside, strict=True))
    files = (old != new) & (classes[old] == FileClass.DATASET) & (classes[new] == FileClass.DATASET)
    order = np.flatnonzero(files)[np.argsort(time[files], kind="stable")]
    return Renames(time[order], old[order], new[order])


def _of_folders(time: Ints, old: Ints, new: Ints, paths: Texts) -> tuple[Ints, Ints, Ints]:
    """Renames of the files in renamed folders, if both names of a file are known."""
    import pyarrow.compute as pc  # noqa: PLC0415 - few programs rename folders

    column = paths.column
    parents = pc.replace_substring_regex(column, "/+[^/]*$", "").unique().to_pylist()
    folders = set(parents)
    while parents:
        parents = [above for p in parents if (above := p.rpartition("/")[0]) and above not in folders]
        folders.update(parents)
    moves = np.unique(np.stack([old, new]), axis=1).T.tolist()
    moves = [(a, b) for a, b in moves if a != b and paths[a] in folders][:_MAX_FOLDERS]
    renames: list[tuple[Ints, Ints, Ints]] = [(time[:0], time[:0], time[:0])]
    for a, b in moves:
        before, after = paths[a] + "/", paths[b] + "/"
        inside = np.flatnonzero(to_numpy(pc.starts_with(column, before)))
        names = texts([after + paths[i][len(before) :] for i in inside.tolist()]).cast(column.type)
        place = to_numpy(pc.index_in(names, value_set=column), -1).astype(np.int64)
        inside, place = inside[place >= 0], place[place >= 0]
        when = time[(old == a) & (new == b)]
        renames.append((np.repeat(when, len(inside)), np.tile(inside, len(when)), np.tile(place, len(when))))
    return tuple(np.concatenate([f[i] for f in renames]) for i in range(3))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Lives:
    """Files that names denote in sequence: each turn of a name ends one life and begins another."""

    place: Ints
    """Shape (files + 1,): index of a name among those with turns, else -1; the last entry is for no file."""
    first: Ints
    """Shape (names + 1,): turns of name i are first[i] .. first[i + 1]."""
    renamed: Ints
    """Shape (turns,): time of the rename, ascending within a name."""
    opened: Ints
    """Shape (turns,): first open of the name after that, `NEVER` if none; ascending within a name."""
    files: Ints
    """Shape (turns + names,): the file of each life of each name, as the code of its last name."""

    def of(self, file: Ints, start: Ints, flags: Numbers) -> Ints:
        """Files that names denote, shape (n,), given the names in calls, their start times, and their flags."""
        place = self.place[file]
        rows = np.flatnonzero(place >= 0)
        if not len(rows):
            return file
        place, start, flags = place[rows], start[rows], flags[rows]
        by_path = (flags & _BY_PATH) != 0
        turns = np.where(
            by_path,
            # A rename itself is the last call of the life that it ends.
            self.turns(self.renamed, place, start - ((flags & Flag.RENAME) != 0)),
            self.turns(self.opened, place, start),
        )
        files = file.copy()
        files[rows] = self.files[self.first[place] + place + turns]
        return files

    def turns(self, times: Ints, place: Ints, until: Ints) -> Ints:
        """Number of turns of each name up to a time."""
        moments = distinct(times)
        width = len(moments) + 2
        name = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        keys = pack((name, np.searchsorted(moments, times) + 1), key_widths(width))
        wanted = pack((place, np.searchsorted(moments, until, side="right")), key_widths(width))
        return np.searchsorted(keys, wanted, side="right") - self.first[place]


def lives_of(renames: Renames, files: int) -> Lives | None:
    """The lives of names, with each turn at the time of its rename; None without renames."""
    if not len(renames):
        return None
    now: dict[int, int] = {}
    turns: dict[int, list[tuple[int, int]]] = {}
    # Go backwards from the end of the run, when each file has its final name.
    for time, old, new in zip(
        reversed(renames.time.tolist()),
        reversed(renames.old.tolist()),
        reversed(renames.new.tolist()),
        strict=True,
    ):
        becomes, after = now.get(new, new), now.get(old, old)
        if becomes != new:
            turns.setdefault(new, []).append((time, becomes))
            now[new] = new
        if after != becomes:
            turns.setdefault(old, []).append((time, after))
            now[old] = becomes
    names = sorted(turns)
    place = np.full(files + 1, -1)
    place[names] = np.arange(len(names))
    renamed, lives = [], []
    for name in names:
        lives.append(now[name])
        for time, after in reversed(turns[name]):
            renamed.append(time)
            lives.append(after)
    first = np.cumsum([0, *(len(turns[name]) for name in names)])
    times = np.array(renamed, np.int64)
    return Lives(place, first, times, times, np.array(lives, np.int64))


def groups_of_names(renames: Renames, files: int) -> Ints:
    """Shape (files,): one code for all names among which files were renamed, in any order; otherwise a name's own."""
    group = np.arange(files, dtype=np.int64)
    root: dict[int, int] = {}

    def top(name: int) -> int:
        while (above := root.get(name, name)) != name:
            root[name] = root.get(above, above)
            name = above
        return name

    pairs = np.unique(np.stack([renames.old, renames.new]), axis=1)
    for old, new in zip(*pairs.tolist(), strict=True):
        a, b = top(old), top(new)
        root[max(a, b)] = min(a, b)
    for name in distinct(pairs.ravel()).tolist():
        group[name] = top(name)
    return group


@dataclass(frozen=True, eq=False)
class Workload:
    """The workload before any call is read, from the manifests of its stores."""

    paths: Sequence[str]
    """Path of each global file code; traces that name the same path share its code."""
    file_class: Int8s
    apps: tuple[str, ...]
    app_of_trace: tuple[int, ...]
    process_base: tuple[int, ...]
    """First global process number of each trace."""
    processes: int
    shift_ns: tuple[int, ...]
    """Start of each trace relative to the first, in ns."""
    span_ns: int
    """End of the last call in ns."""
    known_sizes: Ints
    """Shape (files,): size of a file before the run according to job.yaml, or `NO_VALUE`."""
    final_name: Ints
    """Shape (files,): one code for all names among which files were renamed, if the order of calls is unknown;
    otherwise each name's own code, and `Batch.file` maps files to their last name."""
    functions: tuple[str, ...] = ()
    """Names of all traces' functions, by global code."""
    renames: Renames = field(default_factory=Renames.none)
    lives: Lives | None = None
    """Files that names denote over time; None if no data set file was renamed."""

    @property
    def files(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """A trace's place in the workload: the global codes for its own codes."""

    workload: Workload
    trace: int
    file_codes: Ints
    """Global code for each of the trace's own file codes."""
    function_codes: Int32s = field(default_factory=lambda: np.zeros(1, np.int32))
    """Global code for each of the trace's own function codes; the last entry is for a function without a name."""

    @property
    def app(self) -> int:
        return self.workload.app_of_trace[self.trace]
