"""Advice as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[str]] = Formats(
    __name__, ["text", "yaml", "json", "markdown", "sarif", "csv"], whole=("json", "yaml")
)
"""Each is given Vani's `version`, and as `pages` the texts of `vani explain`, by the ids of rules."""
