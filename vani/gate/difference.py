"""Compares two profiles attribute by attribute: what changed, by how much, and whether it matters.

A difference matters if it exceeds the tolerance (`vani.gate.tolerance`) and concerns at least 1 % of the I/O time
in either profile. Attributes that follow from others (shares of counts and times, sums of bytes) and points in time
(such as the start of a phase) are left out.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final, Literal, cast

from vani.gate.attribute import AnyKey, Leaf, key_text, leaves
from vani.gate.matching import IDENTITIES, Names, Tree, aliases_of, label, number
from vani.gate.tolerance import Dimension, Limits, limits_of, tolerance_of
from vani.schema import profile
from vani.schema.check import Source
from vani.schema.diff import KEY_FIGURES, SLOWEST_CALLS, Diff, DiffCounts, Difference, KeyFigure, KeyUnit
from vani.schema.model import Model
from vani.schema.saved_profile import Column

KeysAndLeaf = tuple[tuple[str, ...], Leaf]

_DERIVED: Final = {
    "ops_share", "time_share", "start_s", "end_s", "first_s", "last_s", "busy_s", "path",
    "slowest_rank", "slowest_call_rank", "busiest_rank",
}  # fmt: skip


@dataclass(frozen=True)
class Block:
    """Consecutive attributes in one mapping of an entity; `keys` is the path of the mapping."""

    keys: tuple[str, ...]
    plain: tuple[KeysAndLeaf, ...]
    """Attributes that can be compared by value alone."""
    other: tuple[KeysAndLeaf, ...]
    """Tables."""


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
    for (above, is_plain), group in groupby(compared, lambda row: (row[0][:-1], _is_plain(row[1]))):
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


def _is_plain(leaf: Leaf) -> bool:
    return not isinstance(leaf.steps[-1], AnyKey)


MATTERS: Final = 0.01
"""Least share of the I/O time that matters, the same as for a gain of low severity in `vani advise`."""

FILE_COLUMNS: Final[tuple[Column, ...]] = (
    ("format",), ("size",), ("role",), ("access",), ("processes",), ("readers",), ("writers",), ("opens",),
    ("interface",), ("io", "bytes"), ("io", "past_end"), ("io", "ops"), ("io", "time_s"), ("io", "access_pattern"),
)  # fmt: skip
"""Attributes of files to compare in a long profile."""

_LISTS: Final[tuple[tuple[tuple[str, ...], type[Model]], ...]] = (
    (("apps",), profile.App),
    (("phases",), profile.Phase),
    (("interfaces",), profile.Interface),
    (("workflow", "app_dependencies"), profile.AppDependency),
    (("files",), profile.FileEntity),
)
_SKIPPED: Final = {"schema", "generator", "provenance", "verdict", "unseen"}
_REPEATING: Final = ("apps", "phases", "dataset")
_RANKS: Final = {"worse": 0, "changed": 1, "new": 1, "gone": 1, "better": 2, "within": 3, "unknown": 4}
_KINDS: Final = {
    "read": "read", "bytes_read": "read", "readers": "read", "write": "write", "written": "write",
    "bytes_written": "write", "writers": "write", "write_synced": "write", "sync": "sync", "metadata": "metadata",
    "metadata_kinds": "metadata", "opens": "metadata",
}  # fmt: skip
# If a time is within its tolerance of noise, a rate over that time is noise, too.
_SHORT_S: Final = tolerance_of("io.time_s.total").absolute
# Share of a histogram that may move before it counts as changed, as for other shares.
_MOVED: Final = 0.05

Status = Literal["worse", "better", "changed", "within", "new", "gone", "unknown"]
Value = int | float | str | bool | None


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a profile, or the runs of a baseline."""

    source: Source
    runs: tuple[Tree, ...]
    lists_all_files: bool
    is_saved: bool = False
    """True for a saved baseline, which omits nulls, some attributes and less important entities."""


def compare(a: Side, b: Side, *, strip: Sequence[str] = (), version: str) -> Diff:
    """All differences between `a` and `b`, the most important first."""
    aliases = aliases_of(b.runs[0], (*b.runs[1:], *a.runs))
    comparison = _Comparison(a, b, Names(strip, aliases))
    differences = sorted(comparison.differences(), key=_order)
    own = [difference for difference in differences if difference.same_as is None]
    status = Counter(difference.status for difference in own)
    counts = DiffCounts(
        **{name: status[cast("Status", name)] for name in _RANKS},
        matters=sum(difference.matters for difference in own),
        compared=comparison.compared,
    )
    figures = [
        _figure(text, unit, *([_figure_value(text, run) for run in side.runs] for side in (a, b)))
        for text, (unit, _) in KEY_FIGURES.items()
    ]
    return Diff(version=version, a=a.source, b=b.source, figures=figures, counts=counts, differences=differences)


def _figure(text: str, unit: KeyUnit, a: Sequence[Any], b: Sequence[Any]) -> KeyFigure:
    before, after = _median(a), _median(b)
    change = None if not before or after is None else (after - before) / abs(before)
    return KeyFigure(attribute=text, unit=unit, before=before, after=after, change=change)


def _figure_value(text: str, run: Tree) -> Any:
    """The value of an attribute of the workflow, or the seconds of the slowest process in I/O calls of any kind."""
    if text != SLOWEST_CALLS:
        return value_at(run, text.split("."))
    times = (number(value_at(app, ("balance", "slowest_call_time_s"))) for app in _entities(run, ("apps",)))
    return max((time for time in times if time is not None), default=None)


def _order(difference: Difference) -> tuple[bool, int, float, float, str]:
    size = abs(difference.change) if difference.change is not None else 0.0
    return (
        not difference.matters,
        _RANKS[difference.status],
        -(difference.io_time_share or 0.0),
        -size,
        difference.attribute,
    )


@dataclass(frozen=True)
class _Place:
    """An attribute of an entity on both sides; `keys` is its path in the entity."""

    text: str
    target: str | None
    keys: tuple[str, ...]
    before: Sequence[Any]
    after: Sequence[Any]
    group: str
    """The list or the part of the profile that contains the entity."""


class _Comparison:
    def __init__(self, a: Side, b: Side, names: Names) -> None:
        self.a, self.b, self.names = a, b, names
        self.compared = 0
        self.whole = [
            _median([value_at(run, ("workflow", "io", "time_s", "total")) for run in s.runs]) for s in (a, b)
        ]
        self.seen: dict[tuple[str, Any, Any], str] = {}
        self.shown: dict[str, tuple[Value, Value]] = {}

    def differences(self) -> Iterator[Difference]:
        for keys, leaf in leaves(profile.Profile):
            if keys[0] in _SKIPPED:
                continue
            is_grouped = keys[0] in ("workflow", "dataset", "excluded")
            before, after = (
                [run.get(keys[0]) for run in side.runs] if is_grouped else list(side.runs)
                for side in (self.a, self.b)
            )
            group, rest = (keys[0], keys[1:]) if is_grouped else ("", keys)
            yield from self._attribute(_Place(".".join(keys), None, rest, before, after, group), leaf)
        for path, model in _LISTS:
            yield from self._list(path, model)

    def _list(self, path: tuple[str, ...], model: type[Model]) -> Iterator[Difference]:
        key = path[-1]
        sides = [[_entities(run, path) for run in side.runs] for side in (self.a, self.b)]
        entities_by_run = [
            [dict(zip(self.names.identities(key, entities), entities, strict=True)) for entities in runs]
            for runs in sides
        ]
        for identity in dict.fromkeys(identity for runs in entities_by_run for run in runs for identity in run):
            before, after = ([run.get(identity) for run in runs] for runs in entities_by_run)
            text = ".".join(path) + label(key, identity)
            known = [entity for entity in (*after, *before) if entity is not None]
            named = (known[0].get(name) for name in ("path", "name", "app"))
            target = next((name for name in named if isinstance(name, str)), None)
            if not any(before) or not any(after):
                if _lists_all(self.b if any(before) else self.a, key):
                    yield self._only_one(text, target, known, is_new=any(after))
                continue
            # Phases with the same index but of different kinds are not versions of each other.
            are_alike = key != "phases" or len({entity.get("kind") for entity in known}) == 1
            for block in blocks(model, key):
                left, alike = differing(block, before, after)
                self.compared += alike if are_alike else 0
                for keys, leaf in left:
                    if are_alike or keys == ("kind",):
                        place = _Place(f"{text}.{'.'.join(keys)}", target, keys, before, after, key)
                        yield from self._attribute(place, leaf)

    def _attribute(self, place: _Place, leaf: Leaf) -> Iterator[Difference]:
        if is_derived(place.keys):
            return
        old, new = ([value_at(entity, place.keys) for entity in side] for side in (place.before, place.after))
        if isinstance(leaf.steps[-1], AnyKey):
            yield from self._table(place, leaf, old, new)
        else:
            yield from self._value(place, leaf, old, new)

    def _table(self, place: _Place, leaf: Leaf, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Difference]:
        if self._left_out(next(iter(old), None), next(iter(new), None)):
            return
        tables = [value if isinstance(value, Mapping) else {} for value in (*old, *new)]
        if place.keys[-1] == "histogram":
            a, b = tables[0], tables[len(old)]
            if a != b and len(tables) == 2 and a and b:
                self.compared += 1
                shown = differing_bins(a, b), differing_bins(b, a)
                yield self._difference(
                    place, "histogram", shown, "changed" if moved_share(a, b) > _MOVED else "within"
                )
            return
        for name in dict.fromkeys(name for table in tables for name in table):
            values = [table.get(name) for table in tables]
            # A table of counts omits zeros.
            values = [0 if value is None and leaf.dimension == "count" else value for value in values]
            entry = replace(place, text=f"{place.text}.{key_text(name)}", keys=(*place.keys, name))
            yield from self._value(entry, leaf, values[: len(old)], values[len(old) :])

    def _value(self, place: _Place, leaf: Leaf, old: Sequence[Any], new: Sequence[Any]) -> Iterator[Difference]:
        is_text = leaf.dimension in ("text", "flag")
        # Of several runs, the first text counts.
        a, b = (next((v for v in side if isinstance(v, (str, bool))), None) if is_text else _median(side)
            for side in (old, new))
        if (a is None and b is None) or self._left_out(a, b):
            return
        self.compared += 1
        if a == b:
            return
        if a is None or b is None:
            yield self._difference(place, leaf.dimension, (a, b), "unknown")
        elif isinstance(a, str) or isinstance(b, str) or is_text:
            yield self._difference(place, leaf.dimension, (a, b), "changed")
        else:
            tolerance = tolerance_of(_dotted(place.group, leaf))
            known = [value for value in map(number, old) if value is not None]
            limits = limits_of(known, relative=tolerance.relative, absolute=tolerance.absolute)
            change = (b - a) / abs(a) if a else None
            yield self._difference(place, leaf.dimension, (a, b), _status(b, limits, tolerance.direction), change)

    def _left_out(self, before: Any, after: Any) -> bool:
        """True if a value is null in a saved baseline, which omits some values of its profile."""
        return (before is None and self.a.is_saved) or (after is None and self.b.is_saved)

    def _difference(
        self,
        place: _Place,
        unit: Dimension | Literal["histogram", "entity"],
        values: tuple[Value, Value],
        status: Status,
        change: float | None = None,
    ) -> Difference:
        seconds, share = self._io_time(place)
        if unit == "rate" and status != "unknown" and seconds is not None and seconds < _SHORT_S:
            status = "within"
        rest = (".".join(place.keys), *values)
        same_as = self.seen.get(rest) if place.group in _REPEATING else None
        self.shown[place.text] = values
        if ".footprint." in place.text and same_as is None:
            moved = place.text.replace(".footprint.", ".bytes.")
            same_as = moved if self.shown.get(moved) == values else None
        if place.group in ("workflow", "apps"):
            self.seen.setdefault(rest, place.text)
        return Difference(
            attribute=place.text,
            target=place.target,
            unit=unit,
            before=values[0],
            after=values[1],
            change=change,
            status=status,
            matters=status not in ("within", "unknown") and (share is None or share >= MATTERS),
            io_time_s=seconds,
            io_time_share=share,
            same_as=same_as,
        )

    def _only_one(self, text: str, target: str | None, entities: Sequence[Any], *, is_new: bool) -> Difference:
        before, after = ([], entities) if is_new else (entities, [])
        place = _Place(text, target, (), before, after, "")
        return self._difference(place, "entity", (not is_new, is_new), "new" if is_new else "gone")

    def _io_time(self, place: _Place) -> tuple[float | None, float | None]:
        """I/O time that an attribute of an entity concerns, and its share of the total; the larger of both sides."""
        kind = next((_KINDS[key] for key in reversed(place.keys) if key in _KINDS), "total")
        seconds: list[float] = []
        shares: list[float] = []
        for side, total_s in zip((place.before, place.after), self.whole, strict=True):
            times = [(value_at(entity, ("io", "time_s", kind)), value_at(entity, ("time_s",))) for entity in side]
            time = _median([of_entity if in_io is None else in_io for in_io, of_entity in times])
            if time is not None:
                seconds.append(float(time))
                if total_s:
                    shares.append(min(1.0, time / total_s))
        return max(seconds, default=None), max(shares, default=None)


def _lists_all(side: Side, key: str) -> bool:
    """True if an entity missing from the list `key` was also missing from the run."""
    if key == "files":
        return side.lists_all_files
    # Without times there are no phases, and a saved baseline has only the most important ones.
    timed = any(value_at(run, ("workflow", "runtime_s")) is not None for run in side.runs)
    return key != "phases" or (timed and not side.is_saved)


def _status(value: float, limits: Limits, direction: str) -> Status:
    if limits.accepts(value, "both"):
        return "within"
    if direction == "both":
        return "changed"
    return "worse" if (value > limits.center) is (direction == "increase") else "better"


def _dotted(group: str, leaf: Leaf) -> str:
    keys = leaf.dotted
    return keys if not group or keys.startswith(f"{group}.") else f"{group}.{keys}"


def _entities(run: Tree, path: Sequence[str]) -> list[Any]:
    entities = value_at(run, path)
    is_list = isinstance(entities, list) and all(isinstance(entity, Mapping) for entity in entities)
    return entities if is_list else []


def _median(values: Sequence[Any]) -> int | float | None:
    known = [value for value in map(number, values) if value is not None]
    return limits_of(known, relative=0, absolute=0).center if known else None
