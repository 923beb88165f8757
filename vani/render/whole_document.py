"""Formats that are the document itself, with the keys of its schema: the same for every document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from vani.schema.syntax.json_writer import json_text

__all__ = ["WRITERS"]


def _json(document: Any) -> str:
    return json_text(document.model_dump(by_alias=True))


def _yaml(document: Any) -> str:
    return str(document.to_yaml())


WRITERS: Final[Mapping[str, Callable[[Any], Any]]] = {"json": _json, "yaml": _yaml}
"""By the name of the format: a function from a document to its text."""
