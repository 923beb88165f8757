"""Reads whole traces for tests, with everything that a reader delivers in one table."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from vani.calls import CALLS, Layer
from vani.readers.recorder.call_table import Buffer, call_table_parts
from vani.readers.recorder.reader import RecorderReader
from vani.readers.signatures import CallTable
from vani.readers.trace_reader import Piece


@dataclass
class Reading:
    """The contents of one trace."""

    reader: RecorderReader
    calls: pa.Table
    piece: Piece

    @property
    def problems(self) -> list[str]:
        return [*self.reader.problems, *self.piece.problems]

    def column(self, name: str) -> np.ndarray:
        """One column; nulls become the smallest int64."""
        return self.calls[name].fill_null(np.iinfo(self.calls[name].type.to_pandas_dtype()).min).to_numpy()

    def paths(self) -> list[str | None]:
        """The path of every call's file."""
        names = self.reader.files()["path"].to_pylist()
        return [None if file is None else names[file] for file in self.calls["file"].to_pylist()]

    def names(self) -> list[str]:
        """The function of every call."""
        names = self.reader.functions()["name"].to_pylist()
        return [names[func] for func in self.calls["func"].to_pylist()]

    def is_file_system(self) -> np.ndarray:
        return self.column("layer") <= Layer.STDIO


def read_trace(path: Path) -> Reading:
    """Read all ranks of the Recorder trace at `path`."""
    reader = RecorderReader(path)
    piece = Piece()
    batches = list(reader.batches(range(reader.ranks), piece))
    for batch in batches:
        batch.validate(full=True)
    return Reading(reader, pa.Table.from_batches(batches, CALLS), piece)


def decode_call_table(buffer: bytes, *, function_bytes: int, counted: bool, where: str) -> CallTable:
    """Decode and check the inflated content of a .cst file at once."""
    shape = {"function_bytes": function_bytes, "counted": counted, "where": where}
    (part,) = call_table_parts(Buffer(buffer), **shape, part_bytes=max(4, len(buffer)))
    return part.table
