"""File positions: offsets of calls that do not name one.

Ends of files that only one process uses, derived from its own calls (see `vani.readers.positions`).

A sequential `read` begins where the previous call on the same file ended, a seek moves that position, and an open sets
it to 0. The tracer names files by path, not by descriptor, so a process has one position per path (two simultaneous
descriptors of one path cannot be distinguished). Almost nothing loops over calls: within a process and file, positions
are sums since the last call that set one. Only where many calls in a row depend on the end of the file are they
followed one by one.

Assumptions, which the readers report in their limits:

- A file that only one process uses, and that it opens with O_CREAT before anything else, was empty then, unless it is
  read before it is written, because programs open inputs with O_CREAT, too. Its end is tracked through writes and
  truncations; reads stop there, and SEEK_END and O_APPEND begin there.
- A process does not know the end of a file that several processes use: reads move as many bytes as they request,
  and positions after SEEK_END and offsets of appended data are null.
- No file reaches `MAX_OFFSET`: a position or an end that exceeds it is unknown from there on.
- A file created under a name that was removed or renamed away begins empty. The length of a file that was renamed to a
  name is unknown, and so are position and end after a call that lets the program write the file through a descriptor
  that the tracer does not follow.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from vani.calls import Flag, Kind
from vani.columns import Bools, Floats, Int8s, Int16s, Int32s, Ints, Numbers, distinct
from vani.readers.functions import PositionRule
from vani.readers.signatures import MAX_OFFSET, NO_VALUE
from vani.readers.trace_reader import Piece

USED, GONE, ASSUMED = 1, 2, 4
"""A file's past in a process: it was read or written, or its length became unknown; its name was removed and not
opened since; only O_CREAT suggests that it is empty, and it was not read or written since."""


def _behind_removal(rule: Int8s, group: Ints, gone: Bools) -> Bools:
    """Opens of names that were removed and not opened since; rows in order, `gone` by group before them."""
    name_changes = np.flatnonzero((rule == PositionRule.OPEN) | (rule == PositionRule.GONE))
    behind = np.zeros(len(rule), np.bool_)
    if not len(name_changes):
        return behind
    group = group[name_changes]
    before = gone[group]
    same = group[1:] == group[:-1]
    before[1:][same] = (rule[name_changes] == PositionRule.GONE)[:-1][same]
    behind[name_changes] = before
    return behind


class BatchEnds:
    """Ends of files within a batch, for processes that do not share the file."""

    def __init__(self, calls: _Calls, end0: Ints, past0: Int8s, own: Bools) -> None:
        """Find the calls that determine a file's length.

        Parameters
        ----------
        end0
            Previous end of each group's file, NO_VALUE if unknown.
        past0
            Its past: bits `USED`, `GONE`, `ASSUMED`.
        own
            Groups whose process does not share the file.
        """
        n = len(calls.rule)
        first = np.flatnonzero(calls.starts)
        bounds = np.append(first, n)
        # Only a few calls determine a file's length, or make it unknown.
        is_open = calls.rule == PositionRule.OPEN
        rows = np.flatnonzero(
            is_open | calls.unknown | (calls.rule == PositionRule.RESIZE) | (calls.rule == PositionRule.GONE)
        )
        group = np.searchsorted(first, rows, side="right") - 1
        rows, group = rows[own[group]], group[own[group]]
        value, flags, rule = calls.value[rows], calls.flags[rows], calls.rule[rows]
        forgets = calls.unknown[rows]
        resizes = (rule == PositionRule.RESIZE) & ~forgets
        creates = (rule == PositionRule.OPEN) & ((flags & Flag.CREATE) != 0)
        empties = (rule == PositionRule.OPEN) & ((flags & Flag.TRUNCATE) != 0)
        empties |= creates & _behind_removal(rule, group, (past0 & GONE) != 0)
        if (creates & ~empties).any():
            used = np.flatnonzero(calls.uses)
            unused = np.searchsorted(used, rows) == np.searchsorted(used, first[group])
            creates &= empties | (unused & ((past0[group] & USED) == 0))
        determines = empties | creates | resizes
        # O_CREAT empties nothing, so it counts only if nothing was known before.
        since = bounds[1:].copy()
        np.minimum.at(since, group[determines], rows[determines])
        begins = creates & ~empties & (rows == since[group]) & (end0[group] == NO_VALUE)
        sets_length = empties | begins | resizes
        read, self.assumed = self._read_before_written(
            calls, bounds, rows[empties | resizes | forgets], rows[begins], past0
        )
        # Each of these calls makes the length known or unknown; groups begin with the previous batch's state.
        at = np.concatenate((rows[sets_length], rows[forgets], read))
        knows = np.repeat([True, False], [int(sets_length.sum()), len(at) - int(sets_length.sum())])
        turns = distinct(first, at)
        state = np.zeros(len(turns), np.bool_)
        state[np.searchsorted(turns, first)] = own & (end0 != NO_VALUE)
        state[np.searchsorted(turns, at)] = knows
        self.known: Bools = np.repeat(state, np.diff(np.append(turns, n)))
        at = rows[sets_length]
        floor = np.where(resizes, np.maximum(value, 0), 0)[sets_length]
        self._cuts = distinct(first, at)
        self._floor = np.zeros(len(self._cuts), np.int64)
        self._floor[np.searchsorted(self._cuts, first)] = np.where(end0 != NO_VALUE, np.maximum(end0, 0), 0)
        self._floor[np.searchsorted(self._cuts, at)] = floor
        self._first, self._lengths = first, np.diff(np.append(self._cuts, n))

    @staticmethod
    def _read_before_written(
        calls: _Calls, bounds: Ints, settle: Ints, begins: Ints, past0: Int8s
    ) -> tuple[Ints, Int8s]:
        """Reads of files that only O_CREAT suggests to be empty, and groups in which that is still undecided.

        Parameters
        ----------
        bounds
            First row of each group, and the end of the last.
        settle
            Calls that determine the file's length in another way, or make it unknown.
        begins
            Opens with O_CREAT that count, at most one per group.
        """
        open_ = np.where((past0 & ASSUMED) != 0, bounds[:-1], -1)
        open_[np.searchsorted(bounds, begins, side="right") - 1] = begins
        group = np.flatnonzero(open_ >= 0)
        assumed = np.zeros(len(open_), np.int8)
        if not len(group):
            return group, assumed
        moves = (calls.rule == PositionRule.ADVANCE) | (calls.rule == PositionRule.AT)
        ends_doubt = moves.copy()
        ends_doubt[settle] = True
        stops = np.append(np.flatnonzero(ends_doubt), bounds[-1])
        stop = stops[np.searchsorted(stops, open_[group])]
        inside = stop < bounds[group + 1]
        assumed[group[~inside]] = ASSUMED
        stop = stop[inside]
        return stop[moves[stop] & ~calls.writes[stop]], assumed

    def begins(self, rows: slice) -> list[int | None]:
        """End of the file at calls that newly determine it, None at others."""
        low, high = np.searchsorted(self._cuts, (rows.start, rows.stop))
        ends: list[int | None] = [None] * (rows.stop - rows.start)
        for cut, floor in zip(self._cuts[low:high].tolist(), self._floor[low:high].tolist(), strict=True):
            ends[cut - rows.start] = floor
        return ends

    def _reached(self, write_end: Ints) -> Ints:
        """Largest end so far within each segment, including the row itself."""
        reach = write_end.copy()
        reach[self._cuts] = np.maximum(reach[self._cuts], self._floor)
        widest, segments = int(reach.max(initial=0)) + 1, len(self._cuts)
        if segments * widest < 1 << 62:
            # Lift each segment above the previous ones, so that one running maximum serves all.
            lift = np.repeat(np.arange(segments) * widest, self._lengths)
            reach += lift
            np.maximum.accumulate(reach, out=reach)
            reach -= lift
            return reach
        for a, b in pairwise([*self._cuts.tolist(), len(reach)]):
            np.maximum.accumulate(reach[a:b], out=reach[a:b])
        return reach

    def before(self, write_end: Ints) -> Ints:
        """End of the file before each call."""
        reached = self._reached(write_end)
        before = np.append(0, reached[:-1])
        before[self._cuts] = self._floor
        return before

    def after(self, write_end: Ints) -> Ints:
        """End of each group's file after the batch, shape (groups,); NO_VALUE if unknown."""
        reached = np.maximum(np.maximum.reduceat(write_end, self._cuts), self._floor)
        last = np.append(self._first[1:], len(write_end)) - 1
        stretch = np.searchsorted(self._cuts, last, side="right") - 1
        return np.where(self.known[last], reached[stretch], NO_VALUE)


_ROUNDS = 16

_LEFT_BOUND = (
    "positions in files go beyond 1 EiB, which no file system stores: places and sizes from there on are unknown"
)


def stable_order(keys: Numbers) -> Ints:
    """Indices that sort `keys` (integers); equal keys keep their order."""
    if not len(keys):
        return np.empty(0, dtype=np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high == low:
        return np.arange(len(keys))
    # numpy uses radix sort for 16-bit integers, which is several times faster than its sort of wider ones.
    if high - low < 1 << 16:
        return np.argsort((keys - low).astype(np.uint16), kind="stable")
    return np.argsort(keys, kind="stable")


class FileStates(NamedTuple):
    """State of one process's files between two batches; shape (files,) each."""

    file: Ints
    position: Ints
    """`NO_VALUE` if unknown, like the end."""
    end: Ints
    append: Bools
    """Whether writes append."""
    past: Int8s
    """Bits `USED`, `GONE`, `ASSUMED`."""

    @classmethod
    def unknown(cls, file: Ints) -> FileStates:
        """Files about which nothing is known."""
        n = len(file)
        return cls(file, np.full(n, NO_VALUE), np.full(n, NO_VALUE), np.zeros(n, np.bool_), np.zeros(n, np.int8))


class Positions:
    """Tracks the file positions of processes whose calls come in batches, rank by rank."""

    def __init__(self, private: Bools) -> None:
        """`private[file]`, shape (files,): only one process in the trace names this file."""
        self.private = private
        self._rank, self._states = -1, FileStates.unknown(np.empty(0, np.int64))
        """The last rank, and its files in ascending order."""
        self.left_bound = False
        """Whether a position or the end of a file exceeded `MAX_OFFSET` and is unknown from there on."""

    def note_problem(self, piece: Piece) -> None:
        """Report once per piece that a position or an end exceeded the limit."""
        if self.left_bound and _LEFT_BOUND not in piece.problems:
            piece.problems.append(_LEFT_BOUND)

    def before(self, rank: int | Ints, file: Ints) -> FileStates:
        """State of files of a rank, or of a rank each; shape (n,)."""
        states, own = FileStates.unknown(file), np.broadcast_to(rank == self._rank, len(file))
        if len(self._states.file) and own.any():
            at = np.searchsorted(self._states.file, file)
            at[at == len(self._states.file)] = 0
            known = own & (self._states.file[at] == file)
            columns: tuple[Numbers, ...] = states[1:]
            last: tuple[Numbers, ...] = self._states[1:]
            for column, before in zip(columns, last, strict=True):
                column[known] = before[at][known]
        return states

    def keep(self, rank: int, states: FileStates) -> None:
        """Save the state of some files of a rank."""
        columns: tuple[Numbers, ...] = states
        before: tuple[Numbers, ...] = self._states
        if rank == self._rank:
            old = ~np.isin(self._states.file, states.file)
            columns = tuple(np.concatenate((was[old], now)) for was, now in zip(before, columns, strict=True))
        order = np.argsort(columns[0])
        self._rank, self._states = rank, FileStates(*(column[order] for column in columns))

    def resolve(
        self,
        rank: Int32s,
        file: Int32s,
        rule: Int8s,
        kind: Int8s,
        value: Ints,
        size: Ints,
        flags: Int16s,
        rename_to: Int32s | None = None,
    ) -> Ints:
        """Offsets of one batch, shape (n,), `NO_VALUE` if unknown; adds `Flag.APPEND` to `flags` in place.

        Parameters
        ----------
        rank
            Ascending.
        file
            File code, -1 for none.
        value
            Offset, seek distance or new length from the call, `NO_VALUE` for none.
        size
            Bytes requested, `NO_VALUE` if unknown.
        rename_to
            Code of the file's new name, -1 for none; None if the batch has no renames.
        """
        if rename_to is not None and len(renames := np.flatnonzero(rename_to >= 0)):
            # A rename also adds a row for the new name.
            moves = rename_to[renames] != file[renames]
            rule = rule.copy()
            rule[renames[~moves]] = PositionRule.NONE
            after = renames[moves] + 1
            new = (rank[after - 1], rename_to[after - 1], PositionRule.FORGET, Kind.METADATA, NO_VALUE, NO_VALUE, 0)
            columns: tuple[Numbers, ...] = (rank, file, rule, kind, value, size, flags)
            wide = [np.insert(column, after, values) for column, values in zip(columns, new, strict=True)]
            offset = self.resolve(*wide)
            of_call = np.ones(len(offset), np.bool_)
            of_call[after + np.arange(len(after))] = False
            flags[:] = wide[-1][of_call]
            return offset[of_call]
        offset = np.full(len(rank), NO_VALUE)
        rows = np.flatnonzero((rule != PositionRule.NONE) & (file >= 0))
        if not len(rows):
            return offset
        files, base = len(self.private), int(rank[0])
        key = (rank[rows].astype(np.int64) - base) * files + file[rows]
        order = stable_order(key)
        rows, key = rows[order], key[order]
        rule, own = rule[rows], flags[rows]
        starts = np.append(True, key[1:] != key[:-1])
        first = np.flatnonzero(starts)
        before = self.before(key[first] // files + base, key[first] % files)
        private = self.private[before.file]
        before.end[~private] = NO_VALUE
        is_open, writes = rule == PositionRule.OPEN, kind[rows] == Kind.WRITE
        # The last open decides whether writes append; before the first one, the previous batch's state applies.
        opened = np.flatnonzero(is_open | starts)
        appending = (own[opened] & Flag.APPEND) != 0
        appending[~is_open[opened]] = before.append[~is_open[first]]
        appending = np.repeat(appending, np.diff(np.append(opened, len(key))))
        appends = (rule == PositionRule.ADVANCE) & writes & appending
        flags[rows[appends]] |= Flag.APPEND
        calls = _Calls(starts, rule, writes, value[rows], size[rows], own, appends, before.position)
        past, end = _past(calls, before.past), np.full(len(first), NO_VALUE)
        far = np.flatnonzero(calls.farthest(before.end) >= MAX_OFFSET)
        if not private.any() and not len(far):
            after = calls.positions()
        else:
            ends = BatchEnds(calls, before.end, before.past, private)
            # Sums of these groups may exceed 64 bits, so they are followed call by call instead.
            exact = [(group, *calls.walk(group, ends)) for group in far.tolist()]
            after = calls.settle(ends, far)
            for group, positions, _, left_at in exact:
                of_group = calls.rows_of(group)
                after[of_group] = positions
                if left_at is not None:
                    self.left_bound = True
                    # The end of the file is unknown from here on.
                    flags[rows[of_group.start + left_at]] |= Flag.WRITABLE
            end[private] = ends.after(calls.write_ends(after))[private]
            for group, _, last_end, _ in exact:
                end[group] = last_end
            past |= ends.assumed
        offset[rows] = calls.offsets(after)
        last = np.append(first[1:], len(key)) - 1
        of_last_rank = key[last] // files + base == rank[-1]
        at = last[of_last_rank]
        self.keep(
            int(rank[-1]),
            FileStates(key[at] % files, after[at], end[of_last_rank], appending[at], past[of_last_rank]),
        )
        return offset


def _past(calls: _Calls, before: Int8s) -> Int8s:
    """`USED` and `GONE` of each group after the batch."""
    rule, first = calls.rule, np.flatnonzero(calls.starts)
    used = np.logical_or.reduceat(calls.uses, first) | ((before & USED) != 0)
    gone = (before & GONE) != 0
    rows = np.flatnonzero((rule == PositionRule.OPEN) | (rule == PositionRule.GONE))
    # With repeated indices, the last assignment counts.
    gone[np.searchsorted(first, rows, side="right") - 1] = rule[rows] == PositionRule.GONE
    return np.where(used, USED, 0).astype(np.int8) | np.where(gone, GONE, 0).astype(np.int8)


class _Calls:
    """Calls in order of process, file and record, and their effect on the position; shape (n,) each."""

    def __init__(
        self,
        starts: Bools,
        rule: Int8s,
        writes: Bools,
        value: Ints,
        size: Ints,
        flags: Int16s,
        appends: Bools,
        before: Ints,
    ) -> None:
        """`before` is each group's initial position, shape (groups,); NO_VALUE if unknown."""
        self.starts, self.rule, self.writes = starts, rule, writes
        self.value, self.size, self.flags = value, size, flags
        self._advances = rule == PositionRule.ADVANCE
        step = np.where(self._advances, size, 0)
        moves = np.flatnonzero(rule == PositionRule.SEEK_CUR)
        step[moves] = value[moves]
        lost = step == NO_VALUE
        step[lost] = 0
        self.asked = step
        # An append that follows another one continues where that ended; only the first needs the end of the file.
        self._heads = appends & (starts | ~np.append(False, appends[:-1]))
        self.step = np.where(self._heads, 0, step) if self._heads.any() else step
        """Bytes by which each call moves the position, unless it sets one."""
        is_open = rule == PositionRule.OPEN
        forgets = rule == PositionRule.FORGET
        resizes = np.flatnonzero(rule == PositionRule.RESIZE)
        self.unknown = forgets.copy()
        """Whether the length of the file is unknown from here on."""
        self.unknown[resizes[value[resizes] == NO_VALUE]] = True
        self.uses = self._advances | (rule == PositionRule.AT) | self.unknown
        """Whether O_CREAT after such a call does not prove that the file is empty."""
        sets = is_open | (rule == PositionRule.SEEK_SET) | (rule == PositionRule.SEEK_END)
        self._sets = sets | self._heads | lost | forgets
        self._anchors = np.flatnonzero(self._sets | starts)
        """Calls that set the position or are the first of their group."""
        of_anchor = rule[self._anchors]
        self._place = np.where(of_anchor == PositionRule.SEEK_SET, value[self._anchors], NO_VALUE)
        """The position that each of them sets, if any."""
        self._place[of_anchor == PositionRule.OPEN] = 0
        self._since = np.diff(np.append(self._anchors, len(rule)))
        self._first = np.flatnonzero(starts)
        self._before = before

    def positions(self) -> Ints:
        """Position after each call: the last one that was set, plus the bytes moved since."""
        anchors = self._anchors
        anchor = self._place.copy()
        begins = np.where(self._before != NO_VALUE, self._before + self.step[self._first], NO_VALUE)
        free = ~self._sets[self._first]
        anchor[np.searchsorted(anchors, self._first[free])] = begins[free]
        after = np.cumsum(self.step)
        after += np.repeat(anchor - after[anchors], self._since)
        after[np.repeat(anchor == NO_VALUE, self._since)] = NO_VALUE
        return after

    def offsets(self, after: Ints) -> Ints:
        """Offsets of calls, from the position after each."""
        offset = after - self.step
        heads = np.flatnonzero(self._heads)
        offset[heads] -= self.asked[heads]
        moves = np.flatnonzero(self.rule == PositionRule.SEEK_CUR)
        offset[moves] = after[moves]
        offset[(offset < 0) | (after == NO_VALUE) | (self.rule > PositionRule.SEEK_END)] = NO_VALUE
        names = np.flatnonzero((self.rule == PositionRule.AT) | (self.rule == PositionRule.RESIZE))
        # A seek to before the start of the file fails, which leaves the position unknown.
        offset[names] = np.where(self.value[names] < 0, NO_VALUE, self.value[names])
        return offset

    def write_ends(self, after: Ints) -> Ints:
        """End of each write; NO_VALUE for other calls and if unknown."""
        ends = np.where(self._advances & self.writes, after, NO_VALUE)
        at = np.flatnonzero((self.rule == PositionRule.AT) & self.writes)
        value, size = self.value[at], self.size[at]
        ends[at] = np.where((value != NO_VALUE) & (size != NO_VALUE), value + size, NO_VALUE)
        return ends

    def farthest(self, end: Ints) -> Floats:
        """Upper bound of all positions and ends in each group, shape (groups,).

        `end` is each group's previous end of file, `NO_VALUE` if unknown.
        """
        absolute = np.abs(np.where(self.value == NO_VALUE, 0, self.value).astype(np.float64))
        moved = np.abs(self.asked.astype(np.float64)) + np.where(self.size == NO_VALUE, 0, self.size)
        before = [np.where(of == NO_VALUE, 0, np.abs(of.astype(np.float64))) for of in (self._before, end)]
        return np.add.reduceat(absolute + moved, self._first) + sum(before)

    def rows_of(self, group: int) -> slice:
        """The rows of a group."""
        stop = self._first[group + 1] if group + 1 < len(self._first) else len(self.rule)
        return slice(int(self._first[group]), int(stop))

    def settle(self, ends: BatchEnds, far: Ints) -> Ints:
        """Apply the file's end to reads and to calls that begin there; returns the position after each call.

        Groups in `far` are unchanged, because `walk` follows them.
        """
        settled = ends.known.copy()
        for group in far.tolist():
            settled[self.rows_of(group)] = False
        reads = np.flatnonzero(self._advances & ~self.writes & settled)
        anchors, known = self._anchors, settled[self._anchors]
        heads = self._heads[anchors] & known
        seeks = (self.rule[anchors] == PositionRule.SEEK_END) & known & (self.value[anchors] != NO_VALUE)
        at_end = np.flatnonzero(heads | seeks)
        rows = anchors[at_end]
        moved = np.where(heads[at_end], self.asked[rows], self.value[rows])
        if not len(reads) + len(rows):
            return self.positions()
        for _ in range(_ROUNDS):
            after = self.positions()
            before = ends.before(self.write_ends(after))
            old, reached = self.step[reads], after[reads]
            room = np.clip(before[reads] - (reached - old), 0, self.asked[reads])
            step = np.where(reached != NO_VALUE, room, old)
            place = before[rows] + moved
            changed = np.append(reads[step != old], rows[place != self._place[at_end]])
            if not len(changed):
                return after
            self.step = self.step.copy()
            self.step[reads], self._place[at_end] = step, place
        for group in distinct(np.searchsorted(self._first, changed, side="right") - 1).tolist():
            self.walk(group, ends)
        return self.positions()

    def walk(self, group: int, ends: BatchEnds) -> tuple[list[int], int, int | None]:
        """Follow a group call by call, for groups in which many calls depend on the previous one.

        Returns
        -------
        positions
            Position after each call of the group, `NO_VALUE` if unknown.
        end
            Final end of the file; `NO_VALUE` if unknown.
        left_at
            Index of the group's first call that moved a position or the end beyond `MAX_OFFSET`, after which it is
            unknown. None if there is no such call.
        """
        rows, position = self.rows_of(group), int(self._before[group])
        anchors = slice(*np.searchsorted(self._anchors, (rows.start, rows.stop)).tolist())
        set_at = self._anchors[anchors] - rows.start
        of_anchors = np.full(rows.stop - rows.start, NO_VALUE)
        of_anchors[set_at] = self._place[anchors]
        requested, steps, places = self.asked[rows].tolist(), self.step[rows].tolist(), of_anchors.tolist()
        sets, values, sizes = self._sets[rows].tolist(), self.value[rows].tolist(), self.size[rows].tolist()
        moves = (self._advances & self.writes)[rows].tolist()
        at = ((self.rule == PositionRule.AT) & self.writes)[rows].tolist()
        known = ends.known[rows].tolist()
        reads = (self._advances & ~self.writes)[rows].tolist()
        seeks = (self.rule[rows] == PositionRule.SEEK_END) & (self.value[rows] != NO_VALUE)
        to_end, appends = seeks.tolist(), self._heads[rows].tolist()
        end, end_is_lost = 0, False
        left_at: int | None = None
        positions = []
        for i, begins in enumerate(ends.begins(rows)):
            if begins is not None:
                end, end_is_lost = begins, False
            end_is_known = known[i] and not end_is_lost
            if appends[i] or to_end[i]:
                position = end + (requested[i] if appends[i] else values[i]) if end_is_known else NO_VALUE
            elif sets[i]:
                position = places[i]
            elif position != NO_VALUE:
                if reads[i] and end_is_known:
                    steps[i] = min(max(end - position, 0), requested[i])
                position += steps[i]
            reached = end
            if moves[i] and position != NO_VALUE:
                reached = max(end, position)
            elif at[i] and NO_VALUE not in (values[i], sizes[i]):
                reached = max(end, values[i] + sizes[i])
            if max(reached, abs(position) if position != NO_VALUE else 0) >= MAX_OFFSET:
                left_at = i if left_at is None else left_at
            if position != NO_VALUE and abs(position) >= MAX_OFFSET:
                position = NO_VALUE
            if reached >= MAX_OFFSET:
                end_is_lost = True
            else:
                end = reached
            if appends[i] or to_end[i]:
                places[i] = position
            positions.append(position)
        self.step = self.step.copy()
        self.step[rows], self._place[anchors] = steps, np.array(places)[set_at]
        return positions, NO_VALUE if end_is_lost or not known[-1] else end, left_at
