"""A process's repeated blocks (rounds), and its turns from reading to writing or back.

- A round begins where a process opens a file after a pause (or turns). Rounds of less than 5 % of the largest one are
  preludes, such as a header or a folder, and count as pauses. Rounds are similar if bytes read, bytes written and data
  operations differ by at most a tenth; they may be adjacent or alternate (checkpoint and plot).
- Let the walk be the share of its bytes that a process has read so far, minus the same share of what it writes. A turn
  is an extreme of the walk that is at least a fifth from its neighbours. A kind with less than 5 % of the bytes counts
  less.

A process's actions and their order are the same in each run of a program; only these are used, not times.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.phases.activity import Cells
from vani.analyzers.phases.phase_gap import MOST_PHASES

_PRELUDE = 0.05
_ALIKE = 0.1
_TURN = 0.2
_SCARCE = 0.05

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Pauses:
    """Pauses of processes, from `low` to `high`; `weight` is what each moves, `turn` is True if its kind changes."""

    stretch: Ints
    low: Ints
    high: Ints
    weight: Ints
    turn: Bools

    def where(self, rows: Bools) -> Pauses:
        """Select some of them."""
        return Pauses(*(getattr(self, n)[rows] for n in self.__dataclass_fields__))


def pauses_of(cells: Cells, stretch: Ints, short: int) -> Pauses:
    """Pauses of processes between similar rounds, and turns."""
    reach = _reached(cells)
    owner = np.append(True, (cells.process[1:] != cells.process[:-1]) | (stretch[1:] != stretch[:-1]))
    step = np.append(True, cells.start[1:] - reach[:-1] > short) | owner
    groups = np.cumsum(owner) - 1
    heads = np.flatnonzero(owner)
    moved = cells.read + cells.written
    total = np.add.reduceat(moved, heads)
    weight = np.where(_by_stretch(total, stretch[heads]) > 0, total, np.add.reduceat(cells.calls, heads))
    turns, turned = _turns(cells, groups, step, reach)
    rounds = _between_rounds(cells, groups, step, turned, reach)
    if len(turns[0]) and len(rounds[0]):
        # A turn is known more precisely than the rounds around it.
        first = np.searchsorted(turns[0], rounds[0])
        last = np.searchsorted(turns[0], rounds[0], side="right")
        alone = np.array(
            [
                not ((turns[1][a:b] <= high) & (turns[2][a:b] >= low)).any()
                for a, b, low, high in zip(first, last, rounds[1], rounds[2], strict=True)
            ],
            dtype=np.bool_,
        )
        rounds = rounds[0][alone], rounds[1][alone], rounds[2][alone]
    group, low, high = (np.concatenate(pair) for pair in zip(turns, rounds, strict=True))
    turn = np.arange(len(group)) < len(turns[0])
    return Pauses(stretch[heads][group], low, high, weight[group], turn)


def _reached(cells: Cells) -> Ints:
    """Latest end so far of each process."""
    first = np.append(True, cells.process[1:] != cells.process[:-1])
    order = np.cumsum(first) - 1
    span = int(cells.end.max()) + 1
    if (int(order[-1]) + 1) * span >= 1 << 62:
        return cells.end
    order *= span
    reach: Ints = np.maximum.accumulate(cells.end + order)
    reach -= order
    return reach


def _by_stretch(values: Ints, stretch: Ints) -> Ints:
    """Sum over the part that each value belongs to."""
    sums = np.zeros(int(stretch.max()) + 1, np.int64)
    np.add.at(sums, stretch, values)
    return sums[stretch]


def _between_rounds(
    cells: Cells, groups: Ints, step: Bools, turned: Bools, reach: Ints
) -> tuple[Ints, Ints, Ints]:
    """(group, end of a round, start of the next) where a process repeats itself."""
    at = np.flatnonzero(step | turned)
    opens, group = np.add.reduceat(cells.opens, at), groups[at]
    head = (opens > 0) | turned[at] | np.append(True, group[1:] != group[:-1])
    first = at[head]
    group = groups[first]
    read, written, data, calls = (
        np.add.reduceat(column, first) for column in (cells.read, cells.written, cells.data, cells.calls)
    )
    end = np.maximum.reduceat(reach, first)
    start = cells.start[first]
    in_all = np.zeros(int(groups[-1]) + 1, np.int64)
    np.add.at(in_all, group, read + written)
    size = np.where(in_all[group] > 0, read + written, calls)
    largest = np.zeros(len(in_all), np.int64)
    np.maximum.at(largest, group, size)
    keep = np.flatnonzero((size >= _PRELUDE * largest[group]) & (np.bincount(group)[group] <= MOST_PHASES))
    group, read, written, data, start, end = (c[keep] for c in (group, read, written, data, start, end))

    def alike(apart: int) -> Bools:
        """Whether each round is similar to the one `apart` rounds later; shape (rounds,)."""
        repeats = np.zeros(len(group), np.bool_)
        if len(group) > apart:
            a, b = slice(None, -apart), slice(apart, None)
            most = _ALIKE * np.maximum((read + written)[a], (read + written)[b])
            repeats[a] = (
                (group[a] == group[b])
                & (most > 0)
                & (np.abs(read[a] - read[b]) <= most)
                & (np.abs(written[a] - written[b]) <= most)
                & (np.abs(data[a] - data[b]) <= _ALIKE * np.maximum(data[a], data[b]))
            )
        return repeats

    if len(group) < 2:
        return group[:0], start[:0], start[:0]
    two = alike(2)
    again = (alike(1) | two | np.append(False, two[:-1]))[:-1] & (group[1:] == group[:-1])
    return group[:-1][again], end[:-1][again], np.maximum(start[1:], end[:-1])[again]


def _turns(cells: Cells, groups: Ints, step: Bools, reach: Ints) -> tuple[tuple[Ints, Ints, Ints], Bools]:
    """(group, end of reading, start of writing), or with reading and writing swapped, per turn; and cells after turns.

    Actions in one cell are unordered: a process may turn anywhere in a cell in which it reads and writes, and before
    any data operation of a cell that also has others.
    """
    ways = np.flatnonzero((cells.read > 0) | (cells.written > 0))
    number = np.cumsum(step) - 1
    heads = np.flatnonzero(step)
    step_end = reach[np.append(heads[1:], len(step)) - 1]
    both = (cells.read > 0) & (cells.written > 0)
    turned = np.zeros(len(cells), np.bool_)
    turns: list[tuple[int, int, int]] = []
    if len(ways):
        walk = _walk(cells.read[ways], cells.written[ways], groups[ways])
        bounds = np.append(np.flatnonzero(np.append(True, groups[ways][1:] != groups[ways][:-1])), len(ways))
        swing = np.maximum.reduceat(walk, bounds[:-1]) - np.minimum.reduceat(walk, bounds[:-1])
        for i in np.flatnonzero(swing >= _TURN).tolist():
            rows = ways[bounds[i] : bounds[i + 1]]
            for place in _extremes(walk[bounds[i] : bounds[i + 1]], _TURN):
                if place + 1 < len(rows):
                    a, b = int(rows[place]), int(rows[place + 1])
                    turned[b] = True
                    low = (
                        cells.start[a]
                        if both[a]
                        else reach[a]
                        if number[a] == number[b]
                        else step_end[number[a]]
                    )
                    high = (
                        cells.start[b]
                        if cells.calls[b] == cells.data[b] and not both[b]
                        else cells.end[b] - 1
                    )
                    turns.append((int(groups[a]), int(low), int(max(low, high))))
    columns = np.array(turns, np.int64).reshape(-1, 3)
    return (columns[:, 0], columns[:, 1], columns[:, 2]), turned


def _walk(read: Ints, written: Ints, groups: Ints) -> NDArray[np.float64]:
    """Share of a group's reads that it has read so far, minus the same share of its writes: rises with reads, and falls
    with writes. A scarce kind counts less."""
    starts = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
    lengths = np.diff(np.append(starts, len(groups)))
    reads, writes = (np.add.reduceat(column, starts).astype(np.float64) for column in (read, written))
    moved = reads + writes

    def scale(side: NDArray[np.float64]) -> NDArray[np.float64]:
        share = np.divide(side, moved, out=np.zeros_like(moved), where=moved > 0)
        weight = np.minimum(1.0, share / _SCARCE)
        scale_of_group: NDArray[np.float64] = np.divide(weight, side, out=np.zeros_like(moved), where=side > 0)
        return np.repeat(scale_of_group, lengths)

    steps = read * scale(reads) - written * scale(writes)
    walk: NDArray[np.float64] = np.cumsum(steps)
    walk -= np.repeat(walk[starts] - steps[starts], lengths)
    return walk


def _extremes(walk: NDArray[np.float64], least: float) -> list[int]:
    """Indices after which the walk, which begins at 0, reverses by at least `least`, alternately up and down."""
    extremes: list[int] = []
    high = low = 0.0
    high_at = low_at = -1
    way = 0
    for place, value in enumerate(walk.tolist()):
        if value >= high and way >= 0:
            high, high_at = value, place
        if value <= low and way <= 0:
            low, low_at = value, place
        if way <= 0 and value - low >= least:
            if way or low <= -least:
                extremes.append(low_at)
            way, high, high_at = 1, value, place
        elif way >= 0 and high - value >= least:
            if way or high >= least:
                extremes.append(high_at)
            way, low, low_at = -1, value, place
    return extremes
