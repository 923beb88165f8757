"""The pages of `vani history serve`: queries, Vega-Lite charts, and HTML in which everything from a log is escaped.

No page needs a network. A table below each chart contains the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import numpy as np
import sqlalchemy as sa
from jinja2 import Environment
from markupsafe import Markup

from vani.centre.history.maintenance import measured_settings, setting_cells
from vani.centre.history.outcome import VERDICTS, measured, outcomes_in, promised, signed_hours
from vani.centre.history.ranking import ranking_in
from vani.centre.history.ranking_text import headline, hours, judged_by, saved_text, when
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Story
from vani.centre.history.settings import period_of
from vani.centre.history.story import CategoryRuns, change_sentence, letter_text, spread, story_and_runs
from vani.centre.history.targets import ranked_targets
from vani.errors import InputError
from vani.render.plots.drawing import theme
from vani.render.report.page import html_environment, json_in_html, library
from vani.units import format_bytes, format_count, format_number, format_seconds, format_share

WEEKS_BEFORE: Final = 4
_LEAST_RUNS: Final = 5
"""Minimum number of runs in either period; the same as for a change of behaviour."""
_LEAST_RATIO: Final = 1.5
_LITTLE: Final = 0.001
"""Share of all waiting since Monday below which there is no news."""


class FreshPair(NamedTuple):
    """A pair of application and user that ran for the first time; costs in seconds, as in `Costs`."""

    application: str
    user: str
    first: float
    runs: int
    in_io_s: float
    waiting_s: float


class SlowerCategory(NamedTuple):
    """Runs that wait longer: mean core-seconds per run, in the four weeks before and since."""

    application: str
    user: str
    processes: int
    runs: int
    before_s: float
    after_s: float


@dataclass(frozen=True)
class News:
    """News since a point in time.

    Attributes
    ----------
    since
        Seconds since 1970.
    runs
        Number of runs that started since.
    last
        Start of the very last run; None if unknown.
    """

    since: float
    runs: int
    last: float | None
    pairs: list[FreshPair]
    slower: list[SlowerCategory]


def last_monday(day: date) -> float:
    """Beginning of the last Monday before a day (UTC); on a Monday, that of the week before."""
    today = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (today - timedelta(days=(today.weekday() - 1) % 7 + 1)).timestamp()


def news(
    since: float, last: float | None, new_pairs: Sequence[tuple[read.Group, float]], before: Sequence[read.Group],
    after: Sequence[read.Group],
) -> News:
    """Compare the runs since a Monday with those before.

    Parameters
    ----------
    new_pairs
        Pairs with the time of their first run.
    before, after
        Groups by category (application, user, processes), in the four weeks before and since.
    """
    pairs = [FreshPair(*group.pair, first, group.runs, group.in_io_s, group.waiting_s) for group, first in new_pairs]
    earlier = {group.names: group for group in before}
    least = _LITTLE * sum(group.waiting_s for group in after)
    slower = []
    for group in after:
        old = earlier.get(group.names)
        if old is None or min(old.runs, group.runs) < _LEAST_RUNS:
            continue
        before_s, after_s = old.waiting_s / old.runs, group.waiting_s / group.runs
        lost = group.runs * (after_s - before_s)
        if after_s >= _LEAST_RATIO * before_s and lost > least:
            slower.append((-lost, SlowerCategory(*group.pair, int(group.names[2]), group.runs, before_s, after_s)))
    pairs.sort(key=lambda pair: (-pair.waiting_s, pair.application, pair.user))
    return News(since, sum(group.runs for group in after), last, pairs, [category for _, category in sorted(slower)])


_VEGA_LITE: Final = "https://vega.github.io/schema/vega-lite/v6.json"
_HOUR: Final = 3600.0


def trend_chart(units: Sequence[tuple[str, float, float]], by: str) -> dict[str, Any]:
    """Chart core-hours of waiting and in I/O per month or day. Units without runs interrupt the lines.

    Parameters
    ----------
    units
        Name (an ISO 8601 day or month), waiting and time in I/O in seconds.
    by
        `month` or `day`.
    """
    known = {name: costs for name, *costs in units}
    values = [
        {"at": name, "cost": cost, "hours": None if name not in known else known[name][number] / _HOUR}
        for name in _every(list(known)) for number, cost in enumerate(("waiting", "in I/O"))
    ]
    return _chart(
        values,
        {"type": "line", "point": True, "invalid": "break-paths-show-domains"},
        x={"field": "at", "type": "temporal", "title": by, "scale": {"type": "utc"},
           "axis": {"format": "%b %Y" if by == "month" else "%d %b", "labelOverlap": True}},
        y={"field": "hours", "type": "quantitative", "title": "core-hours", "axis": {"format": "~s"}},
        color={"field": "cost", "type": "nominal", "title": None, "legend": {"orient": "top"}},
        strokeDash={"field": "cost", "type": "nominal", "title": None},
        tooltip=[_tip("at", "nominal", by), _tip("cost", "nominal", "cost"), _HOURS],
    )  # fmt: skip


def _every(names: Sequence[str]) -> list[str]:
    """All days, or months, from the first to the last."""
    if not names:
        return []
    # numpy infers days or months from the texts.
    begin, end = np.datetime64(min(names)), np.datetime64(max(names))
    return [str(moment) for moment in np.arange(begin, end + 1)]


def _chart(values: list[dict[str, Any]], mark: object, height: object = 200, **encoding: Any) -> dict[str, Any]:
    data = {"$schema": _VEGA_LITE, "width": "container", "height": height, "data": {"values": values}}
    return {**data, "mark": mark, "encoding": encoding}


def _tip(field: str, kind: str, title: str | None = None, form: str | None = None) -> dict[str, str]:
    tip = {"field": field, "type": kind, "title": title, "format": form}
    return {name: value for name, value in tip.items() if value is not None}


_HOURS: Final = _tip("hours", "quantitative", "core-hours", ".3s")


def runs_chart(runs: Sequence[tuple[float, float, str, int]]) -> dict[str, Any]:
    """Chart the waiting of processes in each run over time.

    Parameters
    ----------
    runs
        Start (seconds since 1970), waiting in core-seconds, user and number of processes of each run.
    """
    values = [
        {"at": at * 1000, "hours": waiting / _HOUR, "user": user, "processes": processes}
        for at, waiting, user, processes in runs if waiting > 0
    ]
    return _chart(
        values,
        {"type": "point", "filled": True, "opacity": 0.8, "size": 30},
        x={"field": "at", "type": "temporal", "title": "began", "scale": {"type": "utc"}},
        y={"field": "hours", "type": "quantitative", "title": "core-hours waiting", "scale": {"type": "log"},
           "axis": {"format": "~s", "tickCount": 4}},
        tooltip=[_tip("at", "temporal", "began (UTC)", "%Y-%m-%d %H:%M"), _HOURS, _tip("user", "nominal"),
                 _tip("processes", "quantitative")],
    )  # fmt: skip


def targets_chart(targets: Sequence[tuple[str, float, bool]]) -> dict[str, Any]:
    """Chart the time that files lost on each storage target, given its name, seconds, and whether it is slow."""
    values = [
        {"target": name, "hours": lost / _HOUR, "state": "slow" if slow else "usual"} for name, lost, slow in targets
    ]
    return _chart(
        values,
        "bar",
        {"step": 18},
        y={"field": "target", "type": "nominal", "title": None, "sort": None},
        x={"field": "hours", "type": "quantitative", "title": "hours lost"},
        color={"field": "state", "type": "nominal", "title": None, "sort": ["usual", "slow"],
               "legend": {"orient": "top"}},
        tooltip=[_tip("target", "nominal"), _HOURS | {"title": "hours lost"}, _tip("state", "nominal")],
    )  # fmt: skip


_SCRIPTS: Final = ("site.js", "vega.js", "vega-lite.js", "vega-embed.js")
ASSETS: Final = {"site.css": "text/css; charset=utf-8", **dict.fromkeys(_SCRIPTS, "text/javascript; charset=utf-8")}
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
    environment = html_environment(_template)
    environment.filters |= {
        "hours": hours, "saved": saved_text, "judged_by": judged_by, "measured": measured, "promised": promised,
        "signed_hours": signed_hours, "seconds": format_seconds, "bytes": format_bytes, "percent": format_share,
        "day": lambda moment: _date(moment, "%Y-%m-%d"), "moment": lambda moment: _date(moment, "%Y-%m-%d %H:%M UTC"),
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
    return (files("vani.centre.history") / "templates" / name).read_text(encoding="utf-8")


_LARGEST: Final = 10
_MAX_ROWS: Final = 5000
_POINTS: Final = 2000
"""Maximum number of runs in a chart; with more, the points merge and slow browsers down."""
_TARGETS: Final = 15

Query = Mapping[str, str]


class MissingPageError(InputError):
    """There is no page, run or application with this name."""


def page_of(store: Store, path: str, query: Query, today: date) -> str:
    """Render a page.

    Parameters
    ----------
    path, query
        The URL without its host, such as `/run` and `{"id": ...}`.

    Raises
    ------
    MissingPageError
        The page does not exist.
    InputError
        A day is invalid, or the history cannot be read.
    """
    if path not in PAGES:
        raise MissingPageError("There is no such page.")
    common: dict[str, Any] = {
        "here": path, "place": store.name, "since": query.get("since") or None, "until": query.get("until") or None,
    }
    with store.reading() as connection:
        return PAGES[path](connection, query, common, today)


def _month(connection: sa.Connection, _: Query, common: dict[str, Any], today: date) -> str:
    last, period = read.whole(connection, read.ALWAYS).last, _settled_period(connection, common)
    ranked = ranking_in(connection, period, limit=_LARGEST, settings=True)
    days = [(_iso(day), waiting, in_io) for day, _, _, in_io, waiting in read.trend(connection, "day", period)]
    months = [(_iso(day)[:7], waiting, in_io) for day, _, _, in_io, waiting in read.trend(connection, "month")]
    monday = last_monday(today)
    is_latest = last is None or last < (period.until or last + 1)
    fresh = None if not is_latest else news(
        monday, last, read.new_pairs(connection, monday),
        read.groups(connection, "category", read.Period(monday - 7 * WEEKS_BEFORE * read.DAY_S, monday)),
        read.groups(connection, "category", read.Period(monday, None)),
    )
    specs = {"months": trend_chart(months, "month")}
    if days:
        specs["days"] = trend_chart(days, "day")
    return page(
        "month", specs, **common, title=when(ranked), ranking=ranked, days=days, day_rows=_cost_rows(days),
        month_rows=_cost_rows(months), fresh=fresh,
        month_links=[(name, f"{name}-01", _last_day(name)) for name, *_ in months],
    )  # fmt: skip


def _ranking(connection: sa.Connection, query: Query, common: dict[str, Any], _: date) -> str:
    by, application, user = query.get("by") or "pair", query.get("application", ""), query.get("user", "")
    if by not in read.GROUPS:
        raise InputError("Runs cannot be summed that way.")
    ranked = ranking_in(connection, _settled_period(connection, common), by=by, limit=1_000_000)
    rows = [
        row for row in ranked.rows
        if application.lower() in (row.application or "").lower() and user.lower() in (row.user or "").lower()
    ]
    limit = _number(query.get("limit"), 100)
    return page(
        "ranking", **common, ranking=ranked, rows=rows[:limit], matching=len(rows), headline=headline(ranked),
        application=application, user=user,
    )  # fmt: skip


def _story(
    connection: sa.Connection, query: Query, common: dict[str, Any]
) -> tuple[read.Period, Story, list[CategoryRuns]]:
    """The period of a page, and the story of its application with the runs."""
    name, user = query.get("name", ""), query.get("user") or None
    period = period_of(common["since"], common["until"])
    if not read.categories_of(connection, name, user, period=period):
        raise MissingPageError("There are no such runs in this time.")
    return period, *story_and_runs(connection, name, user, period)


def _application(connection: sa.Connection, query: Query, common: dict[str, Any], _: date) -> str:
    period, story, categories = _story(connection, query, common)
    users = sorted({of for of, *_ in read.categories_of(connection, story.application)})
    costliest = read.costliest_runs(connection, story.application, story.user, period, _LARGEST)
    points = [
        (at, waiting, some.user, some.processes) for some in categories
        for at, waiting in zip(some.submitted.tolist(), some.waiting_s.tolist(), strict=True)
        if at >= 0 and waiting > 0
    ]
    step = -(-len(points) // _POINTS) if points else 1
    chosen = sorted(points)[::step]
    months = [(month.month, month.waiting_s, month.in_io_s, month.runs) for month in story.months]
    specs = {}
    if len(months) > 1:
        specs["months"] = trend_chart([(of, waiting, in_io) for of, waiting, in_io, _ in months], "month")
    if chosen:
        specs["runs"] = runs_chart(chosen)
    return page(
        "application", specs, **common, story=story, users=users, costliest=costliest,
        shown=story.runs if step == 1 and chosen else len(chosen), step=step,
        changes=[change_sentence(change) for change in story.changes],
        month_rows=[(of, hours(waiting), hours(in_io), f"{runs:,}") for of, waiting, in_io, runs in months],
        category_rows=[
            (f"{category.user}, {category.processes:,}", f"{category.runs:,}", *spread(category.waiting_s))
            for category in story.categories[:50]
        ],
    )  # fmt: skip


def _letter(connection: sa.Connection, query: Query, common: dict[str, Any], _: date) -> str:
    story = _story(connection, query, common)[1]
    return page("letter", **common, application=story.application, lines=letter_text(story).splitlines())


def _run(connection: sa.Connection, query: Query, common: dict[str, Any], _: date) -> str:
    digest = query.get("id", "")
    run = next(read.rows_with(connection, StoredRun, [digest]), None)
    if run is None:
        raise MissingPageError("There is no such run.")
    verdict = read.verdicts_of(connection, [digest]).get(digest)
    paths = read.paths_of(connection, [digest])[digest]
    has_profile = read.profile_content(connection, digest) is not None
    return page("run", **common, run=run, verdict=verdict, paths=paths, has_profile=has_profile, figures=_figures(run))


def _outcomes(connection: sa.Connection, _: Query, common: dict[str, Any], __: date) -> str:
    settings = [*map(setting_cells, measured_settings(connection))]
    return page("outcomes", **common, outcomes=outcomes_in(connection), settings=settings)


def _targets(connection: sa.Connection, _: Query, common: dict[str, Any], __: date) -> str:
    rows = ranked_targets(read.target_times(connection, _settled_period(connection, common)))
    shown = rows[:_TARGETS]
    several = len({row.mount for row in rows}) > 1
    names = [f"{row.mount} OST {row.target}" if several else f"OST {row.target}" for row in shown]
    specs = {"targets": targets_chart([(name, row.lost_s, row.slow) for name, row in zip(names, shown, strict=True)])}
    return page(
        "targets", specs if rows else None, **common, rows=rows, shown=len(shown),
        target_rows=[
            (
                f"{row.mount} OST {row.target}", f"{row.runs:,}", format_number(row.files), format_seconds(row.mean_s),
                format_seconds(row.median_s), format_number(row.times), format_seconds(row.lost_s),
            )
            for row in shown
        ],
    )  # fmt: skip


PAGES: Final[Mapping[str, Callable[[sa.Connection, Query, dict[str, Any], date], str]]] = {
    "/": _month, "/application": _application, "/letter": _letter, "/outcomes": _outcomes, "/ranking": _ranking,
    "/run": _run, "/targets": _targets,
}
"""The pages by path."""


def _settled_period(connection: sa.Connection, common: dict[str, Any]) -> read.Period:
    """The days of a page; by default the month of the last run."""
    last = read.whole(connection, read.ALWAYS).last
    if common["since"] is None and common["until"] is None and last is not None:
        month = datetime.fromtimestamp(last, UTC).strftime("%Y-%m")
        common["since"], common["until"] = f"{month}-01", _last_day(month)
    return period_of(common["since"], common["until"])


def _last_day(month: str) -> str:
    until = period_of(None, month).until
    assert until is not None
    return _iso(int(until // read.DAY_S) - 1)


def _iso(day: int) -> str:
    return datetime.fromtimestamp(day * read.DAY_S, UTC).strftime("%Y-%m-%d")


def _number(text: str | None, otherwise: int) -> int:
    if not text:
        return otherwise
    if not (text.isdecimal() and len(text) < 9):
        raise InputError("The number of rows is not a number.")
    return max(1, min(int(text), _MAX_ROWS))


def _cost_rows(units: list[tuple[str, float, float]]) -> list[tuple[str, str, str]]:
    return [(name, hours(waiting), hours(in_io)) for name, waiting, in_io in units]


_COUNTS: Final = {
    "reads": "reads", "writes": "writes", "opens": "opens", "metadata": "metadata operations",
    "collective": "collective calls of MPI-IO", "independent": "independent calls of MPI-IO", "files": "files",
    "shared_files": "shared files", "writers": "processes that wrote",
}


def _figures(run: StoredRun) -> list[tuple[str, str]]:
    """Figures that the page does not already show above."""
    return [
        *((words, format_count(getattr(run, name))) for name, words in _COUNTS.items()),
        ("time in reads, of all processes", format_seconds(run.read_s)),
        ("time in writes", format_seconds(run.write_s)),
        ("time in metadata operations", format_seconds(run.metadata_s)),
        ("file system", " ".join(filter(None, (run.file_system, run.mount))) or "unknown"),
        ("stripes of the file with most I/O time", format_count(run.stripes)),
    ]
