"""What other distributions bring to Vani, by entry point. To look through all that is installed takes a while."""

from __future__ import annotations

import functools
import sys
from importlib.metadata import EntryPoints, entry_points
from typing import Any

__all__ = ["plug_ins"]


def plug_ins(group: str) -> EntryPoints:
    """The entry points of a group; all that is installed is looked through once."""
    found: EntryPoints = _installed(tuple(sys.path)).select(group=group)
    return found


@functools.cache
def _installed(_places: tuple[str, ...]) -> Any:
    # Of another class in Python 3.11 than in later ones.
    return entry_points()
