"""Compares two profiles attribute by attribute: what changed, by how much, and whether it matters.

A difference matters if it exceeds the tolerance (`vani.gate.tolerance`) and concerns at least 1 % of the I/O time
in either profile. Attributes that follow from others (shares of counts and times, sums of bytes) and points in time
(such as the start of a phase) are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from vani.gate.attribute import AnyKey, Key, key_text
from vani.gate.attribute_schema import Leaf, leaves
from vani.gate.differing import (
    blocks,
    comparable_values,
    differing,
    differing_bins,
    is_derived,
    moved_share,
    value_at,
)
from vani.gate.entity_names import Names, aliases_of, label
from vani.gate.matching import number
from vani.gate.profile_tree import Tree
from vani.gate.quantity import Dimension
from vani.gate.tolerance import Allowed, allowed, tolerance_of
from vani.schema import profile
from vani.schema.check import Source
from vani.schema.diff import Diff, DiffCounts, Difference, KeyFigure
from vani.schema.model import Model
from vani.schema.saved_profile import Column

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
_SLOWEST_CALLS: Final = "max(apps[*].balance.slowest_call_time_s)"
"""The key figure that includes time in libraries."""

_FIGURES: Final[tuple[tuple[str, Literal["bytes", "seconds", "share", "count"]], ...]] = (
    ("workflow.processes", "count"),
    ("workflow.runtime_s", "seconds"),
    ("workflow.io.time_s.total", "seconds"),
    ("workflow.io_time_share", "share"),
    ("workflow.io_time_share_slowest", "share"),
    (_SLOWEST_CALLS, "seconds"),
    ("workflow.io.bytes.read", "bytes"),
    ("workflow.io.bytes.written", "bytes"),
    ("workflow.io.ops.read", "count"),
    ("workflow.io.ops.write", "count"),
    ("workflow.io.ops.sync", "count"),
    ("workflow.io.ops.metadata", "count"),
    ("workflow.files.total", "count"),
)
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
        _figure(text, unit, *comparable_values(text.split("."), a.runs, b.runs))
        if text != _SLOWEST_CALLS
        else _figure(text, unit, list(map(_slowest_calls, a.runs)), list(map(_slowest_calls, b.runs)))
        for text, unit in _FIGURES
    ]
    return Diff(
        version=version, a=a.source, b=b.source, figures=figures, counts=counts, differences=differences
    )


def _figure(
    text: str, unit: Literal["bytes", "seconds", "share", "count"], a: Sequence[Any], b: Sequence[Any]
) -> KeyFigure:
    before, after = _median(a), _median(b)
    change = None if not before or after is None else (after - before) / abs(before)
    return KeyFigure(attribute=text, unit=unit, before=before, after=after, change=change)


def _slowest_calls(run: Tree) -> int | float | None:
    """Seconds of the slowest process in I/O calls of any kind, including those of libraries."""
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
            if keys[0] not in _SKIPPED:
                group = keys[:1] if keys[0] in ("workflow", "dataset", "excluded") else ()
                before = [
                    [run.get(keys[0]) for run in side.runs] if group else list(side.runs)
                    for side in (self.a, self.b)
                ]
                rest = keys[1:] if group else keys
                yield from self._attribute(
                    ".".join(keys), None, rest, leaf, before[0], before[1], ".".join(group)
                )
        for path, model in _LISTS:
            yield from self._list(path, model)

    def _list(self, path: tuple[str, ...], model: type[Model]) -> Iterator[Difference]:
        key = path[-1]
        sides = [[_entities(run, path) for run in side.runs] for side in (self.a, self.b)]
        entities_by_run = [
            [dict(zip(self.names.identities(key, entities), entities, strict=True)) for entities in runs]
            for runs in sides
        ]
        everyone = dict.fromkeys(identity for runs in entities_by_run for run in runs for identity in run)
        for identity in everyone:
            before, after = ([run.get(identity) for run in runs] for runs in entities_by_run)
            text = ".".join(path) + label(key, identity)
            example = next(entity for entity in (*after, *before) if entity is not None)
            target = next(
                (
                    str(example[name])
                    for name in ("path", "name", "app")
                    if isinstance(example.get(name), str)
                ),
                None,
            )
            if not any(before) or not any(after):
                other = self.b if any(before) else self.a
                if _lists_all(other, key):
                    yield self._only_one(
                        text, target, [entity for entity in (*before, *after) if entity], is_new=any(after)
                    )
                continue
            kinds = (
                {entity.get("kind") for entity in (*before, *after) if entity} if key == "phases" else set()
            )
            for block in blocks(model, key):
                left, alike = differing(block, before, after)
                # Phases with the same index but of different kinds are not versions of each other.
                self.compared += 0 if len(kinds) > 1 else alike
                for keys, leaf in left:
                    if len(kinds) > 1 and keys != ("kind",):
                        continue
                    yield from self._attribute(
                        f"{text}.{'.'.join(keys)}", target, keys, leaf, before, after, key
                    )

    def _attribute(
        self,
        text: str,
        target: str | None,
        keys: tuple[str, ...],
        leaf: Leaf,
        before: Sequence[Any],
        after: Sequence[Any],
        group: str,
    ) -> Iterator[Difference]:
        if is_derived(keys):
            return
        old, new = comparable_values(keys, before, after)
        if isinstance(leaf.steps[-1], AnyKey):
            yield from self._table(text, target, keys, leaf, old, new, (before, after), group)
        else:
            yield from self._value(
                text, target, keys, _dotted(group, leaf), leaf.dimension, old, new, (before, after), group
            )

    def _table(
        self, text: str, target: str | None, keys: tuple[str, ...], leaf: Leaf, old: Sequence[Any], new: Sequence[Any],
        entities: tuple[Sequence[Any], Sequence[Any]], group: str,
    ) -> Iterator[Difference]:  # fmt: skip
        if self._left_out(next(iter(old), None), next(iter(new), None)):
            return
        tables = [value if isinstance(value, Mapping) else {} for value in (*old, *new)]
        if keys[-1] == "histogram":
            a, b = tables[0], tables[len(old)]
            if a != b and len(tables) == 2 and a and b:
                self.compared += 1
                shown = differing_bins(a, b), differing_bins(b, a)
                status: Status = "changed" if moved_share(a, b) > _MOVED else "within"
                yield self._difference(text, target, keys, "histogram", shown, None, status, entities, group)
            return
        for name in dict.fromkeys(name for table in tables for name in table):
            values = [table.get(name) for table in tables]
            # A table of counts omits zeros.
            values = [0 if value is None and leaf.dimension == "count" else value for value in values]
            yield from self._value(
                f"{text}.{key_text(name)}", target, (*keys, name), _dotted(group, leaf), leaf.dimension,
                values[: len(old)], values[len(old) :], entities, group,
            )  # fmt: skip

    def _value(
        self, text: str, target: str | None, keys: tuple[str, ...], dotted: str, dimension: Dimension,
        old: Sequence[Any], new: Sequence[Any], entities: tuple[Sequence[Any], Sequence[Any]], group: str,
    ) -> Iterator[Difference]:  # fmt: skip
        if dimension in ("text", "flag"):
            before, after = (
                next((value for value in side if isinstance(value, (str, bool))), None) for side in (old, new)
            )
            if (before is None and after is None) or self._left_out(before, after):
                return
            self.compared += 1
            if before != after:
                differs: Status = "unknown" if before is None or after is None else "changed"
                yield self._difference(
                    text, target, keys, dimension, (before, after), None, differs, entities, group
                )
            return
        known = [value for value in map(number, old) if value is not None]
        a, b = _median(old), _median(new)
        if (a is None and b is None) or self._left_out(a, b):
            return
        self.compared += 1
        if a == b:
            return
        if a is None or b is None:
            yield self._difference(text, target, keys, dimension, (a, b), None, "unknown", entities, group)
            return
        tolerance = tolerance_of(dotted)
        limits = allowed(known, relative=tolerance.relative, absolute=tolerance.absolute)
        change = (b - a) / abs(a) if a else None
        status = _status(b, limits, tolerance.direction)
        yield self._difference(text, target, keys, dimension, (a, b), change, status, entities, group)

    def _left_out(self, before: Any, after: Any) -> bool:
        """True if a value is null in a saved baseline, which omits some values of its profile."""
        return (before is None and self.a.is_saved) or (after is None and self.b.is_saved)

    def _difference(
        self,
        text: str,
        target: str | None,
        keys: tuple[str, ...],
        unit: Dimension | Literal["histogram", "entity"],
        values: tuple[Value, Value],
        change: float | None,
        status: Status,
        entities: tuple[Sequence[Any], Sequence[Any]],
        group: str,
    ) -> Difference:
        seconds, share = self._io_time(entities, keys)
        if unit == "rate" and status != "unknown" and seconds is not None and seconds < _SHORT_S:
            status = "within"
        rest = ".".join(keys)
        same_as = self.seen.get((rest, *values)) if group in _REPEATING else None
        self.shown[text] = values
        if ".footprint." in text and same_as is None:
            moved = text.replace(".footprint.", ".bytes.")
            same_as = moved if self.shown.get(moved) == values else None
        if group in ("workflow", "apps"):
            self.seen.setdefault((rest, *values), text)
        return Difference(
            attribute=text,
            target=target,
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

    def _only_one(
        self, text: str, target: str | None, entities: Sequence[Any], *, is_new: bool
    ) -> Difference:
        sides = ([], entities) if is_new else (entities, [])
        status: Status = "new" if is_new else "gone"
        return self._difference(text, target, (), "entity", (not is_new, is_new), None, status, sides, "")

    def _io_time(
        self, entities: tuple[Sequence[Any], Sequence[Any]], keys: tuple[str, ...]
    ) -> tuple[float | None, float | None]:
        """I/O time that an attribute of an entity concerns, and its share of the total; the larger of both sides."""
        kind = next((_KINDS[key] for key in reversed(keys) if key in _KINDS), "total")
        seconds: list[float] = []
        shares: list[float] = []
        for side, total_s in zip(entities, self.whole, strict=True):
            times = [value_at(entity, ("io", "time_s", kind)) for entity in side]
            time = _median(
                [
                    value_at(entity, ("time_s",)) if t is None else t
                    for t, entity in zip(times, side, strict=True)
                ]
            )
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


def _status(value: float, limits: Allowed, direction: str) -> Status:
    if limits.accepts(value, "both"):
        return "within"
    if direction == "both":
        return "changed"
    return "worse" if (value > limits.center) is (direction == "increase") else "better"


def _dotted(group: str, leaf: Leaf) -> str:
    keys = ".".join(step.name if isinstance(step, Key) else "*" for step in leaf.steps)
    return keys if not group or keys.startswith(f"{group}.") else f"{group}.{keys}"


def _entities(run: Tree, path: Sequence[str]) -> list[Any]:
    entities = value_at(run, path)
    return (
        entities
        if isinstance(entities, list) and all(isinstance(entity, Mapping) for entity in entities)
        else []
    )


def _median(values: Sequence[Any]) -> int | float | None:
    known = [value for value in map(number, values) if value is not None]
    return allowed(known, relative=0, absolute=0).center if known else None
