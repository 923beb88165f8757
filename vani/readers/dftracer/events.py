"""Events from a block of lines, as columns.

The format has three generations with different spellings. DLIO Profiler wrote all numbers as texts, and file names
in each call. DFTracer 1 writes names' hashes as numbers. DFTracer 2 writes them as hexadecimal texts, and phases as
numbers (`dftracer/core/common/enumeration.h`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.json

COMPLETE, COUNTER, AGGREGATED, METADATA = 1, 2, 3, 4
"""Phases of events."""
_PHASES = {"X": COMPLETE, "C": COUNTER, "A": AGGREGATED, "M": METADATA}
_OF_LIBC = (b'"cat":"POSIX"', b'"cat":"STDIO"')
_OF_TRACER = b'"cat":"dftracer"'
_PLAIN = 1 << 16
"""Longest line, in bytes, that Arrow parses; longer ones are unlikely to be events."""
_TEXTS = ("fhash", "hhash", "newpath_hash", "fname", "hostname", "fmode")
_NUMBERS = ("ret", "ret_len", "count", "size", "offset", "whence", "flags", "length")
# The mode is a text in fopen and a number in open.
_RESPELLED = (
    (b'"mode":"', b'"fmode":"'),
    *((f'"ph":"{letter}"'.encode(), f'"ph":{phase}'.encode()) for letter, phase in _PHASES.items()),
)
_MOST = 1 << 63


def _schema(hashes: pa.DataType, *, arguments: bool) -> pa.Schema:
    texts = _TEXTS if arguments else ("hhash", "hostname")
    kinds = {name: hashes if "hash" in name else pa.string() for name in texts}
    args = [*kinds.items(), *((name, pa.int64()) for name in _NUMBERS if arguments)]
    top = [("name", pa.string()), ("cat", pa.string())]
    numbers = [(name, pa.int64()) for name in ("ph", "id", "pid", "tid", "ts", "dur")]
    return pa.schema([*top, *numbers, ("args", pa.struct(args))])


_FULL = _schema(pa.string(), arguments=True)


class EventParser:
    """Parses blocks of lines from one file, and counts lines that DFTracer did not write."""

    def __init__(self) -> None:
        self.strange = 0
        self._hashes = [pa.string(), pa.uint64()]
        """Possible types of hashes, the usual one first."""

    def parse(self, lines: Sequence[bytes]) -> tuple[list[pa.Table], list[dict[str, Any]]]:
        """Events of calls, in tables with the columns of `_FULL`, and the tracer's own events."""
        own, libc, others = [], [], []
        for line in lines:
            if _OF_LIBC[0] in line or _OF_LIBC[1] in line:
                libc.append(line)
            elif _OF_TRACER in line:
                own.append(line)
            else:
                others.append(line)
        tables, records = [], list(self._objects(own))
        for some, arguments in ((libc, True), (others, False)):
            if not some:
                continue
            table = self._parsed(some, arguments=arguments)
            if table is None or (not arguments and _is_spaced(table)):
                events = list(self._objects(some))
                records += [event for event in events if event.get("cat") == "dftracer"]
                table = _table([event for event in events if event.get("cat") != "dftracer"])
            tables.append(table)
        return tables, records

    def _parsed(self, lines: list[bytes], *, arguments: bool) -> pa.Table | None:
        """Arrow's table; None if a line has an unusual form, in which case lines are parsed one by one."""
        if max(map(len, lines)) > _PLAIN:
            return None
        data = b"\n".join(lines)
        if not data.isascii():
            # File names are bytes; invalid UTF-8 gets replacement characters.
            data = data.decode("utf-8", "replace").encode()
        for old, new in _RESPELLED:
            data = data.replace(old, new)
        for hashes in list(self._hashes):
            options = pa.json.ParseOptions(
                explicit_schema=_schema(hashes, arguments=arguments), unexpected_field_behavior="ignore"
            )
            # One block without threads, because the trace's parts are parsed in parallel already.
            reading = pa.json.ReadOptions(use_threads=False, block_size=len(data) + 1)
            try:
                table = pa.json.read_json(pa.BufferReader(data), reading, options)
            except pa.ArrowException:
                continue
            if self._hashes[0] != hashes:
                self._hashes.reverse()
            return table if len(table) == len(lines) else None
        return None

    def _objects(self, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            try:
                event = json.loads(line.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                event = None
            if isinstance(event, dict):
                yield event
            else:
                self.strange += 1


def _is_spaced(table: pa.Table) -> bool:
    """Whether events of the C library are spaced, which means that another tool rewrote the lines."""
    return any(name in ("POSIX", "STDIO", "dftracer") for name in table["cat"].unique().to_pylist())


def _table(events: Sequence[dict[str, Any]]) -> pa.Table:
    """A table of events in any spelling."""
    args = [_arguments(event.get("args")) for event in events]
    columns = {
        name: [_text(event.get(name)) if kind == pa.string() else number(event.get(name)) for event in events]
        for name, kind in zip(_FULL.names, _FULL.types, strict=True)
        if name not in ("args", "ph")
    }
    columns["ph"] = [_phase(event.get("ph")) for event in events]
    return pa.table({**columns, "args": args}, schema=_FULL)


def _phase(value: Any) -> int | None:
    return _PHASES.get(value, number(value)) if isinstance(value, str) else number(value)


def _arguments(args: Any) -> dict[str, Any]:
    if not isinstance(args, dict):
        return {}
    texts = {name: _text(args.get(name)) for name in _TEXTS}
    mode = args.get("mode")
    if isinstance(mode, str) and not mode.isdecimal():
        texts["fmode"] = _text(mode)
    return {**texts, **{name: number(args.get(name)) for name in _NUMBERS}}


def number(value: Any) -> int | None:
    """A 64-bit integer, given as a number or a text; None for anything else."""
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and len(value) < 20:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -_MOST <= value < _MOST
    return value if is_whole else None


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    # Half of a surrogate pair does not fit a string column.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None
