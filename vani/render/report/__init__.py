"""A report on one workload for people: `prepare` chooses its contents, and a module per format writes it."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS", "WITH_PLOTS"]

FORMATS: Final[Formats[str]] = Formats(
    __name__, {"html": (".html", ".htm"), "markdown": (".md", ".markdown"), "txt": (".txt",)}
)

WITH_PLOTS: Final = ("html",)
"""Formats that show plots, some of which need the decoded calls."""
