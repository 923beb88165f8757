"""Plans as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS", "PATH_FORMATS", "PLACE_FORMATS"]

_DOCUMENTS: Final = {"text": (".txt",), "yaml": (".yaml", ".yml"), "json": (".json",)}
_WHOLE: Final = ("json", "yaml")

FORMATS: Final[Formats[str]] = Formats(__name__, _DOCUMENTS, whole=_WHOLE)

PATH_FORMATS: Final[Formats[str]] = Formats(__name__, {**_DOCUMENTS, "map": (".map",), "gekkofwd": ()}, whole=_WHOLE)
"""Of plans of paths, also the forwarding node of each compute node."""

PLACE_FORMATS: Final[Formats[str]] = Formats(__name__, {**_DOCUMENTS, "script": (".sh",)}, whole=_WHOLE)
"""Of plans of OSTs, also the commands that set them."""
