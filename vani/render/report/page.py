"""A report as a self-contained HTML page: no network, no other file, no date.

The page is built up to three times, each time with less of a long profile, until it has at most `MAX_BYTES`.
"""

import base64
import hashlib
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeVar

from jinja2 import Environment, FunctionLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from vani.errors import InputError, VaniError, one_line
from vani.render.plots.drawing import Drawing, Missing, images, own_names, theme
from vani.render.report.file_tables import groups_kept
from vani.render.report.glossary import GLOSSARY, marked
from vani.render.report.model import Inputs, Report, prepare
from vani.render.report.tables import LEVELS, Limits, clip
from vani.schema.syntax.json_text import json_text
from vani.units import format_number, format_share

MAX_BYTES: Final = 1_500_000
"""Maximum page size: mail and code hosts accept it, and a browser shows it at once."""

_Plot = TypeVar("_Plot", bound=Drawing | Missing)

# Plots in order of worth if not all fit: those whose numbers the page also gives elsewhere are dropped first.
_LAST_DROPPED: Final = (
    "heat-map",
    "io-time",
    "offsets",
    "phases",
    "layers",
    "transfer-sizes",
    "processes",
    "apps",
    "files",
)

_PLACED: Final = (
    "heat-map", "io-time", "offsets", "phases", "layers", "ops", "call-times", "transfer-sizes", "rates",
    "access-patterns", "processes", "apps", "files", "bandwidth", "data-flow", "file-sizes", "targets",
)  # fmt: skip
"""Kinds with a place in the template; others follow them."""

LIBRARIES: Final = ("vega", "vega-lite", "vega-embed")
"""Bundled libraries that draw plots in a browser, in loading order; `vendor/README.md` lists their versions."""


def to_html(inputs: Inputs, **_: object) -> str:
    """Write the page.

    Raises
    ------
    VaniError
        Even the shortest form exceeds `MAX_BYTES`, which is a fault of Vani.
    """
    html = ""
    with groups_kept():
        for limits in LEVELS:
            html = _written(prepare(inputs, limits), limits)
            if len(html.encode()) <= MAX_BYTES:
                return html
    raise VaniError(
        f"the report has {len(html.encode())} bytes, more than {MAX_BYTES}", todo="report this as a fault"
    )


def json_in_html(value: Any) -> str:
    """JSON that is safe in a `<script>`: ASCII only, with nothing that ends the element or starts another."""
    text = json_text(value, indent=None, ascii_only=True).rstrip("\n")
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _written(report: Report, limits: Limits) -> str:
    shown, left_out = _affordable(report.plots, limits)
    shown_plots = [
        replace(plot, spec=_safe(plot.spec))
        for plot in shown
        if isinstance(plot, Drawing) and not plot.sentence
    ]
    specs = {plot.kind: plot.spec for plot in shown_plots}
    small = {plot.kind: replace(plot, spec=_safe(plot.spec)) for plot in report.smaller}
    worth = [small.get(plot.kind, plot) for plot in _by_worth(shown_plots) if plot.kind in _LAST_DROPPED]
    svgs, no_pictures = pictures(worth, limits.picture_bytes)
    undrawn: defaultdict[str, list[str]] = defaultdict(list)
    for plot in shown:
        if isinstance(plot, Missing):
            undrawn[plot.why].append(plot.title)
    # A reason of several plots is given once, and that of all plots over time on the first screen.
    undrawn.pop(report.not_over_time, None)
    shown = [plot for plot in shown if isinstance(plot, Drawing) or len(undrawn.get(plot.why, ())) == 1]
    figures = {plot.kind: plot for plot in shown}
    themes = {"light": theme(dark=False), "dark": theme(dark=True), "paper": theme(dark=False, paper=True)}
    scripts = [*map(library, LIBRARIES), _template("report.js")]
    why = "time stamps were not read"
    return (
        _environment()
        .get_template("page.html")
        .render(
            r=report,
            t=report.tables,
            no_phases=next((g.reason for g in report.gaps if "phases" in g.attributes), why),
            plots={kind: figures.get(kind) for kind in _PLACED},
            other_plots=[plot for kind, plot in figures.items() if kind not in _PLACED],
            limits=limits,
            # They consist of elements and attributes that `pictures` allows, and of text that it escaped.
            svgs={kind: Markup(svg) for kind, svg in svgs.items()},
            undrawn=[(clip(why, limits.prose), titles) for why, titles in undrawn.items() if len(titles) > 1],
            summaries=report.summaries,
            glossary=GLOSSARY,
            terms=set(),
            left_out=(*report.left_out, *left_out, *no_pictures),
            # These contain only text made here; text from a trace is in `data`, escaped.
            css=Markup(_template("report.css")),
            scripts=[Markup(script) for script in scripts],
            hashes=Markup(" ".join(_hash(script) for script in scripts)),
            data=Markup(json_in_html({"specs": specs, "themes": themes})),
        )
    )


def _affordable(plots: Iterable[Drawing | Missing], limits: Limits) -> tuple[list[Drawing | Missing], list[str]]:
    """Plots in their order, as many as `plot_bytes` allows, the most informative first; and the omitted ones."""
    plots = list(plots)
    affordable: set[str] = set()
    taken = 0
    for plot in _by_worth(plots):
        taken += len(json_in_html(plot.spec)) if isinstance(plot, Drawing) else 0
        if taken > limits.plot_bytes:
            break
        affordable.add(plot.kind)
    dropped = [plot for plot in plots if plot.kind not in affordable]
    why = "the page would be too long; `vani plot {}` draws it"
    shown = [
        plot if plot.kind in affordable else Missing(plot.kind, plot.title, why.format(plot.kind))
        for plot in plots
    ]
    return shown, [f"The plot “{clip(plot.title, 80)}”." for plot in dropped]


def _by_worth(plots: Iterable[_Plot]) -> list[_Plot]:
    """The most informative first."""
    order = {kind: place for place, kind in enumerate(_LAST_DROPPED)}
    return sorted(plots, key=lambda plot: order.get(plot.kind, len(order)))


def _figure(value: Any, most: int) -> str:
    """A value of a plot's table as text."""
    if value is None:
        return "unknown"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return clip(str(value), most)
    return f"{value:,}" if isinstance(value, int) else format_number(value, 6)


def _safe(value: Any) -> Any:
    """A specification without control characters in its texts, since names come from traces."""
    if isinstance(value, str):
        # Tables are texts with several lines.
        return "\n".join(map(one_line, value.split("\n")))
    if isinstance(value, dict):
        return {one_line(str(key)): _safe(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_safe(entry) for entry in value]
    return value


def html_environment(template_of: Callable[[str], str]) -> Environment:
    """An environment for templates of HTML, from a function from the name of a template to its text."""
    return Environment(
        loader=FunctionLoader(template_of),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Autoescape does the rest: a name with control characters never reaches a page.
        finalize=lambda value: (
            one_line(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
        ),
    )


@cache
def _environment() -> Environment:
    environment = html_environment(_template)
    environment.filters |= {
        "prose": _prose,
        "clip": clip,
        "figure": _figure,
        "sentence": _sentence,
        "percent": format_share,
        "thousands": lambda number: f"{number:,}",
        "number": lambda number: f"{number:.10g}",
        "breakable": _breakable,
        # No line break between a number and its percent sign.
        "unbroken": lambda text: Markup(re.sub(r"(?<=\d) %", "&nbsp;%", str(escape(one_line(text))))),
        "arrow": lambda text: text.replace(" -> ", " → "),
    }
    return environment


@pass_context
def _prose(context: Context, text: str) -> Markup:
    """A sentence as HTML: terms link to the glossary, and text in backticks is code."""
    terms: set[str] = context["terms"]
    parts = []
    for place, piece in enumerate(one_line(text).split("`")):
        if place % 2:
            parts.append(Markup("<code>{}</code>").format(piece))
            continue
        for words, term in marked(piece):
            terms |= set() if term is None else {term.id}
            parts.append(
                escape(words)
                if term is None
                else Markup('<a class="term" href="#term-{0}" aria-describedby="meaning-{0}">{1}</a>').format(
                    term.id, words
                )
            )
    return Markup("").join(parts)


def _breakable(text: str) -> Markup:
    """A path that breaks preferably between its parts."""
    return Markup("<wbr>").join(escape(part) for part in re.split(r"(?<=[/_])(?=[^/_])", one_line(text)))


def _sentence(text: str) -> str:
    """The text with an initial capital and a final full stop."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if not text or text[-1] in ".!?" else ".")


def _hash(script: str) -> str:
    """Hash of a script for the page's policy, under which the browser runs no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def _template(name: str) -> str:
    return (files("vani.render.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def library(name: str) -> str:
    """The script of one of `LIBRARIES`."""
    text = (files("vani.render.report") / "vendor" / f"{name}.min.js").read_text(encoding="utf-8")
    # Otherwise developer tools would request it from the network.
    return re.sub(r"\n//# sourceMappingURL=\S*\s*$", "\n", text)


# --- plots as pictures, for places that forbid the page's scripts, such as code hosts and CI servers --
#
# The page's own Vega-Lite version draws them, through vl-convert, which is an extra. Without it, and for plots that are
# too large, the page has only their words and tables.

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


def pictures(drawings: Iterable[Drawing], most_bytes: int) -> tuple[dict[str, str], list[str]]:
    """Draw as many plots as fit into `most_bytes`, in order.

    Returns
    -------
    svgs
        An `<svg>` by kind of plot, without scripts, styles, external references, or text. Empty if vl-convert is
        not installed, or cannot draw.
    why
        A line if it cannot.
    """
    drawings = list(drawings)
    # The reader's font may be wider than the one that vl-convert measured.
    config = theme(dark=False) | {"padding": {"left": 24, "right": 14, "top": 5, "bottom": 5}}
    svgs: dict[str, str] = {}
    try:
        content = images("svg", [{**plot.spec, "width": WIDTH_PX, "config": config} for plot in drawings])
    except InputError as error:
        return {}, [f"Pictures for browsers without scripts: {error.what}."] if "drawn" in error.what else []
    for drawing, svg in zip(drawings, content, strict=True):
        small = _small(svg.decode(), drawing.kind)
        if len(small) <= most_bytes:
            svgs[drawing.kind] = small
            most_bytes -= len(small)
    return svgs, []


def _small(svg: str, kind: str) -> str:
    """Keep only visible parts: a name from a trace cannot add an element or an attribute."""
    ET.register_namespace("", _SVG[1:-1])
    root = ET.fromstring(svg)
    _strip(root)
    text = ET.tostring(root, encoding="unicode")
    # The page's own plots use such names, too.
    return own_names(text, f"picture-{kind}")


def _strip(element: ET.Element) -> None:
    # A screen reader would read its text in addition to the page's.
    for name in [name for name in element.attrib if name not in _ATTRIBUTES]:
        del element.attrib[name]
    for below in list(element):
        if below.tag.removeprefix(_SVG) not in _ELEMENTS:
            element.remove(below)
        else:
            _strip(below)
