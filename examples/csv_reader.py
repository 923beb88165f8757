"""The smallest reader there can be: a folder with calls.csv, or such a file alone, becomes the table of calls.

It plugs in with two lines in the pyproject.toml of its distribution::

[project.entry-points."vani.readers"]
csv = "csv_reader:CSV"

Lines are `rank,function,path,offset,bytes,start_ns,duration_ns`, in the order in which each rank made them. Only open,
read, write and close are known, and nothing is damaged: a real reader knows more and believes less.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vani.calls import CALLS, FILES, FUNCTIONS, FileClass, Flag, Kind, Layer
from vani.errors import TraceError
from vani.readers.trace_reader import Format, Limit, Piece

# name -> kind, flags
_FUNCTIONS = {
    "open": (Kind.METADATA, Flag.OPEN),
    "read": (Kind.READ, Flag(0)),
    "write": (Kind.WRITE, Flag(0)),
    "close": (Kind.METADATA, Flag.CLOSE),
}


def is_csv(path: Path) -> bool:
    """Return whether a folder, or a file, is such a trace."""
    table = _table_in(path)
    return table.name == "calls.csv" and table.is_file()


def _table_in(path: Path) -> Path:
    return path / "calls.csv" if path.is_dir() else path


class CsvReader:
    """A `vani.readers.trace_reader.TraceReader`."""

    tool = "csv"
    format = "1"
    layout = "1"
    start_unix_s = None
    limits = (Limit("io.bytes", "calls.csv has requested bytes"),)
    problems: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path
        self.app = path.name
        content = _table_in(path).read_bytes()
        self._digest = hashlib.sha256(content).hexdigest()
        self._rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
        for number, row in enumerate(self._rows, 1):
            if len(row) != 7 or row[1] not in _FUNCTIONS:
                raise TraceError(
                    f"line {number} is no call", where=_table_in(path), todo="see the head of this module"
                )
        self._paths = list(dict.fromkeys(row[2] for row in self._rows))
        self.ranks = 1 + max((int(row[0]) for row in self._rows), default=0)

    def digest(self) -> str:
        return self._digest

    def changed(self) -> bool:
        return hashlib.sha256(_table_in(self.path).read_bytes()).hexdigest() != self._digest

    def calls_per_rank(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.bincount([int(row[0]) for row in self._rows], minlength=self.ranks).astype(np.int64)

    def functions(self) -> pa.Table:
        rows = [(i, n, Layer.POSIX, kind) for i, (n, (kind, _)) in enumerate(_FUNCTIONS.items())]
        return _table(rows, FUNCTIONS)

    def files(self) -> pa.Table:
        return _table([(i, path, FileClass.DATASET) for i, path in enumerate(self._paths)], FILES)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Calls of libraries whose arguments attributes need: (function, arguments, how often)."""
        return []

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        names = list(_FUNCTIONS)
        for rank in ranks:
            rows = []
            for _, name, path, offset, size, start, duration in (r for r in self._rows if int(r[0]) == rank):
                kind, flags = _FUNCTIONS[name]
                data = kind in (Kind.READ, Kind.WRITE)
                call: dict[str, Any] = dict.fromkeys(CALLS.names, 0)
                call |= {"rank": rank, "func": names.index(name), "layer": Layer.POSIX, "via": Layer.POSIX}
                call |= {
                    "within": 1 << Layer.POSIX,
                    "kind": kind,
                    "flags": flags,
                    "file": self._paths.index(path),
                }
                call |= {"offset": int(offset) if data else None, "bytes": int(size) if data else None}
                call |= {"start_ns": int(start), "duration_ns": int(duration)}
                rows.append({key: call[key] for key in CALLS.names})
                piece.records += 1
                piece.functions[name] = piece.functions.get(name, 0) + 1
                piece.span_ns = max(piece.span_ns, int(start) + int(duration))
            if rows:
                piece.ranks_read += 1
                yield pa.RecordBatch.from_pylist(rows, CALLS)


CSV = Format("csv", is_csv, CsvReader, is_part=lambda name: name == "calls.csv")


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
