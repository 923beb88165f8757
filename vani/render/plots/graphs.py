"""Plots of dependencies: apps that read the output of others, and files that processes write and read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vani.render.plots import encoding
from vani.render.plots.drawing import Drawing, plot
from vani.schema.profile import App, Profile
from vani.schema.timeline import FileUse, HeatMap
from vani.units import counted, format_bytes

if TYPE_CHECKING:
    import networkx as nx


def _across() -> dict[str, Any]:
    """Horizontal position 0..1."""
    return encoding.quantity("x", scale={"domain": [0, 1]}, axis=None)


def _down(top: float, bottom: float) -> dict[str, Any]:
    """Vertical position, from the top."""
    return encoding.quantity("y", scale={"domain": [top, bottom], "reverse": True, "nice": False}, axis=None)


def _curve(steps: float, *formulas: dict[str, Any]) -> list[dict[str, Any]]:
    """Transformations that make a line of each edge: points at `t` from 0 to 1."""
    return [{"calculate": f"sequence(0, 1.0001, {steps})", "as": "t"}, {"flatten": ["t"]}, *formulas]


# --- apps (paper, Fig. 5b and 6b) --------------------------------------------------------------------

_MAX_APPS, _MAX_EDGES = 40, 150
_PATTERNS = {
    "one_to_many": "one process to many",
    "many_to_one": "many processes to one",
    "neighbour": "neighbouring processes",
    "all_to_all": "all processes to all",
    "irregular": "without a pattern",
}


@plot("apps", "Dependencies of apps", "which app reads what which other one wrote", position=70)
def apps(profile: Profile) -> Drawing | str:
    """Which apps read the output of others."""
    if len(profile.apps) < 2:
        return "the workload is one app; the plot data-flow shows which of its processes share files"
    dependencies = profile.workflow.app_dependencies
    if dependencies is None:
        return encoding.NO_TIMES
    moved = {app.name: (app.io.bytes.read or 0) + (app.io.bytes.written or 0) for app in profile.apps}
    linked = {n for d in dependencies for n in (d.producer, d.consumer)}
    order = sorted(profile.apps, key=lambda a: (a.name not in linked, -moved[a.name], a.name))[:_MAX_APPS]
    # In the profile's order, which is by start.
    shown = [app for app in profile.apps if app in order]
    names = {app.name for app in shown}
    edges = sorted(
        (d for d in dependencies if d.producer in names and d.consumer in names),
        key=lambda d: (-(d.bytes_read or 0), -(d.bytes_written or 0), d.producer, d.consumer),
    )[:_MAX_EDGES]
    most, most_read = max(moved.values(), default=0), max((d.bytes_read or 0 for d in edges), default=0)
    nodes = [
        Node(
            app.name,
            encoding.name(app.name, 24),
            f"{counted(app.processes, 'process')}, {format_bytes(moved[app.name])}",
            encoding.logarithmic(moved[app.name], most),
            _tooltip(app),
        )
        for app in shown
    ]
    arrows = [
        Edge(
            d.producer,
            d.consumer,
            encoding.logarithmic(d.bytes_read or 0, most_read),
            f"{encoding.name(d.producer, 24)} to {encoding.name(d.consumer, 24)}: {counted(d.files, 'file')}, "
            f"{_moved(d.bytes_written)} written, {_moved(d.bytes_read)} read",
        )
        for d in edges
    ]
    cut, all_ = "", f"{len(profile.apps)} apps and {len(dependencies)} dependencies"
    if len(shown) < len(profile.apps) or len(edges) < len(dependencies):
        cut = f" Of {all_}, {len(shown)} and {len(edges)} are shown."
    said = "; ".join(
        f"{encoding.name(d.producer, 24)} to {encoding.name(d.consumer, 24)} {_moved(d.bytes_read)}" for d in edges[:8]
    )
    return Drawing(
        caption="An arrow leads from the app that wrote files to the one that read them later; its width and the size "
        "of a circle grow with the bytes. Data on one arrow can be kept near both apps, for example on node-local "
        f"storage.{cut}",
        description=f"{counted(len(profile.apps), 'app')} with {counted(len(dependencies), 'dependency')}"
        + (f", most bytes first: {said}." if said else ": no app reads what another one wrote."),
        spec=_graph(nodes, arrows),
        table=(
            ("producer", "consumer", "files", "written (bytes)", "read (bytes)"),
            tuple(
                (encoding.name(d.producer, 40), encoding.name(d.consumer, 40), d.files, d.bytes_written, d.bytes_read)
                for d in edges
            ),
        ),
    )


def _moved(size: int | None) -> str:
    """Bytes of a dependency; unknown if the trace lacks the calls that moved them."""
    return "unknown bytes" if size is None else format_bytes(size)


def _tooltip(app: App) -> str:
    own = app.process_dependencies
    inside = ""
    if own is not None and own.edges:
        amount = f"({counted(own.edges, 'pair')}, {counted(own.files, 'file')})"
        inside = f"; its processes depend on each other: {_PATTERNS.get(own.pattern, own.pattern)} {amount}"
    files = "unknown files" if app.files.total is None else counted(app.files.total, "file")
    return (
        f"{encoding.name(app.name)}: {format_bytes(app.io.bytes.read)} read, {format_bytes(app.io.bytes.written)} "
        f"written, {files}{inside}"
    )


# --- layers of a directed graph, from top to bottom, with curved arrows ------------------------------

_SWEEPS = 4
_LAYER_PX = 92
_SIDE = 0.12
# Neighbours in a full layer alternate in height, so that their texts fit.
_FULL, _LOWER = 3, 0.33


@dataclass(frozen=True)
class Node:
    """A circle with up to two lines of text below it; `weight` 0..1 sets its size."""

    key: str
    text: str
    detail: str
    weight: float
    tooltip: str


@dataclass(frozen=True)
class Edge:
    """An arrow; `weight` 0..1 sets its width."""

    source: str
    target: str
    weight: float
    tooltip: str


def layers(keys: Sequence[str], edges: Sequence[Edge]) -> list[list[str]]:
    """Assign nodes to layers, each below all that it depends on except for cycles, with few crossings.

    A cycle is broken at the edge that returns to an earlier one of `keys`, which are in the order of their starts.
    The order within a layer comes from the mean position of neighbours in adjacent layers (barycenter heuristic of
    Sugiyama et al., 1981).
    """
    import networkx as nx  # noqa: PLC0415 - a moment that lists of plots need not wait for

    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(keys)
    graph.add_edges_from((e.source, e.target) for e in edges if e.source != e.target)
    place = {key: i for i, key in enumerate(keys)}
    for cycle in list(nx.strongly_connected_components(graph)):
        graph.remove_edges_from([(a, b) for a, b in graph.edges(cycle) if b in cycle and place[b] < place[a]])
    ordered = [sorted(layer, key=place.__getitem__) for layer in nx.topological_generations(graph)]
    for sweep in range(_SWEEPS):
        for layer in ordered if sweep % 2 == 0 else ordered[::-1]:
            _order(layer, graph, {key: (i + 0.5) / len(some) for some in ordered for i, key in enumerate(some)})
    return ordered


def _order(layer: list[str], graph: nx.DiGraph[str], places: Mapping[str, float]) -> None:
    def wanted(key: str) -> float:
        around = [places[k] for k in (*graph.predecessors(key), *graph.successors(key)) if k not in layer]
        return sum(around) / len(around) if around else places[key]

    layer.sort(key=lambda key: (wanted(key), places[key]))


def _graph(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Any]:
    """The specification of a graph."""
    at, room = _positions(layers([n.key for n in nodes], edges))
    places = [
        {
            "x": encoding.number(at[n.key][0]),
            "y": encoding.number(at[n.key][1]),
            # Texts start below the circle, however large.
            "below": encoding.number(at[n.key][1] + math.sqrt((150 + 750 * n.weight) / math.pi) / _LAYER_PX),
            "name": n.text,
            "detail": n.detail,
            "room": encoding.number(room[n.key]),
            "size": encoding.number(150 + 750 * n.weight),
            "tip": n.tooltip,
        }
        for n in nodes
    ]
    curves = {"values": [_bent(i, edge, at) for i, edge in enumerate(edges)]}
    # Room for the text below the last layer.
    bottom = max(y for _, y in at.values()) + 0.85
    x, y = _across(), _down(-0.25, bottom - 0.25)
    tip = {"tooltip": encoding.category("tip")}
    lines = {
        "data": curves,
        "transform": _curve(0.05, *_BEZIER),
        "mark": {"type": "line", "style": "edge", "opacity": 0.7},
        "encoding": {
            "x": x,
            "y": y,
            "detail": {"field": "e"},
            "order": {"field": "t"},
            "strokeWidth": encoding.quantity("w", scale=None),
            **tip,
        },
    }
    heads = {
        "data": curves,
        "transform": [{"calculate": "0.5", "as": "t"}, *_BEZIER, *_HEADING],
        "mark": {"type": "point", "shape": "triangle", "filled": True, "size": 130, "style": "arrow", "opacity": 1},
        "encoding": {"x": x, "y": y, "angle": encoding.quantity("angle", scale=None), **tip},
    }
    circles = {
        "mark": {"type": "point", "filled": True, "opacity": 1},
        "encoding": {"x": x, "y": y, "size": encoding.quantity("size", scale=None), **tip},
    }
    below, limit = {"x": x, "y": {**y, "field": "below"}}, {"expr": "min(230, datum.room * width - 6)"}
    texts = [
        _text(style, below, field, dy=dy, fontWeight="bold" if field == "name" else "normal", limit=limit)
        for style in ("halo", "ink")
        for field, dy in (("name", 9), ("detail", 23))
    ]
    spec = encoding.chart(
        places, round(_LAYER_PX * bottom), layer=[*([lines, heads] if edges else []), circles, *texts]
    )
    if edges:
        # Angles are measured on the page, and depend on its width.
        spec["params"] = [{"name": "depth", "value": encoding.number(bottom)}]
    return spec


def _text(style: str, at: dict[str, Any], field: str, **mark: Any) -> dict[str, Any]:
    """A layer of texts: first their halo, which covers lines, then their ink, which alone is read out."""
    return {
        "mark": {"type": "text", "style": style, **mark, "aria": style == "ink"},
        "encoding": {**at, "text": {"field": field}},
    }


def _positions(by_depth: Sequence[Sequence[str]]) -> tuple[dict[str, tuple[float, float]], dict[str, float]]:
    """Position of each node, and the share of the width for its texts."""
    at: dict[str, tuple[float, float]] = {}
    room: dict[str, float] = {}
    for depth, layer in enumerate(by_depth):
        # Nodes of a full layer have two heights.
        room |= dict.fromkeys(layer, min(1.0, (2 if len(layer) > _FULL else 1) / len(layer)))
        for i, key in enumerate(layer):
            across = (i + 0.5) / len(layer)
            if len(layer) == 1 and len(by_depth) > 2:
                # A chain zigzags, so that edges that skip a node do not run through it.
                across += _SIDE if depth % 2 else -_SIDE
            at[key] = (across, depth + (_LOWER if len(layer) > _FULL and i % 2 else 0.0))
    return at, room


def _bent(i: int, edge: Edge, at: Mapping[str, tuple[float, float]]) -> dict[str, Any]:
    (x0, y0), (x1, y1) = at[edge.source], at[edge.target]
    span = abs(y1 - y0)
    # Long edges curve outwards on their side.
    bend = 0.0 if 0.5 < span < 1.5 else 0.09 * (span or 1) * (1 if x0 + x1 >= 1 else -1)
    bend = max(-0.42, min(0.42, bend))
    ends = {"x0": x0, "y0": y0, "xc": (x0 + x1) / 2 + bend, "yc": (y0 + y1) / 2 + (0 if span > 0.5 else 0.6)}
    places = {**ends, "x1": x1, "y1": y1, "w": 1 + 5 * edge.weight}
    return {"e": i, **{key: encoding.number(value) for key, value in places.items()}, "tip": edge.tooltip}


_BEZIER = [
    {
        "calculate": f"pow(1 - datum.t, 2) * datum.{c}0 + 2 * datum.t * (1 - datum.t) * datum.{c}c + "
        f"pow(datum.t, 2) * datum.{c}1",
        "as": c,
    }
    for c in "xy"
]
_HEADING = [
    {
        # The triangle points up at angle 0; in the middle of a curve it has the direction of the chord.
        "calculate": "90 + 180 / PI * atan2((datum.y1 - datum.y0) * height / depth, (datum.x1 - datum.x0) * width)",
        "as": "angle",
    }
]

# --- files (paper, Fig. 1b to 4b) --------------------------------------------------------------------

_MAX_FILES, _MAX_FLOW_APPS = 14, 14
_ROW_PX = 52
_LEFT, _MIDDLE, _RIGHT = 0.04, 0.5, 0.96
_SIDES = ("write", "read")


@dataclass(frozen=True)
class _Link:
    """Use of files by an app in one direction."""

    app: str
    files: str
    side: str
    processes: int
    bytes: int


@plot(
    "data-flow",
    "Which processes use which files",
    "which processes write and read which files",
    position=80,
    needs="data",
)
def data_flow(profile: Profile, heat: HeatMap) -> Drawing | str:
    """Files that processes write and read: the data dependencies of processes."""
    links = [link for use in heat.uses for link in _links(use)]
    if not links:
        return "no data was read or written"
    moved = _sums((link.files, link.bytes) for link in links)
    files = [f for f in _most(moved, len(moved)) if f][:_MAX_FILES]
    links = [link for link in links if link.files in files]
    sides = {
        side: _most(_sums((link.app, link.bytes) for link in links if link.side == side), _MAX_FLOW_APPS)
        for side in _SIDES
    }
    left_out = len(moved) - len(files)
    total = {app.name: app.processes for app in profile.apps}
    said = "; ".join(
        f"{encoding.tail(f)}: " + ", ".join(_words(link, total) for link in links if link.files == f) for f in files[:8]
    )
    return Drawing(
        caption="From the processes that write (left) through files (middle; # means numbers that differ) to those "
        "that read (right); lines grow with the bytes. Look for one writer among many processes, for files that all "
        "read, and for files that pass data on."
        + (f" {counted(left_out, 'pattern')} with fewer bytes are left out." if left_out > 0 else ""),
        description=f"{counted(len(files), 'group')} of files. {said}.",
        spec=_flow(heat, total, files, sides, [link for link in links if link.app in sides[link.side]]),
        table=(
            ("files", "number of files", "app", "readers", "writers", "read (bytes)", "written (bytes)"),
            tuple(
                (
                    encoding.name(u.pattern, 80) if u.pattern else "all others", u.files, encoding.name(u.app, 40),
                    u.readers, u.writers,
                    u.bytes_read, u.bytes_written,
                )
                for u in heat.uses[:200]
            ),
        ),
    )  # fmt: skip


def _links(use: FileUse) -> list[_Link]:
    both = (("write", use.writers, use.bytes_written), ("read", use.readers, use.bytes_read))
    return [_Link(use.app, use.pattern, side, processes, moved) for side, processes, moved in both if processes]


def _sums(amounts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for key, amount in amounts:
        sums[key] = sums.get(key, 0) + amount
    return sums


def _most(sums: Mapping[str, int], most: int) -> list[str]:
    """The keys with the largest sums."""
    return sorted(sums, key=lambda key: (-sums[key], key))[:most]


def _words(link: _Link, total: Mapping[str, int]) -> str:
    who = f"{encoding.name(link.app, 24)} " if len(total) > 1 else ""
    verb = f"{link.side}s" if link.processes == 1 else link.side
    processes = total.get(link.app, link.processes)
    of = counted(link.processes, "process")
    if processes != link.processes:
        of = f"{link.processes:,} of {processes:,} processes"
    return f"{who}{of} {verb} {format_bytes(link.bytes)}"


def _detail(files: int, links: list[_Link]) -> str:
    """`20 files: 20 processes write, 33 read`."""
    some = {side: sum(link.processes for link in links if link.side == side) for side in _SIDES}
    parts = [f"{n:,} {side}{'s' if n == 1 else ''}" for side, n in some.items() if n]
    # Name the noun only once: `9 processes write, 1 reads`.
    first = next(n for n in some.values() if n)
    parts[0] = parts[0].replace(f"{first:,}", counted(first, "process"), 1)
    return (f"{files:,} files: " if files > 1 else "") + ", ".join(parts)


def _flow(
    heat: HeatMap, total: Mapping[str, int], files: list[str], sides: dict[str, list[str]], links: list[_Link]
) -> dict[str, Any]:
    height = max(len(files), *(len(some) for some in sides.values()), 1)
    place = {f: (i + 0.5) * height / len(files) for i, f in enumerate(files)}
    number_of = {u.pattern: u.files for u in heat.uses}
    column = {"write": _LEFT, "read": _RIGHT}
    nodes: list[dict[str, Any]] = []
    at: dict[tuple[str, str], float] = {}

    def put(side: str, x: float, y: float, words: str, detail: str) -> None:
        nodes.append({"x": x, "y": encoding.number(y), "text": words, "detail": detail, "side": side})

    for side, some in sides.items():
        # Put each app at the height of its files, then space the apps evenly in that order.
        heights = {
            app: [place[link.files] for link in links if link.app == app and link.side == side] for app in some
        }
        for i, app in enumerate(sorted(some, key=lambda a: (sum(heights[a]) / len(heights[a]), a))):
            at[side, app] = (i + 0.5) * height / len(some)
            put(side, column[side], at[side, app], encoding.name(app, 18), counted(total.get(app, 0), "process"))
    for f in files:
        detail = _detail(number_of.get(f, 1), [link for link in links if link.files == f])
        put("file", _MIDDLE, place[f], encoding.tail(f, 30), detail)
    most = max(link.bytes for link in links)
    curves = [
        {
            "e": i,
            "x0": column[link.side],
            "y0": encoding.number(at[link.side, link.app]),
            "y1": encoding.number(place[link.files]),
            "w": encoding.number(1 + 7 * encoding.logarithmic(link.bytes, most)),
            "kind": link.side,
            "tip": f"{_words(link, total)}: {encoding.tail(link.files, 60)}",
        }
        for i, link in enumerate(links)
    ]
    x, y = _across(), _down(0, encoding.number(height))
    legend = {"title": None, "values": [s for s in ("read", "write") if sides[s]], "symbolType": "stroke"}
    lines = {
        "data": {"values": curves},
        "transform": _curve(
            0.0625,
            {"calculate": f"datum.x0 + ({_MIDDLE} - datum.x0) * datum.t", "as": "x"},
            {"calculate": "datum.y0 + (datum.y1 - datum.y0) * datum.t * datum.t * (3 - 2 * datum.t)", "as": "y"},
        ),
        "mark": {"type": "line", "opacity": 0.65},
        "encoding": {
            "x": x,
            "y": y,
            "detail": {"field": "e"},
            "order": {"field": "t"},
            "color": encoding.category("kind", scale={"domain": list(encoding.KINDS)}, legend=legend),
            "strokeWidth": encoding.quantity("w", scale=None),
            "tooltip": encoding.category("tip"),
        },
    }
    shapes = {"domain": ["write", "file", "read"], "range": ["circle", "square", "circle"]}
    points = {
        "data": {"values": nodes},
        "mark": {"type": "point", "filled": True, "opacity": 1, "size": 110, "style": "arrow"},
        "encoding": {"x": x, "y": y, "shape": encoding.category("side", scale=shapes, legend=None)},
    }
    texts = [
        {
            "data": {"values": [{k: v[k] for k in ("x", "y", field)} for v in nodes if v["side"] == side]},
            # Names at the sides and files in the middle share the width of a narrow page.
            **_text(
                style, {"x": x, "y": y}, field, align=align, dy=dy, dx=dx,
                limit={"expr": f"min(210, {0.26 if dx else 0.42} * width)"},
            ),
        }
        for side, align, dx in (("write", "left", -6), ("file", "center", 0), ("read", "right", 6))
        if side == "file" or sides[side]
        for field, dy in (("text", -12), ("detail", 15))
        for style in ("halo", "ink")
    ]
    return encoding.chart([], max(110, _ROW_PX * height), layer=[lines, points, *texts])
