"""IOSTATS, the block that every entity has, built for many entities at a time from what was measured per cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import ALL_KINDS, KINDS, count_pairs
from vani.analyzers.intervals import merge, total_length
from vani.analyzers.keyed import Dense, How, Keyed, group
from vani.analyzers.keys import pack, unpack
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.access_pattern import NAMES
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.transfer_size import SizeCounts
from vani.analyzers.metadata_kinds import KINDS as METADATA_KINDS
from vani.analyzers.metadata_kinds import metadata_kind
from vani.calls import Kind
from vani.schema.profile import (
    AccessPattern,
    Bandwidth,
    ByKind,
    ByteCounts,
    CallCost,
    Footprint,
    IOStats,
    KindShares,
    MetadataCost,
    MetadataKinds,
    OpCounts,
    PastEnd,
    Sizes,
    TransferSizes,
)

__all__ = [
    "BINS",
    "MEMORY_SPEED",
    "ByGroup",
    "empty_stats",
    "histogram",
    "impossible_rates",
    "sizes_of",
    "stats_by",
]

Ints = NDArray[np.int64]

_EDGES = [0] + [1024 * 4**k for k in range(12)]
_NAMES = ("0", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G", "4G")
BINS = (*(f"{a}-{b}" for a, b in pairwise(_NAMES)), "4G+")
"""Sizes by powers of four, low edge included, high edge not; K, M, G are binary."""

MEMORY_SPEED = 25e9
"""Bytes per second that one process can copy at most: no core of today does more (STREAM copy results)."""

_SIDES = (1 << 62, 2)
"""Widths of keys of a group and a kind, read or write."""
_OPERATIONS = tuple(field.name for field in fields(OperationCounts)[2:])
_COSTS = ("count", "time", "bytes", "data", "metadata", "unsized")
_COMMON = 5
_MOST_CALLS = 20
_UNTIMED = ByKind(read=None, write=None, metadata=None, sync=None, total=None)


@dataclass(frozen=True)
class ByGroup:
    """A row of numbers for each group."""

    groups: Ints
    """Shape (n,), ascending and distinct."""
    values: Ints
    """Shape (n, width)."""

    @staticmethod
    def summed(group: Ints, values: Ints) -> ByGroup:
        """Add up rows of the same group; -1 leaves a row out."""
        keep = group >= 0
        dense = Dense.of(group[keep])
        found = np.zeros((len(dense.keys), values.shape[1]), np.int64)
        np.add.at(found, dense.codes, values[keep])
        return ByGroup(dense.keys, found)

    @staticmethod
    def of_cells(group: Ints, kind: Ints, values: Ints) -> ByGroup:
        """Add up single times by group and by kind, or `ALL_KINDS`; -1 leaves a time out."""
        keep = group >= 0
        dense = Dense.of(group[keep])
        found = np.zeros((len(dense.keys), KINDS + 1), np.int64)
        np.add.at(found, (dense.codes, kind[keep]), values[keep])
        return ByGroup(dense.keys, found)

    def at(self, groups: Ints) -> Ints:
        """The rows of some groups, 0 where there is none; shape (groups, width)."""
        found = np.zeros((len(groups), self.values.shape[1]), np.int64)
        if len(self.groups):
            place = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
            known = self.groups[place] == groups
            found[known] = self.values[place[known]]
        return found


def histogram(sizes: Ints, counts: Ints, unknown: int = 0) -> dict[str, int]:
    """Number of operations (or files) by size; the bins add up to all of them."""
    places = np.searchsorted(_EDGES, sizes, side="right") - 1
    totals = np.bincount(places, counts.astype(np.float64), len(BINS)).astype(np.int64)
    found = {name: int(n) for name, n in zip(BINS, totals, strict=True) if n}
    return {**found, "unknown": unknown} if unknown else found


def sizes_of(sizes: Ints, counts: Ints, unknown: int = 0) -> Sizes | None:
    """Exact distribution of sizes; percentiles are sizes that occur (nearest rank)."""
    total = int(counts.sum())
    if not total and not unknown:
        return None
    if not total:
        return Sizes(min=None, p50=None, p90=None, max=None, common=[], histogram={"unknown": unknown})
    order = np.argsort(sizes, kind="stable")
    sizes, counts = sizes[order], counts[order]
    reach = np.cumsum(counts)

    def percentile(percent: int) -> int:
        return int(sizes[np.searchsorted(reach, -(-total * percent // 100))])

    common = np.lexsort((sizes, -counts))[:_COMMON]
    return Sizes(
        min=int(sizes[0]),
        p50=percentile(50),
        p90=percentile(90),
        max=int(sizes[-1]),
        common=[(int(sizes[i]), int(counts[i])) for i in common],
        histogram=histogram(sizes, counts, unknown),
    )


class _ByCell(Protocol):
    """Columns per phase and file."""

    @property
    def phase(self) -> Ints: ...

    @property
    def file(self) -> Ints: ...


Groups = Callable[[NDArray[Any], NDArray[Any]], Ints]
"""Group of phases and files, shape (n,) each; -1 leaves one out."""


def stats_by(
    measured: Measurements, groups: Groups, *, time: ByGroup | None, busy: ByGroup | None
) -> dict[int, IOStats]:
    """Build IOSTATS for every group of phases and files.

    Parameters
    ----------
    time
        Nanoseconds by kind, and `ALL_KINDS` for all; None where no times are known.
    busy
        Busy nanoseconds in the order of `BusyTimes`; None where no times are known.
    """
    operations = _summed(groups, measured.operations, _OPERATIONS)
    keys = operations.keys
    nothing = np.zeros(len(keys), np.int64)
    by_class, past, footprint = measured.access_pattern, measured.past_end, measured.footprint
    patterns = [nothing for _ in NAMES]
    if by_class is not None:
        counts = _grouped(groups(by_class.phase, by_class.file), by_class.operations)
        patterns = [counts.at(keys, name) for name in NAMES]
    beyond = judged = appended = nothing
    if past is not None:
        ends = _summed(groups, past, ("beyond", "reads"))
        beyond, judged = ends.at(keys, "beyond"), ends.at(keys, "reads")
    foot = [nothing, nothing]
    if footprint is not None:
        appended = _summed(groups, footprint.others, ("appended",)).at(keys, "appended")
        touched = _touched(footprint, groups, measured.world.files)
        foot = [touched.at(pack((keys, side), _SIDES), "length") for side in (Kind.READ, Kind.WRITE)]
    given_up = footprint is None or footprint.given_up
    sizes = _grouped_sizes(measured.transfer_size, groups)
    times = np.zeros((len(keys), KINDS + 1), np.int64) if time is None else time.at(keys)
    in_calls = np.zeros((len(keys), WIDTH), np.int64) if busy is None else busy.at(keys)
    costs = _costs(measured, groups, timed=time is not None)
    found = {}
    for i, key in enumerate(keys.tolist()):
        reads, writes, metadata, syncs = (
            int(operations[n][i]) for n in ("reads", "writes", "metadata", "syncs")
        )
        unsized = int(operations["unsized"][i])
        by_read, by_write = sizes.get((key, Kind.READ)), sizes.get((key, Kind.WRITE))
        # What is known of the size of no operation is null, not 0.
        read = int(operations["bytes_read"][i]) if by_read or not reads else None
        written = int(operations["bytes_written"][i]) if by_write or not writes else None
        ns, held = times[i].tolist(), in_calls[i].tolist()
        calls = costs.get(key, ())
        data = reads + writes
        found[key] = IOStats(
            bytes=ByteCounts(
                read=read,
                written=written,
                total=None if read is None or written is None else read + written,
            ),
            footprint=Footprint(
                read=None if read is None or (given_up and reads) else int(foot[0][i]),
                written=None if written is None or (given_up and writes) else int(foot[1][i] + appended[i]),
            ),
            past_end=PastEnd(read=int(beyond[i]) if judged[i] or not reads else None),
            ops=OpCounts(read=reads, write=writes, metadata=metadata, sync=syncs),
            time_s=_by_kind(ns, ALL_KINDS) if time is not None else _UNTIMED,
            busy_s=_by_kind(held, ALL) if busy is not None else _UNTIMED,
            ops_share=_shares(data, metadata, syncs),
            time_share=_shares(ns[Kind.READ] + ns[Kind.WRITE], ns[Kind.METADATA], ns[Kind.SYNC]),
            bandwidth=Bandwidth(
                # What lies beyond the end of a file was asked for in vain.
                read=_rate(read, int(beyond[i]), held[Kind.READ], ns[Kind.READ]) if reads else None,
                write=_rate(written, 0, held[Kind.WRITE], ns[Kind.WRITE]) if writes else None,
                write_synced=(
                    _rate(written, 0, held[WRITE_OR_SYNC], ns[Kind.WRITE] + ns[Kind.SYNC])
                    if writes and syncs
                    else None
                ),
            ),
            transfer_size=TransferSizes(
                read=_sizes(by_read, reads, unsized), write=_sizes(by_write, writes, unsized)
            ),
            access_pattern=_pattern([int(p[i]) for p in patterns]),
            calls=_most_costly(calls),
            metadata_kinds=_metadata_kinds(calls) if metadata else None,
        )
    return found


@dataclass(frozen=True)
class _Cost:
    """What a function costs; `time` is None where no times are known."""

    name: str
    count: int
    time: int | None
    bytes: int
    data: int
    metadata: int
    unsized: int


def _grouped(number: Ints, columns: Mapping[str, NDArray[Any]], how: Mapping[str, How] | None = None) -> Keyed:
    keep = number >= 0
    return group(number[keep], {name: column[keep] for name, column in columns.items()}, how)


def _summed(groups: Groups, table: _ByCell, columns: Sequence[str]) -> Keyed:
    """Columns of a table added up by group; the first moment and the last one stay."""
    by_name = {name: getattr(table, name) for name in columns}
    return _grouped(groups(table.phase, table.file), by_name, {"first": "min", "last": "max"})


def _costs(measured: Measurements, groups: Groups, *, timed: bool) -> dict[int, list[_Cost]]:
    """What each function costs by group: most time (most calls) first, then by name."""
    table, names = measured.call_costs, measured.world.functions
    number = groups(table.phase, table.file)
    widths = (int(number.max(initial=0)) + 1, len(names))
    key = np.where(number >= 0, pack((np.maximum(number, 0), table.function), widths), -1)
    merged = _grouped(key, {name: getattr(table, name) for name in _COSTS})
    owner, function = unpack(merged.keys, widths)
    place = np.argsort(np.argsort(np.array(names)))[function]
    order = np.lexsort((place, -merged["count"], -merged["time"], owner))
    found: dict[int, list[_Cost]] = {}
    columns = (merged[name][order].tolist() for name in _COSTS)
    for key, code, count, spent, moved, data, metadata, unsized in zip(
        owner[order].tolist(), function[order].tolist(), *columns, strict=True
    ):
        cost = _Cost(names[code], count, spent if timed else None, moved, data, metadata, unsized)
        found.setdefault(key, []).append(cost)
    return found


def _most_costly(costs: Sequence[_Cost]) -> list[CallCost]:
    rows = [_row(cost.name, [cost]) for cost in costs[:_MOST_CALLS]]
    rest = costs[_MOST_CALLS:]
    return [*rows, _row(None, rest)] if rest else rows


def _row(name: str | None, costs: Sequence[_Cost]) -> CallCost:
    moved = sum(c.bytes for c in costs)
    return CallCost(
        name=name,
        count=sum(c.count for c in costs),
        time_s=_time(costs),
        # Null, too, where the trace tells the size of none of them.
        bytes=moved if any(c.data > c.unsized for c in costs) else None,
    )


def _time(costs: Sequence[_Cost]) -> float | None:
    times = [c.time for c in costs if c.time is not None]
    return sum(times) / 1e9 if len(times) == len(costs) else None


def _metadata_kinds(costs: Sequence[_Cost]) -> MetadataKinds:
    by_kind: list[list[_Cost]] = [[] for _ in METADATA_KINDS]
    for cost in costs:
        if cost.metadata:
            by_kind[metadata_kind(cost.name)].append(cost)
    # No time is known of a kind without calls either where none is read.
    timed = all(cost.time is not None for cost in costs)
    return MetadataKinds(
        **{
            name: MetadataCost(count=sum(c.metadata for c in mine), time_s=_time(mine) if timed else None)
            for name, mine in zip(METADATA_KINDS, by_kind, strict=True)
        }
    )


def _rate(asked: int | None, in_vain: int, busy_ns: int, spent_ns: int) -> float | None:
    """Bytes per second of busy time; None where a process would have moved more in its time than memory delivers.

    `asked` is None where it is not known.
    """
    if asked is None or not busy_ns:
        return None
    moved = asked - in_vain
    if moved / max(1, spent_ns) * 1e9 > MEMORY_SPEED:
        return None
    return moved / busy_ns * 1e9


def impossible_rates(io: IOStats) -> list[str]:
    """Directions (read, write) of which no rate is given because none is possible."""
    found = []
    for name, moved, ops in (("read", io.bytes.read, io.ops.read), ("write", io.bytes.written, io.ops.write)):
        if ops and moved and getattr(io.time_s, name) and getattr(io.bandwidth, name) is None:
            found.append(name)
    return found


def _by_kind(ns: Sequence[int], total: int) -> ByKind:
    return ByKind(
        read=ns[Kind.READ] / 1e9,
        write=ns[Kind.WRITE] / 1e9,
        metadata=ns[Kind.METADATA] / 1e9,
        sync=ns[Kind.SYNC] / 1e9,
        total=ns[total] / 1e9,
    )


def _shares(data: int, metadata: int, sync: int) -> KindShares | None:
    total = data + metadata + sync
    return KindShares(data=data / total, metadata=metadata / total, sync=sync / total) if total else None


def _pattern(counts: list[int]) -> AccessPattern | None:
    total = sum(counts)
    return AccessPattern(**{n: c / total for n, c in zip(NAMES, counts, strict=True)}) if total else None


def _sizes(found: tuple[Ints, Ints] | None, operations: int, unsized: int) -> Sizes | None:
    if not operations:
        return None
    known = int(found[1].sum()) if found else 0
    if found is None:
        return sizes_of(np.empty(0, np.int64), np.empty(0, np.int64), operations)
    return sizes_of(*found, unknown=operations - known if unsized else 0)


def _grouped_sizes(sizes: SizeCounts, groups: Groups) -> dict[tuple[int, int], tuple[Ints, Ints]]:
    """Sizes and how often each occurs, by group and kind."""
    number = groups(sizes.phase, sizes.file)
    keep = number >= 0
    merged = count_pairs(pack((number[keep], sizes.kind[keep]), _SIDES), sizes.size[keep], sizes.count[keep])
    if not len(merged.first):
        return {}
    starts = np.flatnonzero(np.append(True, merged.first[1:] != merged.first[:-1]))
    bounds = np.append(starts, len(merged.first)).tolist()
    owner, kind = unpack(merged.first[starts], _SIDES)
    return {
        key: (merged.second[a:b], merged.count[a:b])
        for key, (a, b) in zip(zip(owner.tolist(), kind.tolist(), strict=True), pairwise(bounds), strict=True)
    }


def _touched(footprint: Touched, groups: Groups, files: int) -> Keyed:
    """Distinct bytes by group and kind: extents of one file are united, then files are added up."""
    number = groups(footprint.phase, footprint.file)
    keep = number >= 0
    number, kind, file = number[keep], footprint.kind[keep], footprint.file[keep]
    widths = (int(number.max(initial=0)) + 1, 2, files + 1)
    united = merge(pack((number, kind, file + 1), widths), footprint.start[keep], footprint.end[keep])
    keys, lengths = total_length(united)
    owner, side, _ = unpack(keys, widths)
    return group(pack((owner, side), _SIDES), {"length": lengths})


def empty_stats() -> IOStats:
    """IOSTATS of what had no call at all."""
    nothing = ByKind(read=0.0, write=0.0, metadata=0.0, sync=0.0, total=0.0)
    return IOStats(
        bytes=ByteCounts(read=0, written=0, total=0),
        footprint=Footprint(read=0, written=0),
        past_end=PastEnd(read=0),
        ops=OpCounts(read=0, write=0, metadata=0, sync=0),
        time_s=nothing,
        busy_s=nothing,
        ops_share=None,
        time_share=None,
        bandwidth=Bandwidth(read=None, write=None),
        transfer_size=TransferSizes(read=None, write=None),
        access_pattern=None,
        calls=[],
        metadata_kinds=None,
    )
