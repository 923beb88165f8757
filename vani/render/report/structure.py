"""Tables of a workload's parts: apps and their balance, layers, phases, dependencies, folders, traces."""

from __future__ import annotations

from collections.abc import Sequence

from vani.render.answers import costliest_metadata
from vani.render.report.bounds import Limits, clip
from vani.render.report.tables import (
    Cell,
    Column,
    Row,
    Table,
    count,
    seconds,
    share,
    size,
    without_empty,
    words,
)  # fmt: skip
from vani.schema.extensions import extension_rows
from vani.schema.profile import App, Phase, ProcessDependencies, Profile, RankBalance
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
    apps = _costliest(profile.apps)
    rows = tuple(
        Row(
            (
                words(clip(app.name, limits.path), f"{app.instances} traces" if app.instances > 1 else ""),
                count(app.processes),
                seconds(app.runtime_s),
                share(app.io_time_share),
                size(app.io.bytes.read),
                size(app.io.bytes.written),
                count(app.files.total),
                count(app.files.shared),
                words(app.interface or "none"),
            )
        )
        for app in apps[: limits.rows]
    )
    columns = (
        Column("App"),
        Column("Processes", number=True),
        Column("Run time", number=True),
        Column("I/O share of its run", number=True),
        Column("Read", number=True),
        Column("Written", number=True),
        Column("Files", number=True),
        Column("Shared files", number=True),
        Column("Main layer"),
    )
    return Table(
        "apps", "Apps of the workload, most I/O time first.", columns, rows, max(0, len(apps) - limits.rows)
    )


def balance_table(profile: Profile, limits: Limits) -> Table:
    """The worst process and the mean, for every app with several processes."""
    apps = [
        app
        for app in _costliest(profile.apps)
        if app.balance is not None and app.processes > 1 and app.io.ops.all
    ]
    rows = tuple(
        _balance_row(app, app.balance, limits) for app in apps[: limits.rows] if app.balance is not None
    )
    columns = (
        Column("App"),
        Column("Slowest process"),
        Column("Its I/O time", number=True),
        Column("Mean I/O time", number=True),
        Column("Times the mean", number=True),
        Column("Moved most bytes"),
        Column("Its bytes", number=True),
        Column("Mean bytes", number=True),
        Column("Readers", number=True),
        Column("Writers", number=True),
    )
    caption = "How evenly I/O is spread over the processes of each app: the worst process and the mean."
    return Table("balance", caption, columns, rows, max(0, len(apps) - limits.rows))


def _balance_row(app: App, balance: RankBalance, limits: Limits) -> Row:
    slowest, mean = balance.slowest_io_time_s, balance.mean_io_time_s
    among = f"in one of {format_count(app.instances)} traces" if app.instances > 1 else ""
    ratio = slowest / mean if slowest is not None and mean else None
    return Row(
        (
            words(clip(app.name, limits.path)),
            words("unknown" if balance.slowest_rank is None else f"rank {balance.slowest_rank}", among),
            seconds(slowest),
            seconds(mean, f"median {format_seconds(balance.median_io_time_s)}"),
            Cell("unknown" if ratio is None else format_number(ratio), ratio),
            words(f"rank {balance.busiest_rank}", among),
            size(balance.busiest_bytes),
            size(balance.mean_bytes),
            count(balance.reading_processes),
            count(balance.writing_processes),
        )
    )


_IDLE = 5
"""Maximum number of layers without bytes to name."""


def layer_table(profile: Profile, limits: Limits) -> Table:
    """Library layers in use."""
    every = profile.interfaces or []
    layers = [layer for layer in every if layer.bytes.read != 0 or layer.bytes.written != 0]
    idle = [layer for layer in every if layer not in layers]
    rows = tuple(
        Row(
            (
                words(layer.layer),
                words(clip(layer.app, limits.path)),
                count(layer.calls),
                size(layer.bytes.read),
                size(layer.bytes.written),
                seconds(layer.time_s),
                count(layer.files),
                words("") if layer.granularity.data is None else size(layer.granularity.data),
                words(layer.access_pattern or ""),
                words(_transfer(layer.transfer, layer.collective_share)),
            )
        )
        for layer in layers[: limits.rows]
    )
    columns = (
        Column("Layer"),
        Column("App"),
        Column("Calls", number=True),
        Column("Read", number=True),
        Column("Written", number=True),
        Column("Time", number=True),
        Column("Files", number=True),
        Column("Transfer size", number=True),
        Column("Access"),
        Column("Data calls are"),
    )
    caption = (
        "Libraries through which the apps did I/O. Bytes are moved by file-system calls under the layer; time is "
        "the time of its calls, including calls below, summed over processes, so times of stacked layers do not "
        "add up. The transfer size is the one that moves most bytes."
    )
    if idle:
        said = [
            f"{layer.layer} of {clip(layer.app, 40)} ({format_count(layer.calls)} calls)" for layer in idle
        ]
        more = f" and {len(said) - _IDLE} more" if len(said) > _IDLE else ""
        caption += f" No bytes are moved through {', '.join(said[:_IDLE])}{more}."
    return without_empty(Table("layers", caption, columns, rows, max(0, len(layers) - limits.rows)))


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
    rows = tuple(_phase_row(phase, limits) for phase in order[: limits.rows])
    columns = (
        Column("App"),
        Column("Phase", number=True),
        Column("Times", number=True),
        Column("Kind"),
        Column("Begins", number=True),
        Column("Lasts", number=True),
        Column("Processes", number=True),
        Column("Read", number=True),
        Column("Written", number=True),
        Column("I/O time", number=True),
        Column("Operations come"),
    )
    most = "I/O time" if any(phase.io.time_s.total is not None for phase in order) else "bytes"
    caption = (
        f"I/O phases, most {most} first, similar ones in one row: when the first begins, how long "
        "one lasts on average, and what all of them read and write; times since the workload began."
    )
    return Table("phases", caption, columns, rows, max(0, len(order) - limits.rows))


def _phase_row(phase: Phase, limits: Limits) -> Row:
    return Row(
        (
            words(clip(phase.app, limits.path)),
            count(phase.index),
            count(phase.count, _distance(phase)),
            words(phase.kind, _spent(phase)),
            seconds(phase.start_s),
            seconds(phase.runtime_s / phase.count),
            count(phase.processes),
            size(phase.io.bytes.read),
            size(phase.io.bytes.written),
            seconds(phase.io.time_s.total),
            words("unknown")
            if phase.frequency is None
            else words(phase.frequency.kind, f"{_about(phase.frequency.ops_per_process)} a process"),
        )
    )


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
    rows = [
        Row(
            (
                words(clip(edge.producer, limits.path)),
                words(clip(edge.consumer, limits.path)),
                words("between apps"),
                count(edge.files),
                size(edge.bytes_written),
                size(edge.bytes_read),
            )
        )
        for edge in order
    ]
    for app in _costliest(profile.apps):
        inside = app.process_dependencies
        if inside is None or not inside.edges:
            continue
        name = words(clip(app.name, limits.path))
        shape = words("between processes", f"{_SHAPES[inside.pattern]}; {_pairs(inside)}")
        rows.append(Row((name, name, shape, count(inside.files), words(""), words(""))))
    columns = (
        Column("Writes"),
        Column("Reads later"),
        Column("Kind"),
        Column("Files", number=True),
        Column("Bytes written", number=True),
        Column("Bytes read", number=True),
    )
    caption = "Files that one app or process read after another had written them."
    if order and len(rows) > len(order):
        caption += " Bytes are counted between apps, not between the processes of one."
    table = Table(
        "dependencies", caption, columns, tuple(rows[: limits.rows]), max(0, len(rows) - limits.rows)
    )
    return without_empty(table)


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
    rows = []
    for folder in folders[: limits.rows]:
        cells = [
            words(clip(folder.path, limits.path)),
            count(folder.files),
            count(folder.creates),
            count(folder.entries),
            size(folder.bytes.read),
            size(folder.bytes.written),
        ]
        rows.append(Row((*cells, seconds(folder.metadata_time_s)) if timed else tuple(cells)))
    columns = [
        Column("Folder"),
        Column("Files", number=True),
        Column("Created", number=True),
        Column("Entries", number=True),
        Column("Read", number=True),
        Column("Written", number=True),
    ]
    if timed:
        columns.append(Column("Metadata time", number=True))
    caption = (
        f"Folders of the data set, most metadata {'time' if timed else 'operations'} first. All files of the run are "
        "counted, also those that are not listed. Processes that create or open files in one folder at once wait for "
        "each other there."
    )
    return Table("folders", caption, tuple(columns), tuple(rows), max(0, len(folders) - limits.rows))


def trace_table(profile: Profile, limits: Limits) -> Table:
    """The traces behind the profile, damaged ones first."""
    traces = sorted(profile.traces, key=lambda trace: trace.complete is not False)
    rows = tuple(
        Row(
            (
                words(clip(trace.path, limits.path)),
                words(clip(trace.app, limits.path)),
                words(f"{clip(trace.tool, 40)} {clip(trace.format, 40)}"),
                count(trace.ranks),
                count(trace.records),
                words(
                    "unknown" if trace.complete is None else "yes" if trace.complete else "no",
                    _problems(trace.problems, limits),
                ),
            )
        )
        for trace in traces[: limits.rows]
    )
    columns = (
        Column("Trace"),
        Column("App"),
        Column("Written by"),
        Column("Processes", number=True),
        Column("Records", number=True),
        Column("Complete"),
    )
    return Table("traces", "Traces behind this report.", columns, rows, max(0, len(traces) - limits.rows))


def _problems(problems: Sequence[str], limits: Limits) -> str:
    said = clip("; ".join(problems[:3]), limits.prose // 2)
    return f"{said}; and {format_count(len(problems) - 3)} more" if len(problems) > 3 else said


def _costliest(apps: Sequence[App]) -> list[App]:
    return sorted(apps, key=lambda app: (-(app.io.time_s.total or 0.0), -(app.io.bytes.total or 0), app.name))


def extension_table(profile: Profile, limits: Limits) -> Table | None:
    """Results of plug-in measures, unchanged; None without any."""
    if not profile.extensions:
        return None
    plug_in_rows = list(extension_rows(profile.extensions))
    rows = tuple(
        Row(
            (
                words(clip(row.measure, limits.path)),
                words(clip(row.attribute, limits.path)),
                words("unknown" if row.value is None else clip(str(row.value), limits.path)),
            )
        )
        for row in plug_in_rows[: limits.rows]
    )
    columns = (Column("Measure"), Column("Attribute"), Column("Value"))
    caption = "Measurements of plug-ins, in their units."
    return without_empty(Table("extensions", caption, columns, rows, max(0, len(plug_in_rows) - limits.rows)))
