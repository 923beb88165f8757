"""Plots as files: vector and pixel images of a given width on paper, and the specification itself."""

from __future__ import annotations

from typing import Final

from vani.render.formats import Formats

__all__ = ["FORMATS"]

FORMATS: Final[Formats[bytes]] = Formats(__name__, ["svg", "png", "json"], what="image")
"""Each is told by `width_mm` how wide the image is on paper, by `dark` whether its ground is; png the `dpi`."""
