"""What changed between two runs, as text for people and for other programs."""

from __future__ import annotations

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS = Formats(__name__, ["text", "markdown", "json"])
"""Each is told by `everything` whether differences within the tolerance are wanted."""
