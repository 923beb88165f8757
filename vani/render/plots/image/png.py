"""A plot as pixels."""

from __future__ import annotations

from vani.render.plots.drawing import Drawing
from vani.render.plots.image.specification import drawn, specification


def render(
    drawing: Drawing, *, width_mm: float = 160, dpi: int = 300, dark: bool = False, **_: object
) -> bytes:
    """Draw it with `dpi` pixels per inch; raises InputError without vl-convert."""
    content: bytes = drawn("png", specification(drawing, width_mm=width_mm, dark=dark), ppi=dpi)
    return content
