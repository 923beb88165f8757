"""File positions: at which offset a call that names none begins.

A sequential `read` begins where the call before it on the same file ended, a seek moves that place, an open sets
it to 0. The tracer names files by path, not by descriptor, so a process has one position per path (two descriptors
of one path at a time cannot be told apart). Nothing loops per call: within a process and file, positions are sums
since the last call that set one.

What the trace does not say is assumed, and the readers say so in their limits:

- a file that only one process uses, and that it opens with O_CREAT before anything else, was empty then; its end
  is followed through writes and truncations, reads stop there, SEEK_END and O_APPEND begin there;
- the end of a file that several processes use is not known to one of them: reads move what they ask for,
  positions after SEEK_END and offsets of appended data are null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag, Kind
from vani.readers.functions import Rule

__all__ = ["NO_VALUE", "Positions", "stable_order"]

NO_VALUE = np.iinfo(np.int64).min
_ROUNDS = 16

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def stable_order(keys: NDArray[Any]) -> Ints:
    """Indices that sort `keys` (integers), equal ones in their order."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high == low:
        return np.arange(len(keys))
    # numpy sorts 16-bit integers by radix, several times faster than wider ones.
    if high - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


@dataclass
class _State:
    """What one process knows of its files between two batches; arrays sorted by file, shape (files,)."""

    rank: int = -1
    file: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    position: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    end: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    append: Bools = field(default_factory=lambda: np.empty(0, np.bool_))

    def of(self, file: Ints, mine: Bools) -> tuple[Ints, Ints, Bools]:
        position = np.full(len(file), NO_VALUE)
        end = np.full(len(file), NO_VALUE)
        append = np.zeros(len(file), np.bool_)
        if len(self.file) and mine.any():
            at = np.searchsorted(self.file, file)
            at[at == len(self.file)] = 0
            found = mine & (self.file[at] == file)
            position[found], end[found], append[found] = (
                self.position[at][found],
                self.end[at][found],
                self.append[at][found],
            )
        return position, end, append

    def keep(self, rank: int, file: Ints, position: Ints, end: Ints, append: Bools) -> None:
        if rank == self.rank:
            old = ~np.isin(self.file, file)
            file = np.concatenate((self.file[old], file))
            position = np.concatenate((self.position[old], position))
            end = np.concatenate((self.end[old], end))
            append = np.concatenate((self.append[old], append))
        order = np.argsort(file)
        self.rank, self.file, self.position = rank, file[order], position[order]
        self.end, self.append = end[order], append[order]


class Positions:
    """Follows the file positions of processes whose calls come in batches, rank after rank."""

    def __init__(self, private: Bools) -> None:
        """`private[file]`, shape (files,): only one process of the trace names this file."""
        self._private = private
        self._state = _State()
        self.unsettled = 0
        """Calls whose position depends on file ends in a way that was given up after some rounds."""

    def resolve(
        self,
        rank: NDArray[np.int32],
        file: NDArray[np.int32],
        rule: NDArray[np.int8],
        kind: NDArray[np.int8],
        value: Ints,
        size: Ints,
        flags: NDArray[np.int16],
    ) -> Ints:
        """Offsets of one batch, shape (n,), `NO_VALUE` where unknown; adds `Flag.APPEND` to `flags` in place.

        Parameters
        ----------
        rank
            Ascending.
        file
            Code, -1 for none.
        value
            Offset, seek distance or new length as the call gives it, `NO_VALUE` for none.
        size
            Bytes asked for, `NO_VALUE` for unknown.
        """
        offset = np.full(len(rank), NO_VALUE)
        rows = np.flatnonzero((rule != Rule.NONE) & (file >= 0))
        if not len(rows):
            return offset
        base = int(rank[0])
        files = len(self._private)
        key = file[rows].astype(np.int64)
        several = int(rank[-1]) != base
        if several:
            key += (rank[rows].astype(np.int64) - base) * files
        order = stable_order(key)
        rows, key = rows[order], key[order]
        found, after, end, append = self._follow(
            key, base, files, rule[rows], kind[rows], value[rows], size[rows], flags, rows
        )
        offset[rows] = found
        last_of_group = np.flatnonzero(np.append(key[1:] != key[:-1], True))
        group_rank = key[last_of_group] // files + base if several else np.full(len(last_of_group), base)
        current = int(rank[-1])
        mine = group_rank == current
        at = last_of_group[mine]
        self._state.keep(current, key[at] % files, after[at], end[mine], append[at])
        return offset

    def _follow(
        self,
        key: Ints,
        base: int,
        files: int,
        rule: NDArray[np.int8],
        kind: NDArray[np.int8],
        value: Ints,
        size: Ints,
        flags: NDArray[np.int16],
        rows: Ints,
    ) -> tuple[Ints, Ints, Ints, Bools]:
        n = len(key)
        index = np.arange(n)
        starts = np.append(True, key[1:] != key[:-1])
        first = np.flatnonzero(starts)
        group = np.cumsum(starts) - 1
        file_of_group = key[first] % files
        carried_rank = key[first] // files + base == self._state.rank
        position0, end0, append0 = self._state.of(file_of_group, carried_rank)
        private = self._private[file_of_group]
        end0[~private] = NO_VALUE

        row_flags = flags[rows]
        is_open = rule == Rule.OPEN
        advances = rule == Rule.ADVANCE
        writes = kind == Kind.WRITE
        opened = np.maximum.accumulate(np.where(is_open | starts, index, 0))
        appending = np.where(is_open[opened], (row_flags[opened] & Flag.APPEND) != 0, append0[group])
        appends = advances & writes & appending
        if appends.any():
            flags[rows[appends]] |= Flag.APPEND

        ends = _Ends(starts, first, group, is_open, rule == Rule.RESIZE, value, row_flags, end0, private)
        step = np.where(advances, size, 0)
        step[rule == Rule.SEEK_CUR] = value[rule == Rule.SEEK_CUR]
        lost = step == NO_VALUE
        step[lost] = 0
        # An appending write behind another one goes on where that ended; only the first looks for the end.
        follows = np.zeros(n, np.bool_)
        follows[1:] = appends[1:] & appends[:-1] & ~starts[1:]
        from_end = (rule == Rule.SEEK_END) | (appends & ~follows)
        sets = is_open | (rule == Rule.SEEK_SET) | from_end | lost
        place = np.full(n, NO_VALUE)
        place[is_open] = 0
        at_set = rule == Rule.SEEK_SET
        place[at_set] = value[at_set]
        asked = step.copy()
        anchors = np.maximum.accumulate(np.where(sets | starts, index, 0))
        start_step = np.where(starts & ~sets, step, 0)

        def positions(step: Ints, place: Ints) -> Ints:
            anchor_value = np.where(sets, place, NO_VALUE)
            free = starts & ~sets
            known0 = position0[group[free]] != NO_VALUE
            anchor_value[free] = np.where(known0, position0[group[free]] + step[free], NO_VALUE)
            run = np.cumsum(np.where(sets, 0, step))
            after: Ints = anchor_value[anchors] + (run - run[anchors])
            after[anchor_value[anchors] == NO_VALUE] = NO_VALUE
            return after

        del start_step
        after = positions(step, place)
        reads = advances & ~writes
        at = rule == Rule.AT
        tracked = ends.known
        if tracked.any():
            for round_ in range(_ROUNDS + 1):
                write_end = np.full(n, NO_VALUE)
                moved = advances & writes & (after != NO_VALUE)
                write_end[moved] = after[moved]
                explicit = at & writes & (value != NO_VALUE) & (size != NO_VALUE)
                write_end[explicit] = value[explicit] + size[explicit]
                before = ends.before(write_end)
                new_step, new_place = step.copy(), place.copy()
                stop = reads & tracked & (after != NO_VALUE)
                begin = after[stop] - step[stop]
                new_step[stop] = np.clip(before[stop] - begin, 0, asked[stop])
                seek_end = (rule == Rule.SEEK_END) & tracked & (value != NO_VALUE)
                new_place[seek_end] = before[seek_end] + value[seek_end]
                head = appends & ~follows & tracked
                new_place[head] = before[head] + asked[head]
                if np.array_equal(new_step, step) and np.array_equal(new_place, place):
                    break
                if round_ == _ROUNDS:
                    self.unsettled += int(((new_step != step) | (new_place != place)).sum())
                    break
                step, place = new_step, new_place
                after = positions(step, place)
            end = ends.after(write_end)
        else:
            end = np.full(len(first), NO_VALUE)

        offset = np.full(n, NO_VALUE)
        known = after != NO_VALUE
        moves = advances & known
        offset[moves] = after[moves] - np.where(appends[moves], asked[moves], step[moves])
        offset[at] = value[at]
        resized = rule == Rule.RESIZE
        offset[resized] = value[resized]
        seeks = (at_set | (rule == Rule.SEEK_CUR) | (rule == Rule.SEEK_END)) & known
        offset[seeks] = after[seeks]
        # A seek to before the beginning fails; what its caller did then is unknown.
        offset[(offset < 0) & (offset != NO_VALUE)] = NO_VALUE
        return offset, after, end, appending


class _Ends:
    """Ends of files within a batch, for processes that are alone on their file."""

    def __init__(
        self,
        starts: Bools,
        first: Ints,
        group: Ints,
        is_open: Bools,
        resizes: Bools,
        value: Ints,
        flags: NDArray[np.int16],
        end0: Ints,
        private: Bools,
    ) -> None:
        self._first, self._group = first, group
        empties = is_open & ((flags & Flag.TRUNCATE) != 0)
        creates = is_open & ((flags & Flag.CREATE) != 0)
        mine = private[group]
        tells = (empties | creates | (resizes & (value != NO_VALUE))) & mine
        # Known from the first telling call on; counted per group, since the sum may not run over its border.
        told = np.cumsum(tells)
        before_group = (told - tells)[first]
        self.known = (mine & ((told - before_group[group] > 0) | (end0[group] != NO_VALUE))).astype(np.bool_)
        # O_CREAT empties nothing: it begins at 0 only where nothing was known before.
        begins = (
            creates & ~empties & mine & (told - tells - before_group[group] == 0) & (end0[group] == NO_VALUE)
        )
        cut = starts | (empties & mine) | begins | (resizes & mine & (value != NO_VALUE))
        floor = np.where(starts & (end0[group] != NO_VALUE), np.maximum(end0[group], 0), 0)
        floor[resizes & cut] = np.maximum(value[resizes & cut], 0)
        floor[(empties & mine) | begins] = 0
        self._segment = np.cumsum(cut) - 1
        self._floor = floor[cut]
        self._cut = cut

    def _reached(self, write_end: Ints) -> Ints:
        """Largest end so far within each segment, the row itself included."""
        reach: Ints = np.maximum(write_end, self._floor[self._segment])
        widest = int(reach.max(initial=0)) + 1
        segments = int(self._segment[-1]) + 1
        if segments * widest < 1 << 62:
            lifted = reach + self._segment * widest
            lowered: Ints = np.maximum.accumulate(lifted) - self._segment * widest
            return lowered
        bounds = np.append(np.flatnonzero(self._cut), len(reach))
        for a, b in pairwise(bounds.tolist()):
            reach[a:b] = np.maximum.accumulate(reach[a:b])
        return reach

    def before(self, write_end: Ints) -> Ints:
        """End of the file before each call."""
        reached = self._reached(write_end)
        before = np.empty_like(reached)
        before[1:] = reached[:-1]
        before[0] = 0
        before[self._cut] = self._floor
        return before

    def after(self, write_end: Ints) -> Ints:
        """End of each group's file after the batch, shape (groups,); NO_VALUE where unknown."""
        last = np.append(self._first[1:] - 1, len(write_end) - 1)
        return np.where(self.known[last], self._reached(write_end)[last], NO_VALUE)
