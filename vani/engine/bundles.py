"""Bundles of tasks, where a scheduler would spend more time on each task than the task takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

__all__ = ["bundled", "in_order"]

Item = TypeVar("Item")


def bundled(items: Sequence[Item], least: int) -> list[Sequence[Item]]:
    """Deal items out like cards to at least `least` bundles, or one to each item; none is empty.

    Items that come long first make bundles of about the same length, where neighbours would make one of the longest.
    """
    size = max(1, len(items) // least)
    count = -(-len(items) // size)
    return [items[first::count] for first in range(count)]


def in_order(bundles: Sequence[Sequence[Item]]) -> list[Item]:
    """What was dealt out, in the order in which it was."""
    return [
        bundle[round_]
        for round_ in range(len(max(bundles, key=len, default=())))
        for bundle in bundles
        if round_ < len(bundle)
    ]
