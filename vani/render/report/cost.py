"""Tables of where the time goes: kinds of calls, functions, metadata operations, I/O libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from vani.render.report.bounds import Limits, clip
from vani.render.report.tables import Cell, Column, Row, Table, count, rate, seconds, share, size, words
from vani.schema.profile import IOStats, MetadataKinds, Profile

_METADATA: Final = {
    "open": "opening",
    "close": "closing",
    "stat": "querying files (stat, access, ...)",
    "seek": "seeking",
    "directory": "directory operations",
    "remove": "removing and renaming",
    "other": "other",
}
_LIBRARIES: Final = {"hdf5": "HDF5", "mpiio": "MPI-IO", "netcdf": "NetCDF", "pnetcdf": "PnetCDF"}
_LONGEST_REASON: Final = 160


def kind_table(profile: Profile) -> Table:
    """Reading, writing, flushing and metadata side by side, without flushing if it was counted as metadata."""
    io = profile.workflow.io
    time, rates = io.time_s, io.bandwidth
    whole = sum(time_s or 0.0 for time_s in (time.read, time.write, time.sync, time.metadata))
    read, write = _speed(profile, "read", rates.read), _speed(profile, "write", rates.write)
    rows = [
        _kind("Reading", io.ops.read, size(io.bytes.read), time.read, whole, read),
        _kind("Writing", io.ops.write, size(io.bytes.written), time.write, whole, write),
    ]
    if io.ops.sync is not None:
        both = words("")
        if io.ops.sync and io.ops.write:
            both = _speed(profile, "write", rates.write_synced, "writes with their flushes")
        rows.append(_kind("Flushing", io.ops.sync, words(""), time.sync, whole, both))
    rows.append(_kind("Metadata", io.ops.metadata, words(""), time.metadata, whole, words("")))
    columns = (
        Column("Kind"),
        Column("Calls", number=True),
        Column("Bytes", number=True),
        Column("I/O time", number=True),
        Column("Share", number=True),
        Column("Bandwidth", number=True),
    )
    caption = (
        "All file-system calls of the workload. I/O time is summed over processes; bandwidth is bytes divided by the "
        "time in which at least one process reads (or writes)."
    )
    if io.ops.sync:
        caption += (
            " Flushing (fsync, fflush, ...) forces out earlier writes; its bandwidth is the bandwidth of "
            "writes including the flushes after them."
        )
    if io.ops.sync is None:
        caption += (
            " The profile is of vani.profile/1, which counted flushing (fsync, fflush, ...) as metadata."
        )
    return Table("kinds", caption, columns, tuple(rows))


def _kind(name: str, calls: int, moved: Cell, time: float | None, whole: float, speed: Cell) -> Row:
    part = time / whole if time is not None and whole else None
    nothing = words("")
    return Row(
        (
            words(name),
            count(calls),
            moved,
            seconds(time),
            nothing if part is None else share(part),
            speed if calls else nothing,
        )
    )


def _speed(profile: Profile, side: str, speed: float | None, note: str = "") -> Cell:
    """A bandwidth; an impossible one counts as unknown, with the profile's reason."""
    why = profile.provenance.get(f"io.bandwidth.{side}")
    return Cell("not known", None, clip(why, _LONGEST_REASON)) if speed is None and why else rate(speed, note)


@dataclass(frozen=True)
class _Cost:
    """A function, or several together without a name."""

    name: str | None
    calls: int
    time_s: float | None
    bytes: int | None


def call_table(profile: Profile, limits: Limits) -> Table | None:
    """The costliest functions, with all others in a last row; None if the profile does not list functions."""
    costs = _costs(profile.workflow.io, limits.calls)
    if not costs:
        return None
    whole = sum(cost.time_s or 0.0 for cost in costs)
    timed = any(cost.time_s is not None for cost in costs)
    rows = []
    for cost in costs:
        cells = [
            words("all others" if cost.name is None else clip(cost.name, limits.path // 2)),
            count(cost.calls),
        ]
        if timed:
            each = cost.time_s / cost.calls if cost.time_s is not None and cost.calls else None
            part = (cost.time_s or 0.0) / whole if whole else None
            cells += [seconds(cost.time_s), words("") if part is None else share(part), seconds(each)]
        rows.append(Row((*cells, words("") if cost.bytes is None else size(cost.bytes))))
    columns = [Column("Function"), Column("Calls", number=True)]
    if timed:
        columns += [
            Column("Time", number=True),
            Column("Share", number=True),
            Column("Mean", number=True),
        ]
    columns.append(Column("Bytes", number=True))
    caption = f"File-system calls by function, most {'time' if timed else 'calls'} first."
    if timed:
        caption += " Time is the length of the calls, added up over processes."
    return Table("calls", caption, tuple(columns), tuple(rows))


def _costs(io: IOStats, most: int) -> list[_Cost]:
    """At most `most` functions; further ones are added to those that the profile itself summed."""
    costs = [_Cost(call.name, call.count, call.time_s, call.bytes) for call in io.calls or ()]
    named = [cost for cost in costs if cost.name is not None]
    rest = [cost for cost in costs if cost.name is None] + named[most:]
    if not rest:
        return named
    times = [cost.time_s for cost in rest if cost.time_s is not None]
    moved = [cost.bytes for cost in rest if cost.bytes is not None]
    others = _Cost(
        None,
        sum(cost.calls for cost in rest),
        sum(times) if len(times) == len(rest) else None,
        sum(moved) if moved else None,
    )
    return [*named[:most], others]


def metadata_table(profile: Profile) -> Table | None:
    """Metadata operations by kind; None if there are none, or the profile does not list them."""
    kinds = profile.workflow.io.metadata_kinds
    if kinds is None:
        return None
    costs = [(name, getattr(kinds, name)) for name in MetadataKinds.model_fields]
    whole = sum(cost.time_s or 0.0 for _, cost in costs)
    timed = any(cost.time_s is not None for _, cost in costs)
    rows = []
    for name, cost in sorted(costs, key=lambda pair: (-(pair[1].time_s or 0.0), -pair[1].count)):
        if not cost.count:
            continue
        cells = [words(_METADATA.get(name, name)), count(cost.count)]
        if timed:
            part = words("") if not whole else share((cost.time_s or 0.0) / whole)
            cells += [seconds(cost.time_s), part]
        rows.append(Row(tuple(cells)))
    columns = [Column("Metadata operation"), Column("Calls", number=True)]
    if timed:
        columns += [Column("Time", number=True), Column("Share", number=True)]
    caption = f"Metadata operations by kind, most {'time' if timed else 'calls'} first."
    return Table("metadata", caption, tuple(columns), tuple(rows)) if rows else None


def library_table(profile: Profile) -> Table | None:
    """Time in I/O libraries and in the file system; None if no library was called, or none is known."""
    times = profile.workflow.library_time_s
    if not times:
        return None
    slowest = [app.balance.slowest_io_time_s or 0.0 for app in profile.apps if app.balance is not None]
    rows = [
        Row(
            (
                words(_LIBRARIES.get(layer, layer)),
                seconds(time.total),
                seconds(time.outside_file_system),
                words("") if not time.total else _part(time.outside_file_system / time.total),
                seconds(time.slowest),
            )
        )
        for layer, time in sorted(times.items(), key=lambda pair: (-pair[1].total, pair[0]))
    ]
    total = profile.workflow.io.time_s.total
    rows.append(Row((words("File system"), seconds(total), words(""), words(""), seconds(_most(slowest)))))
    columns = (
        Column("Library"),
        Column("In its calls", number=True),
        Column("Outside the file system", number=True),
        Column("Share", number=True),
        Column("Slowest process", number=True),
    )
    caption = (
        "Time inside the calls of I/O libraries and in file-system calls, summed over processes; the last column "
        "is for the process that spends most. What is outside the file system is exchange between processes, "
        "waiting and the library's own work: faster storage does not change it. Libraries on top of each other do not "
        "add up."
    )
    return Table("libraries", caption, columns, tuple(rows))


def _part(value: float) -> Cell:
    """A share that rounding does not turn into the whole."""
    return Cell("> 99 %", value) if 0.995 <= value < 1 else share(min(1.0, value))


def _most(times: Sequence[float]) -> float | None:
    return max(times, default=None)
