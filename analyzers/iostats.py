"""IOSTATS, the block that every entity has, built for many entities at a time from what was measured per cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import Pairs, count_pairs
from vani.analyzers.intervals import Intervals, merge, total_length
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.measures.access_pattern import NAMES
from vani.analyzers.passes import Measured
from vani.schema.profile import (
    AccessPattern,
    Bandwidth,
    ByKind,
    ByteCounts,
    DataMeta,
    Footprint,
    IOStats,
    OpCounts,
    PastEnd,
    Sizes,
    TransferSizes,
)

__all__ = ["BINS", "Cells", "empty_stats", "histogram", "sizes_of", "stats_by"]

Ints = NDArray[np.int64]

_EDGES = [0] + [1024 * 4**k for k in range(12)]
_NAMES = ("0", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G", "4G")
BINS = (*(f"{a}-{b}" for a, b in pairwise(_NAMES)), "4G+")
"""Sizes by powers of four, low edge included, high edge not; K, M, G are binary."""

_COMMON = 5
_UNTIMED = ByKind(read=None, write=None, metadata=None, total=None)


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
    busy: Mapping[int, tuple[int, int, int, int]] | None,
) -> dict[int, IOStats]:
    """Build IOSTATS for every group of cells.

    Parameters
    ----------
    groups
        Group of each cell key, -1 to leave the cell out.
    time
        Column `time` (ns) by group * 4 + kind, 3 for all kinds; None where no times are known.
    busy
        Busy nanoseconds (read, write, metadata, all) by group; None where no times are known.
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
    times = [time.at(keys * 4 + k, "time") if time else np.zeros(len(keys), np.int64) for k in range(4)]
    foot = [
        touched.at(keys * 2 + side, "length") if len(touched) else np.zeros(len(keys), np.int64)
        for side in (0, 1)
    ]
    given_up = not placed or results["footprint"].given_up
    for i, key in enumerate(keys.tolist()):
        reads, writes, metadata = (int(operations[n][i]) for n in ("reads", "writes", "metadata"))
        unsized = int(operations["unsized"][i])
        read, written = int(operations["bytes_read"][i]), int(operations["bytes_written"][i])
        ns = [int(t[i]) for t in times]
        held = (0, 0, 0, 0) if busy is None else busy.get(key, (0, 0, 0, 0))
        data = reads + writes
        by_read, by_write = sizes.get(key * 2), sizes.get(key * 2 + 1)
        found[key] = IOStats(
            bytes=ByteCounts(read=read, written=written, total=read + written),
            footprint=Footprint(
                read=None if given_up and reads else int(foot[0][i]),
                written=None if given_up and writes else int(foot[1][i] + appended[i]),
            ),
            past_end=PastEnd(read=int(beyond[i]) if judged[i] or not reads else None),
            ops=OpCounts(read=reads, write=writes, metadata=metadata),
            time_s=_by_kind(ns) if time is not None else _UNTIMED,
            busy_s=_by_kind(held) if busy is not None else _UNTIMED,
            ops_share=_shares(data, metadata),
            time_share=_shares(ns[0] + ns[1], ns[2]),
            bandwidth=Bandwidth(
                read=read / held[0] * 1e9 if held[0] and reads else None,
                write=written / held[1] * 1e9 if held[1] and writes else None,
            ),
            transfer_size=TransferSizes(
                read=_sizes(by_read, reads, unsized), write=_sizes(by_write, writes, unsized)
            ),
            access_pattern=_pattern([int(p[i]) for p in patterns]),
        )
    return found


def _by_kind(ns: Sequence[int]) -> ByKind:
    return ByKind(read=ns[0] / 1e9, write=ns[1] / 1e9, metadata=ns[2] / 1e9, total=ns[3] / 1e9)


def _shares(data: int, metadata: int) -> DataMeta | None:
    total = data + metadata
    return DataMeta(data=data / total, metadata=metadata / total) if total else None


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
    nothing = ByKind(read=0.0, write=0.0, metadata=0.0, total=0.0)
    return IOStats(
        bytes=ByteCounts(read=0, written=0, total=0),
        footprint=Footprint(read=0, written=0),
        past_end=PastEnd(read=0),
        ops=OpCounts(read=0, write=0, metadata=0),
        time_s=nothing,
        busy_s=nothing,
        ops_share=None,
        time_share=None,
        bandwidth=Bandwidth(read=None, write=None),
        transfer_size=TransferSizes(read=None, write=None),
        access_pattern=None,
    )
