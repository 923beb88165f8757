"""The pages of `vani history serve`, and the queries behind each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from vani.centre.history.api.outcome import outcomes_in
from vani.centre.history.api.show import story_and_runs
from vani.centre.history.contents import measured_settings
from vani.centre.history.days import period_of
from vani.centre.history.fresh import WEEKS_BEFORE, last_monday, news
from vani.centre.history.ranking import ranking
from vani.centre.history.rows import PlannedRun, StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.saved import shares
from vani.centre.history.scored import plan_scores
from vani.centre.history.targets import ranked_targets
from vani.centre.history.text.contents import setting_cells
from vani.centre.history.text.rows import headline, hours, when
from vani.centre.history.text.scored import SCORE_HEAD, score_row
from vani.centre.history.text.site.charts import runs_chart, targets_chart, trend_chart
from vani.centre.history.text.site.pages import page
from vani.centre.history.text.story import change_sentence, letter, spread
from vani.errors import InputError
from vani.units import format_count, format_number, format_seconds

if TYPE_CHECKING:
    import sqlalchemy as sa


_DAY_S: Final = 86400
_ROWS: Final = 10
_MOST_ROWS: Final = 5000
_POINTS: Final = 2000
"""Maximum number of runs in a chart; with more, the points merge and slow browsers down."""
_TARGETS: Final = 15

Query = Mapping[str, str]


class MissingPageError(InputError):
    """There is no page, run or application with this name."""


def page_of(store: Store, path: str, query: Query, now: datetime) -> str:
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
        "here": path,
        "place": store.name,
        "since": query.get("since") or None,
        "until": query.get("until") or None,
    }
    return PAGES[path](store, query, common, now)


def _month(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del query
    with store.reading() as connection:
        always = read.whole(connection, read.ALWAYS)
        _settle_period(common, always.last)
        period = period_of(common["since"], common["until"])
        ranked = ranking(
            read.groups(connection, "pair", period),
            read.whole(connection, period),
            shares(read.verdicts(connection)),
            by="pair", period=period, limit=_ROWS, damaged=read.count_damaged(connection), settings=True,
        )  # fmt: skip
        days = [(_iso(day), waiting, in_io) for day, _, _, in_io, waiting in read.trend(connection, "day", period)]
        months = [
            (_iso(day)[:7], waiting, in_io) for day, _, _, in_io, waiting in read.trend(connection, "month")
        ]
        monday = last_monday(now)
        is_latest = always.last is None or always.last < (period.until or always.last + 1)
        fresh = None if not is_latest else news(
            monday,
            always.last,
            read.new_pairs(connection, monday),
            read.groups(connection, "category", read.Period(monday - 7 * WEEKS_BEFORE * _DAY_S, monday)),
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


def _ranking(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del now
    by, application, user = query.get("by") or "pair", query.get("application", ""), query.get("user", "")
    if by not in read.GROUPS:
        raise InputError("Runs cannot be summed that way.")
    with store.reading() as connection:
        _settle_period(common, read.whole(connection, read.ALWAYS).last)
        period = period_of(common["since"], common["until"])
        ranked = ranking(
            read.groups(connection, by, period),
            read.whole(connection, period),
            shares(read.verdicts(connection)),
            by=by, period=period, limit=1_000_000, damaged=read.count_damaged(connection),
        )  # fmt: skip
    rows = [
        row
        for row in ranked.rows
        if application.lower() in (row.application or "").lower() and user.lower() in (row.user or "").lower()
    ]
    limit = _number(query.get("limit"), 100)
    return page(
        "ranking", **common, ranking=ranked, rows=rows[:limit], matching=len(rows), headline=headline(ranked),
        application=application, user=user,
    )  # fmt: skip


def _application(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del now
    name, user = query.get("name", ""), query.get("user") or None
    period = period_of(common["since"], common["until"])
    with store.reading() as connection:
        _refuse_unknown(connection, name, user, period)
        story, categories = story_and_runs(connection, name, user, period)
        users = sorted({of for of, *_ in read.categories_of(connection, name)})
        costliest = read.costliest_runs(connection, name, user, period, _ROWS)
    points = [
        (at, waiting, some.user, some.processes)
        for some in categories
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


def _letter(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del now
    name, user = query.get("name", ""), query.get("user") or None
    period = period_of(common["since"], common["until"])
    with store.reading() as connection:
        _refuse_unknown(connection, name, user, period)
        story, _ = story_and_runs(connection, name, user, period)
    return page("letter", **common, application=story.application, lines=letter(story).splitlines())


def _run(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del now
    digest = query.get("id", "")
    with store.reading() as connection:
        run = next(read.rows_with(connection, StoredRun, [digest]), None)
        if run is None:
            raise MissingPageError("There is no such run.")
        verdict = read.verdicts_of(connection, [digest]).get(digest)
        paths = read.paths_of(connection, [digest])[digest]
        has_profile = read.profile_content(connection, digest) is not None
    return page(
        "run", **common, run=run, verdict=verdict, paths=paths, has_profile=has_profile, figures=_figures(run)
    )


def _outcomes(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del query, now
    with store.reading() as connection:
        scores = plan_scores(read.rows(connection, PlannedRun))
        return page(
            "outcomes", **common, outcomes=outcomes_in(connection), score_head=SCORE_HEAD,
            score_rows=[score_row(score) for score in scores],
            settings=[*map(setting_cells, measured_settings(connection))],
        )  # fmt: skip


def _targets(store: Store, query: Query, common: dict[str, Any], now: datetime) -> str:
    del query, now
    with store.reading() as connection:
        _settle_period(common, read.whole(connection, read.ALWAYS).last)
        rows = ranked_targets(read.target_times(connection, period_of(common["since"], common["until"])))
    shown = rows[:_TARGETS]
    several = len({row.mount for row in rows}) > 1
    names = [f"{row.mount} OST {row.target}" if several else f"OST {row.target}" for row in shown]
    specs = {
        "targets": targets_chart([(name, row.lost_s, row.slow) for name, row in zip(names, shown, strict=True)])
    }
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


PAGES: Final[Mapping[str, Callable[[Store, Query, dict[str, Any], datetime], str]]] = {
    "/": _month,
    "/application": _application,
    "/letter": _letter,
    "/outcomes": _outcomes,
    "/ranking": _ranking,
    "/run": _run,
    "/targets": _targets,
}
"""The pages by path."""


def _refuse_unknown(connection: sa.Connection, application: str, user: str | None, period: read.Period) -> None:
    if not read.categories_of(connection, application, user, period=period):
        raise MissingPageError("There are no such runs in this time.")


def _settle_period(common: dict[str, Any], last: float | None) -> None:
    """Default to the month of the last run if no days are given."""
    if common["since"] is None and common["until"] is None and last is not None:
        month = datetime.fromtimestamp(last, UTC).strftime("%Y-%m")
        common["since"], common["until"] = f"{month}-01", _last_day(month)


def _last_day(month: str) -> str:
    until = period_of(None, month).until
    assert until is not None
    return _iso(int(until // _DAY_S) - 1)


def _iso(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY_S, UTC).strftime("%Y-%m-%d")


def _number(text: str | None, otherwise: int) -> int:
    if not text:
        return otherwise
    if not (text.isdecimal() and len(text) < 9):
        raise InputError("The number of rows is not a number.")
    return max(1, min(int(text), _MOST_ROWS))


def _cost_rows(units: list[tuple[str, float, float]]) -> list[tuple[str, str, str]]:
    return [(name, hours(waiting), hours(in_io)) for name, waiting, in_io in units]


def _figures(run: StoredRun) -> list[tuple[str, str]]:
    """Figures that the page does not already show above."""
    return [
        ("reads", format_count(run.reads)),
        ("writes", format_count(run.writes)),
        ("opens", format_count(run.opens)),
        ("metadata operations", format_count(run.metadata)),
        ("collective calls of MPI-IO", format_count(run.collective)),
        ("independent calls of MPI-IO", format_count(run.independent)),
        ("files", format_count(run.files)),
        ("shared files", format_count(run.shared_files)),
        ("processes that wrote", format_count(run.writers)),
        ("time in reads, of all processes", format_seconds(run.read_s)),
        ("time in writes", format_seconds(run.write_s)),
        ("time in metadata operations", format_seconds(run.metadata_s)),
        ("file system", " ".join(filter(None, (run.file_system, run.mount))) or "unknown"),
        ("stripes of the file with most I/O time", format_count(run.stripes)),
    ]


