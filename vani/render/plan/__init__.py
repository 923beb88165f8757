"""Plans as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS", "PATH_FORMATS"]

_DOCUMENTS: Final = {"text": (".txt",), "yaml": (".yaml", ".yml"), "json": (".json",)}

FORMATS: Final[Formats[str]] = Formats(__name__, _DOCUMENTS)

PATH_FORMATS: Final[Formats[str]] = Formats(__name__, {**_DOCUMENTS, "map": (".map",), "gekkofwd": ()})
"""Of plans of paths, also the forwarding node of each compute node."""
