"""Tables of where the time goes: kinds of calls, functions, metadata operations, I/O libraries, the slowest calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vani.render.report import tables
from vani.schema.profile import IOStats, LibraryTime, MetadataKinds, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_count, format_seconds, format_share

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
_NOTHING: Final = tables.words("")


@dataclass(frozen=True)
class _Cost:
    """Calls of a kind or a function, or several without a name together."""

    name: str | None
    calls: int
    time_s: float | None
    moved: tables.Cell = _NOTHING
    speed: tables.Cell = _NOTHING


def kind_table(profile: Profile) -> tables.Table:
    """Reading, writing, flushing and metadata side by side."""
    io = profile.workflow.io
    time, rates = io.time_s, io.bandwidth
    both = _NOTHING
    if io.ops.sync and io.ops.write:
        both = _speed(profile, "write", rates.write_synced, "writes with their flushes")
    read, written = tables.size(io.bytes.read), tables.size(io.bytes.written)
    costs = [
        _Cost("Reading", io.ops.read, time.read, read, _speed(profile, "read", rates.read)),
        _Cost("Writing", io.ops.write, time.write, written, _speed(profile, "write", rates.write)),
        _Cost("Flushing", io.ops.sync, time.sync, speed=both),
        _Cost("Metadata", io.ops.metadata, time.metadata),
    ]
    whole = sum(cost.time_s or 0.0 for cost in costs)

    def part(cost: _Cost) -> tables.Cell:
        return tables.known(tables.share)(cost.time_s / whole if cost.time_s is not None and whole else None)

    columns = (
        tables.worded("Kind", "name"),
        tables.shows("Calls", "calls"),
        tables.shows("Bytes", lambda cost: cost.moved),
        tables.shows("I/O time", "time_s", tables.seconds),
        tables.shows("Share", part),
        tables.shows("Bandwidth", lambda cost: cost.speed if cost.calls else _NOTHING),
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
    return tables.table_of("kinds", caption, costs, columns, len(costs))


def _speed(profile: Profile, side: str, speed: float | None, note: str = "") -> tables.Cell:
    """A bandwidth; an impossible one counts as unknown, with the profile's reason."""
    why = profile.provenance.get(f"io.bandwidth.{side}")
    return tables.Cell("not known", None,
        tables.clip(why, _LONGEST_REASON)) if speed is None and why else tables.rate(speed, note)


def call_table(profile: Profile, limits: tables.Limits) -> tables.Table | None:
    """The costliest functions, with all others in a last row; None if the profile does not list functions."""
    costs = _costs(profile.workflow.io, limits.calls)
    if not costs:
        return None
    whole = sum(cost.time_s or 0.0 for cost in costs)
    timed = any(cost.time_s is not None for cost in costs)

    def mean(cost: _Cost) -> tables.Cell:
        return tables.seconds(cost.time_s / cost.calls if cost.time_s is not None and cost.calls else None)

    columns = (
        tables.worded("Function", lambda cost: cost.name or "all others", limits.path // 2),
        tables.shows("Calls", "calls"),
        *(_timed(whole) if timed else ()),
        *([tables.shows("Mean", mean)] if timed else ()),
        tables.shows("Bytes", lambda cost: cost.moved),
    )
    caption = f"File-system calls by function, most {'time' if timed else 'calls'} first."
    if timed:
        caption += " Time is the length of the calls, added up over processes."
    return tables.table_of("calls", caption, costs, columns, len(costs))


def _timed(whole: float) -> tuple[tables.Shown, tables.Shown]:
    """Columns with the time of costs, and its share of the whole."""
    part = tables.known(tables.share)
    return (
        tables.shows("Time", "time_s", tables.seconds),
        tables.shows("Share", lambda cost: part((cost.time_s or 0.0) / whole if whole else None)),
    )


def _costs(io: IOStats, most: int) -> list[_Cost]:
    """At most `most` functions; further ones are added to those that the profile itself summed."""
    calls = io.calls or ()
    named = [call for call in calls if call.name is not None]
    rest = [*(call for call in calls if call.name is None), *named[most:]]
    costs = [_Cost(call.name, call.count, call.time_s, tables.known(tables.size)(call.bytes)) for call in named[:most]]
    if not rest:
        return costs
    times = [call.time_s for call in rest if call.time_s is not None]
    moved = [call.bytes for call in rest if call.bytes is not None]
    time_s = sum(times) if len(times) == len(rest) else None
    return [*costs, _Cost(None, sum(call.count for call in rest), time_s, tables.size(sum(moved)) if moved
        else _NOTHING)]


def metadata_table(profile: Profile) -> tables.Table | None:
    """Metadata operations by kind; None if there are none, or the profile does not list them."""
    kinds = profile.workflow.io.metadata_kinds
    if kinds is None:
        return None
    of_kinds = [(name, getattr(kinds, name)) for name in MetadataKinds.model_fields]
    costs = [_Cost(_METADATA.get(name, name), of.count, of.time_s) for name, of in of_kinds]
    whole = sum(cost.time_s or 0.0 for cost in costs)
    timed = any(cost.time_s is not None for cost in costs)
    costs = sorted((cost for cost in costs if cost.calls), key=lambda cost: (-(cost.time_s or 0.0), -cost.calls))
    columns = (
        tables.worded("Metadata operation", "name"),
        tables.shows("Calls", "calls"),
        *(_timed(whole) if timed else ()),
    )
    caption = f"Metadata operations by kind, most {'time' if timed else 'calls'} first."
    return tables.table_of("metadata", caption, costs, columns, len(costs)) if costs else None


def library_table(profile: Profile) -> tables.Table | None:
    """Time in I/O libraries and in the file system; None if no library was called, or none is known."""
    times = profile.workflow.library_time_s
    if not times:
        return None
    slowest = [app.balance.slowest_io_time_s or 0.0 for app in profile.apps if app.balance is not None]

    def part(time: LibraryTime | None) -> tables.Cell:
        """The share outside the file system, which rounding does not turn into the whole."""
        if time is None or not time.total:
            return _NOTHING
        outside = time.outside_file_system / time.total
        return tables.Cell("> 99 %", outside) if 0.995 <= outside < 1 else tables.share(min(1.0, outside))

    total, most = profile.workflow.io.time_s.total, max(slowest, default=None)
    columns = (
        tables.worded("Library", lambda row: _LIBRARIES.get(row[0], row[0])),
        tables.shows("In its calls", lambda row: tables.seconds(row[1].total if row[1] else total)),
        tables.shows(
            "Outside the file system", lambda row: tables.seconds(row[1].outside_file_system) if row[1] else _NOTHING
        ),
        tables.shows("Share", lambda row: part(row[1])),
        tables.shows("Slowest process", lambda row: tables.seconds(row[1].slowest if row[1] else most)),
    )
    rows = [*sorted(times.items(), key=lambda pair: (-pair[1].total, pair[0])), ("File system", None)]
    caption = (
        "Time inside the calls of I/O libraries and in file-system calls, summed over processes; the last column "
        "is for the process that spends most. What is outside the file system is exchange between processes, "
        "waiting and the library's own work: faster storage does not change it. Libraries on top of each other do not "
        "add up."
    )
    return tables.table_of("libraries", caption, rows, columns, len(rows))


# --- the slowest calls: the slowest twentieth together, and its longest calls individually -----------

_PART: Final = 0.05
_MAX_LISTED: Final = 20


def slow_table(heat: HeatMap | str, limits: tables.Limits) -> tables.Table | None:
    """A table of the slowest calls; None if the calls are not available, or take no time."""
    if isinstance(heat, str) or not heat.longest or not sum(call_class.seconds for call_class in heat.calls):
        return None
    total = sum(call_class.calls for call_class in heat.calls)
    slow = max(1, round(total * _PART))
    shown = heat.longest[: min(slow, _MAX_LISTED, limits.rows)]
    several = len(set(heat.app_of_trace)) > 1
    columns = (
        tables.worded("Function", "function", 80),
        tables.worded("File", lambda call: call.path or "no file", limits.path),
        tables.worded("Process",
            lambda call: tables.words(f"rank {call.rank}", tables.clip(call.app, 40) if several else "")),
        tables.shows("Begins", "start_s", tables.seconds),
        tables.shows("Takes", "duration_s", tables.seconds),
        tables.shows("Bytes", "bytes", tables.known(tables.size)),
    )
    return tables.table_of("slow", _caption(heat, total, slow, len(shown)), shown, columns, len(shown))


def slowest_part(heat: HeatMap | str) -> str:
    """The slowest calls' share of the time; empty if the calls are not available, or take no time."""
    if isinstance(heat, str):
        return ""
    whole = sum(call_class.seconds for call_class in heat.calls)
    total = sum(call_class.calls for call_class in heat.calls)
    if not whole or total < 1 / _PART:
        return ""
    time, _, about = _slowest(heat, max(1, round(total * _PART)))
    part = format_share(min(1.0, time / whole))
    return f"The slowest {format_share(_PART)} of calls take {about}{part} of the time in calls."


def _caption(heat: HeatMap, total: int, slow: int, shown: int) -> str:
    whole = sum(call_class.seconds for call_class in heat.calls)
    time, least, about = _slowest(heat, slow)
    listed = "all of them are listed" if shown == slow else f"the longest {counted(shown, 'call')} are listed"
    return (
        f"The slowest {format_share(_PART)} of the {counted(total, 'call')}, {format_count(slow)} of "
        f"{about}{format_seconds(least)} or more, take {about}{format_share(min(1.0, time / whole))} of the time in "
        f"calls; {listed}."
    )


def _slowest(heat: HeatMap, slow: int) -> tuple[float, float, str]:
    """Time in the `slow` slowest calls, the duration of the shortest, and a word if classes make both approximate."""
    if slow <= len(heat.longest):
        calls = heat.longest[:slow]
        return sum(call.duration_s for call in calls), calls[-1].duration_s, ""
    left, time, least = slow, 0.0, 0.0
    for call_class in sorted(heat.calls, key=lambda call_class: (-call_class.least_s, call_class.kind)):
        taken = min(left, call_class.calls)
        time += call_class.seconds * taken / call_class.calls
        least = call_class.least_s
        left -= taken
        if not left:
            break
    return time, least, "about "
