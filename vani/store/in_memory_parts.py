"""Calls that stay in memory between decoding and measuring: a profile of small traces reads none of them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from vani.calls import CALLS

__all__ = ["InMemoryParts", "MemoryBudget"]

InMemoryParts = Mapping[str, Sequence[pa.RecordBatch]]
"""Calls of a store that are in memory, by part."""

_CALL_BYTES = sum(int(field.type.bit_width) for field in CALLS) // 8
_FILE_BYTES = 512
"""Memory that measures need for each file, which counts towards the budget."""


@dataclass
class MemoryBudget:
    """Bytes that calls of all traces of a workload together may take: 6 million calls, fewer beside many files."""

    left: int = 320 << 20

    def take(self, calls: int, files: int) -> bool:
        """Tell whether the calls of a trace may stay; its files take room in any case."""
        self.left -= files * _FILE_BYTES
        fits = calls * _CALL_BYTES <= self.left
        if fits:
            self.left -= calls * _CALL_BYTES
        return fits
