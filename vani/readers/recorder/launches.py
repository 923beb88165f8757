"""Traces into whose folder several programs wrote, one over the other."""

from __future__ import annotations

from vani.readers.recorder.source import Source

__all__ = ["surplus_ranks"]


def surplus_ranks(source: Source, ranks: int) -> int:
    """Number of ranks with files of their own that cannot be ranks of the run whose metadata is in the folder.

    A run leaves one file per rank, or one for all (`ug.cfg`); the next one that writes into the folder replaces what
    has the same name.
    """
    owners = source.ranks_with("cfg", "cst")
    if source.extent("ug.cfg") is not None:
        return len(owners)
    return sum(rank >= ranks for rank in owners)
