"""Plots as files: vector and pixel images of a given width on paper, and the specification itself."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[bytes]] = Formats(__name__, ["svg", "png", "json"], what="image")
"""Each writer takes `width_mm`, the width on paper, and `dark`, for a dark background; png also `dpi`."""
