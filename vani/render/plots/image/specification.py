"""The Vega-Lite specification of an image with its size and its colours, and the library that draws it."""

from __future__ import annotations

from typing import Any

from vani.errors import InputError
from vani.render.plots.drawing import Drawing
from vani.render.plots.theme import GROUND, theme

__all__ = ["drawn", "specification"]

# The version that the report's page carries, too.
_VEGA_LITE = "6.4"
_POINTS_PER_MM = 72 / 25.4
# A column of a paper is narrower, and so are the letters of figures in it.
_COLUMN_MM = 110
_LETTERS = {"column": 8, "page": 10}


def specification(drawing: Drawing, *, width_mm: float = 160, dark: bool = False) -> dict[str, Any]:
    """The drawing.

    Parameters
    ----------
    width_mm
        Width of the whole image on paper; letters have 8 points in a column, 10 on a page.
    dark
        For a dark ground; else black on white, as for paper.
    """
    letters = _LETTERS["column" if width_mm <= _COLUMN_MM else "page"]
    return {
        **drawing.spec,
        "width": round(width_mm * _POINTS_PER_MM),
        "description": drawing.description,
        "config": {
            **theme(dark, paper=not dark, letters=letters),
            "background": GROUND["dark" if dark else "light"],
        },
    }


def drawn(to: str, spec: dict[str, Any], **options: object) -> Any:
    """Let vl-convert draw a specification `to` svg or png.

    Raises
    ------
    InputError
        vl-convert is not installed, or the system refuses the thread in which it draws.
    """
    try:
        import vl_convert  # noqa: PLC0415 - an extra, and heavy
    except ImportError as error:
        raise InputError("images need vl-convert", todo="pip install 'vani-io[plot]'") from error
    draw = getattr(vl_convert, f"vegalite_to_{to}")
    try:
        # Nothing in a plot names another place; a specification may not load anything either.
        return draw(spec, vl_version=_VEGA_LITE, allowed_base_urls=[], **options)
    except BaseException as error:
        # What its Rust code raises is no Exception.
        if "spawn thread" not in str(error):
            raise
        raise InputError(
            "no image can be drawn: the system refuses a thread", todo="raise the limit of processes (ulimit -u)"
        ) from error
