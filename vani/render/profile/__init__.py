"""A profile as text for people and for other programs."""

from __future__ import annotations

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS = Formats(__name__, ["yaml"])
