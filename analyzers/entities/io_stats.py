"""IOSTATS, the block that every entity has, built for many entities at once from measurements per cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.access_classes import NAMES
from vani.analyzers.entities.function_costs import by_metadata_kind, costs_by, most_costly
from vani.analyzers.entities.transfer_sizes import binned_by, in_bins, sizes_by, sizes_of_operations
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.busy_time import ALL, WIDTH, WRITE_OR_SYNC, BusyTimes
from vani.analyzers.measures.call_costs import FunctionCosts
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.past_end import BeyondEnds
from vani.analyzers.measures.transfer_size import SizeCounts
from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.intervals import merge, total_length
from vani.analyzers.tables.keys import ALL_KINDS, KINDS, SIDES, pack, unpack
from vani.analyzers.tables.sums_by_group import ByGroup, Groups, grouped, summed
from vani.calls import Kind
from vani.schema.profile import (
    AccessPattern,
    Bandwidth,
    ByKind,
    ByteCounts,
    Footprint,
    IOStats,
    KindShares,
    OpCounts,
    PastEnd,
    TransferSizes,
)

Ints = NDArray[np.int64]

MEMORY_SPEED = 25e9
"""Maximum bytes per second that one process can copy: no current core does more (STREAM copy results)."""

_OPERATIONS = tuple(field.name for field in fields(OperationCounts)[2:])
_UNTIMED = ByKind(read=None, write=None, metadata=None, sync=None, total=None)


def stats_by(
    measured: Measurements, groups: Groups, *, time: ByGroup | None, busy: ByGroup | None
) -> dict[int, IOStats]:
    """Build IOSTATS for every group of phases and files.

    Parameters
    ----------
    time
        Nanoseconds by kind, with `ALL_KINDS` for the total; None if no times are known.
    busy
        Busy nanoseconds in the order of `BusyTimes`; None if no times are known.
    """
    operations = summed(groups, measured.operations, _OPERATIONS)
    keys = operations.keys
    nothing = np.zeros(len(keys), np.int64)
    by_class, past, footprint = measured.of(PatternCounts), measured.of(BeyondEnds), measured.of(Touched)
    patterns = [nothing for _ in NAMES]
    if by_class is not None:
        counts = grouped(groups(by_class.phase, by_class.file), by_class.operations)
        patterns = [counts.at(keys, name) for name in NAMES]
    beyond = judged = appended = nothing
    if past is not None:
        ends = summed(groups, past, ("beyond", "reads"))
        beyond, judged = ends.at(keys, "beyond"), ends.at(keys, "reads")
        if all(trace.has_results for trace in measured.traces):
            # Moved bytes cannot lie past the end, so some write left no record.
            beyond = nothing
    foot = [nothing, nothing]
    if footprint is not None:
        appended = summed(groups, footprint.others, ("appended",)).at(keys, "appended")
        touched = touched_bytes(footprint, groups, measured.workload.files)
        foot = [touched.at(pack((keys, side), SIDES), "length") for side in (Kind.READ, Kind.WRITE)]
    given_up = footprint is None or footprint.given_up
    by_size = measured.of(SizeCounts)
    sizes = {} if by_size is None else sizes_by(by_size, groups)
    own_bins = None if by_size is None else by_size.bins
    bins = {} if own_bins is None else binned_by(own_bins, groups)
    hidden = frozenset(groups(*measured.hidden_flushes).tolist())
    times = np.zeros((len(keys), KINDS + 1), np.int64) if time is None else time.at(keys)
    in_calls = np.zeros((len(keys), WIDTH), np.int64) if busy is None else busy.at(keys)
    functions = measured.of(FunctionCosts)
    names = measured.workload.functions
    costs = None if functions is None else costs_by(functions, names, groups, timed=time is not None)
    stats = {}
    for i, key in enumerate(keys.tolist()):
        reads, writes, metadata, syncs = (
            int(operations[n][i]) for n in ("reads", "writes", "metadata", "syncs")
        )
        unsized = int(operations["unsized"][i])
        by_read, by_write = sizes.get((key, Kind.READ)), sizes.get((key, Kind.WRITE))
        data = reads + writes
        # Bytes of operations are null, not 0, if none of their sizes is known.
        summed_up = (by_size is None or own_bins is not None) and unsized < data
        read = int(operations["bytes_read"][i]) if by_read or not reads or summed_up else None
        written = int(operations["bytes_written"][i]) if by_write or not writes or summed_up else None
        ns, busy_ns = times[i].tolist(), in_calls[i].tolist()
        calls = None if costs is None else costs.get(key, ())
        stats[key] = IOStats(
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
            time_s=_by_kind(ns, ALL_KINDS, hidden=key in hidden) if time is not None else _UNTIMED,
            busy_s=_by_kind(busy_ns, ALL, hidden=key in hidden) if busy is not None else _UNTIMED,
            ops_share=_shares(data, metadata, syncs),
            time_share=_time_share(ns, hidden=key in hidden),
            bandwidth=Bandwidth(
                # Requests past the end of a file return no data.
                read=_rate(read, int(beyond[i]), busy_ns[Kind.READ], ns[Kind.READ]) if reads else None,
                write=_rate(written, 0, busy_ns[Kind.WRITE], ns[Kind.WRITE]) if writes else None,
                write_synced=(
                    _rate(written, 0, busy_ns[WRITE_OR_SYNC], ns[Kind.WRITE] + ns[Kind.SYNC])
                    if writes and syncs
                    else None
                ),
            ),
            transfer_size=TransferSizes(
                read=sizes_of_operations(by_read, reads, unsized)
                if own_bins is None
                else in_bins(own_bins, bins.get((key, Kind.READ)), by_read, reads),
                write=sizes_of_operations(by_write, writes, unsized)
                if own_bins is None
                else in_bins(own_bins, bins.get((key, Kind.WRITE)), by_write, writes),
            ),
            access_pattern=_pattern([int(p[i]) for p in patterns]),
            calls=None if calls is None else most_costly(calls),
            metadata_kinds=by_metadata_kind(calls) if metadata and calls is not None else None,
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
    if requested is None or not busy_ns:
        return None
    moved = requested - in_vain
    if moved / max(1, spent_ns) * 1e9 > MEMORY_SPEED:
        return None
    return moved / busy_ns * 1e9


def impossible_rates(io: IOStats) -> list[str]:
    """Directions (read, write) without a rate because the computed one is impossible."""
    impossible = []
    for name, moved, ops in (("read", io.bytes.read, io.ops.read), ("write", io.bytes.written, io.ops.write)):
        if ops and moved and getattr(io.time_s, name) and getattr(io.bandwidth, name) is None:
            impossible.append(name)
    return impossible


def _by_kind(ns: Sequence[int], total: int, *, hidden: bool) -> ByKind:
    """Seconds by kind; `hidden`: write time includes the time of some flushes."""
    return ByKind(
        read=ns[Kind.READ] / 1e9,
        write=ns[Kind.WRITE] / 1e9,
        metadata=ns[Kind.METADATA] / 1e9,
        sync=None if hidden else ns[Kind.SYNC] / 1e9,
        total=ns[total] / 1e9,
    )


def _shares(data: int, metadata: int, sync: int) -> KindShares | None:
    total = data + metadata + sync
    return KindShares(data=data / total, metadata=metadata / total, sync=sync / total) if total else None


def _time_share(ns: Sequence[int], *, hidden: bool) -> KindShares | None:
    """Shares of time; `hidden`: write time includes flush time."""
    shares = _shares(ns[Kind.READ] + ns[Kind.WRITE], ns[Kind.METADATA], ns[Kind.SYNC])
    return shares if shares is None or not hidden else shares.model_copy(update={"sync": None})


def _pattern(counts: list[int]) -> AccessPattern | None:
    total = sum(counts)
    return AccessPattern(**{n: c / total for n, c in zip(NAMES, counts, strict=True)}) if total else None


def touched_bytes(footprint: Touched, groups: Groups, files: int) -> IntTable:
    """Distinct bytes by group and kind: extents of one file are united, then files are added up."""
    number = groups(footprint.phase, footprint.file)
    widths = (int(number.max(initial=0)) + 1, 2, files + 1)
    keep = number >= 0
    key = pack((number[keep], footprint.kind[keep], footprint.file[keep] + 1), widths)
    dense = Factorized.of(key)
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
    owner, side, _ = unpack(united, widths)
    return group(pack((owner, side), SIDES), {"length": length})


def empty_stats() -> IOStats:
    """IOSTATS of an entity without any calls."""
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
