"""IOSTATS, the block that every entity has, built for many entities at a time from what was measured per cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import ALL_KINDS, KINDS, Pairs, count_pairs
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.measures.access_pattern import NAMES
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC
from vani.analyzers.metadata_kinds import KINDS as METADATA_KINDS
from vani.analyzers.metadata_kinds import metadata_kind
from vani.analyzers.passes import Measured
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
    "Cells",
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

_COMMON = 5
_MOST_CALLS = 20
_UNTIMED = ByKind(read=None, write=None, metadata=None, sync=None, total=None)


@dataclass(frozen=True)
class Cells:
    """Which phase and file a cell key stands for."""

    files: int
    phases: int

    def phase(self, cell: Ints) -> Ints:
        return cell // (self.files + 1)

    def file(self, cell: Ints) -> Ints:
        """File code, -1 for none."""
        return cell % (self.files + 1) - 1


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


def stats_by(
    measured: Measured,
    groups: Callable[[Ints], Ints],
    *,
    time: Keyed | None,
    busy: Mapping[int, tuple[int, ...]] | None,
) -> dict[int, IOStats]:
    """Build IOSTATS for every group of cells.

    Parameters
    ----------
    groups
        Group of each cell key, -1 to leave the cell out.
    time
        Column `time` (ns) by group * (KINDS + 1) + kind, `ALL_KINDS` for all; None where no times are known.
    busy
        Busy nanoseconds by group, in the order of `busy_time.busy_in`; None where no times are known.
    """
    cells = Cells(measured.world.files, measured.facts.phases)

    def regroup(table: Keyed) -> Keyed:
        if not len(table):
            return table
        number = groups(table.keys)
        keep = number >= 0
        return group(
            number[keep], {n: c[keep] for n, c in table.columns.items()}, {"first": "min", "last": "max"}
        )

    operations = regroup(measured.results["operations"])
    results = measured.results
    # Without times and positions these were not measured.
    placed = "footprint" in results
    pattern = regroup(results["access_pattern"].cells) if "access_pattern" in results else Keyed()
    past = regroup(results["past_end"]) if "past_end" in results else Keyed()
    others = regroup(results["footprint"].others) if placed else Keyed()
    sizes = _grouped_sizes(measured.results["transfer_size"], groups)
    touched = _touched(measured, groups, cells) if placed else Keyed()
    found = {}
    keys = operations.keys
    patterns = [pattern.at(keys, n) if len(pattern) else np.zeros(len(keys), np.int64) for n in NAMES]
    beyond = past.at(keys, "beyond") if len(past) else np.zeros(len(keys), np.int64)
    judged = past.at(keys, "reads") if len(past) else np.zeros(len(keys), np.int64)
    appended = others.at(keys, "appended") if len(others) else np.zeros(len(keys), np.int64)
    times = [
        time.at(keys * (KINDS + 1) + k, "time") if time else np.zeros(len(keys), np.int64)
        for k in range(KINDS + 1)
    ]
    costs = _costs(measured, groups, timed=time is not None)
    foot = [
        touched.at(keys * 2 + side, "length") if len(touched) else np.zeros(len(keys), np.int64)
        for side in (0, 1)
    ]
    given_up = not placed or results["footprint"].given_up
    for i, key in enumerate(keys.tolist()):
        reads, writes, metadata, syncs = (
            int(operations[n][i]) for n in ("reads", "writes", "metadata", "syncs")
        )
        unsized = int(operations["unsized"][i])
        by_read, by_write = sizes.get(key * 2), sizes.get(key * 2 + 1)
        # What is known of the size of no operation is null, not 0.
        read = int(operations["bytes_read"][i]) if by_read or not reads else None
        written = int(operations["bytes_written"][i]) if by_write or not writes else None
        ns = [int(t[i]) for t in times]
        held = (0,) * WIDTH if busy is None else busy.get(key, (0,) * WIDTH)
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


def _costs(measured: Measured, groups: Callable[[Ints], Ints], *, timed: bool) -> dict[int, list[_Cost]]:
    """What each function costs by group: most time (most calls) first, then by name."""
    table: Keyed = measured.results["call_costs"]
    if not len(table):
        return {}
    names = measured.world.functions
    width = len(names)
    number = groups(table.keys // width)
    keep = number >= 0
    merged = group(
        number[keep] * width + table.keys[keep] % width, {n: c[keep] for n, c in table.columns.items()}
    )
    owner, function = merged.keys // width, merged.keys % width
    place = np.argsort(np.argsort(np.array(names)))[function]
    order = np.lexsort((place, -merged["count"], -merged["time"], owner))
    found: dict[int, list[_Cost]] = {}
    columns = (merged[n][order].tolist() for n in ("count", "time", "bytes", "data", "metadata", "unsized"))
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


def _grouped_sizes(pairs: Pairs, groups: Callable[[Ints], Ints]) -> dict[int, tuple[Ints, Ints]]:
    if not len(pairs.first):
        return {}
    number = groups(pairs.first // 2)
    keep = number >= 0
    merged = count_pairs(number[keep] * 2 + pairs.first[keep] % 2, pairs.second[keep], pairs.count[keep])
    if not len(merged.first):
        return {}
    starts = np.flatnonzero(np.append(True, merged.first[1:] != merged.first[:-1]))
    bounds = np.append(starts, len(merged.first))
    return {
        int(merged.first[a]): (merged.second[a:b], merged.count[a:b])
        for a, b in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    }


def _touched(measured: Measured, groups: Callable[[Ints], Ints], cells: Cells) -> Keyed:
    """Distinct bytes by group * 2 + direction: extents of one file are united, then files are added up."""
    extents: Intervals = measured.results["footprint"].extents
    if not len(extents):
        return Keyed()
    cell, side = extents.group // 2, extents.group % 2
    number, file = groups(cell), cells.file(cell)
    last = measured.facts.ends.last(measured.world.files)
    end = extents.end
    if len(last):
        # What was read beyond the end of a file was not touched.
        known = (side == 0) & (file >= 0) & measured.facts.ends.always[np.maximum(file, 0)]
        end = np.where(known, np.minimum(end, last[np.maximum(file, 0)]), end)
        end = np.maximum(end, extents.start)
    keep = number >= 0
    width = cells.files + 1
    united = merge(((number * 2 + side) * width + file + 1)[keep], extents.start[keep], end[keep])
    keys, lengths = total_length(united)
    return group(keys // width, {"length": lengths})


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
