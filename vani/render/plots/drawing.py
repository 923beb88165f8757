"""A plot: a Vega-Lite specification with its words and numbers, the theme of all plots, and images of a given width.

People with colour blindness can distinguish the theme's colours, on light and dark.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Final, Literal

from vani.errors import InputError, one_line
from vani.schema.syntax.json_text import json_text
from vani.schema.timeline import Source

Row = tuple[Any, ...]
Style = Literal["paper", "screen", "dark"]


@dataclass(frozen=True)
class Drawing:
    """One plot of one profile."""

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
    title: str = ""
    """By default the title of its kind."""
    kind: str = ""
    """Filled in by `catalogue.draw`."""

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Representations for Jupyter: the specification, an image for viewers that cannot draw it, and words."""
        del include, exclude
        shown = {
            "application/vnd.vegalite.v6+json": json.loads(to_json(self)),
            "text/plain": f"{self.title}: {self.description}",
        }
        # Without vl-convert, which is an extra, the notebook draws it or shows the words.
        with suppress(InputError):
            shown["image/svg+xml"] = to_svg(self).decode()
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

    `draw` receives the profile, and the time-resolved data if it `needs` or `uses` any. It returns a sentence if there
    is nothing to draw.
    """

    kind: str
    title: str
    about: str
    """One line about the plot."""
    draw: Callable[..., Drawing | str]
    position: int
    """Position in lists of all kinds."""
    needs: Source | None = None
    """The least that it needs of a source of time-resolved data."""
    uses: Source | None = None
    """The least with which it shows more; with less, `draw` receives None."""

    @property
    def over_time(self) -> bool:
        """Whether it draws time-resolved data."""
        return self.needs is not None or self.uses is not None


def plot(kind: str, title: str, about: str, **more: Any) -> Callable[[Callable[..., Drawing | str]], Plot]:
    """Make a kind of plot of the function that draws it; see `Plot`."""
    return lambda draw: Plot(kind, title, about, draw, **more)


# --- theme ------------------------------------------------------------------------------------------

GROUND = {"light": "#ffffff", "dark": "#15181b"}
"""Background of plots, as in the report. Plots are transparent, but letters over lines have a halo of this colour."""

# Okabe and Ito, "Color Universal Design" (2008): read, write, metadata, mixed, sync, others. Each has a
# contrast of at least 3 to its background (WCAG 2.2, 1.4.11), so some are lighter on dark and darker on
# light. Their yellow, which is next to orange and green, is a brown on light.
_ON_LIGHT = ["#0072B2", "#D55E00", "#007A5A", "#9A4F7F", "#5B3A00", "#2B87B8", "#595959"]
_ON_DARK = ["#56B4E9", "#F08A3C", "#2BC49B", "#E09CC4", "#F0E442", "#8FD0F5", "#B3B3B3"]
# Viridis (van der Walt and Smith, 2015), from few to many.
_VIRIDIS = [
    "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c",
    "#22a884", "#44bf70", "#7ad151", "#bddf26", "#fde725",
]  # fmt: skip

_STEPS = {
    "light": ["#bddf26", "#22a884", "#355f8d", "#440154"],
    "dark": ["#bddf26", "#22a884", "#6f9bd1", "#c68ae0"],
}
"""Four steps, from patterns that suit storage to those that do not, with the same hues on both backgrounds."""


def theme(dark: bool, paper: bool = False, letters: int = 12) -> dict[str, Any]:
    """Configuration of Vega-Lite for all plots.

    Parameters
    ----------
    dark
        For a dark background instead of a light one.
    paper
        For a printed page: black on white, larger letters, no rounded corners; takes precedence over `dark`.
    letters
        Font size of a printed page.
    """
    dark = dark and not paper
    ink = "#e8e8e8" if dark else "#1a1a1a"
    soft = "#9aa0a6" if dark else "#5f6368"
    line = "#3c4043" if dark else "#dfe1e5"
    ground = GROUND["dark" if dark else "light"]
    size = letters if paper else 11
    # Large amounts are bright on dark and dark on light, so that they stand out.
    ramp = _VIRIDIS if dark else _VIRIDIS[::-1]
    font = "Helvetica, Arial, 'Liberation Sans', sans-serif"
    words = {"labelColor": ink, "titleColor": ink, "labelFontSize": size}
    return {
        "background": "#ffffff" if paper else "transparent",
        "font": font,
        "padding": 5,
        "view": {"stroke": None},
        "mark": {"color": (_ON_DARK if dark else _ON_LIGHT)[0]},
        "axis": {
            **words,
            "titleFontSize": size + 1,
            "titleFontWeight": "normal",
            "gridColor": line,
            "domainColor": soft,
            "tickColor": soft,
            "labelLimit": 220,
            "titlePadding": 8,
            "labelSeparation": 6,
        },
        # Names end where bars start.
        "axisY": {"labelPadding": 6},
        "axisX": {"labelBound": True},
        "legend": {
            **words,
            "titleFontSize": size,
            "titleFontWeight": "normal",
            "orient": "top",
            "offset": 8,
            # Fits all kinds of calls side by side into a paper's column.
            **({"symbolSize": 50, "columnPadding": 6} if size < 10 else {}),
            "labelLimit": 220,
            "titleLimit": 400,
        },
        "header": words,
        "title": {"color": ink, "subtitleColor": soft, "fontSize": size + 3, "anchor": "start"},
        "text": {"color": ink, "fontSize": size},
        "rule": {"color": soft},
        "range": {
            "category": _ON_DARK if dark else _ON_LIGHT,
            "heatmap": ramp,
            "ramp": ramp,
            "ordinal": _STEPS["dark" if dark else "light"],
        },
        "style": {
            "ink": {"fill": ink, "color": ink},
            "halo": {**dict.fromkeys(("fill", "color", "stroke"), ground), "strokeWidth": 4, "strokeJoin": "round"},
            "frame": {"stroke": soft, "fill": None},
            "mean": {"stroke": ink, "color": ink},
            "outlined": {"stroke": ground, "strokeWidth": 1.5},
            "outlined-thin": {"stroke": soft, "strokeWidth": 0.5},
            "edge": {"stroke": soft, "color": soft},
            "arrow": {"fill": soft, "color": soft},
            "gap": {"fill": soft, "color": soft, "opacity": 0.45},
        },
    }


# --- files ------------------------------------------------------------------------------------------

# The version that the report page also contains.
_VEGA_LITE = "6.4"
_POINTS_PER_MM = 72 / 25.4
# Below this width, an image fits a paper's column and uses smaller letters.
_COLUMN_MM = 110
_LETTERS = {"column": 8, "page": 10}


def specification(drawing: Drawing, *, width_mm: float = 160, style: Style = "paper") -> dict[str, Any]:
    """Build the specification of an image.

    Parameters
    ----------
    width_mm
        Width of the whole image on paper; letters are 8 points high in a column, 10 on a page.
    style
        Black on white for paper, the colours of the report's page, or those for a dark background.
    """
    letters = _LETTERS["column" if width_mm <= _COLUMN_MM else "page"]
    return {
        **drawing.spec,
        "width": round(width_mm * _POINTS_PER_MM),
        "description": drawing.description,
        "config": {
            **theme(style == "dark", paper=style == "paper", letters=letters),
            "background": GROUND["dark" if style == "dark" else "light"],
        },
    }


_DRAW: Final = """
import json, sys, vl_convert
to, specs, options = json.load(sys.stdin)
for spec in specs:
    image = getattr(vl_convert, "vegalite_to_" + to)(spec, **options)
    content = image.encode() if isinstance(image, str) else image
    sys.stdout.buffer.write(len(content).to_bytes(8, "big") + content)
"""


def images(to: str, specs: Sequence[dict[str, Any]], **options: object) -> list[bytes]:
    """Draw specifications as `to`, svg, png or pdf, with vl-convert, in a process of its own.

    A limit of memory or processes ends a JavaScript engine without an exception, and with it the process that it is in.

    Raises
    ------
    InputError
        vl-convert is not installed, or its process ended.
    """
    if find_spec("vl_convert") is None:
        raise InputError("images need vl-convert", todo="pip install 'vani-io[plot]'")
    # No plot refers to another place, and a specification must not load anything either.
    work = json.dumps((to, specs, {"vl_version": _VEGA_LITE, "allowed_base_urls": [], **options}))
    # -P: a file in the current folder must not replace a module.
    todo = "raise the limits of memory and processes (ulimit -v, -u)"
    try:
        run = subprocess.run([sys.executable, "-P", "-c", _DRAW], input=work.encode(), capture_output=True, check=False)
    except OSError as error:
        raise InputError(f"no image can be drawn: {error.strerror}", todo=todo) from error
    if run.returncode:
        last = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        why = f"its process ended by signal {-run.returncode}" if run.returncode < 0 else one_line(last)[:200]
        raise InputError(f"no image can be drawn: {why}", todo=todo)
    stream, contents = BytesIO(run.stdout), []
    while size := stream.read(8):
        contents.append(stream.read(int.from_bytes(size, "big")))
    return contents


def to_json(drawing: Drawing, *, width_mm: float = 160, style: Style = "paper", **_: object) -> bytes:
    """Write the specification for other programs to draw."""
    return json_text(specification(drawing, width_mm=width_mm, style=style), indent=1, allow_nan=True).encode()


def to_png(drawing: Drawing, *, width_mm: float = 160, dpi: int = 300, style: Style = "paper", **_: object) -> bytes:
    """Draw it with `dpi` pixels per inch; raises InputError without vl-convert."""
    return images("png", [specification(drawing, width_mm=width_mm, style=style)], ppi=dpi)[0]


def to_pdf(drawing: Drawing, *, width_mm: float = 160, style: Style = "paper", **_: object) -> bytes:
    """Draw it as a page of its size; raises InputError without vl-convert."""
    return images("pdf", [specification(drawing, width_mm=width_mm, style=style)])[0]


def to_svg(drawing: Drawing, *, width_mm: float = 160, style: Style = "paper", **_: object) -> bytes:
    """Draw it; raises InputError without vl-convert."""
    svg = images("svg", [specification(drawing, width_mm=width_mm, style=style)])[0].decode()
    return own_names(_on_paper(svg), drawing.kind).encode()


def _on_paper(svg: str) -> str:
    """Declare the image's units as points, so that it has the requested width where it is inserted."""
    begin, tag, rest = re.split(r"(<svg\b[^>]*>)", svg, maxsplit=1)
    return begin + re.sub(r'\b(width|height)="([\d.]+)"', r'\1="\2pt"', tag) + rest


def own_names(svg: str, kind: str) -> str:
    """Renumber an image's references: Vega continues numbers from image to image, and two may be in one page."""
    for i, name in enumerate(dict.fromkeys(re.findall(r'<(?:(?:linear|radial)Gradient|clipPath) id="([^"]+)"', svg))):
        for before, after in (('id="', '"'), ('="url(#', ')"')):
            svg = svg.replace(f"{before}{name}{after}", f"{before}{kind}-{i}{after}")
    return svg
