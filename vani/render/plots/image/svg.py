"""A plot as vectors."""

from __future__ import annotations

import re

from vani.render.plots.drawing import Drawing
from vani.render.plots.image.specification import drawn, specification


def render(drawing: Drawing, *, width_mm: float = 160, dark: bool = False, **_: object) -> bytes:
    """Draw it; raises InputError without vl-convert."""
    svg: str = drawn("svg", specification(drawing, width_mm=width_mm, dark=dark))
    return _own_names(_on_paper(svg), drawing.kind).encode()


def _on_paper(svg: str) -> str:
    """Declare the image's units as points, so that it has the requested width where it is inserted."""

    def in_points(tag: re.Match[str]) -> str:
        return re.sub(r'\b(width|height)="([\d.]+)"', r'\1="\2pt"', tag[0])

    return re.sub(r"<svg\b[^>]*>", in_points, svg, count=1)


def _own_names(svg: str, kind: str) -> str:
    """Renumber an image's references: Vega continues numbers from image to image, and two may be in one page."""
    ids = re.findall(r'<(?:linearGradient|radialGradient|clipPath) id="([^"]+)"', svg)
    for i, name in enumerate(dict.fromkeys(ids)):
        for before, after in (('id="', '"'), ('="url(#', ')"')):
            svg = svg.replace(f"{before}{name}{after}", f"{before}{kind}-{i}{after}")
    return svg
