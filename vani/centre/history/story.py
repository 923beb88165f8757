"""`vani history show`: trend, spread, changes of behaviour and worst run of an application, and its letter."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
import numpy as np

from vani.centre.columns import Floats
from vani.centre.history.ranking import saved_of, shares
from vani.centre.history.ranking_text import hours, judged_by, saved_text
from vani.centre.history.rows import StoredRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Behaviour, Category, Month, Saved, Spread, Story, WorstRun
from vani.centre.history.settings import PeriodSettings, user_options
from vani.cli.options import output_option, settings_options
from vani.cli.output import check_outputs, emit
from vani.errors import InputError, one_line
from vani.render.table import table
from vani.render.wording import MATTERS
from vani.units import counted, first_of, format_bytes, format_seconds, format_share

if TYPE_CHECKING:
    import sqlalchemy as sa

_LEAST_RUNS: Final = 5
"""Minimum number of runs on either side of a change."""
_LEAST_RATIO: Final = 1.5
"""Ratio of medians below which the behaviour is the same."""
_LEAST_SAVED_S: Final = 3600.0
"""A smaller saving is not worth a letter."""
_NOISE: Final = 3.0
"""Number of times the spread on either side by which medians must differ."""
Figure = Literal["bytes", "in_io_s", "waiting_s"]


@dataclass(frozen=True)
class CategoryRuns:
    """Figures of one user's runs with one number of processes, the oldest first; unknown values are NaN.

    Attributes
    ----------
    submitted
        Seconds since 1970. All arrays have shape (runs,).
    runtime_s, in_io_s, waiting_s
        Seconds.
    moved
        Bytes.
    """

    user: str
    processes: int
    submitted: Floats
    runtime_s: Floats
    in_io_s: Floats
    waiting_s: Floats
    moved: Floats

    @property
    def latest(self) -> float:
        """Start of the last run; -inf if no start is known."""
        return float(np.nanmax(self.submitted, initial=-np.inf))


def story(
    application: str, user: str | None, categories: Sequence[CategoryRuns], *, worst: StoredRun | None,
    saved: Saved | None, lines: Sequence[str], paths: Sequence[str],
) -> Story:
    """Summarise the runs of an application.

    Parameters
    ----------
    worst
        The costliest run.
    saved, lines
        The possible saving, and the lines to paste for it.
    paths
        Files of the costliest run.
    """
    submitted, costs = np.concatenate([some.submitted for some in categories]), _costs(categories)
    return Story(
        application=application,
        user=user,
        runs=len(submitted),
        **{name: float(cost.sum()) for name, cost in costs.items()},
        months=_months(submitted, costs),
        categories=sorted(
            (
                Category(
                    user=some.user, processes=some.processes, runs=len(some.submitted),
                    in_io_s=_spread(some.in_io_s), waiting_s=_spread(some.waiting_s),
                )
                for some in categories
            ),
            key=lambda category: (-category.runs, category.user, category.processes),
        ),
        changes=sorted(
            (change for some in categories for change in _changes(some)),
            key=lambda change: (change.at, change.figure),
        ),
        worst=None if worst is None else WorstRun(
            **{name: getattr(worst, name) for name in WorstRun.model_fields if name != "paths"}, paths=list(paths)
        ),
        saved=saved,
        lines=list(lines),
    )


def _costs(categories: Sequence[CategoryRuns]) -> dict[str, Floats]:
    """Contributions of all categories' runs to the costs."""
    processes = np.repeat([some.processes for some in categories], [len(some.submitted) for some in categories])
    costs = {
        "core_s": processes * np.concatenate([some.runtime_s for some in categories]),
        "in_io_s": np.concatenate([some.in_io_s for some in categories]),
        "waiting_s": np.concatenate([some.waiting_s for some in categories]),
    }
    return {name: np.where(np.isnan(cost), 0.0, cost) for name, cost in costs.items()}


def _months(submitted: Floats, costs: dict[str, Floats]) -> list[Month]:
    timed = ~np.isnan(submitted)
    months, places = np.unique(
        submitted[timed].astype("datetime64[s]").astype("datetime64[M]").astype(np.int64), return_inverse=True
    )
    totals = {name: np.bincount(places, cost[timed], minlength=len(months)).tolist() for name, cost in costs.items()}
    return [
        Month(
            month=str(np.datetime64(month, "M")), runs=runs, core_s=totals["core_s"][at],
            in_io_s=totals["in_io_s"][at], waiting_s=totals["waiting_s"][at],
        )
        for at, (month, runs) in enumerate(zip(months.tolist(), np.bincount(places).tolist(), strict=True))
    ]


def _spread(values: Floats) -> Spread | None:
    known = values[~np.isnan(values)]
    if not len(known):
        return None
    return Spread(least=float(known.min()), median=_median(known), most=float(known.max()))


def _median(values: Floats) -> float:
    """Median of known values, without the checks of numpy's median, which dominate for short arrays."""
    middle = len(values) // 2
    if len(values) % 2:
        return float(np.partition(values, middle)[middle])
    low, high = np.partition(values, (middle - 1, middle))[middle - 1 : middle + 1].tolist()
    return float((low + high) / 2)


def _changes(some: CategoryRuns) -> list[Behaviour]:
    timed = ~np.isnan(some.submitted)
    submitted = some.submitted[timed]
    if len(submitted) < 2 * _LEAST_RUNS:
        return []
    figures: dict[Figure, Floats] = {"bytes": some.moved, "in_io_s": some.in_io_s, "waiting_s": some.waiting_s}
    changes = []
    for figure, values in figures.items():
        numbers = values[timed]
        numbers[np.isnan(numbers)] = 0.0
        at = _change(numbers)
        if at is not None:
            changes.append(
                Behaviour(
                    user=some.user, processes=some.processes, at=float(submitted[at]), figure=figure,
                    before=_median(numbers[:at]), after=_median(numbers[at:]),
                )
            )
    return changes


def _change(values: Floats) -> int | None:
    """Index at which values before and after differ most relative to their spread; None if they do not differ."""
    logs = np.log(np.maximum(values, 1e-9))
    places = np.arange(_LEAST_RUNS, len(logs) - _LEAST_RUNS + 1)
    # Means on both sides for every index at once; the best index is then tested with medians.
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    before, after = sums[places] / places, (sums[-1] - sums[places]) / (len(logs) - places)
    weight = places * (len(logs) - places) / len(logs)
    at = int(places[np.argmax(weight * (before - after) ** 2)])
    left, right = logs[:at], logs[at:]
    apart = abs(_median(left) - _median(right))
    if apart < np.log(_LEAST_RATIO):
        return None
    return at if apart >= _NOISE * max(_deviation(left), _deviation(right)) else None


def _deviation(values: Floats) -> float:
    return _median(np.abs(values - _median(values)))


_SHOWN: Final = 10
_NO_CHANGE: Final = "No change of behaviour."
_PLACE: Final = ("The path is from an earlier run: replace it by your next output folder.",)
_FIGURES: Final = {"bytes": "bytes moved", "in_io_s": "time in I/O", "waiting_s": "waiting"}


def story_text(history: Story) -> str:
    """Write everything that is known."""
    whose = f" by {one_line(history.user)}" if history.user is not None else ""
    lines = [
        f"{one_line(history.application)}{whose}: {counted(history.runs, 'run')}, {hours(history.core_s)} core-hours; "
        f"in I/O {hours(history.in_io_s)}, waiting {hours(history.waiting_s)}",
        "",
        *table(
            ("month", "runs", "in I/O", "waiting", "waiting share"),
            [
                (
                    month.month, f"{month.runs:,}", hours(month.in_io_s), hours(month.waiting_s),
                    _share(month.waiting_s, month.core_s),
                )
                for month in history.months
            ],
            left=(),
            all_rows=True,
        ),
        "",
        *table(
            ("", "user", "processes", "runs", "in I/O per run: min, median, max", "waiting per run"),
            [
                (
                    "", one_line(category.user), f"{category.processes:,}", f"{category.runs:,}",
                    _of_runs(category.in_io_s), _of_runs(category.waiting_s),
                )
                for category in history.categories[:_SHOWN]
            ],
            left=(1,),
            all_rows=True,
        ),
    ]
    if len(history.categories) > _SHOWN:
        lines.append(f"  and {counted(len(history.categories) - _SHOWN, 'more category')}")
    lines += ["", *(map(change_sentence, history.changes[-_SHOWN:]) if history.changes else [_NO_CHANGE])]
    if len(history.changes) > _SHOWN:
        lines.append(f"and {counted(len(history.changes) - _SHOWN, 'earlier change')}")
    return "\n".join([*lines, *_worst(history), "", *_advice(history)]) + "\n"


def letter_text(history: Story) -> str:
    """Write to the user what to change, or that nothing needs to change; ready for mail, without colours."""
    lines = [
        f"Subject: I/O of {one_line(history.application)}",
        "",
        f"Dear {one_line(history.user or 'user')},",
        "",
        f"{counted(history.runs, 'run')} of {one_line(history.application)} took {hours(history.core_s)} core-hours"
        f"{_time(history)}. In {hours(history.waiting_s)} of these ({_share(history.waiting_s, history.core_s)}), "
        "processes waited for I/O.",
        "",
    ]
    saved = history.saved
    if saved is None:
        lines += ["None of these runs was judged, so the possible saving is not known yet."]
    elif saved.state == "nothing_found":
        lines += [
            f"We checked {counted(saved.judged_runs, 'run')} for settings that would make it faster and found none: "
            f"nothing needs to be changed{_typical(saved)}."
        ]
    elif saved.high_s is not None and saved.high_s < _LEAST_SAVED_S:
        lines += ["No setting that we know would save a core-hour: nothing needs to be changed."]
    else:
        lines += [
            f"{one_line(saved.why)}",
            "The possible saving is not known until a run shows more of its I/O. Trace a run with:"
            if saved.rule == MATTERS
            else f"The possible saving is not known{_typical(saved)}: measure a run with this change."
            if saved.state == "gain_unknown"
            else f"About {hours(saved.expected_s)} core-hours could be saved ({hours(saved.low_s)} to "
            f"{hours(saved.high_s)}), estimated by a model for {judged_by(saved)}:",
            "",
            *(f"    {one_line(line)}" for line in history.lines or [saved.setting]),
            "",
            *(_PLACE if any("/" in line and not line.startswith("#") for line in history.lines) else ()),
            "Why this helps:",
            "",
            f"    vani explain {saved.rule}",
        ]
    return "\n".join([*lines, "", "We are glad to help.", ""])


def _typical(saved: Saved) -> str:
    """The source of figures for advice without a number, as the end of a sentence; empty for this machine's."""
    return ", with figures of a typical machine" if saved.typical_machine else ""


def _time(history: Story) -> str:
    if not history.months:
        return ""
    first, last = history.months[0].month, history.months[-1].month
    return f" in {first}" if first == last else f" from {first} to {last}"


def _share(part: float, whole: float) -> str:
    return format_share(part / whole) if whole else "unknown"


def _of_runs(values: Spread | None) -> str:
    return "unknown" if values is None else ", ".join(spread(values))


def spread(values: Spread | None) -> tuple[str, str, str]:
    """Minimum, median and maximum of seconds, as text."""
    if values is None:
        return ("unknown",) * 3
    return format_seconds(values.least), format_seconds(values.median), format_seconds(values.most)


def change_sentence(change: Behaviour) -> str:
    """A sentence on which figure changed, and since when."""
    write = format_bytes if change.figure == "bytes" else format_seconds
    day = datetime.fromtimestamp(change.at, UTC)
    return (
        f"Since {day:%Y-%m-%d}, {counted(change.processes, 'process')} of {one_line(change.user)}: "
        f"{_FIGURES[change.figure]} of a run {write(change.after)}, {write(change.before)} before (medians)"
    )


def _worst(history: Story) -> list[str]:
    worst = history.worst
    if worst is None:
        return []
    day = ("" if worst.submitted is None else f" on {datetime.fromtimestamp(worst.submitted, UTC):%Y-%m-%d %H:%M} UTC")
    lines = [
        "",
        f"Worst run{day}: {counted(worst.processes, 'process')}, {format_seconds(worst.runtime_s)}; in I/O "
        f"{format_seconds(worst.in_io_s)}, waiting {format_seconds(worst.waiting_s)}; "
        f"{format_bytes(worst.bytes_written)} written, {format_bytes(worst.bytes_read)} read",
    ]
    return [*lines, *(f"  {one_line(path)}" for path in worst.paths[:2])]


def _advice(history: Story) -> list[str]:
    if history.saved is None:
        return ["No run was judged: `vani history add` with a larger --judge judges it while the logs exist."]
    saved = history.saved
    if saved.state == "nothing_found":
        return [f"Checked {judged_by(saved)} for settings that would save time, and found none{_typical(saved)}."]
    could = f"Could be saved: {saved_text(saved)} core-hours"
    how_much = "Recommended, gain not known" if saved.state == "gain_unknown" else could
    figures = _typical(saved) if saved.state == "gain_unknown" else ""
    return [
        f"{how_much} ({judged_by(saved)}{figures}). {one_line(saved.why)}",
        *(f"  {one_line(line)}" for line in history.lines), f"  (vani explain {saved.rule})",
    ]


def history_show(
    application: str, user: str | None = None, settings: PeriodSettings | None = None, **fields: Any
) -> Story:
    """Summarise an application: trend, spread, changes in behaviour, the worst run and its advice.

    Parameters
    ----------
    user
        User who ran them; None: all users.

    Raises
    ------
    InputError
        There is no history, or it contains no such run.
    """
    settings = PeriodSettings.of(settings, **fields)
    period = settings.period
    with Store(settings.db).reading() as connection:
        return story_and_runs(connection, application, user, period)[0]


def categories_in(
    connection: sa.Connection, application: str, user: str | None, period: read.Period
) -> list[CategoryRuns]:
    """Figures of an application's runs, by user and number of processes."""
    return [
        CategoryRuns(name, processes, *figures)
        for name, processes, figures in read.category_figures(connection, application, user, period)
    ]


def story_and_runs(
    connection: sa.Connection, application: str, user: str | None, period: read.Period
) -> tuple[Story, list[CategoryRuns]]:
    """Summarise an application like `history_show`, and return the figures of its runs as well."""
    pairs = read.groups(connection, "pair", period)
    own = [group for group in pairs if group.pair[0] == application and user in (None, group.pair[1])]
    if not own:
        raise unknown_runs(connection, application, user, period)
    categories = categories_in(connection, application, user, period)
    known = shares(read.verdicts(connection))
    judged = [group for group in own if group.pair in known]
    best = max(judged, key=lambda group: group.waiting_s * known[group.pair].expected, default=None)
    (worst,) = read.costliest_runs(connection, application, user, period, 1)
    summary = story(
        application, user, categories, worst=worst, saved=saved_of(own, known),
        lines=() if best is None else known[best.pair].best.lines,
        paths=read.paths_of(connection, [worst.digest])[worst.digest],
    )  # fmt: skip
    return summary, categories


_USERS = 3
"""Number of users of an application that an error names."""


def unknown_runs(
    connection: sa.Connection, application: str, user: str | None, period: read.Period = read.ALWAYS
) -> InputError:
    """Error for runs that the history does not contain; it suggests the closest user or application."""
    pairs = [group.pair for group in read.groups(connection, "pair", period)]
    whose = "" if user is None else f" by {one_line(user)}"
    names = [user_ for app, user_ in pairs if app == application] if user is not None else []
    near = difflib.get_close_matches(user or "", names, 1)
    if not near and not names:
        near = difflib.get_close_matches(application, {app for app, _ in pairs}, 1)
    todo = "`vani history top` lists applications and users"
    if near:
        todo = f"did you mean {one_line(near[0])!r}?"
    elif names:
        todo = f"its users are {first_of(list(map(one_line, sorted(names))), _USERS)}"
    return InputError(f"no runs of {one_line(application)}{whose} in this time", todo=todo)


@click.command("show")
@click.argument("application", metavar="APP")
@user_options("The same as USER.")
@settings_options(PeriodSettings)
@output_option()
def show_command(application: str, user: str | None, settings: PeriodSettings, output: Path | None) -> None:
    """Show the runs of APP, by USER or by all users.

    Trend by month, spread within each category, changes of behaviour, and the worst run with its advice.
    """
    check_outputs([output])
    emit(story_text(history_show(application, user, settings)), output)
