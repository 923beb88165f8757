"""Predictions as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[str]] = Formats.in_folder(
    __name__, {"text": (".txt",), "yaml": (".yaml", ".yml"), "json": (".json",)}, whole=("json", "yaml")
)
