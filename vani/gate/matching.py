"""Finds the values that an attribute path matches in a profile, each with the entity that it belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Any, Final, NamedTuple

from vani.errors import DocumentError
from vani.gate.attribute import (
    COMPARISONS,
    AnyKey,
    Attribute,
    Condition,
    Each,
    Index,
    Key,
    Step,
    Where,
    key_text,
)
from vani.gate.attribute_schema import Leaf
from vani.gate.entity_names import IDENTITIES, Identity, Names, label
from vani.gate.quantity import Dimension, Quantity
from vani.schema.saved_profile import Column

Value = int | float | str | bool | None
Trail = tuple[str | Identity, ...]
"""Keys, and identities of list entities: a path that means the same in any profile."""

_LARGEST: Final = 1e300
_EXACT: Final = 1 << 62
_TARGETS: Final = ("path", "name", "app")


class Match(NamedTuple):
    """A value that a path matches."""

    trail: Trail
    full_trail: Trail
    """The trail with unstripped paths."""
    entity: Any
    """The innermost list entity on the path, or None."""
    value: Value
    leaf: Leaf

    @property
    def target(self) -> str | None:
        """The file or app that the value belongs to."""
        if not isinstance(self.entity, dict):
            return None
        return next((self.entity[name] for name in _TARGETS if isinstance(self.entity.get(name), str)), None)

    @property
    def attribute(self) -> str:
        """Path with the entities' full names, which leads only to this value."""
        return trail_text(self.full_trail)

    @property
    def against(self) -> str:
        """Path with stripped names, which is the same in every run."""
        return trail_text(self.trail)


def trail_text(trail: Trail) -> str:
    """A trail as text of a path."""
    text, key = "", ""
    for step in trail:
        if isinstance(step, tuple):
            text += label(key, step)
        else:
            key = step
            text += f".{key_text(step)}"
    return text.removeprefix(".")


def matches(leaf: Leaf, tree: Mapping[str, Any], names: Names, where: str) -> Iterator[Match]:
    """Every place that a leaf's path reaches; none for a list without matching entries.

    A null on the path is a match without a value.

    Raises
    ------
    DocumentError
        A value has the wrong type, in parts of a long profile that were not checked when it was read.
    """
    # The attributes of a kind of entity share the path to the entities, which is followed once.
    last = max((i for i, step in enumerate(leaf.steps) if not isinstance(step, Key)), default=-1) + 1
    known = names.places.get((id(tree), leaf.steps[:last]))
    if known is None:
        # Keep a reference to the tree, so that no other tree gets its id.
        known = names.places[(id(tree), leaf.steps[:last])] = (tree, _reached(tree, leaf.steps[:last], names))
    keys = tuple(step.name for step in leaf.steps[last:] if isinstance(step, Key))
    absent = 0 if leaf.in_table else None
    places = _below(known[1], keys, drop_null=False, absent=absent) if keys else known[1]
    numeric = leaf.dimension not in ("text", "flag") and not leaf.entities
    for node, trail, full_trail, entity in places:
        value = (
            node
            if numeric and type(node) is int and node < _EXACT
            else _checked(node, leaf, full_trail, where)
        )
        yield Match(trail, full_trail, entity, value, leaf)


def find(trail: Trail, tree: Any, names: Names, *, absent: Value = None) -> tuple[bool, Value]:
    """Look up a trail: True and the value (None if null or missing), or False if an entity on the path is missing.

    `absent` is the value if only the last key is missing.
    """
    key = ""
    table: Any = None
    for step in trail:
        table = tree
        if isinstance(step, str):
            key = step
            tree = tree.get(step) if type(tree) is dict else None
        else:
            tree = names.find(key, tree, step) if type(tree) is list else None
            if tree is None:
                return False, None
    if tree is None and type(table) is dict:
        tree = absent
    return True, tree if isinstance(tree, str) or number(tree) is not None else None


def number(value: object) -> int | float | None:
    """The value if it is a usable number, otherwise None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if -_LARGEST < value < _LARGEST else None


def aggregated(attribute: Attribute, matched: Sequence[Match]) -> tuple[Value, Dimension]:
    """The aggregate of all known values and its dimension. Without values it is None, or 0 for a count."""
    values = [match.value for match in matched if match.leaf.entities or match.value is not None]
    dimension: Dimension = matched[0].leaf.dimension if matched else "count"
    if attribute.aggregate == "count":
        return len(values), "count"
    numbers = [value for value in values if isinstance(value, (int, float))]
    if not numbers:
        return None, dimension
    if attribute.aggregate == "sum":
        return sum(numbers) if all(isinstance(n, int) for n in numbers) else math.fsum(numbers), dimension
    if attribute.aggregate == "mean":
        return math.fsum(numbers) / len(numbers), "number" if dimension == "count" else dimension
    chosen: Callable[[Sequence[int | float]], int | float] = min if attribute.aggregate == "min" else max
    return chosen(numbers), dimension


def why_null(leaf: Leaf, provenance: Mapping[str, str]) -> str:
    """Reason for a null, from the profile's provenance or else the description in the schema."""
    keys = leaf.dotted.split(".")
    for names in (keys, keys[1:]):
        for length in range(len(names), 0, -1):
            why = provenance.get(".".join(names[:length]))
            if why:
                return why
    _, null, description = leaf.description.partition("null")
    return f"null{description}" if null else "it is null in the profile"


def columns_of(leaves: Sequence[Leaf]) -> set[Column]:
    """Attributes of files that the paths read, including those in conditions."""
    columns: set[Column] = set()
    for leaf in leaves:
        if not leaf.steps or leaf.steps[0] != Key("files"):
            continue
        for step in leaf.steps:
            if isinstance(step, Where):
                columns |= {condition.keys for condition in step.conditions}
        keys = tuple(step.name for step in leaf.steps[1:] if isinstance(step, Key))
        if keys:
            columns.add(keys)
    return columns


class _Place(NamedTuple):
    node: Any
    trail: Trail
    full_trail: Trail
    entity: Any


def _reached(tree: Mapping[str, Any], steps: Sequence[Step], names: Names) -> list[_Place]:
    places = [_Place(tree, (), (), None)]
    parts = list(_parts(steps))
    for part in parts:
        if isinstance(part, tuple):
            places = list(_below(places, part, drop_null=True))
        elif isinstance(part, AnyKey):
            places = [
                _Place(below, (*place.trail, name), (*place.full_trail, name), place.entity)
                for place in places
                if isinstance(place.node, dict)
                for name, below in place.node.items()
            ]
        else:
            places = [below for place in places for below in _entities(place, part, names)]
    return places


def _parts(steps: Sequence[Step]) -> Iterator[tuple[str, ...] | AnyKey | Each | Index | Where]:
    """The steps, with consecutive keys joined into one part."""
    for is_key, group in groupby(steps, key=lambda step: isinstance(step, Key)):
        if is_key:
            yield tuple(step.name for step in group if isinstance(step, Key))
        else:
            yield from (step for step in group if not isinstance(step, Key))


def _below(
    places: Sequence[_Place], keys: tuple[str, ...], *, drop_null: bool, absent: Value = None
) -> Iterator[_Place]:
    for node, trail, full_trail, entity in places:
        node_below: Any = node
        table: Any = None
        for key in keys:
            table = node_below
            node_below = node_below.get(key) if type(node_below) is dict else None
        if node_below is None and absent is not None and type(table) is dict:
            node_below = absent
        if node_below is not None or not drop_null:
            deeper = trail + keys
            yield _Place(node_below, deeper, deeper if full_trail is trail else full_trail + keys, entity)


def _entities(place: _Place, step: Each | Index | Where, names: Names) -> Iterator[_Place]:
    node = place.node
    if not isinstance(node, list):
        return
    key = str(place.trail[-1])
    for position, (entity, identity) in enumerate(zip(node, names.identities(key, node), strict=True)):
        if isinstance(step, Index) and position != step.number:
            continue
        if isinstance(step, Where) and not all(_meets(condition, entity) for condition in step.conditions):
            continue
        trail = (*place.trail, identity)
        full = _full(key, entity, identity) if names.strip else identity
        yield _Place(entity, trail, trail if full is identity else (*place.full_trail, full), entity)


def _full(key: str, entity: Any, identity: Identity) -> Identity:
    """The identity with its unstripped path."""
    if IDENTITIES.get(key) != ("path",) or not isinstance(entity, dict):
        return identity
    return (entity.get("path"), *identity[1:])


def _meets(condition: Condition, entity: Any) -> bool:
    value = entity
    for key in condition.keys:
        value = value.get(key) if isinstance(value, dict) else None
    expected, operator = condition.value, condition.operator
    if value is None:
        return False
    if isinstance(expected, Quantity):
        compare = COMPARISONS["==" if operator == "=" else operator]
        return isinstance(value, (int, float)) and compare(value, expected.value)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if operator in ("~", "!~"):
        return fnmatchcase(text, expected) is (operator == "~")
    return (text == expected) is (operator == "=")


def _checked(value: Any, leaf: Leaf, trail: Trail, where: str) -> Value:
    if leaf.entities or value is None:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if leaf.dimension in ("text", "flag"):
        right = isinstance(value, str if leaf.dimension == "text" else bool)
    else:
        right = number(value) is not None
    if right:
        checked: Value = value
        return checked
    expected = {"text": "text", "flag": "true or false"}.get(leaf.dimension, "a number below 1e300")
    text = value if isinstance(value, str) else str(type(value).__name__)
    raise DocumentError(
        f"{trail_text(trail)} is {text[:40]!r}, not {expected}", where=where, todo="make the profile again"
    )
