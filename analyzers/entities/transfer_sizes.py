"""Size distributions, of data operations by direction, and of files."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.measures.transfer_size import SizeBins, SizeCounts
from vani.analyzers.tables.keys import SIDES, pack, unpack
from vani.analyzers.tables.pair_counts import count_pairs
from vani.analyzers.tables.sums_by_group import Groups
from vani.schema.profile import Sizes

Ints = NDArray[np.int64]

_EDGES = [0] + [1024 * 4**k for k in range(12)]
_NAMES = ("0", "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M", "1G", "4G")
BINS = (*(f"{a}-{b}" for a, b in pairwise(_NAMES)), "4G+")
"""Size bins by powers of four, including the lower edge but not the upper one; K, M, G are binary."""

_COMMON = 5


def histogram(sizes: Ints, counts: Ints, unknown: int = 0) -> dict[str, int]:
    """Number of operations (or files) per bin; the bins add up to all of them."""
    places = np.searchsorted(_EDGES, sizes, side="right") - 1
    totals = np.bincount(places, counts.astype(np.float64), len(BINS)).astype(np.int64)
    histogram_ = {name: int(n) for name, n in zip(BINS, totals, strict=True) if n}
    return {**histogram_, "unknown": unknown} if unknown else histogram_


def sizes_of(sizes: Ints, counts: Ints, unknown: int = 0) -> Sizes | None:
    """Exact size distribution; percentiles are sizes that occur (nearest rank)."""
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


def sizes_of_operations(known_sizes: tuple[Ints, Ints] | None, operations: int, unsized: int) -> Sizes | None:
    """Sizes of one direction's operations; None if there are none.

    Parameters
    ----------
    known_sizes
        Known sizes and their counts.
    unsized
        Operations of both directions with unknown size.
    """
    if not operations:
        return None
    known = int(known_sizes[1].sum()) if known_sizes else 0
    if known_sizes is None:
        return sizes_of(np.empty(0, np.int64), np.empty(0, np.int64), operations)
    return sizes_of(*known_sizes, unknown=operations - known if unsized else 0)


def sizes_by(sizes: SizeCounts, groups: Groups) -> dict[tuple[int, int], tuple[Ints, Ints]]:
    """Sizes and their counts, by group and kind."""
    number = groups(sizes.phase, sizes.file)
    keep = number >= 0
    merged = count_pairs(pack((number[keep], sizes.kind[keep]), SIDES), sizes.size[keep], sizes.count[keep])
    if not len(merged.first):
        return {}
    starts = np.flatnonzero(np.append(True, merged.first[1:] != merged.first[:-1]))
    bounds = np.append(starts, len(merged.first)).tolist()
    owner, kind = unpack(merged.first[starts], SIDES)
    return {
        key: (merged.second[a:b], merged.count[a:b])
        for key, (a, b) in zip(zip(owner.tolist(), kind.tolist(), strict=True), pairwise(bounds), strict=True)
    }


def binned_by(bins: SizeBins, groups: Groups) -> dict[tuple[int, int], Ints]:
    """Operations in each of the source's bins, by group and kind."""
    number = groups(bins.phase, bins.file)
    keep = number >= 0
    side = pack((number[keep], bins.kind[keep]), SIDES)
    merged = count_pairs(side, bins.bin[keep], bins.count[keep])
    histograms: dict[tuple[int, int], Ints] = {}
    owner, kind = unpack(merged.first, SIDES)
    for key, direction, place, count in zip(
        owner.tolist(), kind.tolist(), merged.second.tolist(), merged.count.tolist(), strict=True
    ):
        histograms.setdefault((key, direction), np.zeros(len(bins.names), np.int64))[place] = count
    return histograms


def in_bins(
    bins: SizeBins, counted: Ints | None, exact: tuple[Ints, Ints] | None, operations: int
) -> Sizes | None:
    """Sizes of one direction's operations, from the source's bins; None if there are none.

    Parameters
    ----------
    counted
        Number of operations in each bin.
    exact
        Sizes that are certain and their counts, for some operations or for all.
    """
    if not operations:
        return None
    whole = np.zeros(len(bins.names), np.int64) if counted is None else counted
    total = int(whole.sum())
    by_bin = {name: int(n) for name, n in zip(bins.names, whole.tolist(), strict=True) if n}
    if total < operations:
        by_bin["unknown"] = operations - total
    if total > operations:
        by_bin = {"unknown": operations}
    known = None if exact is None else sizes_of(*exact)
    if exact is not None and known is not None and int(exact[1].sum()) == operations:
        return known.model_copy(update={"histogram": by_bin})
    sure = exact is not None and total == operations
    p50, p90 = (_proven(bins.ends, whole, exact, percent) if sure else None for percent in (50, 90))  # type: ignore[arg-type]
    common = [] if known is None else known.common
    return Sizes(min=None, p50=p50, p90=p90, max=None, common=common, histogram=by_bin)


def _proven(ends: Ints, counted: Ints, exact: tuple[Ints, Ints], percent: int) -> int | None:
    """The percentile if it does not depend on unknown sizes within their bins; otherwise None.

    Parameters
    ----------
    ends
        Inclusive upper end of each bin except the last one.
    """
    reach = np.cumsum(counted)
    rank = -(-int(reach[-1]) * percent // 100)
    bin_ = int(np.searchsorted(reach, rank))
    sizes, counts = exact
    in_one_bin = np.searchsorted(ends, sizes, side="left") == bin_
    order = np.argsort(sizes[in_one_bin], kind="stable")
    own, upto = sizes[in_one_bin][order], np.cumsum(counts[in_one_bin][order])
    unknown = int(counted[bin_]) - int(upto[-1] if len(upto) else 0)
    # The unknown sizes may be smaller or larger than all others in the bin.
    first, last = rank - int(reach[bin_] - counted[bin_]) - unknown, rank - int(reach[bin_] - counted[bin_])
    if unknown < 0 or first < 1 or last > (int(upto[-1]) if len(upto) else 0):
        return None
    low, high = (int(own[np.searchsorted(upto, place)]) for place in (first, last))
    return low if low == high else None
