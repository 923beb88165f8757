"""Trace events as JSON, which Perfetto, Chrome and Speedscope read.

Source: "Trace Event Format", complete events (`ph` X) and metadata events (M); times are microseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vani.render.events.slices import Lane, Names, Process, Slices
from vani.schema.syntax.json_writer import json_text

_ABOVE: Final = 1 << 24
"""Thread numbers start above all process numbers."""


class ChromeEvents:
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
            shared = {"ph": "M", "pid": process.number, "tid": process.number}
            lines.append(self._line(shared | {"name": "process_name", "args": {"name": process.name}}))
            lines.append(self._line(shared | {"name": "process_sort_index", "args": {"sort_index": process.number}}))
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
        lines = []
        for place, track in new.items():
            name = f"thread {place.thread}" + (f", overlapping {place.lane}" if place.lane else "")
            owner = {"ph": "M", "pid": place.process, "tid": _ABOVE + track}
            lines.append(self._line(owner | {"name": "thread_name", "args": {"name": name}}))
            lines.append(self._line(owner | {"name": "thread_sort_index", "args": {"sort_index": track}}))
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

    def _line(self, event: Mapping[str, object]) -> str:
        first = "" if self._is_first else ",\n"
        self._is_first = False
        return first + _compact(event)


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
