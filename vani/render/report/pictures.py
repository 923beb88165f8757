"""Plots as pictures inside the page, for places that forbid its scripts, such as code hosts and CI servers.

The page's own Vega-Lite version draws them, through vl-convert, which is an extra. Without it, and for plots that
are too large, the page has only their words and tables.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any, Final

from vani.errors import InputError
from vani.render.plots.drawing import Drawing, drawn, theme

WIDTH_PX: Final = 720
"""Width of a text page; narrower windows shrink the picture."""

_SVG: Final = "{http://www.w3.org/2000/svg}"
_ELEMENTS: Final = {
    "svg", "g", "path", "text", "tspan", "line", "rect", "defs", "linearGradient", "stop", "clipPath",
}  # fmt: skip
_ATTRIBUTES: Final = {
    "width", "height", "viewBox", "transform", "d", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity",
    "stroke-dasharray", "stroke-dashoffset", "stroke-linejoin", "stroke-linecap", "stroke-miterlimit", "opacity", "x",
    "y", "x1", "x2", "y1", "y2", "dx", "dy", "text-anchor", "font-family", "font-size", "font-weight", "offset",
    "stop-color", "id", "clip-path", "gradientUnits", "spreadMethod",
}  # fmt: skip


def pictures(drawings: Iterable[Drawing], most_bytes: int) -> dict[str, str]:
    """Draw as many plots as fit into `most_bytes`, in order.

    Returns
    -------
    dict of str to str
        An `<svg>` by kind of plot, without scripts, styles, external references, or text. Empty if vl-convert is
        not installed.
    """
    svgs: dict[str, str] = {}
    left = most_bytes
    for drawing in drawings:
        try:
            svg = _small(_drawn(drawing), drawing.kind)
        except InputError:
            return {}
        if len(svg) <= left:
            svgs[drawing.kind] = svg
            left -= len(svg)
    return svgs


def _drawn(drawing: Drawing) -> str:
    # The reader's font may be wider than the one that vl-convert measured.
    config = theme(dark=False) | {"padding": {"left": 24, "right": 14, "top": 5, "bottom": 5}}
    spec: dict[str, Any] = {**drawing.spec, "width": WIDTH_PX, "config": config}
    svg: str = drawn("svg", spec)
    return svg


def _small(svg: str, kind: str) -> str:
    """Keep only visible parts: a name from a trace cannot add an element or an attribute."""
    ET.register_namespace("", _SVG[1:-1])
    root = ET.fromstring(svg)
    _strip(root)
    text = ET.tostring(root, encoding="unicode")
    # Vega continues the numbers of gradients from picture to picture, and the page's own plots use such
    # names, too.
    for i, name in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', text))):
        text = text.replace(f' id="{name}"', f' id="picture-{kind}-{i}"').replace(
            f"url(#{name})", f"url(#picture-{kind}-{i})"
        )
    return text


def _strip(element: ET.Element) -> None:
    # A screen reader would read its text in addition to the page's.
    for name in [name for name in element.attrib if name not in _ATTRIBUTES]:
        del element.attrib[name]
    for below in list(element):
        if below.tag.removeprefix(_SVG) not in _ELEMENTS:
            element.remove(below)
        else:
            _strip(below)
