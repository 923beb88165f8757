"""How two histograms differ: tables of counts by bin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vani.gate.matching import number

__all__ = ["bins_apart", "part_moved"]


def bins_apart(table: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The bins that are not the same in both, the fullest first."""
    bins = [(name, number(count) or 0) for name, count in table.items() if count != other.get(name)]
    bins.sort(key=lambda one: (-one[1], one[0]))
    shown = ", ".join(f"{name}: {count:,}" for name, count in bins[:4])
    return (shown + (", ..." if len(bins) > 4 else "")) or "none"


def part_moved(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Total variation distance of two histograms: the part that would have to be moved to make one of the other."""
    sums = [sum(number(count) or 0 for count in table.values()) for table in (a, b)]
    if not all(sums):
        return 1.0
    names = dict.fromkeys((*a, *b))
    return sum(abs((number(a.get(n)) or 0) / sums[0] - (number(b.get(n)) or 0) / sums[1]) for n in names) / 2
