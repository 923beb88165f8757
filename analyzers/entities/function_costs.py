"""Costs of a group's functions: the most expensive ones, and metadata operations by kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.analyzers.entities.metadata_kinds import KINDS as METADATA_KINDS
from vani.analyzers.entities.metadata_kinds import metadata_kind
from vani.analyzers.measures.call_costs import FunctionCosts
from vani.analyzers.tables.keys import pack, unpack
from vani.analyzers.tables.sums_by_group import Groups, grouped
from vani.schema.profile import CallCost, MetadataCost, MetadataKinds

_COSTS = ("count", "time", "bytes", "data", "metadata", "unsized")
_MOST_CALLS = 20


@dataclass(frozen=True, eq=False)
class Cost:
    """Cost of a function; `time` is None if no times are known."""

    name: str
    count: int
    time: int | None
    bytes: int
    data: int
    metadata: int
    unsized: int


def costs_by(
    table: FunctionCosts, names: Sequence[str], groups: Groups, *, timed: bool
) -> dict[int, list[Cost]]:
    """Cost of each function by group: most time (or calls) first, then by name."""
    number = groups(table.phase, table.file)
    widths = (int(number.max(initial=0)) + 1, len(names))
    key = np.where(number >= 0, pack((np.maximum(number, 0), table.function), widths), -1)
    merged = grouped(key, {name: getattr(table, name) for name in _COSTS})
    owner, function = unpack(merged.keys, widths)
    place = np.argsort(np.argsort(np.array(names)))[function]
    order = np.lexsort((place, -merged["count"], -merged["time"], owner))
    costs: dict[int, list[Cost]] = {}
    columns = (merged[name][order].tolist() for name in _COSTS)
    for key, code, count, spent, moved, data, metadata, unsized in zip(
        owner[order].tolist(), function[order].tolist(), *columns, strict=True
    ):
        cost = Cost(names[code], count, spent if timed else None, moved, data, metadata, unsized)
        costs.setdefault(key, []).append(cost)
    return costs


def most_costly(costs: Sequence[Cost]) -> list[CallCost]:
    rows = [_row(cost.name, [cost]) for cost in costs[:_MOST_CALLS]]
    rest = costs[_MOST_CALLS:]
    return [*rows, _row(None, rest)] if rest else rows


def _row(name: str | None, costs: Sequence[Cost]) -> CallCost:
    moved = sum(c.bytes for c in costs)
    return CallCost(
        name=name,
        count=sum(c.count for c in costs),
        time_s=_time(costs),
        # Also null if the trace records none of their sizes.
        bytes=moved if any(c.data > c.unsized for c in costs) else None,
    )


def _time(costs: Sequence[Cost]) -> float | None:
    times = [c.time for c in costs if c.time is not None]
    return sum(times) / 1e9 if len(times) == len(costs) else None


def by_metadata_kind(costs: Sequence[Cost]) -> MetadataKinds:
    by_kind: list[list[Cost]] = [[] for _ in METADATA_KINDS]
    for cost in costs:
        if cost.metadata:
            by_kind[metadata_kind(cost.name)].append(cost)
    # If no times are known, the time of a kind without calls is unknown, too.
    timed = all(cost.time is not None for cost in costs)
    return MetadataKinds(
        **{
            name: MetadataCost(count=sum(c.metadata for c in own), time_s=_time(own) if timed else None)
            for name, own in zip(METADATA_KINDS, by_kind, strict=True)
        }
    )
