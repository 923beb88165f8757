"""Verdicts of `vani check`, as text for people and for other programs."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS", "OF_HOSTS"]

FORMATS: Final[Formats[str]] = Formats(
    __name__, ["text", "json", "sarif", "junit", "github", "gitlab"], whole=("json",)
)
"""Each writer receives Vani's `version`."""

OF_HOSTS: Final = ("sarif", "junit", "github", "gitlab")
"""Formats with paths relative to the repository, wherever the command was run; see `repository.py`."""
