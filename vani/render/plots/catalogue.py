"""The kinds of plots, and the entry point to them.

Every `Plot` in a module of this folder is a kind. `draw("phases", profile)` returns a `Drawing`, whose `spec` any
Vega-Lite renderer can show, or a `Missing` with the reason.
"""

import pkgutil
from dataclasses import replace
from functools import cache
from importlib import import_module

from vani.errors import InputError, nearest
from vani.render.plots.drawing import Drawing, Missing, Plot
from vani.schema.profile import Profile
from vani.schema.timeline import ONLY_BINS, HeatMap

NO_CALLS = "it needs the decoded calls, which a profile does not contain"


@cache
def kinds() -> dict[str, Plot]:
    """All kinds by name, in order of interest."""
    package = import_module("vani.render.plots")
    plots: list[Plot] = []
    for module in pkgutil.iter_modules(package.__path__):
        contents = vars(import_module(f"vani.render.plots.{module.name}")).values()
        plots += [plot for plot in contents if isinstance(plot, Plot)]
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
        The result of `vani.heat_map`: time-resolved data, or the reason why there is none.

    Raises
    ------
    InputError
        There is no such kind.
    """
    plot = plot_of(kind)
    least = plot.needs or plot.uses
    data = heat if isinstance(heat, HeatMap) and least is not None and heat.gives(least) else None
    if plot.needs is not None and data is None:
        reason = heat if isinstance(heat, str) else NO_CALLS if heat is None else ONLY_BINS
        return Missing(plot.kind, plot.title, reason)
    drawing = plot.draw(profile, data) if plot.over_time else plot.draw(profile)
    if isinstance(drawing, str):
        return Missing(plot.kind, plot.title, drawing)
    caption = " ".join(filter(None, (drawing.caption, data.note if data is not None else "")))
    return replace(drawing, kind=plot.kind, title=drawing.title or plot.title, caption=caption)
