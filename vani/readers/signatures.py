"""Signatures, which are a trace's distinct calls: as stored in the trace, and with their meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class CallTable:
    """Distinct calls by signature id.

    Attributes
    ----------
    thread, func, depth
        Shape (n,); `func` is a line number of the trace's function list.
    site
        Number of the call site within the calling rank; -1 if unknown or not stored.
    count
        Number of calls with this signature over all ranks that share the table; None if not stored.
    args
        n lists of argument texts, in which invalid UTF-8 was replaced with replacement characters.
    """

    thread: NDArray[np.int64]
    func: NDArray[np.int64]
    depth: NDArray[np.int64]
    site: NDArray[np.int32]
    count: NDArray[np.int64] | None
    args: pa.ListArray

    def __len__(self) -> int:
        return len(self.func)


@dataclass
class Signatures:
    """Columns by signature id, shape (n,) each; `NO_VALUE` or -1 marks missing values."""

    func: NDArray[np.int16]
    layer: NDArray[np.int8]
    kind: NDArray[np.int8]
    depth: NDArray[np.int8]
    site: NDArray[np.int32]
    """Number of the call site within the calling rank, or -1."""
    thread: NDArray[np.int32]
    file: NDArray[np.int32]
    bytes: NDArray[np.int64]
    rule: NDArray[np.int8]
    flags: NDArray[np.int16]
    value: NDArray[np.int64]
    """Offset, seek distance or new length, before patterns are resolved."""
    slope: NDArray[np.int64]
    """a of an interprocess pattern `a*r+b` (b is `value`), or 0."""
    slope_group: NDArray[np.int8]
    """Function whose groups r refers to, or -1."""
    running: NDArray[np.int8]
    """Function whose offsets are stored as differences, or -1."""
    handle: NDArray[np.int32]
    """Code of the id that names the file, or -1."""
    binds: NDArray[np.bool_]
    rename_to: NDArray[np.int32]
    unnamed: list[int] = field(default_factory=list)
    """Numbers of functions that the trace does not name."""
    unbelieved: dict[str, str] = field(default_factory=dict)
    """Fault of an implausible size or offset, which was dropped, by function."""

    def __len__(self) -> int:
        return len(self.func)

    @property
    def problems(self) -> list[str]:
        """Faults of the table."""
        return [
            *(f"calls of function number {func}, which the trace does not name" for func in self.unnamed),
            *self.unbelieved.values(),
        ]

    @classmethod
    def of_calls(cls, **columns: NDArray[Any]) -> Signatures:
        """Build signatures for a tracer that stores each call with its arguments; omitted columns are empty."""
        n = len(columns["func"])
        empty: dict[str, NDArray[Any]] = {
            "depth": np.zeros(n, np.int8),
            "site": np.full(n, -1, np.int32),
            "slope": np.zeros(n, np.int64),
            "slope_group": np.full(n, -1, np.int8),
            "running": np.full(n, -1, np.int8),
            "handle": np.full(n, -1, np.int32),
            "binds": np.zeros(n, np.bool_),
            "rename_to": np.full(n, -1, np.int32),
        }
        more: dict[str, Any] = empty | columns
        return cls(**more)

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(
            name for name in Signatures.__dataclass_fields__ if name not in ("unnamed", "unbelieved")
        )

    def take(self, ids: NDArray[Any]) -> Signatures:
        """Select signatures and renumber them."""
        return Signatures(**{name: getattr(self, name)[ids] for name in Signatures.columns()})

    @staticmethod
    def join(parts: list[Signatures]) -> Signatures:
        """Concatenate tables."""
        if len(parts) == 1:
            return parts[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(p, name) for p in parts]) for name in Signatures.columns()
        }
        return Signatures(**columns)
