"""Ends of files that only one process uses, derived from its own calls (see `vani.readers.positions`)."""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vani.calls import Flag
from vani.distinct import distinct
from vani.readers.functions import PositionRule
from vani.readers.plausible import NO_VALUE

USED, GONE, ASSUMED = 1, 2, 4
"""A file's past in a process: it was read or written, or its length became unknown; its name was removed and not
opened since; only O_CREAT suggests that it is empty, and it was not read or written since."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class CallsOnFiles(Protocol):
    """Calls in order of process, file and record; shape (n,) each."""

    starts: Bools
    """First row of each process and file."""
    rule: NDArray[np.int8]
    writes: Bools
    value: Ints
    flags: NDArray[np.int16]
    unknown: Bools
    """The length of the file is unknown from here on."""
    uses: Bools
    """After such a call, O_CREAT does not prove that the file is empty."""


def _behind_removal(rule: NDArray[np.int8], group: Ints, gone: Bools) -> Bools:
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

    def __init__(self, calls: CallsOnFiles, end0: Ints, past0: NDArray[np.int8], own: Bools) -> None:
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
        calls: CallsOnFiles, bounds: Ints, settle: Ints, begins: Ints, past0: NDArray[np.int8]
    ) -> tuple[Ints, NDArray[np.int8]]:
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
