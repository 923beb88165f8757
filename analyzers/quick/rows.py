"""Occurrences of calls in the form for counting: with the workload's codes, and weighted over all ranks."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.int_table import NO_VALUE
from vani.analyzers.workload import Context
from vani.calls import FileClass, Flag, Layer
from vani.columns import to_numpy

Ints = NDArray[np.int64]


class Rows:
    """A batch of occurrences with the workload's file codes, and weights over all ranks."""

    def __init__(self, context: Context, batch: pa.RecordBatch, ranks_of_group: Ints) -> None:
        self.context = context
        self._batch = batch
        self.group = self.numbers("group").astype(np.int64)
        self.once = self.numbers("count")
        self.ranks = ranks_of_group[self.group]
        self.weight = self.once * self.ranks

    def numbers(self, name: str) -> NDArray[Any]:
        """A column as a numpy array; null is `NO_VALUE` in 64-bit columns, and -1 in others."""
        column = self._batch.column(name)
        return to_numpy(column, NO_VALUE if column.type == pa.int64() else -1)

    @cached_property
    def function(self) -> NDArray[np.int32]:
        """Code of the function in `Workload.functions`."""
        codes = self.context.function_codes
        function: NDArray[np.int32] = codes[np.minimum(self.numbers("func"), len(codes) - 1)]
        return function

    @cached_property
    def layer(self) -> NDArray[np.int8]:
        return self.numbers("layer")

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        return self.numbers("kind")

    @cached_property
    def flags(self) -> NDArray[np.int16]:
        return self.numbers("flags")

    @cached_property
    def bytes(self) -> Ints:
        return self.numbers("bytes")

    @cached_property
    def file(self) -> Ints:
        local = self.numbers("file")
        codes = self.context.file_codes
        if not len(codes):
            return np.full(len(local), -1)
        file: Ints = np.where(local < 0, -1, codes[np.maximum(local, 0)])
        return file

    @cached_property
    def counted(self) -> Ints:
        """Rows of the counted file-system calls, without those made inside another one."""
        return np.flatnonzero((self.layer <= Layer.STDIO) & ((self.flags & Flag.NESTED) == 0))

    @cached_property
    def included(self) -> Ints:
        """Rows of calls on data set files."""
        classes = self.context.workload.file_class
        file = self.file[self.counted]
        if not len(classes):
            return self.counted[:0]
        included: Ints = self.counted[(file >= 0) & (classes[np.maximum(file, 0)] == FileClass.DATASET)]
        return included
