"""Dependencies of apps: which apps read the output of others (paper, Fig. 5b and 6b)."""

from __future__ import annotations

import math

from vani.render.plots.drawing import Drawing, Plot
from vani.render.plots.encoding import NO_TIMES, name
from vani.render.plots.graph_layout import Edge, Node, drawn
from vani.schema.profile import App, Profile
from vani.schema.timeline import HeatMap
from vani.units import counted, format_bytes

KIND, TITLE = "apps", "Dependencies of apps"
_MOST_APPS = 40
_MOST_EDGES = 150
_PATTERNS = {
    "one_to_many": "one process to many",
    "many_to_one": "many processes to one",
    "neighbour": "neighbouring processes",
    "all_to_all": "all processes to all",
    "irregular": "without a pattern",
}


def _draw(profile: Profile, heat: HeatMap | None) -> Drawing | str:
    del heat
    if len(profile.apps) < 2:
        return "the workload is one app; the plot data-flow shows which of its processes share files"
    dependencies = profile.workflow.app_dependencies
    if dependencies is None:
        return NO_TIMES
    moved = {app.name: (app.io.bytes.read or 0) + (app.io.bytes.written or 0) for app in profile.apps}
    linked = {n for d in dependencies for n in (d.producer, d.consumer)}
    order = sorted(profile.apps, key=lambda a: (a.name not in linked, -moved[a.name], a.name))[:_MOST_APPS]
    # In the profile's order, which is by start.
    shown = [app for app in profile.apps if app in order]
    names = {app.name for app in shown}
    edges = sorted(
        (d for d in dependencies if d.producer in names and d.consumer in names),
        key=lambda d: (-(d.bytes_read or 0), -(d.bytes_written or 0), d.producer, d.consumer),
    )[:_MOST_EDGES]
    most, most_read = max(moved.values(), default=0), max((d.bytes_read or 0 for d in edges), default=0)
    spec = drawn(
        [
            Node(
                app.name,
                name(app.name, 24),
                f"{counted(app.processes, 'process')}, {format_bytes(moved[app.name])}",
                _share(moved[app.name], most),
                _tooltip(app),
            )
            for app in shown
        ],
        [
            Edge(
                d.producer,
                d.consumer,
                _share(d.bytes_read or 0, most_read),
                f"{name(d.producer, 24)} to {name(d.consumer, 24)}: {counted(d.files, 'file')}, "
                f"{_moved(d.bytes_written)} written, {_moved(d.bytes_read)} read",
            )
            for d in edges
        ],
    )
    cut = (
        f" Of {len(profile.apps)} apps and {len(dependencies)} dependencies, {len(shown)} and {len(edges)} "
        f"are shown."
        if len(shown) < len(profile.apps) or len(edges) < len(dependencies)
        else ""
    )
    said = "; ".join(
        f"{name(d.producer, 24)} to {name(d.consumer, 24)} {_moved(d.bytes_read)}" for d in edges[:8]
    )
    return Drawing(
        kind=KIND,
        title=TITLE,
        caption="An arrow leads from the app that wrote files to the one that read them later; its width "
        "and the size of a "
        "circle grow with the bytes. Data on one arrow can be kept near both apps, for example on "
        "node-local "
        f"storage.{cut}",
        description=f"{counted(len(profile.apps), 'app')} with "
        f"{counted(len(dependencies), 'dependency')}"
        + (f", most bytes first: {said}." if said else ": no app reads what another one wrote."),
        spec=spec,
        table=(
            ("producer", "consumer", "files", "written (bytes)", "read (bytes)"),
            tuple(
                (name(d.producer, 40), name(d.consumer, 40), d.files, d.bytes_written, d.bytes_read)
                for d in edges
            ),
        ),
    )


def _moved(size: int | None) -> str:
    """Bytes of a dependency; unknown if the trace lacks the calls that moved them."""
    return "unknown bytes" if size is None else format_bytes(size)


def _share(value: int, most: int) -> float:
    """Position 0..1 on a logarithmic scale whose 0 is a millionth of the maximum."""
    return max(0.0, 1 + math.log10(value / most) / 6) if value and most else 0.0


def _tooltip(app: App) -> str:
    own = app.process_dependencies
    inside = (
        f"; its processes depend on each other: {_PATTERNS.get(own.pattern, own.pattern)} "
        f"({counted(own.edges, 'pair')}, {counted(own.files, 'file')})"
        if own is not None and own.edges
        else ""
    )
    return (
        f"{name(app.name)}: {format_bytes(app.io.bytes.read)} read, {format_bytes(app.io.bytes.written)} "
        f"written, "
        f"{'unknown files' if app.files.total is None else counted(app.files.total, 'file')}{inside}"
    )


PLOT = Plot(KIND, TITLE, "which app reads what which other one wrote", _draw, position=70)
