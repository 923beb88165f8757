"""Names of ranks, of which there may be many, in a problem."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

__all__ = ["some_ranks"]


def some_ranks(ranks: NDArray[Any]) -> str:
    """The first five ranks, and the number of all if there are more."""
    shown = ", ".join(str(r) for r in ranks[:5])
    return shown if len(ranks) <= 5 else f"{shown}, ... ({len(ranks)} in all)"
