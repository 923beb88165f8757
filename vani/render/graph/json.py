"""A dependency graph as JSON (node-link)."""

from __future__ import annotations

from typing import Any

from vani.schema.syntax.json_writer import json_text


def render(graph: Any, **_: object) -> str:
    """Write a networkx.DiGraph."""
    document = {
        "directed": True,
        "nodes": [{"id": node} for node in graph.nodes],
        "edges": [{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)],
    }
    return json_text(document, indent=1, ascii_only=True, allow_nan=True)
