"""Advice as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[str]] = Formats(
    __name__, ["text", "yaml", "json", "markdown", "sarif", "csv"], whole=("json", "yaml")
)
"""Each writer receives Vani's `version`, and in `pages` the texts of `vani explain` by rule id."""
