"""Files that names denote over time: a renamed file stays the same file.

A file is listed, counted and measured under its last name: if `x.tmp` is written and renamed to `x`, it is
`x` from its first byte on. Earlier names are not kept.

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
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.int_table import beside, pack
from vani.calls import FileClass, Flag
from vani.columns import Texts, texts, to_numpy
from vani.distinct import distinct

if TYPE_CHECKING:
    from vani.analyzers.calls.batch import Batch
    from vani.analyzers.workload.survey_findings import SurveyFindings
    from vani.analyzers.workload.workload import Context

Ints = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).max
_MOST_FOLDERS = 1000
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
    classes: NDArray[np.int8],
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
    moves = [(a, b) for a, b in moves if a != b and paths[a] in folders][:_MOST_FOLDERS]
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
    """Shape (turns,): first open of the name after that, `_NEVER` if none; ascending within a name."""
    files: Ints
    """Shape (turns + names,): the file of each life of each name, as the code of its last name."""

    def of(self, file: Ints, start: Ints, flags: NDArray[Any]) -> Ints:
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
            self._turns(self.renamed, place, start - ((flags & Flag.RENAME) != 0)),
            self._turns(self.opened, place, start),
        )
        files = file.copy()
        files[rows] = self.files[self.first[place] + place + turns]
        return files

    def _turns(self, times: Ints, place: Ints, until: Ints) -> Ints:
        """Number of turns of each name up to a time."""
        moments = distinct(times)
        width = len(moments) + 2
        name = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        keys = pack((name, np.searchsorted(moments, times) + 1), beside(width))
        wanted = pack((place, np.searchsorted(moments, until, side="right")), beside(width))
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


class Openings:
    """A measure with a separate pass, for the first open of each name after each of its turns."""

    name = "openings"
    columns = frozenset({"file", "start_ns"})

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _Collector:
        del context, findings
        return _Collector(self._lives)

    def combine(self, parts: Sequence[Ints]) -> Ints:
        first: Ints = np.min([np.full(len(self._lives.renamed), _NEVER), *parts], axis=0)
        return first

    def placed(self, opened: Ints) -> Lives:
        """The lives with the times found; a name that is not opened between two renames has no file there."""
        lives = self._lives
        opened_by_turn = opened.copy()
        for a, b in zip(lives.first[:-1].tolist(), lives.first[1:].tolist(), strict=True):
            opened_by_turn[a:b] = np.minimum.accumulate(opened_by_turn[a:b][::-1])[::-1]
        return replace(lives, opened=opened_by_turn)


class _Collector:
    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._opened = np.full(len(lives.renamed), _NEVER)

    def add(self, batch: Batch) -> None:
        lives = self._lives
        opens = np.flatnonzero((batch.flags & Flag.OPEN) != 0)
        place = lives.place[batch.named[opens]]
        opens, place = opens[place >= 0], place[place >= 0]
        start = batch.start[opens]
        turns = lives._turns(lives.renamed, place, start)
        behind = turns > 0
        np.minimum.at(self._opened, (lives.first[place] + turns - 1)[behind], start[behind])

    def result(self) -> Ints:
        return self._opened


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
