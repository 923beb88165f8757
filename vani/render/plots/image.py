"""Plots as files: vector and pixel images of a given width on paper, and the specification itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vani.errors import InputError
from vani.render.json_text import json_text
from vani.render.plots.theme import GROUND, theme

if TYPE_CHECKING:
    from vani.render.plots.drawing import Drawing

__all__ = ["SUFFIXES", "check_suffix", "image"]

SUFFIXES = (".svg", ".png", ".json")
# The version that the report's page carries, too.
_VEGA_LITE = "6.4"
_POINTS_PER_MM = 72 / 25.4
# A column of a paper is narrower, and so are the letters of figures in it.
_COLUMN_MM = 110
_LETTERS = {"column": 8, "page": 10}


def check_suffix(path: Path) -> str:
    """The format that the suffix of `path` names.

    Raises
    ------
    InputError
        It names none.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        near = difflib.get_close_matches(suffix, SUFFIXES, 1)
        raise InputError(
            f"unknown image format {suffix!r}" if suffix else "no image format is named",
            where=path,
            todo=f"did you mean {near[0]!r}?"
            if near
            else f"end the name in {', '.join(SUFFIXES[:-1])} or .json",
        )
    return suffix


def image(
    drawing: Drawing, suffix: str, *, width_mm: float = 160, dpi: int = 300, dark: bool = False
) -> bytes:
    """Draw a plot as a file.

    Parameters
    ----------
    suffix
        One of `SUFFIXES`. `.json` is the Vega-Lite specification with its colours.
    width_mm
        Width of the whole image on paper; letters have 8 points in a column, 10 on a page.
    dpi
        Pixels per inch of `.png`.
    dark
        For a dark ground; else black on white, as for paper.

    Raises
    ------
    InputError
        vl-convert, which draws, is not installed.
    """
    spec = {**drawing.spec, "width": round(width_mm * _POINTS_PER_MM)}
    spec["description"] = drawing.description
    letters = _LETTERS["column" if width_mm <= _COLUMN_MM else "page"]
    spec["config"] = {
        **theme(dark, paper=not dark, letters=letters),
        "background": GROUND["dark" if dark else "light"],
    }
    if suffix == ".json":
        return json_text(spec, indent=1, allow_nan=True).encode()
    try:
        import vl_convert  # noqa: PLC0415 - an extra, and heavy
    except ImportError as error:
        raise InputError("images need vl-convert", todo="pip install 'vani-io[plot]'") from error
    # Nothing in a plot names another place; a specification may not load anything either.
    options: dict[str, Any] = {"vl_version": _VEGA_LITE, "allowed_base_urls": []}
    draw: dict[str, Callable[[], Any]] = {
        ".svg": lambda: _own_names(
            _on_paper(vl_convert.vegalite_to_svg(spec, **options)), drawing.kind
        ).encode(),
        ".png": lambda: vl_convert.vegalite_to_png(spec, ppi=dpi, **options),
    }
    content: bytes = draw[suffix]()
    return content


def _on_paper(svg: str) -> str:
    """Say that the units of an image are points, so that it is as wide as wanted where it is put in."""

    def in_points(tag: re.Match[str]) -> str:
        return re.sub(r'\b(width|height)="([\d.]+)"', r'\1="\2pt"', tag[0])

    return re.sub(r"<svg\b[^>]*>", in_points, svg, count=1)


def _own_names(svg: str, kind: str) -> str:
    """Number what an image refers to anew: Vega counts on from image to image, and two may lie in one page."""
    found = re.findall(r'<(?:linearGradient|radialGradient|clipPath) id="([^"]+)"', svg)
    for i, name in enumerate(dict.fromkeys(found)):
        for before, after in (('id="', '"'), ('="url(#', ')"')):
            svg = svg.replace(f"{before}{name}{after}", f"{before}{kind}-{i}{after}")
    return svg
