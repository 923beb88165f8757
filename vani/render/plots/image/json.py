"""The Vega-Lite specification of an image, with its colours."""

from __future__ import annotations

from vani.render.plots.drawing import Drawing
from vani.render.plots.image.specification import specification
from vani.schema.syntax.json_writer import json_text


def render(drawing: Drawing, *, width_mm: float = 160, dark: bool = False, **_: object) -> bytes:
    """Write the specification for other programs to draw."""
    return json_text(specification(drawing, width_mm=width_mm, dark=dark), indent=1, allow_nan=True).encode()
