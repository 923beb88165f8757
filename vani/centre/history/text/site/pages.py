"""HTML pages about a history. Everything from a log is escaped, and no page needs a network."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from vani.centre.history.text.outcome import VERDICTS, measured, promised, signed_hours
from vani.centre.history.text.rows import hours, judged_by, saved_text
from vani.errors import one_line
from vani.render.plots.drawing import theme
from vani.render.report.library import library
from vani.render.report.page import json_in_html
from vani.units import format_bytes, format_seconds, format_share

ASSETS: Final = {
    "site.css": "text/css; charset=utf-8",
    "site.js": "text/javascript; charset=utf-8",
    "vega.js": "text/javascript; charset=utf-8",
    "vega-lite.js": "text/javascript; charset=utf-8",
    "vega-embed.js": "text/javascript; charset=utf-8",
}
"""Files that pages load, with their types; no other file is sent."""


def page(name: str, specs: Mapping[str, Any] | None = None, **values: Any) -> str:
    """Fill a template.

    Parameters
    ----------
    specs
        Vega-Lite specification of each chart.
    """
    themes = {"light": theme(dark=False), "dark": theme(dark=True)}
    data = Markup(json_in_html({"specs": specs, "themes": themes})) if specs else None
    return _environment().get_template(f"{name}.html").render(data=data, **values)


@cache
def asset(name: str) -> bytes:
    """The content of one of `ASSETS`."""
    if name.startswith("vega"):
        return library(name.removesuffix(".js")).encode()
    return _template(name).encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A name with control characters never reaches a page.
        finalize=lambda value: (
            one_line(value) if isinstance(value, str) and not hasattr(value, "__html__") else value
        ),
    )
    environment.filters |= {
        "hours": hours,
        "saved": saved_text,
        "judged_by": judged_by,
        "measured": measured,
        "promised": promised,
        "signed_hours": signed_hours,
        "seconds": format_seconds,
        "bytes": format_bytes,
        "percent": format_share,
        "day": lambda moment: _date(moment, "%Y-%m-%d"),
        "moment": lambda moment: _date(moment, "%Y-%m-%d %H:%M UTC"),
        "thousands": lambda number: f"{number:,}",
    }
    environment.globals |= {"link": _link, "verdicts": VERDICTS}
    return environment


def _link(path: str, **values: object) -> str:
    """A URL of this site; empty values and None are left out."""
    chosen = {name: str(value) for name, value in values.items() if value not in (None, "")}
    return f"{path}?{urlencode(chosen)}" if chosen else path


def _date(moment: float | None, form: str) -> str:
    return "unknown" if moment is None else datetime.fromtimestamp(moment, UTC).strftime(form)


@cache
def _template(name: str) -> str:
    return (files("vani.centre.history.text.site") / "templates" / name).read_text(encoding="utf-8")
