"""A plot: a Vega-Lite specification with its words and numbers, or the reason why there is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from vani.errors import InputError
from vani.schema.profile import Profile
from vani.schema.timeline import HeatMap

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Drawing:
    """One plot of one profile."""

    kind: str
    title: str
    caption: str
    """One or two sentences on contents, units, and what to look for."""
    description: str
    """The plot in words with its key numbers, for people who cannot see it."""
    spec: dict[str, Any]
    """Vega-Lite 6 with inline data and `"width": "container"`, without a theme; at most about 150 kB as JSON."""
    table: tuple[tuple[str, ...], tuple[Row, ...]]
    """Names of columns (with units) and rows: the numbers behind the plot, of bounded length."""
    sentence: str = ""
    """The content of the plot if one sentence is enough, which a report prints instead of the plot."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Representations for Jupyter: the specification, an image for viewers that cannot draw it, and words."""
        from vani.render.plots.image import FORMATS  # noqa: PLC0415 - it needs this module

        del include, exclude
        shown = {
            "application/vnd.vegalite.v6+json": json.loads(FORMATS.render("json", self)),
            "text/plain": f"{self.title}: {self.description}",
        }
        # Without vl-convert, which is an extra, the notebook draws it or shows the words.
        with suppress(InputError):
            shown["image/svg+xml"] = FORMATS.render("svg", self).decode()
        return shown


@dataclass(frozen=True)
class Missing:
    """A plot that cannot be drawn from the available data."""

    kind: str
    title: str
    why: str
    """The missing data, and how to get it."""


@dataclass(frozen=True)
class Plot:
    """A kind of plot.

    `draw` receives the profile and the time-resolved data (or None). It returns a sentence if there is nothing to
    draw.
    """

    kind: str
    title: str
    about: str
    """One line about the plot."""
    draw: Callable[[Profile, HeatMap | None], Drawing | str]
    position: int
    """Position in lists of all kinds."""
    needs_calls: bool = False
    """Whether it needs time-resolved data."""
    uses_calls: bool = False
    """Whether it shows more with time-resolved data."""
