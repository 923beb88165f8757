"""Tables of a workload's parts: apps and their balance, layers, phases, dependencies, folders, traces, behaviour."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vani.render.answers import costliest_metadata, pattern_words, place
from vani.render.report.tables import (
    Cell,
    Limits,
    Table,
    clip,
    count,
    known,
    seconds,
    share,
    shows,
    size,
    table_of,
    without_empty,
    worded,
    words,
)
from vani.schema.advice import Advice, Observation
from vani.schema.profile import (
    App,
    AppDependency,
    Phase,
    ProcessDependencies,
    Profile,
    RankBalance,
    TraceEntity,
    extension_rows,
)
from vani.units import format_count, format_number, format_seconds, format_share

_SHAPES = {
    "none": "no process reads what another one wrote",
    "one_to_many": "one writes, many read",
    "many_to_one": "many write, one reads",
    "neighbour": "neighbours exchange data",
    "all_to_all": "all read from all",
    "irregular": "no regular shape",
}
_DOING = {"read": "reading", "write": "writing", "sync": "flushing"}


def app_table(profile: Profile, limits: Limits) -> Table:
    """The apps of the workload."""

    def name(app: App) -> Cell:
        return words(clip(app.name, limits.path), f"{app.instances} traces" if app.instances > 1 else "")

    columns = (
        worded("App", name),
        shows("Processes", "processes"),
        shows("Run time", "runtime_s", seconds),
        shows("I/O share of its run", "io_time_share", share),
        shows("Read", "io.bytes.read", size),
        shows("Written", "io.bytes.written", size),
        shows("Files", "files.total"),
        shows("Shared files", "files.shared"),
        worded("Main layer", lambda app: app.interface or "none"),
    )
    caption = "Apps of the workload, most I/O time first."
    return table_of("apps", caption, _costliest(profile.apps), columns, limits.rows)


def balance_table(profile: Profile, limits: Limits) -> Table:
    """The worst process and the mean, for every app with several processes."""
    apps = [app for app in _costliest(profile.apps) if app.balance and app.processes > 1 and app.io.ops.all]

    def rank(number: int | None, app: App) -> Cell:
        among = f"in one of {format_count(app.instances)} traces" if app.instances > 1 else ""
        return words("unknown" if number is None else f"rank {number}", among)

    def ratio(balance: RankBalance) -> Cell:
        slowest, mean = balance.slowest_io_time_s, balance.mean_io_time_s
        times = slowest / mean if slowest is not None and mean else None
        return Cell("unknown" if times is None else format_number(times), times)

    columns = (
        worded("App", "name", limits.path),
        worded("Slowest process", lambda app: rank(app.balance.slowest_rank, app)),
        shows("Its I/O time", "balance.slowest_io_time_s", seconds),
        shows(
            "Mean I/O time",
            lambda app: seconds(
                app.balance.mean_io_time_s, f"median {format_seconds(app.balance.median_io_time_s)}"
            ),
        ),
        shows("Times the mean", lambda app: ratio(app.balance)),
        worded("Moved most bytes", lambda app: rank(app.balance.busiest_rank, app)),
        shows("Its bytes", "balance.busiest_bytes", size),
        shows("Mean bytes", "balance.mean_bytes", size),
        shows("Readers", "balance.reading_processes"),
        shows("Writers", "balance.writing_processes"),
    )
    caption = "How evenly I/O is spread over the processes of each app: the worst process and the mean."
    return table_of("balance", caption, apps, columns, limits.rows)


_MAX_IDLE = 5
"""Maximum number of layers without bytes to name."""


def layer_table(profile: Profile, limits: Limits) -> Table:
    """Library layers in use."""
    every = profile.interfaces or []
    layers = [layer for layer in every if layer.bytes.read != 0 or layer.bytes.written != 0]
    idle = [layer for layer in every if layer not in layers]
    columns = (
        worded("Layer", "layer"),
        worded("App", "app", limits.path),
        shows("Calls", "calls"),
        shows("Read", "bytes.read", size),
        shows("Written", "bytes.written", size),
        shows("Time", "time_s", seconds),
        shows("Files", "files"),
        shows("Transfer size", "granularity.data", known(size)),
        worded("Access", lambda layer: layer.access_pattern or ""),
        worded("Data calls are", lambda layer: _transfer(layer.transfer, layer.collective_share)),
    )
    caption = (
        "Libraries through which the apps did I/O. Bytes are moved by file-system calls under the layer; time is "
        "the time of its calls, including calls below, summed over processes, so times of stacked layers do not "
        "add up. The transfer size is the one that moves most bytes."
    )
    if idle:
        said = [f"{layer.layer} of {clip(layer.app, 40)} ({format_count(layer.calls)} calls)" for layer in idle]
        more = f" and {len(said) - _MAX_IDLE} more" if len(said) > _MAX_IDLE else ""
        caption += f" No bytes are moved through {', '.join(said[:_MAX_IDLE])}{more}."
    return without_empty(table_of("layers", caption, layers, columns, limits.rows))


def _transfer(kind: str | None, collective: float | None) -> str:
    if kind is None:
        return ""
    return kind if collective is None or kind != "mixed" else f"{format_share(collective)} collective"


def phase_table(profile: Profile, limits: Limits) -> Table | None:
    """Phases with the longest I/O time; None if times are unknown."""
    if profile.phases is None:
        return None
    order = sorted(
        profile.phases, key=lambda phase: (-(phase.io.time_s.total or 0.0), -(phase.io.bytes.total or 0))
    )

    def rhythm(phase: Phase) -> Cell:
        if phase.frequency is None:
            return words("unknown")
        return words(phase.frequency.kind, f"{_about(phase.frequency.ops_per_process)} a process")

    columns = (
        worded("App", "app", limits.path),
        shows("Phase", "index"),
        shows("Times", lambda phase: count(phase.count, _distance(phase))),
        worded("Kind", lambda phase: words(phase.kind, _spent(phase))),
        shows("Begins", "start_s", seconds),
        shows("Lasts", lambda phase: seconds(phase.runtime_s / phase.count)),
        shows("Processes", "processes"),
        shows("Read", "io.bytes.read", size),
        shows("Written", "io.bytes.written", size),
        shows("I/O time", "io.time_s.total", seconds),
        worded("Operations come", rhythm),
    )
    most = "I/O time" if any(phase.io.time_s.total is not None for phase in order) else "bytes"
    caption = (
        f"I/O phases, most {most} first, similar ones in one row: when the first begins, how long "
        "one lasts on average, and what all of them read and write; times since the workload began."
    )
    return table_of("phases", caption, order, columns, limits.rows)


def _distance(phase: Phase) -> str:
    period = phase.repeats.period_s if phase.repeats is not None else None
    return "" if period is None else f"{format_seconds(period)} apart"


def _spent(phase: Phase) -> str:
    """How a phase's time was spent, if its kind does not show it."""
    if phase.dominant is None or phase.dominant.kind == phase.kind != "metadata":
        return ""
    if phase.dominant.kind == "metadata":
        doing, share = costliest_metadata(phase)
    else:
        doing, share = _DOING[phase.dominant.kind], phase.dominant.share
    return f"{format_share(share)} of its I/O time {doing}"


def _about(number: float) -> str:
    """Three digits, or all before the decimal point: `0.5`, `12`, `600,000`."""
    return f"{number:,.0f}" if abs(number) >= 1000 else format_number(number)


def dependency_table(profile: Profile, limits: Limits) -> Table | None:
    """Apps and processes that read the output of others; None if the order of calls is unknown."""
    edges = profile.workflow.app_dependencies
    if edges is None:
        return None
    order = sorted(
        edges, key=lambda edge: (-(edge.bytes_read or 0), -edge.files, edge.producer, edge.consumer)
    )
    inside = [
        app for app in _costliest(profile.apps) if app.process_dependencies and app.process_dependencies.edges
    ]

    def between(of: AppDependency | App) -> Cell:
        own = getattr(of, "process_dependencies", None)
        return words("between processes", f"{_SHAPES[own.pattern]}; {_pairs(own)}") if own else words("between apps")

    def files(of: AppDependency | App) -> Cell:
        own = getattr(of, "process_dependencies", of)
        return count(own.files)

    def moved(side: str) -> Callable[[AppDependency | App], Cell]:
        return lambda of: words("") if isinstance(of, App) else size(getattr(of, side))

    columns = (
        worded("Writes", lambda of: of.name if isinstance(of, App) else of.producer, limits.path),
        worded("Reads later", lambda of: of.name if isinstance(of, App) else of.consumer, limits.path),
        worded("Kind", between),
        shows("Files", files),
        shows("Bytes written", moved("bytes_written")),
        shows("Bytes read", moved("bytes_read")),
    )
    caption = "Files that one app or process read after another had written them."
    if order and inside:
        caption += " Bytes are counted between apps, not between the processes of one."
    return without_empty(table_of("dependencies", caption, [*order, *inside], columns, limits.rows))


def _pairs(inside: ProcessDependencies) -> str:
    """`12 pairs`, `12 pairs, 2 of them known by the file only`."""
    by_file = 0
    if inside.edges_by_extents is not None:
        by_file = inside.edges - inside.edges_by_extents
    elif inside.file_level is not None:
        by_file = inside.edges
    pairs = f"{inside.edges} pair{'s' * (inside.edges > 1)}"
    return f"{pairs}, {by_file} of them known by the file only" if by_file else pairs


def folder_table(profile: Profile, limits: Limits) -> Table | None:
    """Folders with the longest metadata time; None if the profile does not list them."""
    folders = profile.folders
    if folders is None:
        return None
    timed = any(folder.metadata_time_s is not None for folder in folders)
    columns = (
        worded("Folder", "path", limits.path),
        shows("Files", "files"),
        shows("Created", "creates"),
        shows("Entries", "entries"),
        shows("Read", "bytes.read", size),
        shows("Written", "bytes.written", size),
        *([shows("Metadata time", "metadata_time_s", seconds)] if timed else []),
    )
    caption = (
        f"Folders of the data set, most metadata {'time' if timed else 'operations'} first. All files of the run are "
        "counted, also those that are not listed. Processes that create or open files in one folder at once wait for "
        "each other there."
    )
    return table_of("folders", caption, folders, columns, limits.rows)


def trace_table(profile: Profile, limits: Limits) -> Table:
    """The traces behind the profile, damaged ones first."""
    traces = sorted(profile.traces, key=lambda trace: trace.complete is not False)

    def complete(trace: TraceEntity) -> Cell:
        state = {None: "unknown", True: "yes", False: "no"}[trace.complete]
        return words(state, _problems(trace.problems, limits))

    columns = (
        worded("Trace", "path", limits.path),
        worded("App", "app", limits.path),
        worded("Written by", lambda trace: f"{clip(trace.tool, 40)} {clip(trace.format, 40)}"),
        shows("Processes", "ranks"),
        shows("Records", "records"),
        worded("Complete", complete),
    )
    return table_of("traces", "Traces behind this report.", traces, columns, limits.rows)


def _problems(problems: Sequence[str], limits: Limits) -> str:
    said = clip("; ".join(problems[:3]), limits.prose // 2)
    return f"{said}; and {format_count(len(problems) - 3)} more" if len(problems) > 3 else said


def _costliest(apps: Sequence[App]) -> list[App]:
    return sorted(apps, key=lambda app: (-(app.io.time_s.total or 0.0), -(app.io.bytes.total or 0), app.name))


def extension_table(profile: Profile, limits: Limits) -> Table | None:
    """Results of plug-in measures, unchanged; None without any."""
    if not profile.extensions:
        return None
    columns = (
        worded("Measure", "measure", limits.path),
        worded("Attribute", "attribute", limits.path),
        worded("Value", lambda row: "unknown" if row.value is None else str(row.value), limits.path),
    )
    rows = list(extension_rows(profile.extensions))
    caption = "Measurements of plug-ins, in their units."
    return without_empty(table_of("extensions", caption, rows, columns, limits.rows))


def diagnosis_table(advice: Advice, limits: Limits) -> Table | None:
    """The program's behaviour, a row per pattern (`docs/diagnosis.md` defines them); None without any."""
    if not advice.diagnosis:
        return None

    def evidence(observation: Observation) -> str:
        return "; ".join(f"{item.attribute} = {item.value}" for item in observation.evidence)

    columns = (
        worded("Pattern", lambda observation: pattern_words(observation.pattern)),
        worded("Where", lambda observation: place(observation) or "the whole run", limits.path),
        shows("Share", "share", share),
        worded("Evidence", evidence, limits.prose),
        worded("Rules", lambda observation: ", ".join(observation.rules)),
    )
    caption = (
        "Patterns, whether or not they cost time: the costliest place of each, the share of the I/O time that all its "
        "places take, and rules that act on it."
    )
    return table_of("diagnosis", caption, advice.diagnosis, columns, limits.rows)
