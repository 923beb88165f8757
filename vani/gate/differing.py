"""Attributes of an entity that differ between two runs, which in most entities of a long profile are next to none.

Equal values are counted block by block, so that only differing ones are compared by tolerances.
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

__all__ = [
    "Block",
    "KeysAndLeaf",
    "blocks",
    "comparable_values",
    "differing",
    "differing_bins",
    "flushing_beside",
    "is_derived",
    "moved_share",
    "value_at",
]

KeysAndLeaf = tuple[tuple[str, ...], Leaf]

_DERIVED: Final = {
    "ops_share", "time_share", "start_s", "end_s", "first_s", "last_s", "busy_s", "path",
    "slowest_rank", "slowest_call_rank", "busiest_rank",
}  # fmt: skip
_WITH_METADATA_AND_SYNC: Final = frozenset({"ops", "time_s", "busy_s", "ops_share", "time_share"})
Step = TypeVar("Step", bound=Hashable)


@dataclass(frozen=True)
class Block:
    """Attributes that follow each other in one mapping of an entity, which is at `keys`."""

    keys: tuple[str, ...]
    plain: tuple[KeysAndLeaf, ...]
    """Attributes whose values alone decide whether they are equal."""
    other: tuple[KeysAndLeaf, ...]
    """Tables, and counts whose meaning depends on others."""


@functools.cache
def blocks(model: type[Model], key: str) -> tuple[Block, ...]:
    """The attributes that are compared of an entity of the list `key`, in the order of the schema."""
    compared = [
        (keys, leaf)
        for keys, leaf in leaves(model)
        # A name that is another one may be an alias: it is still the same entity.
        if not is_derived(keys) and not (len(keys) == 1 and keys[0] in IDENTITIES[key])
    ]
    blocks_found = []
    for (above, is_plain), some in groupby(compared, lambda row: (row[0][:-1], _is_plain(*row))):
        rows = tuple(some)
        blocks_found.append(Block(above, rows if is_plain else (), () if is_plain else rows))
    return tuple(blocks_found)


def is_derived(keys: Sequence[str]) -> bool:
    """True if an attribute follows from others, or is a point in time."""
    return not _DERIVED.isdisjoint(keys) or tuple(keys[-2:]) == ("bytes", "total")


def differing(block: Block, before: Sequence[Any], after: Sequence[Any]) -> tuple[Iterable[KeysAndLeaf], int]:
    """The attributes of a block that are left to compare, and the number of known values that are equal.

    Parameters
    ----------
    before, after
        An entity in the runs of both sides; with several runs, everything is left to compare.
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
    """The value of a tree below these keys; None if one of them is missing."""
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    return node


def flushing_beside(keys: Sequence[Step]) -> tuple[Step | str, ...] | None:
    """Keys of the number for flushing next to one of metadata, such as `(..., "ops", "sync")`; None for other keys.

    Documents of `vani.profile/1` counted fsync and its kin among metadata and had no number for flushing. Their
    metadata and that of later documents must not be compared: flushing would seem to come and go.
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
    """Total variation distance of two histograms: the part that would have to be moved to make one of the other."""
    sums = [sum(number(count) or 0 for count in table.values()) for table in (a, b)]
    if not all(sums):
        return 1.0
    names = dict.fromkeys((*a, *b))
    return sum(abs((number(a.get(n)) or 0) / sums[0] - (number(b.get(n)) or 0) / sums[1]) for n in names) / 2


def comparable_values(keys: Sequence[str], before: Sequence[Any], after: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The values on both sides; metadata counted with flushing is unknown if the other side counts it without."""
    old, new = ([value_at(entity, keys) for entity in side] for side in (before, after))
    beside = flushing_beside(keys)
    if beside is not None:
        apart = [[value_at(entity, beside) is not None for entity in side] for side in (before, after)]
        if any(map(any, apart)):
            old, new = (
                [value if is_apart else None for value, is_apart in zip(*pair, strict=True)]
                for pair in ((old, apart[0]), (new, apart[1]))
            )
    return old, new


def _is_plain(keys: tuple[str, ...], leaf: Leaf) -> bool:
    return not isinstance(leaf.steps[-1], AnyKey) and flushing_beside(keys) is None
