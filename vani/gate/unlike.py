"""Which attributes of an entity differ between two runs: in most entities of a long profile next to none do.

What is alike is counted block by block, so that only what differs is compared by tolerances.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from vani.gate.attribute import AnyKey
from vani.gate.entities import IDENTITIES
from vani.gate.flushing import flushing_beside
from vani.gate.matching import number
from vani.gate.shape import Leaf, leaves
from vani.schema.model import Model

__all__ = ["Block", "KeysAndLeaf", "blocks", "is_derived", "unlike", "value_at"]

KeysAndLeaf = tuple[tuple[str, ...], Leaf]

_DERIVED: Final = {
    "ops_share", "time_share", "start_s", "end_s", "first_s", "last_s", "busy_s", "path",
    "slowest_rank", "slowest_call_rank", "busiest_rank",
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Attributes that follow each other in one mapping of an entity, which stands at `keys`."""

    keys: tuple[str, ...]
    plain: tuple[KeysAndLeaf, ...]
    """Those whose values alone tell whether they are alike."""
    other: tuple[KeysAndLeaf, ...]
    """Tables, and counts that mean something else beside others."""


@functools.cache
def blocks(model: type[Model], key: str) -> tuple[Block, ...]:
    """The attributes that are compared of an entity of the list `key`, in the order of the schema."""
    compared = [
        (keys, leaf)
        for keys, leaf in leaves(model)
        # A name that is another one may be an alias: it is the same entity all the same.
        if not is_derived(keys) and not (len(keys) == 1 and keys[0] in IDENTITIES[key])
    ]
    found = []
    for (above, is_plain), some in groupby(compared, lambda one: (one[0][:-1], _is_plain(*one))):
        rows = tuple(some)
        found.append(Block(above, rows if is_plain else (), () if is_plain else rows))
    return tuple(found)


def is_derived(keys: Sequence[str]) -> bool:
    """Whether an attribute follows from others, or is a moment."""
    return not _DERIVED.isdisjoint(keys) or tuple(keys[-2:]) == ("bytes", "total")


def unlike(block: Block, before: Sequence[Any], after: Sequence[Any]) -> tuple[Iterable[KeysAndLeaf], int]:
    """What of a block is left to compare, and how many known values are the same.

    Parameters
    ----------
    before, after
        An entity in the runs of both sides; of several runs, everything is left to compare.
    """
    if block.other or len(before) != 1 or len(after) != 1:
        return (*block.plain, *block.other), 0
    old, new = value_at(before[0], block.keys), value_at(after[0], block.keys)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return (() if old is None and new is None else block.plain), 0
    left, alike = [], 0
    for one in block.plain:
        keys, leaf = one
        value = old.get(keys[-1])
        if value != new.get(keys[-1]):
            left.append(one)
        elif leaf.dimension in ("text", "flag"):
            alike += isinstance(value, (str, bool))
        else:
            alike += number(value) is not None
    return left, alike


def value_at(node: Any, keys: Sequence[str]) -> Any:
    """What a tree holds below these keys; None where it has one of them not."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def _is_plain(keys: tuple[str, ...], leaf: Leaf) -> bool:
    return not isinstance(leaf.steps[-1], AnyKey) and flushing_beside(keys) is None
