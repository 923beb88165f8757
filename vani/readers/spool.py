"""Intermediate storage of parsed rows: in memory while there are few, then in an unnamed temporary file."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.columns import to_numpy
from vani.distinct import distinct
from vani.errors import TraceError

_IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class _StoredBatch:
    at: int
    size: int
    numbers: NDArray[np.int32]
    """Numbers of which the batch has rows, ascending."""


class Spool:
    """Record batches of one schema, in order; several threads may read them repeatedly at the same time."""

    def __init__(self, schema: pa.Schema, by: str) -> None:
        """`by` is the column of thread or process numbers by which batches are requested."""
        self.schema, self.by = schema, by
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as this
        self._stored: list[_StoredBatch] = []
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Store a batch.

        Raises
        ------
        TraceError
            There is no room for temporary files.
        """
        data = batch.serialize()
        with self._lock:
            try:
                at = self._file.seek(0, 2)
                self._file.write(data)
            except OSError as error:
                raise TraceError(
                    f"cannot store the parsed rows ({error.strerror})",
                    where=tempfile.gettempdir(),
                    todo="name another folder for temporary files in TMPDIR",
                ) from error
        numbers = distinct(to_numpy(batch.column(self.by)))
        self._stored.append(_StoredBatch(at, data.size, numbers))

    def batches(self, wanted: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
        """The batches that have rows with any of the numbers marked in `wanted`."""
        for stored in self._stored:
            if not wanted[stored.numbers].any():
                continue
            with self._lock:
                self._file.seek(stored.at)
                data = self._file.read(stored.size)
            yield pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)
