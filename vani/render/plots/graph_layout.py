"""Layers of a directed graph, and its drawing: nodes in layers from top to bottom, with curved arrows as edges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vani.render.plots.encoding import chart, number

if TYPE_CHECKING:
    import networkx as nx

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
            _order(layer, graph, _places(ordered))
    return ordered


def _places(ordered: list[list[str]]) -> dict[str, float]:
    return {key: (i + 0.5) / len(layer) for layer in ordered for i, key in enumerate(layer)}


def _order(layer: list[str], graph: nx.DiGraph[str], places: Mapping[str, float]) -> None:
    def wanted(key: str) -> float:
        around = [places[k] for k in (*graph.predecessors(key), *graph.successors(key)) if k not in layer]
        return sum(around) / len(around) if around else places[key]

    layer.sort(key=lambda key: (wanted(key), places[key]))


def drawn(nodes: Sequence[Node], edges: Sequence[Edge]) -> dict[str, Any]:
    """The specification of a graph."""
    by_depth = layers([n.key for n in nodes], edges)
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
    places = [
        {
            "x": number(at[n.key][0]),
            "y": number(at[n.key][1]),
            # Texts start below the circle, however large.
            "below": number(at[n.key][1] + math.sqrt((150 + 750 * n.weight) / math.pi) / _LAYER_PX),
            "name": n.text,
            "detail": n.detail,
            "room": number(room[n.key]),
            "size": number(150 + 750 * n.weight),
            "tip": n.tooltip,
        }
        for n in nodes
    ]
    curves = []
    for i, edge in enumerate(edges):
        (x0, y0), (x1, y1) = at[edge.source], at[edge.target]
        span = abs(y1 - y0)
        # Long edges curve outwards on their side.
        bend = 0.0 if 0.5 < span < 1.5 else 0.09 * (span or 1) * (1 if x0 + x1 >= 1 else -1)
        bend = max(-0.42, min(0.42, bend))
        curves.append(
            {
                "e": i,
                "x0": number(x0),
                "y0": number(y0),
                "xc": number((x0 + x1) / 2 + bend),
                "yc": number((y0 + y1) / 2 + (0 if span > 0.5 else 0.6)),
                "x1": number(x1),
                "y1": number(y1),
                "w": number(1 + 5 * edge.weight),
                "tip": edge.tooltip,
            }
        )
    x = {"field": "x", "type": "quantitative", "scale": {"domain": [0, 1]}, "axis": None}
    # Room for the text below the last layer.
    bottom = max(y for _, y in at.values()) + 0.85
    y = {
        "field": "y",
        "type": "quantitative",
        "scale": {"domain": [-0.25, bottom - 0.25], "reverse": True, "nice": False},
        "axis": None,
    }
    size = {"field": "size", "type": "quantitative", "scale": None}
    tip = {"tooltip": {"field": "tip", "type": "nominal"}}
    edge_layers = [
        {
            "data": {"values": curves},
            "transform": [
                {"calculate": "sequence(0, 1.0001, 0.05)", "as": "t"},
                {"flatten": ["t"]},
                *_BEZIER,
            ],
            "mark": {"type": "line", "style": "edge", "opacity": 0.7},
            "encoding": {
                "x": x,
                "y": y,
                "detail": {"field": "e"},
                "order": {"field": "t"},
                "strokeWidth": {"field": "w", "type": "quantitative", "scale": None},
                **tip,
            },
        },
        {
            "data": {"values": curves},
            "transform": [{"calculate": "0.5", "as": "t"}, *_BEZIER, *_HEADING],
            "mark": {
                "type": "point",
                "shape": "triangle",
                "filled": True,
                "size": 130,
                "style": "arrow",
                "opacity": 1,
            },
            "encoding": {
                "x": x,
                "y": y,
                "angle": {"field": "angle", "type": "quantitative", "scale": None},
                **tip,
            },
        },
    ]
    spec = chart(
        places,
        round(_LAYER_PX * bottom),
        layer=[
            *(edge_layers if edges else []),
            {
                "mark": {"type": "point", "filled": True, "opacity": 1},
                "encoding": {"x": x, "y": y, "size": size, **tip},
            },
            *(
                _text(x, {**y, "field": "below"}, style, field, dy)
                for style in ("halo", "ink")
                for field, dy in (("name", 9), ("detail", 23))
            ),
        ],
    )
    if edges:
        # Angles are measured on the page, and depend on its width.
        spec["params"] = [{"name": "depth", "value": number(bottom)}]
    return spec


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
        "calculate": "90 + 180 / PI * atan2((datum.y1 - datum.y0) * height / depth, (datum.x1 - datum.x0) "
        "* width)",
        "as": "angle",
    }
]


def _text(x: dict[str, Any], y: dict[str, Any], style: str, field: str, dy: int) -> dict[str, Any]:
    return {
        "mark": {
            "type": "text",
            "style": style,
            "dy": dy,
            "fontWeight": "bold" if field == "name" else "normal",
            "limit": {"expr": "min(230, datum.room * width - 6)"},
            "aria": style == "ink",
        },
        "encoding": {"x": x, "y": y, "text": {"field": field}},
    }
