"""Finds the attributes of an entity that differ between two runs. Most entities of a long profile have hardly any.

Equal values are counted block by block, so that only differing ones are compared with tolerances.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, TypeVar

from vani.gate.attribute import AnyKey
from vani.gate.attribute_schema import Leaf, leaves
from vani.gate.entity_names import IDENTITIES
from vani.gate.matching import number
from vani.schema.model import Model

KeysAndLeaf = tuple[tuple[str, ...], Leaf]

_DERIVED: Final = {
    "ops_share", "time_share", "start_s", "end_s", "first_s", "last_s", "busy_s", "path",
    "slowest_rank", "slowest_call_rank", "busiest_rank",
}  # fmt: skip
_WITH_METADATA_AND_SYNC: Final = frozenset({"ops", "time_s", "busy_s", "ops_share", "time_share"})
Step = TypeVar("Step", bound=Hashable)


@dataclass(frozen=True)
class Block:
    """Consecutive attributes in one mapping of an entity; `keys` is the path of the mapping."""

    keys: tuple[str, ...]
    plain: tuple[KeysAndLeaf, ...]
    """Attributes that can be compared by value alone."""
    other: tuple[KeysAndLeaf, ...]
    """Tables, and counts whose meaning depends on other attributes."""


@functools.cache
def blocks(model: type[Model], key: str) -> tuple[Block, ...]:
    """The attributes to compare for entities of the list `key`, in schema order."""
    compared = [
        (keys, leaf)
        for keys, leaf in leaves(model)
        # Identities are not compared: a different name may be an alias of the same entity.
        if not is_derived(keys) and not (len(keys) == 1 and keys[0] in IDENTITIES[key])
    ]
    blocks_found = []
    for (above, is_plain), group in groupby(compared, lambda row: (row[0][:-1], _is_plain(*row))):
        rows = tuple(group)
        blocks_found.append(Block(above, rows if is_plain else (), () if is_plain else rows))
    return tuple(blocks_found)


def is_derived(keys: Sequence[str]) -> bool:
    """True if an attribute follows from others or is a point in time."""
    return not _DERIVED.isdisjoint(keys) or tuple(keys[-2:]) == ("bytes", "total")


def differing(block: Block, before: Sequence[Any], after: Sequence[Any]) -> tuple[Iterable[KeysAndLeaf], int]:
    """The attributes of a block that remain to be compared, and the number of known values that are equal.

    Parameters
    ----------
    before, after
        An entity in the runs of each side. With several runs, all attributes remain.
    """
    if block.other or len(before) != 1 or len(after) != 1:
        return (*block.plain, *block.other), 0
    old, new = value_at(before[0], block.keys), value_at(after[0], block.keys)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return (() if old is None and new is None else block.plain), 0
    left, alike = [], 0
    for row in block.plain:
        keys, leaf = row
        value = old.get(keys[-1])
        if value != new.get(keys[-1]):
            left.append(row)
        elif leaf.dimension in ("text", "flag"):
            alike += isinstance(value, (str, bool))
        else:
            alike += number(value) is not None
    return left, alike


def value_at(node: Any, keys: Sequence[str]) -> Any:
    """The value at a path of keys in a tree; None if a key is missing."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def flushing_keys(keys: Sequence[Step]) -> tuple[Step | str, ...] | None:
    """The keys of the flushing figure next to a metadata figure, such as `(..., "ops", "sync")`; None for other keys.

    Documents of `vani.profile/1` counted fsync and similar calls as metadata and had no figure for flushing. Their
    metadata cannot be compared with that of later documents: flushing would seem to appear or disappear.
    """
    if len(keys) < 2 or keys[-1] != "metadata" or keys[-2] not in _WITH_METADATA_AND_SYNC:
        return None
    return (*keys[:-1], "sync")


def differing_bins(table: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The bins whose counts differ, the fullest first."""
    bins = [(name, number(count) or 0) for name, count in table.items() if count != other.get(name)]
    bins.sort(key=lambda bin_: (-bin_[1], bin_[0]))
    shown = ", ".join(f"{name}: {count:,}" for name, count in bins[:4])
    return (shown + (", ..." if len(bins) > 4 else "")) or "none"


def moved_share(a: Mapping[str, Any], b: Mapping[str, Any]) -> float:
    """Total variation distance of two histograms, 0..1: the share to move to turn one into the other."""
    sums = [sum(number(count) or 0 for count in table.values()) for table in (a, b)]
    if not all(sums):
        return 1.0
    names = dict.fromkeys((*a, *b))
    return sum(abs((number(a.get(n)) or 0) / sums[0] - (number(b.get(n)) or 0) / sums[1]) for n in names) / 2


def comparable_values(keys: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The values on both sides. Metadata that includes flushing counts as unknown if other metadata excludes it."""
    old, new = ([value_at(entity, keys) for entity in side] for side in (before, after))
    flushing = flushing_keys(keys)
    if flushing is not None:
        is_separate = [[value_at(entity, flushing) is not None for entity in side] for side in (before, after)]
        if any(map(any, is_separate)):
            old, new = (
                [value if separate else None for value, separate in zip(*pair, strict=True)]
                for pair in ((old, is_separate[0]), (new, is_separate[1]))
            )
    return old, new


def _is_plain(keys: tuple[str, ...], leaf: Leaf) -> bool:
    return not isinstance(leaf.steps[-1], AnyKey) and flushing_keys(keys) is None
