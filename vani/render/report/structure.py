"""Tables of a report: apps, balance, layers, phases, dependencies, folders, traces, behaviour, and where time goes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vani.render.answers import costliest_metadata, numbers_of, pattern_words, place, worth_showing
from vani.render.report import tables
from vani.schema import profile as entities
from vani.schema.advice import Advice
from vani.schema.timeline import HeatMap
from vani.units import counted, format_count, format_number, format_seconds, format_share

_SHAPES = {
    "none": "no process reads what another one wrote",
    "one_to_many": "one writes, many read",
    "many_to_one": "many write, one reads",
    "neighbour": "neighbours exchange data",
    "all_to_all": "all read from all",
    "irregular": "no regular shape",
}
_DOING = {"read": "reading", "write": "writing", "sync": "flushing"}


def app_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table:
    """The apps of the workload."""

    def name(app: entities.App) -> tables.Cell:
        return tables.words(tables.clip(app.name, limits.path), f"{app.instances} traces" if app.instances > 1 else "")

    columns = (
        tables.worded("App", name),
        tables.shows("Processes", "processes"),
        tables.shows("Run time", "runtime_s", tables.seconds),
        tables.shows("I/O share of its run", "io_time_share", tables.share),
        tables.shows("Read", "io.bytes.read", tables.size),
        tables.shows("Written", "io.bytes.written", tables.size),
        tables.shows("Files", "files.total"),
        tables.shows("Shared files", "files.shared"),
        tables.worded("Main layer", lambda app: app.interface or "none"),
    )
    caption = "Apps of the workload, most I/O time first."
    return tables.table_of("apps", caption, _costliest(profile.apps), columns, limits.rows)


def balance_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table:
    """The worst process and the mean, for every app with several processes."""
    apps = [app for app in _costliest(profile.apps) if app.balance and app.processes > 1 and app.io.ops.all]

    def rank(number: int | None, app: entities.App) -> tables.Cell:
        among = f"in one of {format_count(app.instances)} traces" if app.instances > 1 else ""
        return tables.words("every process" if number is None else f"rank {number}", among)

    def slowest(app: entities.App) -> tables.Cell:
        if app.balance is None or app.balance.slowest_io_time_s is None:
            return tables.words("unknown")
        return rank(app.balance.slowest_rank, app)

    def ratio(balance: entities.RankBalance) -> tables.Cell:
        most, mean = balance.slowest_io_time_s, balance.mean_io_time_s
        times = most / mean if most is not None and mean else None
        return tables.Cell("unknown" if times is None else format_number(times), times)

    columns = (
        tables.worded("App", "name", limits.path),
        tables.worded("Slowest process", slowest),
        tables.shows("Its I/O time", "balance.slowest_io_time_s", tables.seconds),
        tables.shows(
            "Mean I/O time",
            lambda app: tables.seconds(
                app.balance.mean_io_time_s, f"median {format_seconds(app.balance.median_io_time_s)}"
            ),
        ),
        tables.shows("Times the mean", lambda app: ratio(app.balance)),
        tables.worded("Moved most bytes", lambda app: rank(app.balance.busiest_rank, app)),
        tables.shows("Its bytes", "balance.busiest_bytes", tables.size),
        tables.shows("Mean bytes", "balance.mean_bytes", tables.size),
        tables.shows("Readers", "balance.reading_processes"),
        tables.shows("Writers", "balance.writing_processes"),
    )
    caption = "How evenly I/O is spread over the processes of each app: the worst process and the mean."
    return tables.table_of("balance", caption, apps, columns, limits.rows)


def layer_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table:
    """Library layers in use."""
    layers = [layer for layer in profile.interfaces or () if layer.bytes.read != 0 or layer.bytes.written != 0]
    columns = (
        tables.worded("Layer", "layer"),
        tables.worded("App", "app", limits.path),
        tables.shows("Calls", "calls"),
        tables.shows("Read", "bytes.read", tables.size),
        tables.shows("Written", "bytes.written", tables.size),
        tables.shows("Time", "time_s", tables.seconds),
        tables.shows("Files", "files"),
        tables.shows("Transfer size", "granularity.data", tables.known(tables.size)),
        tables.worded("Access", lambda layer: layer.access_pattern or ""),
        tables.worded("Data calls are", lambda layer: _transfer(layer.transfer, layer.collective_share)),
    )
    caption = "Libraries through which apps move bytes. Times include the calls below: those of stacked layers overlap."
    return tables.without_empty(tables.table_of("layers", caption, layers, columns, limits.rows))


def _transfer(kind: str | None, collective: float | None) -> str:
    if kind is None:
        return ""
    return kind if collective is None or kind != "mixed" else f"{format_share(collective)} collective"


def phase_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table | None:
    """Phases with the longest I/O time; None if times are unknown."""
    if profile.phases is None:
        return None
    order = sorted(
        profile.phases, key=lambda phase: (-(phase.io.time_s.total or 0.0), -(phase.io.bytes.total or 0))
    )

    def rhythm(phase: entities.Phase) -> tables.Cell:
        if phase.frequency is None:
            return tables.words("unknown")
        return tables.words(phase.frequency.kind, f"{_about(phase.frequency.ops_per_process)} a process")

    columns = (
        tables.worded("App", "app", limits.path),
        tables.shows("Phase", "index"),
        tables.shows("Times", lambda phase: tables.count(phase.count, _distance(phase))),
        tables.worded("Kind", lambda phase: tables.words(phase.kind, _spent(phase))),
        tables.shows("Begins", "start_s", tables.seconds),
        tables.shows("Lasts", lambda phase: tables.seconds(phase.runtime_s / phase.count)),
        tables.shows("Processes", "processes"),
        tables.shows("Read", "io.bytes.read", tables.size),
        tables.shows("Written", "io.bytes.written", tables.size),
        tables.shows("I/O time", "io.time_s.total", tables.seconds),
        tables.worded("Operations come", rhythm),
    )
    most = "I/O time" if any(phase.io.time_s.total is not None for phase in order) else "bytes"
    caption = (
        f"I/O phases, most {most} first, similar ones in one row: when the first begins, how long "
        "one lasts on average, and what all of them read and write; times since the workload began."
    )
    return tables.table_of("phases", caption, order, columns, limits.rows)


def _distance(phase: entities.Phase) -> str:
    period = phase.repeats.period_s if phase.repeats is not None else None
    return "" if period is None else f"{format_seconds(period)} apart"


def _spent(phase: entities.Phase) -> str:
    """How a phase's time was spent, if its kind does not show it."""
    if phase.dominant is None or phase.dominant.kind == phase.kind != "metadata":
        return ""
    if phase.dominant.kind == "metadata":
        doing, part = costliest_metadata(phase)
    else:
        doing, part = _DOING[phase.dominant.kind], phase.dominant.share
    return f"{format_share(part)} of its I/O time {doing}"


def _about(number: float) -> str:
    """Three digits, or all before the decimal point: `0.5`, `12`, `600,000`."""
    return f"{number:,.0f}" if abs(number) >= 1000 else format_number(number)


def dependency_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table | None:
    """Apps and processes that read the output of others; None if the order of calls is unknown."""
    edges = profile.workflow.app_dependencies
    if edges is None:
        return None
    order = sorted(edges, key=lambda edge: (-(edge.bytes_read or 0), -edge.files, edge.producer, edge.consumer))
    inside = [
        app for app in _costliest(profile.apps) if app.process_dependencies and app.process_dependencies.edges
    ]

    def between(of: entities.AppDependency | entities.App) -> tables.Cell:
        own = getattr(of, "process_dependencies", None)
        return tables.words("between processes",
            f"{_SHAPES[own.pattern]}; {_pairs(own)}") if own else tables.words("between apps")

    def moved(side: str) -> Callable[[entities.AppDependency | entities.App], tables.Cell]:
        return lambda of: tables.words("") if isinstance(of, entities.App) else tables.size(getattr(of, side))

    columns = (
        tables.worded("Writes", lambda of: of.name if isinstance(of, entities.App) else of.producer, limits.path),
        tables.worded("Reads later", lambda of: of.name if isinstance(of, entities.App) else of.consumer, limits.path),
        tables.worded("Kind", between),
        tables.shows("Files", lambda of: tables.count(getattr(of, "process_dependencies", of).files)),
        tables.shows("Bytes written", moved("bytes_written")),
        tables.shows("Bytes read", moved("bytes_read")),
    )
    caption = "Files that one app or process read after another had written them."
    if order and inside:
        caption += " Bytes are counted between apps, not between the processes of one."
    return tables.without_empty(tables.table_of("dependencies", caption, [*order, *inside], columns, limits.rows))


def _pairs(inside: entities.ProcessDependencies) -> str:
    """`12 pairs`, `12 pairs, 2 of them known by the file only`."""
    by_file = 0
    if inside.edges_by_extents is not None:
        by_file = inside.edges - inside.edges_by_extents
    elif inside.file_level is not None:
        by_file = inside.edges
    pairs = f"{inside.edges} pair{'s' * (inside.edges > 1)}"
    return f"{pairs}, {by_file} of them known by the file only" if by_file else pairs


def folder_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table | None:
    """Folders with the longest metadata time; None if the profile does not list them."""
    folders = profile.folders
    if folders is None:
        return None
    timed = any(folder.metadata_time_s is not None for folder in folders)
    columns = (
        tables.worded("Folder", "path", limits.path),
        tables.shows("Files", "files"),
        tables.shows("Created", "creates"),
        tables.shows("Entries", "entries"),
        tables.shows("Read", "bytes.read", tables.size),
        tables.shows("Written", "bytes.written", tables.size),
        *([tables.shows("Metadata time", "metadata_time_s", tables.seconds)] if timed else []),
    )
    caption = (
        f"Folders of the data set, most metadata {'time' if timed else 'operations'} first. All files of the run are "
        "counted, also those that are not listed. Processes that create or open files in one folder at once wait for "
        "each other there."
    )
    return tables.table_of("folders", caption, folders, columns, limits.rows)


def trace_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table:
    """The traces behind the profile, damaged ones first."""
    traces = sorted(profile.traces, key=lambda trace: trace.complete is not False)

    def complete(trace: entities.TraceEntity) -> tables.Cell:
        state = {None: "unknown", True: "yes", False: "no"}[trace.complete]
        return tables.words(state, _problems(trace.problems, limits))

    columns = (
        tables.worded("Trace", "path", limits.path),
        tables.worded("App", "app", limits.path),
        tables.worded("Written by", lambda trace: f"{tables.clip(trace.tool, 40)} {tables.clip(trace.format, 40)}"),
        tables.shows("Processes", "ranks"),
        tables.shows("Records", "records"),
        tables.worded("Complete", complete),
    )
    return tables.table_of("traces", "Traces behind this report.", traces, columns, limits.rows)


def _problems(problems: Sequence[str], limits: tables.Limits) -> str:
    said = tables.clip("; ".join(problems[:3]), limits.prose // 2)
    return f"{said}; and {format_count(len(problems) - 3)} more" if len(problems) > 3 else said


def _costliest(apps: Sequence[entities.App]) -> list[entities.App]:
    return sorted(apps, key=lambda app: (-(app.io.time_s.total or 0.0), -(app.io.bytes.total or 0), app.name))


def extension_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table | None:
    """Results of plug-in measures, unchanged; None without any."""
    if not profile.extensions:
        return None
    columns = (
        tables.worded("Measure", "measure", limits.path),
        tables.worded("Attribute", "attribute", limits.path),
        tables.worded("Value", lambda row: "unknown" if row.value is None else str(row.value), limits.path),
    )
    rows = list(entities.extension_rows(profile.extensions))
    caption = "Measurements of plug-ins, in their units."
    return tables.without_empty(tables.table_of("extensions", caption, rows, columns, limits.rows))


def diagnosis_table(advice: Advice, limits: tables.Limits) -> tables.Table | None:
    """The program's behaviour, a row per pattern (`docs/rules/patterns.md` defines them); None without any."""
    if not advice.diagnosis:
        return None

    columns = (
        tables.worded("Pattern", lambda observation: pattern_words(observation.pattern)),
        tables.worded("Where", lambda observation: place(observation) or "the whole run", limits.path),
        tables.shows("Share", "share", tables.share),
        tables.worded("Evidence", lambda observation: ", ".join(numbers_of(observation)), limits.prose),
        tables.worded("Rules", lambda observation: ", ".join(observation.rules)),
    )
    caption = (
        "Patterns, whether or not they cost time: the costliest place of each, the share of the I/O time that all its "
        "places take, and rules that act on it."
    )
    return tables.table_of("diagnosis", caption, worth_showing(advice.diagnosis), columns, limits.rows)


# --- where the time goes -------------------------------------------------------------------------------

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


def kind_table(profile: entities.Profile) -> tables.Table:
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


def _speed(profile: entities.Profile, side: str, speed: float | None, note: str = "") -> tables.Cell:
    """A bandwidth; an impossible one counts as unknown, with the profile's reason."""
    why = profile.provenance.get(f"io.bandwidth.{side}")
    return tables.Cell("not known", None,
        tables.clip(why, _LONGEST_REASON)) if speed is None and why else tables.rate(speed, note)


def call_table(profile: entities.Profile, limits: tables.Limits) -> tables.Table | None:
    """The costliest functions, with all others in a last row; None if the profile does not list functions."""
    costs = _costs(profile.workflow.io, limits.calls)
    if not costs:
        return None
    timed = any(cost.time_s is not None for cost in costs)

    def mean(cost: _Cost) -> tables.Cell:
        return tables.seconds(cost.time_s / cost.calls if cost.time_s is not None and cost.calls else None)

    columns = (
        tables.worded("Function", lambda cost: cost.name or "all others", limits.path // 2),
        tables.shows("Calls", "calls"),
        *(_timed(costs) if timed else ()),
        *([tables.shows("Mean", mean)] if timed else ()),
        tables.shows("Bytes", lambda cost: cost.moved),
    )
    caption = f"File-system calls by function, most {'time' if timed else 'calls'} first."
    if timed:
        caption += " Time is the length of the calls, added up over processes."
    return tables.table_of("calls", caption, costs, columns, len(costs))


def _timed(costs: Sequence[_Cost]) -> tuple[tables.Shown, tables.Shown]:
    """Columns with the time of costs, and its share of the whole."""
    whole, part = sum(cost.time_s or 0.0 for cost in costs), tables.known(tables.share)
    return (
        tables.shows("Time", "time_s", tables.seconds),
        tables.shows("Share", lambda cost: part((cost.time_s or 0.0) / whole if whole else None)),
    )


def _costs(io: entities.IOStats, most: int) -> list[_Cost]:
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


def metadata_table(profile: entities.Profile) -> tables.Table | None:
    """Metadata operations by kind; None if there are none, or the profile does not list them."""
    kinds = profile.workflow.io.metadata_kinds
    if kinds is None:
        return None
    of_kinds = [(name, getattr(kinds, name)) for name in entities.MetadataKinds.model_fields]
    costs = [_Cost(_METADATA.get(name, name), of.count, of.time_s) for name, of in of_kinds]
    timed = any(cost.time_s is not None for cost in costs)
    columns = (
        tables.worded("Metadata operation", "name"),
        tables.shows("Calls", "calls"),
        *(_timed(costs) if timed else ()),
    )
    costs = sorted((cost for cost in costs if cost.calls), key=lambda cost: (-(cost.time_s or 0.0), -cost.calls))
    caption = f"Metadata operations by kind, most {'time' if timed else 'calls'} first."
    return tables.table_of("metadata", caption, costs, columns, len(costs)) if costs else None


def library_table(profile: entities.Profile) -> tables.Table | None:
    """Time in I/O libraries and in the file system; None if no library was called, or none is known."""
    times = profile.workflow.library_time_s
    if not times:
        return None
    slowest = [app.balance.slowest_io_time_s or 0.0 for app in profile.apps if app.balance is not None]

    def part(time: entities.LibraryTime | None) -> tables.Cell:
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
_MAX_LISTED: Final = 8


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
    part = f"{about}{format_share(min(1.0, time / whole))}"
    return f"The slowest {format_share(_PART)} of calls take {part} of the time in calls."


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
