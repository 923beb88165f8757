"""Calls as slices of tracks, in the order in which a viewer opens and closes them.

A viewer draws a track as a stack: a slice is inside the one that is open when it begins. Calls of one thread nest,
but a trace that does not separate threads has overlapping calls, and clocks have steps. Calls that do not nest get
another track of the same thread, a *lane*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Process:
    """A process of a trace: its number in the whole output, and its name in a viewer."""

    number: int
    name: str


@dataclass(frozen=True)
class Names:
    """The names of one trace, by code."""

    functions: Sequence[str]
    files: Sequence[str]
    layers: Sequence[str]
    kinds: Sequence[str]


@dataclass(frozen=True)
class Lane:
    """A track; lane 0 of a thread contains all calls that nest."""

    process: int
    thread: int
    lane: int


@dataclass(frozen=True)
class Slices:
    """Calls of a batch by track and time; outer ones first.

    Attributes
    ----------
    columns
        Columns of `vani.calls.CALLS`, in that order.
    track
        Number of the track of each call.
    edges
        Positions of calls in the order of their begins and ends, shape (2 * calls,).
    is_begin
        Whether each edge is a begin, shape (2 * calls,).
    new
        Tracks that no earlier batch had, with their numbers.
    """

    columns: pa.RecordBatch
    track: Numbers
    edges: Numbers
    is_begin: NDArray[np.bool_]
    new: Mapping[Lane, int]


@dataclass
class Lanes:
    """Distributes calls to tracks, batch by batch."""

    _tracks: dict[Lane, int] = field(default_factory=dict)
    _open: dict[tuple[int, int], list[list[int]]] = field(default_factory=dict)
    """Ends of the calls that are open at the end of a batch, by process, thread and lane."""

    def slices(self, batch: pa.RecordBatch, processes: Mapping[int, Process]) -> Slices:
        """The slices of a batch, given its `processes` by rank."""
        rank, thread = (np.asarray(batch[name], dtype=np.int64) for name in ("rank", "thread"))
        start = np.asarray(batch["start_ns"])
        end = start + np.maximum(np.asarray(batch["duration_ns"]), 0)
        order = np.lexsort((np.arange(len(start)), -end, start, thread, rank))
        rank, thread, start, end = rank[order], thread[order], start[order], end[order]
        is_first = np.ones(len(order), dtype=bool)
        is_first[1:] = (rank[1:] != rank[:-1]) | (thread[1:] != thread[:-1])
        group = np.cumsum(is_first) - 1
        edges, is_begin = _edges(group, start, end)
        lane = np.zeros(len(order), dtype=np.int64)
        first = np.flatnonzero(is_first)
        last = np.append(first[1:], len(order))[: len(first)]
        crossed = set(np.unique(group[_crosses(edges, is_begin)]).tolist())
        for number, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            owner = (int(rank[a]), int(thread[a]))
            if number in crossed or owner in self._open:
                lane[a:b] = self._laned(owner, start[a:b], end[a:b])
            open_ends = end[a:b] > start[b - 1]
            if number not in crossed and owner not in self._open and np.count_nonzero(open_ends) > 1:
                self._open[owner] = [end[a:b][open_ends].tolist()]
        if lane.any():
            group = np.unique(np.column_stack([group, lane]), axis=0, return_inverse=True)[1].reshape(-1)
            edges, is_begin = _edges(group, start, end)
        new: dict[Lane, int] = {}
        track = np.zeros(len(order), dtype=np.int64)
        for some in np.split(np.argsort(group, kind="stable"), np.flatnonzero(np.diff(np.sort(group))) + 1):
            if not len(some):
                continue
            place = Lane(processes[int(rank[some[0]])].number, int(thread[some[0]]), int(lane[some[0]]))
            if place not in self._tracks:
                new[place] = self._tracks[place] = len(self._tracks)
            track[some] = self._tracks[place]
        return Slices(batch.take(pa.array(order)), track, edges, is_begin, new)

    def _laned(self, owner: tuple[int, int], start: Numbers, end: Numbers) -> list[int]:
        """The first lane in which each call nests, or in which nothing is open."""
        stacks = self._open.setdefault(owner, [])
        lanes = []
        for begin, until in zip(start.tolist(), end.tolist(), strict=True):
            chosen = None
            for lane, stack in enumerate(stacks):
                while stack and stack[-1] <= begin:
                    stack.pop()
                if not stack or stack[-1] >= until:
                    chosen = lane
                    break
            if chosen is None:
                chosen = len(stacks)
                stacks.append([])
            stacks[chosen].append(until)
            lanes.append(chosen)
        return lanes


def _edges(group: Numbers, start: Numbers, end: Numbers) -> tuple[Numbers, NDArray[np.bool_]]:
    """Begins and ends of calls by group and time, for calls sorted by group, begin and descending end.

    At the same time, open slices end first, from the innermost; then slices begin; then slices of length zero.
    """
    count = len(start)
    number = np.arange(count)
    takes_none = end == start
    time = np.concatenate([start, end])
    turn = np.concatenate([np.where(takes_none, 2, 1), np.where(takes_none, 2, 0)])
    tie = np.concatenate([number, np.where(takes_none, number, -number)])
    phase = np.repeat([0, 1], count)
    order = np.lexsort((phase, tie, turn, time, np.tile(group, 2)))
    return number[order % count] if count else order, order < count


def _crosses(edges: Numbers, is_begin: NDArray[np.bool_]) -> Numbers:
    """Calls that end at another depth than they began, because some call of their group does not nest."""
    depth = np.cumsum(np.where(is_begin, 1, -1))
    at_begin: NDArray[Any] = np.empty(len(edges) // 2, dtype=np.int64)
    at_end = at_begin.copy()
    at_begin[edges[is_begin]] = depth[is_begin]
    at_end[edges[~is_begin]] = depth[~is_begin] + 1
    return np.flatnonzero(at_begin != at_end)
