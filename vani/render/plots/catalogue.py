"""Plots: Vega-Lite specifications with their words and numbers, and the kinds that there are.

Every `PLOT` in a module of this folder is a kind. `draw("phases", profile)` returns a `Drawing`, whose `spec` any
Vega-Lite renderer can show, or a `Missing` with the reason.
"""

from __future__ import annotations

import json
import pkgutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from vani.errors import InputError, nearest
from vani.render.formats import IMAGE
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
        del include, exclude
        shown = {
            "application/vnd.vegalite.v6+json": json.loads(IMAGE.render("json", self)),
            "text/plain": f"{self.title}: {self.description}",
        }
        # Without vl-convert, which is an extra, the notebook draws it or shows the words.
        with suppress(InputError):
            shown["image/svg+xml"] = IMAGE.render("svg", self).decode()
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


@cache
def kinds() -> dict[str, Plot]:
    """All kinds by name, in order of interest."""
    package = import_module("vani.render.plots")
    plots = []
    for module in pkgutil.iter_modules(package.__path__):
        plot = getattr(import_module(f"vani.render.plots.{module.name}"), "PLOT", None)
        if isinstance(plot, Plot):
            plots.append(plot)
    return {plot.kind: plot for plot in sorted(plots, key=lambda p: (p.position, p.kind))}


def plot_of(kind: str) -> Plot:
    """The kind with this name.

    Raises
    ------
    InputError
        The kind does not exist; the message names the closest one.
    """
    known = kinds()
    if kind not in known:
        raise InputError(f"no plot is called {kind!r}", todo=nearest(kind, known))
    return known[kind]


def draw(kind: str, profile: Profile, *, heat: HeatMap | str | None = None) -> Drawing | Missing:
    """Draw one plot of a profile.

    Parameters
    ----------
    kind
        One of `kinds()`.
    heat
        The result of `vani.api.heat_map`: time-resolved data, or the reason why there is none.

    Raises
    ------
    InputError
        There is no such kind.
    """
    plot = plot_of(kind)
    data = heat if isinstance(heat, HeatMap) else None
    if plot.needs_calls and data is None:
        reason = (
            heat if isinstance(heat, str) else "it needs the decoded calls, which a profile does not contain"
        )
        return Missing(plot.kind, plot.title, reason)
    drawing = plot.draw(profile, data)
    return Missing(plot.kind, plot.title, drawing) if isinstance(drawing, str) else drawing
