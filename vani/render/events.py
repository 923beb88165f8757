"""Calls as a timeline of trace events in JSON, which Perfetto, Chrome, Firefox and Speedscope read.

A viewer draws a track as a stack: a slice is inside the one that is open when it begins. Calls of one thread nest,
but a trace that does not separate threads has overlapping calls, and clocks have steps. Calls that do not nest get
another track of the same thread, a *lane*.

Source: "Trace Event Format", complete events (`ph` X) and metadata events (M); times are microseconds.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.schema.syntax.json_text import json_text

_ABOVE: Final = 1 << 24
"""Thread numbers start above all process numbers."""
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
    """Calls of a batch by rank, thread and time; outer ones first."""

    columns: pa.RecordBatch
    """Columns of `vani.calls.CALLS`, in that order."""
    track: Numbers
    """Number of the track of each call."""
    new: Mapping[Lane, int]
    """Tracks that no earlier batch had, with their numbers."""


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
        lane = np.zeros(len(order), dtype=np.int64)
        first = np.flatnonzero(is_first)
        last = np.append(first[1:], len(order))[: len(first)]
        crossed = set(np.unique(group[_crosses(*_edges(group, start, end))]).tolist())
        for number, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            owner = (int(rank[a]), int(thread[a]))
            if number in crossed or owner in self._open:
                lane[a:b] = self._laned(owner, start[a:b], end[a:b])
            open_ends = end[a:b] > start[b - 1]
            if number not in crossed and owner not in self._open and np.count_nonzero(open_ends) > 1:
                self._open[owner] = [end[a:b][open_ends].tolist()]
        if lane.any():
            group = np.unique(np.column_stack([group, lane]), axis=0, return_inverse=True)[1].reshape(-1)
        new: dict[Lane, int] = {}
        track = np.zeros(len(order), dtype=np.int64)
        for some in np.split(np.argsort(group, kind="stable"), np.flatnonzero(np.diff(np.sort(group))) + 1):
            if not len(some):
                continue
            place = Lane(processes[int(rank[some[0]])].number, int(thread[some[0]]), int(lane[some[0]]))
            if place not in self._tracks:
                new[place] = self._tracks[place] = len(self._tracks)
            track[some] = self._tracks[place]
        return Slices(batch.take(pa.array(order)), track, new)

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




class TraceEvents:
    """Writes events as JSON, one per line.

    Parameters
    ----------
    generator
        Name and version of the writing program.
    """

    def __init__(self, generator: str) -> None:
        self._begin = f'{{"otherData":{_compact({"generator": generator})},"displayTimeUnit":"ns","traceEvents":[\n'
        self._is_first = True
        self._words: dict[str, pa.Array] = {}

    def begin(self, processes: Iterable[Process]) -> bytes:
        """The beginning of the output, with the names of the processes."""
        lines = [self._begin]
        for process in processes:
            owner = {"ph": "M", "pid": process.number, "tid": process.number}
            lines += self._labels("process", owner, process.name, process.number)
        return "".join(lines).encode()

    def names(self, names: Names) -> bytes:
        """Use the names of the next trace from here on."""
        self._words = {
            "func": pa.array([_compact(name) for name in names.functions], pa.string()),
            "file": pa.array([f',"file":{_quoted(name)}' for name in names.files], pa.string()),
            "layer": pa.array(names.layers, pa.string()),
            "kind": pa.array(names.kinds, pa.string()),
        }
        return b""

    def tracks(self, new: Mapping[Lane, int]) -> bytes:
        """The names of threads."""
        lines: list[str] = []
        for place, track in new.items():
            name = f"thread {place.thread}" + (f", overlapping {place.lane}" if place.lane else "")
            owner = {"ph": "M", "pid": place.process, "tid": _ABOVE + track}
            lines += self._labels("thread", owner, name, track)
        return "".join(lines).encode()

    def events(self, slices: Slices, process: Mapping[int, Process], shift_ns: int) -> bytes:
        """A line for each call; `shift_ns` is added to its time."""
        columns = slices.columns
        if not columns.num_rows:
            return b""
        number = np.array([process[rank].number for rank in range(max(process) + 1)])
        start = np.asarray(columns["start_ns"]) + shift_ns
        line = pc.binary_join_element_wise(
            '{"name":',
            self._words["func"].take(columns["func"]),
            ',"cat":"',
            self._words["layer"].take(columns["layer"]),
            ",",
            self._words["kind"].take(columns["kind"]),
            '","ph":"X","pid":',
            _text(number[np.asarray(columns["rank"])]),
            ',"tid":',
            _text(_ABOVE + slices.track),
            ',"ts":',
            _microseconds(start),
            ',"dur":',
            _microseconds(np.maximum(np.asarray(columns["duration_ns"]), 0)),
            ',"args":{"kind":"',
            self._words["kind"].take(columns["kind"]),
            '"',
            pc.fill_null(self._words["file"].take(columns["file"]), ""),
            _argument("bytes", columns["bytes"]),
            _argument("offset", columns["offset"]),
            "}}",
            "",
        )
        first = "" if self._is_first else ",\n"
        self._is_first = False
        return first.encode() + ",\n".join(line.to_pylist()).encode()

    def end(self) -> bytes:
        """The end of the output."""
        return b"\n]}\n"

    def _labels(self, kind: str, owner: Mapping[str, object], name: str, position: int) -> Iterator[str]:
        """Events that name a process or thread and give its position."""
        for about, arguments in (("name", {"name": name}), ("sort_index", {"sort_index": position})):
            first = "" if self._is_first else ",\n"
            self._is_first = False
            yield first + _compact({**owner, "name": f"{kind}_{about}", "args": arguments})


def _compact(tree: object) -> str:
    return json_text(tree, indent=None).rstrip("\n")


def _quoted(text: str) -> str:
    return _compact(text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))


def _text(values: np.ndarray) -> pa.Array:
    return pa.array(values).cast(pa.string())


def _microseconds(nanoseconds: np.ndarray) -> pa.Array:
    whole, rest = np.divmod(np.abs(nanoseconds), 1000)
    sign = pa.array(["", "-"]).take(pa.array((nanoseconds < 0).astype(np.int8)))
    return pc.binary_join_element_wise(sign, _text(whole), ".", pc.utf8_lpad(_text(rest), 3, "0"), "")


def _argument(name: str, values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.binary_join_element_wise(f',"{name}":', values.cast(pa.string()), ""), "")
