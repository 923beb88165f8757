"""Events from the lines of one DFTracer file, plain or gzip members, as columns.

The format has three generations with different spellings. DLIO Profiler wrote all numbers as texts, and file names
in each call. DFTracer 1 writes names' hashes as numbers. DFTracer 2 writes them as hexadecimal texts, and phases as
numbers (`dftracer/core/common/enumeration.h`).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.json
from isal import isal_zlib

from vani.readers.files import readable

_BLOCK = 1 << 22
"""Bytes of lines parsed at a time, about 20,000 events."""
_COMPRESSED = 1 << 18
_LONGEST = 1 << 24
"""Longest possible line of DFTracer, in bytes."""
_GZIP = b"\x1f\x8b"
# isal's stub does not declare its error as an exception.
_DAMAGED = cast("type[Exception]", isal_zlib.error)
_ANY_GZIP = 31
"""zlib's window bits for a stream with a gzip header."""


@dataclass
class LineReader:
    """Reads the lines of one file."""

    path: Path
    cut: str = ""
    """Why a file ends too early; empty if it is complete."""
    empty: bool = True
    too_long: int = 0
    """Number of skipped lines."""

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield lines with an event, in blocks, without the brackets and commas around events.

        Raises
        ------
        TraceError
            The file cannot be read.
        """
        rest = b""
        skips = False
        for data in self._contents():
            self.empty = False
            end = data.rfind(b"\n") + 1
            if not end:
                rest += data
                if len(rest) > _LONGEST:
                    self.too_long += not skips
                    rest, skips = b"", True
                continue
            lines = (rest + data[:end]).split(b"\n")
            rest = data[end:]
            if skips:
                lines, skips = lines[1:], False
            yield _events(lines)
        last = _events([] if skips else [rest])
        # A file that was not finalised ends in the middle of an event.
        if last and not last[0].endswith(b"}"):
            self.cut, last = self.cut or "in the middle of a line", []
        yield last

    def _contents(self) -> Iterator[bytes]:
        with readable(self.path), self.path.open("rb") as file:
            data = file.read(_COMPRESSED)
            if not data.startswith(_GZIP):
                while data:
                    yield data
                    data = file.read(_BLOCK)
                return
            inflate = isal_zlib.decompressobj(_ANY_GZIP)
            try:
                while data:
                    yield inflate.decompress(data, _BLOCK)
                    data = inflate.unconsumed_tail or inflate.unused_data or file.read(_COMPRESSED)
                    if inflate.eof:
                        # Zeros may follow a member if a tape or a file system padded a block.
                        data = data.lstrip(b"\0") or file.read(_COMPRESSED)
                        inflate = isal_zlib.decompressobj(_ANY_GZIP) if data else inflate
            except _DAMAGED:
                self.cut = f"where its compressed data is damaged, before byte {file.tell():,}"
                return
            if not inflate.eof:
                self.cut = "within its compressed data"


def _events(lines: list[bytes]) -> list[bytes]:
    stripped = (line.strip(b" \t\r,[]\0") for line in lines)
    return [line for line in stripped if line]


COMPLETE, COUNTER, AGGREGATED, METADATA = 1, 2, 3, 4
"""Phases of events."""
_PHASES = {"X": COMPLETE, "C": COUNTER, "A": AGGREGATED, "M": METADATA}
_OF_LIBC = (b'"cat":"POSIX"', b'"cat":"STDIO"')
_OF_TRACER = b'"cat":"dftracer"'
_PLAIN = 1 << 16
"""Longest line, in bytes, that Arrow parses; longer ones are unlikely to be events."""
_TEXTS = ("fhash", "hhash", "newpath_hash", "fname", "hostname", "fmode")
_NUMBERS = ("ret", "ret_len", "count", "size", "offset", "whence", "flags", "length", "cmd")
# The mode is a text in fopen and a number in open.
_RESPELLED = (
    (b'"mode":"', b'"fmode":"'),
    *((f'"ph":"{letter}"'.encode(), f'"ph":{phase}'.encode()) for letter, phase in _PHASES.items()),
)
_MAX_INTEGER = 1 << 63


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

    def parse(self, lines: Sequence[bytes]) -> tuple[list[pa.RecordBatch], list[dict[str, Any]]]:
        """Events of calls, in batches with the columns of `_FULL`, and the tracer's own events."""
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
            tables += table.combine_chunks().to_batches()
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
    phases = (event.get("ph") for event in events)
    columns["ph"] = [number(_PHASES.get(str(phase), phase)) for phase in phases]
    return pa.table({**columns, "args": args}, schema=_FULL)


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
    is_whole = isinstance(value, int) and not isinstance(value, bool) and -_MAX_INTEGER <= value < _MAX_INTEGER
    return value if is_whole else None


def _text(value: Any) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    # Half of a surrogate pair does not fit a string column.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else None
