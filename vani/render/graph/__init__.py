"""Dependency graphs for other programs: Graphviz, and readers of node-link JSON."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[str]] = Formats(__name__, ["dot", "json"], what="graph")
