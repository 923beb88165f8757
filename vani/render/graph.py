"""Dependency graphs as DOT (Graphviz) or JSON (node-link)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vani.errors import InputError
from vani.render.json_text import json_text

__all__ = ["check_suffix", "graph_text"]


def check_suffix(path: Path) -> str:
    """Return the graph format that the suffix of `path` names, `.dot` or `.json`.

    Raises
    ------
    InputError
        It names neither.
    """
    suffix = path.suffix.lower()
    if suffix not in (".dot", ".json"):
        raise InputError(f"unknown graph format {suffix!r}", where=path, todo="end the name in .dot or .json")
    return suffix


def graph_text(graph: Any, path: Path) -> str:
    """Write a networkx.DiGraph in the format that the suffix of `path` names; see `check_suffix`.

    DOT draws edges dashed of which only the files are known, not the bytes.
    """
    if check_suffix(path) == ".json":
        document = {
            "directed": True,
            "nodes": [{"id": node} for node in graph.nodes],
            "edges": [{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)],
        }
        return json_text(document, indent=1, ascii_only=True, allow_nan=True)
    lines = ["digraph vani {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for a, b, data in graph.edges(data=True):
        label = ", ".join(f"{key}={'unknown' if value is None else value}" for key, value in data.items())
        # What no extents prove is drawn lighter.
        style = ", style=dashed" if data.get("files_by_extents") == 0 else ""
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(label)}{style}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'
