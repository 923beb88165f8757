"""The Vega-Lite specification of an image with its size and colours, and the library that draws it."""

from __future__ import annotations

from typing import Any

from vani.errors import InputError
from vani.render.plots.drawing import Drawing
from vani.render.plots.theme import GROUND, theme

# The version that the report page also contains.
_VEGA_LITE = "6.4"
_POINTS_PER_MM = 72 / 25.4
# Below this width, an image fits a paper's column and uses smaller letters.
_COLUMN_MM = 110
_LETTERS = {"column": 8, "page": 10}


def specification(drawing: Drawing, *, width_mm: float = 160, dark: bool = False) -> dict[str, Any]:
    """Build the specification of an image.

    Parameters
    ----------
    width_mm
        Width of the whole image on paper; letters are 8 points high in a column, 10 on a page.
    dark
        Use a dark background instead of black on white for paper.
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
    """Draw a specification as `to`, svg or png, with vl-convert.

    Raises
    ------
    InputError
        vl-convert is not installed, or the system refuses its drawing thread.
    """
    try:
        import vl_convert  # noqa: PLC0415 - an extra, and heavy
    except ImportError as error:
        raise InputError("images need vl-convert", todo="pip install 'vani-io[plot]'") from error
    draw = getattr(vl_convert, f"vegalite_to_{to}")
    try:
        # No plot refers to another place, and a specification must not load anything either.
        return draw(spec, vl_version=_VEGA_LITE, allowed_base_urls=[], **options)
    except BaseException as error:
        # Its Rust code raises something that is not an Exception.
        if "spawn thread" not in str(error):
            raise
        raise InputError(
            "no image can be drawn: the system refuses a thread", todo="raise the limit of processes (ulimit -u)"
        ) from error
