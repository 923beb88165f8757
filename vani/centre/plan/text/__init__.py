"""Plans as text for people and for other programs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from vani.render.formats import Formats

if TYPE_CHECKING:
    from vani.centre.plan.schema import Plan

__all__ = ["FORMATS", "PATH_FORMATS", "PLACE_FORMATS", "left_out"]

_DOCUMENTS: Final = {"text": (".txt",), "yaml": (".yaml", ".yml"), "json": (".json",)}
_WHOLE: Final = ("json", "yaml")

FORMATS: Final[Formats[str]] = Formats.in_folder(__name__, _DOCUMENTS, whole=_WHOLE)

PATH_FORMATS: Final[Formats[str]] = Formats.in_folder(
    __name__, {**_DOCUMENTS, "map": (".map",), "gekkofwd": ()}, whole=_WHOLE
)
"""Formats of path plans, including the forwarding node of each compute node."""

PLACE_FORMATS: Final[Formats[str]] = Formats.in_folder(__name__, {**_DOCUMENTS, "script": (".sh",)}, whole=_WHOLE)
"""Formats of OST plans, including the commands that apply them."""


def left_out(plan: Plan) -> str | None:
    """The first line of a plan that leaves something out; None for a complete plan."""
    parts = import_module(f"vani.centre.plan.text.kinds.{plan.kind}").missing(plan)
    return f"Incomplete: {', '.join(parts)}." if parts else None
