"""IOSTATS, the block that every entity has, built for many entities at once from measurements per cell.

Metadata operations have kinds by function name (POSIX.1-2017, and glibc's additions). Names are those of the C
library, not a tracer's: the suffix `64`, the prefix in `__x` and `_unlocked` are ignored.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise

import numpy as np

from vani.analyzers import int_table
from vani.analyzers.intervals import merge, total_length
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.accesses import BINS, class_of
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC, BusyTimes
from vani.analyzers.measures.extents import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import BeyondEnds
from vani.analyzers.measures.operations import FunctionCosts, OperationCounts, SizeBins, SizeCounts
from vani.analyzers.streams import NAMES
from vani.calls import Kind
from vani.columns import Bools, Ints
from vani.schema import profile

METADATA_KINDS = ("open", "close", "stat", "seek", "directory", "remove", "other")
"""Kinds in the order of `vani.schema.profile.MetadataKinds`."""
_OTHER = METADATA_KINDS.index("other")

_METADATA_FUNCTIONS = {
    "open": "open openat open_by_handle_at creat fopen fdopen freopen tmpfile mkstemp mkostemp shm_open",
    "close": "close fclose fcloseall close_range",
    "stat": "stat lstat fstat fstatat newfstatat statx xstat lxstat fxstat fxstatat access faccessat faccessat2 "
    "eaccess euidaccess readlink readlinkat statfs fstatfs statvfs fstatvfs getxattr lgetxattr fgetxattr",
    "seek": "lseek llseek _llseek fseek fseeko ftell ftello rewind fgetpos fsetpos",
    "directory": "mkdir mkdirat rmdir chdir fchdir getcwd opendir fdopendir readdir readdir_r rewinddir telldir "
    "seekdir closedir scandir getdents",
    "remove": "unlink unlinkat remove rename renameat renameat2",
}
_KIND_OF = {
    name: METADATA_KINDS.index(kind) for kind, names in _METADATA_FUNCTIONS.items() for name in names.split()
}
_SPELLING = re.compile(r"^_*(?P<name>.*?)(?:64)?(?:_unlocked)?$")


@cache
def metadata_kind(function: str) -> int:
    """Index in `METADATA_KINDS` of a metadata operation with this name; `_OTHER` for unknown names."""
    if function in _KIND_OF:
        return _KIND_OF[function]
    match = _SPELLING.match(function)
    return _KIND_OF.get(match["name"], _OTHER) if match else _OTHER


_COSTS = ("count", "time", "bytes", "data", "metadata", "metadata_time", "unsized")
_MAX_CALLS = 20


@dataclass(frozen=True, eq=False)
class Costs:
    """Costs of a group's functions, those with most time (or calls) first; columns of `FunctionCosts` by name."""

    names: Sequence[str]
    columns: Mapping[str, Ints]
    timed: bool

    def _time_s(self, rows: slice | Bools, column: str = "time") -> float | None:
        return int(self.columns[column][rows].sum()) / 1e9 if self.timed else None

    def _cost(self, name: str | None, rows: slice) -> profile.CallCost:
        count, moved, data, unsized = (self.columns[n][rows] for n in ("count", "bytes", "data", "unsized"))
        # Bytes are also null if the trace records none of their sizes.
        known = bool((data > unsized).any())
        bytes_ = int(moved.sum()) if known else None
        return profile.CallCost(name=name, count=int(count.sum()), time_s=self._time_s(rows), bytes=bytes_)

    def most_costly(self) -> list[profile.CallCost]:
        """The first functions, and all others together."""
        rows = [self._cost(name, slice(i, i + 1)) for i, name in enumerate(self.names[:_MAX_CALLS])]
        rest = [self._cost(None, slice(_MAX_CALLS, None))] if len(self.names) > _MAX_CALLS else []
        return [*rows, *rest]

    def by_metadata_kind(self) -> profile.MetadataKinds:
        """Number and time of the metadata operations of each kind."""
        metadata, kind = self.columns["metadata"], np.array([metadata_kind(name) for name in self.names])
        costs = {}
        for i, name in enumerate(METADATA_KINDS):
            own = kind == i
            time_s = self._time_s(own, "metadata_time")
            costs[name] = profile.MetadataCost(count=int(metadata[own].sum()), time_s=time_s)
        return profile.MetadataKinds(**costs)


def costs_by(table: FunctionCosts, names: Sequence[str], groups: int_table.Groups, *, timed: bool) -> dict[int, Costs]:
    """Cost of each function by group."""
    number = groups(table.phase, table.file)
    widths = (int(number.max(initial=0)) + 1, len(names))
    key = np.where(number >= 0, int_table.pack((np.maximum(number, 0), table.function), widths), -1)
    merged = int_table.grouped(key, {name: getattr(table, name) for name in _COSTS})
    owner, function = int_table.unpack(merged.keys, widths)
    place = np.argsort(np.argsort(np.array(names)))[function]
    order = np.lexsort((place, -merged["count"], -merged["time"], owner))
    owners, first = np.unique(owner[order], return_index=True)
    costs = {}
    for group_, rows in zip(owners.tolist(), np.split(order, first[1:]), strict=False):
        functions = [names[code] for code in function[rows].tolist()]
        costs[group_] = Costs(functions, {name: merged[name][rows] for name in _COSTS}, timed)
    return costs


def byte_counts(read: int | None, written: int | None) -> profile.ByteCounts:
    """Bytes in both directions; their total is null if either is."""
    return profile.ByteCounts(read=read, written=written, total=None if read is None or written is None
        else read + written)


_COMMON = 5


def histogram(sizes: Ints, counts: Ints, unknown: int = 0) -> dict[str, int]:
    """Number of operations (or files) per bin; the bins add up to all of them."""
    totals = np.bincount(class_of(sizes), counts.astype(np.float64), len(BINS)).astype(np.int64)
    histogram_ = {name: int(n) for name, n in zip(BINS, totals, strict=True) if n}
    return {**histogram_, "unknown": unknown} if unknown else histogram_


def sizes_of(sizes: Ints, counts: Ints, unknown: int = 0) -> profile.Sizes | None:
    """Exact size distribution; percentiles are sizes that occur (nearest rank)."""
    total = int(counts.sum())
    if not total and not unknown:
        return None
    if not total:
        return profile.Sizes(min=None, p50=None, p90=None, max=None, common=[], histogram={"unknown": unknown})
    order = np.argsort(sizes, kind="stable")
    sizes, counts = sizes[order], counts[order]
    reach = np.cumsum(counts)

    def percentile(percent: int) -> int:
        return int(sizes[np.searchsorted(reach, -(-total * percent // 100))])

    common = np.lexsort((sizes, -counts))[:_COMMON]
    return profile.Sizes(
        min=int(sizes[0]),
        p50=percentile(50),
        p90=percentile(90),
        max=int(sizes[-1]),
        common=[(int(sizes[i]), int(counts[i])) for i in common],
        histogram=histogram(sizes, counts, unknown),
    )


def sizes_of_operations(known_sizes: tuple[Ints, Ints] | None, operations: int, unsized: int) -> profile.Sizes | None:
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


def sizes_by(sizes: SizeCounts, groups: int_table.Groups) -> dict[tuple[int, int], tuple[Ints, Ints]]:
    """Sizes and their counts, by group and kind."""
    number = groups(sizes.phase, sizes.file)
    keep = number >= 0
    merged = int_table.count_pairs(int_table.pack((number[keep], sizes.kind[keep]), int_table.SIDES),
        sizes.size[keep], sizes.count[keep])
    if not len(merged.first):
        return {}
    starts = np.flatnonzero(np.append(True, merged.first[1:] != merged.first[:-1]))
    bounds = np.append(starts, len(merged.first)).tolist()
    owner, kind = int_table.unpack(merged.first[starts], int_table.SIDES)
    return {
        key: (merged.second[a:b], merged.count[a:b])
        for key, (a, b) in zip(zip(owner.tolist(), kind.tolist(), strict=True), pairwise(bounds), strict=True)
    }


def binned_by(bins: SizeBins, groups: int_table.Groups) -> dict[tuple[int, int], Ints]:
    """Operations in each of the source's bins, by group and kind."""
    number = groups(bins.phase, bins.file)
    keep = number >= 0
    side = int_table.pack((number[keep], bins.kind[keep]), int_table.SIDES)
    merged = int_table.count_pairs(side, bins.bin[keep], bins.count[keep])
    histograms: dict[tuple[int, int], Ints] = {}
    owner, kind = int_table.unpack(merged.first, int_table.SIDES)
    for key, direction, place, count in zip(
        owner.tolist(), kind.tolist(), merged.second.tolist(), merged.count.tolist(), strict=True
    ):
        histograms.setdefault((key, direction), np.zeros(len(bins.names), np.int64))[place] = count
    return histograms


def in_bins(
    bins: SizeBins, counted: Ints | None, exact: tuple[Ints, Ints] | None, operations: int
) -> profile.Sizes | None:
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
    return profile.Sizes(min=None, p50=p50, p90=p90, max=None, common=common, histogram=by_bin)


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


MEMORY_SPEED = 25e9
"""Maximum bytes per second that one process can copy: no current core does more (STREAM copy results)."""

_OPERATIONS = tuple(field.name for field in fields(OperationCounts)[2:])
_UNTIMED = profile.ByKind(read=None, write=None, metadata=None, sync=None, total=None)


def stats_by(
    measured: Measurements, groups: int_table.Groups, *, time: int_table.ByGroup | None, busy: int_table.ByGroup | None
) -> dict[int, profile.IOStats]:
    """Build IOSTATS for every group of phases and files.

    Parameters
    ----------
    time
        Nanoseconds by kind, with `ALL_KINDS` for the total; None if no times are known.
    busy
        Busy nanoseconds in the order of `BusyTimes`; None if no times are known.
    """
    operations = int_table.summed(groups, measured.operations, _OPERATIONS)
    keys = operations.keys
    nothing = np.zeros(len(keys), np.int64)
    by_class, past, footprint = measured.of(PatternCounts), measured.of(BeyondEnds), measured.of(Touched)
    patterns = [nothing for _ in NAMES]
    if by_class is not None:
        counts = int_table.grouped(groups(by_class.phase, by_class.file), by_class.operations)
        patterns = [counts.at(keys, name) for name in NAMES]
    beyond = judged = appended = nothing
    if past is not None:
        ends = int_table.summed(groups, past, ("beyond", "reads"))
        beyond, judged = ends.at(keys, "beyond"), ends.at(keys, "reads")
        if all(trace.has_results for trace in measured.traces):
            # Moved bytes cannot lie past the end, so some write left no record.
            beyond = nothing
    foot = [nothing, nothing]
    if footprint is not None:
        appended = int_table.summed(groups, footprint.others, ("appended",)).at(keys, "appended")
        touched = touched_bytes(footprint, groups, measured.workload.files)
        foot = [touched.at(int_table.pack((keys, side), int_table.SIDES), "length") for side in (Kind.READ, Kind.WRITE)]
    given_up = footprint is None or footprint.given_up
    by_size = measured.of(SizeCounts)
    sizes = {} if by_size is None else sizes_by(by_size, groups)
    own_bins = None if by_size is None else by_size.bins
    bins = {} if own_bins is None else binned_by(own_bins, groups)

    def sizes_in(
        key: int, kind: Kind, known: tuple[Ints, Ints] | None, operations: int, unsized: int
    ) -> profile.Sizes | None:
        if own_bins is None:
            return sizes_of_operations(known, operations, unsized)
        return in_bins(own_bins, bins.get((key, kind)), known, operations)

    hidden = frozenset(groups(*measured.hidden_flushes).tolist())
    times = np.zeros((len(keys), int_table.KINDS + 1), np.int64) if time is None else time.at(keys)
    in_calls = np.zeros((len(keys), WIDTH), np.int64) if busy is None else busy.at(keys)
    functions = measured.of(FunctionCosts)
    names = measured.workload.functions
    costs = None if functions is None else costs_by(functions, names, groups, timed=time is not None)
    no_costs = Costs((), dict.fromkeys(_COSTS, nothing[:0]), time is not None)
    stats = {}
    for i, key in enumerate(keys.tolist()):
        reads, writes, metadata, syncs = (int(operations[n][i]) for n in ("reads", "writes", "metadata", "syncs"))
        unsized = int(operations["unsized"][i])
        by_read, by_write = sizes.get((key, Kind.READ)), sizes.get((key, Kind.WRITE))
        data = reads + writes
        # Bytes of operations are null, not 0, if none of their sizes is known.
        summed_up = (by_size is None or own_bins is not None) and unsized < data
        read = int(operations["bytes_read"][i]) if by_read or not reads or summed_up else None
        written = int(operations["bytes_written"][i]) if by_write or not writes or summed_up else None
        ns, busy_ns = times[i].tolist(), in_calls[i].tolist()
        calls = None if costs is None else costs.get(key, no_costs)
        stats[key] = profile.IOStats(
            bytes=byte_counts(read, written),
            footprint=profile.Footprint(
                read=None if read is None or (given_up and reads) else int(foot[0][i]),
                written=None if written is None or (given_up and writes) else int(foot[1][i] + appended[i]),
            ),
            past_end=profile.PastEnd(read=int(beyond[i]) if judged[i] or not reads else None),
            ops=profile.OpCounts(read=reads, write=writes, metadata=metadata, sync=syncs),
            time_s=_by_kind(ns, int_table.ALL_KINDS, hidden=key in hidden) if time is not None else _UNTIMED,
            busy_s=_by_kind(busy_ns, ALL, hidden=key in hidden) if busy is not None else _UNTIMED,
            ops_share=_shares(data, metadata, syncs),
            time_share=_time_share(ns, hidden=key in hidden),
            bandwidth=profile.Bandwidth(
                # Requests past the end of a file return no data.
                read=_rate(read, int(beyond[i]), busy_ns[Kind.READ], ns[Kind.READ]) if reads else None,
                write=_rate(written, 0, busy_ns[Kind.WRITE], ns[Kind.WRITE]) if writes else None,
                write_synced=(
                    _rate(written, 0, busy_ns[WRITE_OR_SYNC], ns[Kind.WRITE] + ns[Kind.SYNC])
                    if writes and syncs
                    else None
                ),
            ),
            transfer_size=profile.TransferSizes(
                read=sizes_in(key, Kind.READ, by_read, reads, unsized),
                write=sizes_in(key, Kind.WRITE, by_write, writes, unsized),
            ),
            access_pattern=_pattern([int(p[i]) for p in patterns]),
            calls=None if calls is None else calls.most_costly(),
            metadata_kinds=calls.by_metadata_kind() if metadata and calls is not None else None,
        )
    return stats


def nulls_of_stats(measured: Measurements) -> dict[str, str]:
    """Attributes that are null in every block because the source lacks their inputs, with reasons."""
    made_of: tuple[tuple[type[object], tuple[str, ...]], ...] = (
        (PatternCounts, ("access_pattern",)),
        (Touched, ("footprint",)),
        (BeyondEnds, ("past_end",)),
        (SpentTime, ("time_s", "time_share", "calls.time_s", "metadata_kinds")),
        (BusyTimes, ("busy_s", "bandwidth")),
        (SizeCounts, ("transfer_size",)),
        (FunctionCosts, ("calls", "metadata_kinds")),
    )
    return {
        f"io.{name}": measured.why(result)
        for result, names in made_of
        if measured.of(result) is None
        for name in names
    }


def _rate(requested: int | None, in_vain: int, busy_ns: int, spent_ns: int) -> float | None:
    """Bytes per second of busy time; None if a process would have moved them faster than memory allows.

    `requested` is None if it is unknown.
    """
    moved = 0 if requested is None else requested - in_vain
    if requested is None or not busy_ns or moved / max(1, spent_ns) * 1e9 > MEMORY_SPEED:
        return None
    return moved / busy_ns * 1e9


def impossible_rates(io: profile.IOStats) -> list[str]:
    """Directions (read, write) without a rate because the computed one is impossible."""
    sides = (("read", io.bytes.read, io.ops.read), ("write", io.bytes.written, io.ops.write))
    moving = [name for name, moved, ops in sides if ops and moved and getattr(io.time_s, name)]
    return [name for name in moving if getattr(io.bandwidth, name) is None]


def _by_kind(ns: Sequence[int], total: int, *, hidden: bool) -> profile.ByKind:
    """Seconds by kind; `hidden`: write time includes the time of some flushes."""
    read, write, metadata, sync, all_ = (ns[i] / 1e9 for i in (*range(int_table.KINDS), total))
    return profile.ByKind(read=read, write=write, metadata=metadata, sync=None if hidden else sync, total=all_)


def _shares(data: int, metadata: int, sync: int) -> profile.KindShares | None:
    total = data + metadata + sync
    return profile.KindShares(data=data / total, metadata=metadata / total, sync=sync / total) if total else None


def _time_share(ns: Sequence[int], *, hidden: bool) -> profile.KindShares | None:
    """Shares of time; `hidden`: write time includes flush time."""
    shares = _shares(ns[Kind.READ] + ns[Kind.WRITE], ns[Kind.METADATA], ns[Kind.SYNC])
    return shares if shares is None or not hidden else shares.model_copy(update={"sync": None})


def _pattern(counts: list[int]) -> profile.AccessPattern | None:
    total = sum(counts)
    return profile.AccessPattern(**{n: c / total for n, c in zip(NAMES, counts, strict=True)}) if total else None


def touched_bytes(footprint: Touched, groups: int_table.Groups, files: int) -> int_table.IntTable:
    """Distinct bytes by group and kind: extents of one file are united, then files are added up."""
    number = groups(footprint.phase, footprint.file)
    widths = (int(number.max(initial=0)) + 1, 2, files + 1)
    keep = number >= 0
    key = int_table.pack((number[keep], footprint.kind[keep], footprint.file[keep] + 1), widths)
    dense = int_table.Factorized.of(key)
    # Usually, a group has one cell per file, whose extents are already united.
    shared = np.bincount(dense.codes)[dense.codes] > 1
    united, length = key[~shared], footprint.length[keep][~shared]
    if shared.any():
        several = np.zeros(len(keep), np.bool_)
        several[np.flatnonzero(keep)[shared]] = True
        many = np.diff(np.append(footprint.first, len(footprint.start)))
        rows = np.repeat(several, many)
        of_several = merge(np.repeat(key[shared], many[several]), footprint.start[rows], footprint.end[rows])
        keys, lengths = total_length(of_several)
        united, length = np.concatenate((united, keys)), np.concatenate((length, lengths))
    owner, side, _ = int_table.unpack(united, widths)
    return int_table.group(int_table.pack((owner, side), int_table.SIDES), {"length": length})


def empty_stats() -> profile.IOStats:
    """IOSTATS of an entity without any calls."""
    nothing = profile.ByKind(read=0.0, write=0.0, metadata=0.0, sync=0.0, total=0.0)
    return profile.IOStats(
        bytes=profile.ByteCounts(read=0, written=0, total=0),
        footprint=profile.Footprint(read=0, written=0),
        past_end=profile.PastEnd(read=0),
        ops=profile.OpCounts(read=0, write=0, metadata=0, sync=0),
        time_s=nothing,
        busy_s=nothing,
        ops_share=None,
        time_share=None,
        bandwidth=profile.Bandwidth(read=None, write=None),
        transfer_size=profile.TransferSizes(read=None, write=None),
        access_pattern=None,
        calls=[],
        metadata_kinds=None,
    )
