"""Metadata with and without flushing: documents of `vani.profile/1` counted fsync and its kin among metadata.

Such a number of metadata operations and one of today are numbers of different things: whoever compares them would
see flushing come and go. A document of the first version has no number for flushing itself, which tells them apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, TypeVar

__all__ = ["flushing_beside"]

_BLOCKS: Final = frozenset({"ops", "time_s", "busy_s", "ops_share", "time_share"})


Step = TypeVar("Step", bound=Hashable)


def flushing_beside(keys: Sequence[Step]) -> tuple[Step | str, ...] | None:
    """Where the number for flushing stands beside one of metadata, such as `(..., "ops", "sync")`; None for others."""
    if len(keys) < 2 or keys[-1] != "metadata" or keys[-2] not in _BLOCKS:
        return None
    return (*keys[:-1], "sync")
