"""A dependency graph as DOT (Graphviz)."""

from __future__ import annotations

from typing import Any


def render(graph: Any, **_: object) -> str:
    """Write a networkx.DiGraph; edges with known files but unknown bytes are dashed."""
    lines = ["digraph vani {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for a, b, data in graph.edges(data=True):
        label = ", ".join(f"{key}={'unknown' if value is None else value}" for key, value in data.items())
        # Dependencies that no byte ranges prove are drawn lighter.
        style = ", style=dashed" if data.get("files_by_extents") == 0 else ""
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'
