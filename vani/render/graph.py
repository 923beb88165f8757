"""Dependency graphs as DOT (Graphviz) or JSON (node-link)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vani.errors import InputError

__all__ = ["check_suffix", "graph_text"]


def graph_text(graph: Any, path: Path) -> str:
    """Write a networkx.DiGraph in the format that the suffix of `path` names; None only checks the suffix.

    Raises
    ------
    InputError
        The suffix is neither .dot nor .json.
    """
    suffix = path.suffix.lower()
    if suffix not in (".dot", ".json"):
        raise InputError(f"unknown graph format {suffix!r}", where=path, todo="end the name in .dot or .json")
    if graph is None:
        return ""
    if suffix == ".json":
        document = {
            "directed": True,
            "nodes": [{"id": node} for node in graph.nodes],
            "edges": [{"source": a, "target": b, **data} for a, b, data in graph.edges(data=True)],
        }
        return json.dumps(document, indent=1) + "\n"
    lines = ["digraph vani {", "  rankdir=LR;", "  node [shape=box];"]
    lines += [f"  {_quoted(node)};" for node in graph.nodes]
    for a, b, data in graph.edges(data=True):
        label = ", ".join(f"{key}={value}" for key, value in data.items())
        lines.append(f"  {_quoted(a)} -> {_quoted(b)} [label={_quoted(label)}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else " " for c in escaped) + '"'
