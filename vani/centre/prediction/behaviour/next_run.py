"""The next run of a category: probabilities of behaviours, and their figures (`vani history predict`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np
from pydantic import Field

import vani
from vani.centre.columns import Flags, Floats, Ints
from vani.centre.history.ranking import history_top
from vani.centre.history.ranking_text import FORMATS as RANKING_FORMATS
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.settings import HistorySettings, user_options
from vani.centre.history.story import unknown_runs
from vani.centre.prediction import schema
from vani.centre.prediction.behaviour.panel import AUTO, Panel, most_likely, replay
from vani.centre.prediction.behaviour.predictors import begins
from vani.centre.prediction.behaviour.runs import TOTALS, Runs, kept_runs
from vani.centre.prediction.text import FORMATS
from vani.cli.options import format_option, output_option, settings_options
from vani.cli.output import check_outputs, emit
from vani.errors import one_line
from vani.schema.settings import PathLike
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking

_MAX_OF_CATEGORY: Final = 2000
_MAX_OF_OTHERS: Final = 500
"""Number of latest runs shown to predictors. Older ones do not change the result, and cost time."""
_SHOWN: Final = 5
_LEAST: Final = 0.005
_PAST: Final = 30
_NAMED: Final = 8


Paths = Callable[[Sequence[str]], Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class _Selection:
    """The category in question; None if no run of it is known."""

    category: int | None
    user: str | None
    processes: int | None
    notes: tuple[str, ...]


def next_run(
    runs: Runs, application: str, *, user: str | None = None, processes: int | None = None, among: int | None = None,
    at: float | None = None, paths: Paths | None = None,
) -> schema.BehaviourPrediction:
    """Predict the next run of an application.

    Parameters
    ----------
    runs
        Runs of the application, at least one.
    user, processes
        User and number of processes of the run; None takes those of the latest matching run.
    among
        Matching categories; None takes those of `runs`.
    at
        Start of the run, in seconds since 1970: only runs that had ended by then are used. None uses all.
    paths
        Maps digests of runs to their files.
    """
    if at is not None:
        runs = runs.only(runs.ended <= at)
    query = _selection(runs, user, processes, among)
    same: dict[str, Any] = {
        "version": vani.__version__, "notes": [*runs.notes, *query.notes], "application": application,
        "user": query.user, "processes": query.processes,
    }
    if query.category is None:
        return schema.BehaviourPrediction(
            **same, outside=[_unknown(runs, user, processes)], runs=0, behaviours=[], other=1.0, predictors=[], past=[]
        )
    in_category = runs.category == query.category
    panel, past = _followed(runs, in_category, query.category)
    ahead = panel.predict(query.category)
    shares = ahead[-1]
    by_share = sorted(shares, key=shares.__getitem__, reverse=True)
    likely = [behaviour for behaviour in by_share if shares[behaviour] >= _LEAST][:_SHOWN]
    weights = panel.weights(query.category)
    guesses = {name: most_likely(expected) for name, expected in zip(panel.names, ahead, strict=True)}
    return schema.BehaviourPrediction(
        **same,
        outside=[],
        runs=int(in_category.sum()),
        behaviours=[_likely(runs, in_category, behaviour, shares[behaviour], paths) for behaviour in likely],
        other=max(0.0, 1.0 - sum(shares[behaviour] for behaviour in likely)),
        predictors=[
            schema.WeighedPredictor(
                name=name, weight=min(1.0, weights[name]), behaviour=max(0, guess), probability=min(1.0, share)
            )
            for name, (guess, share) in guesses.items()
            if name != AUTO
        ],
        past=past,
    )


def _selection(runs: Runs, user: str | None, processes: int | None, among: int | None) -> _Selection:
    fits = np.array(
        [user in (None, whose) and processes in (None, number) for _, whose, number in runs.names], np.bool_
    )
    of_run = fits[runs.category] if len(runs) else np.zeros(0, np.bool_)
    if not of_run.any():
        return _Selection(None, user, processes, ())
    category = int(runs.category[np.flatnonzero(of_run)[-1]])
    _, whose, number = runs.names[category]
    met = len(np.unique(runs.category[of_run])) if among is None else among
    note = (
        f"there are {met:,} categories of user and processes; this is the latest run's: "
        f"--user {one_line(whose)} --processes {number}"
    )
    return _Selection(category, whose, number, (note,) if met > 1 else ())


def _unknown(runs: Runs, user: str | None, processes: int | None) -> str:
    if not len(runs):
        return "no ended run is known"
    whose = "" if user is None else f" by {one_line(user)}"
    met = sorted({number for _, owner, number in runs.names if user in (None, owner)})
    others = " and others" if len(met) > _NAMED else ""
    there = f" (there are runs with {', '.join(map(str, met[:_NAMED]))}{others})" if met else ""
    return f"no run{whose} with {counted(processes or 0, 'process')} is known{there}"


def _followed(runs: Runs, in_category: Flags, category: int) -> tuple[Panel, list[schema.PastRun]]:
    """A panel that has seen the last runs, and what it had expected of each run of the category."""
    own, others = np.flatnonzero(in_category), np.flatnonzero(~in_category)
    chosen = np.sort(np.concatenate([own[-_MAX_OF_CATEGORY:], others[-_MAX_OF_OTHERS:]]))
    panel = Panel(begins())
    past: list[schema.PastRun] = []
    last = set(own[-_PAST:].tolist())
    for place in replay(runs, panel, chosen.tolist(), ended_only=True):
        if place in last:
            guess, share = most_likely(panel.predict(category)[-1])
            past.append(
                schema.PastRun(
                    submitted=float(runs.submitted[place]), behaviour=int(runs.ids[place]),
                    expected=guess if guess >= 0 else None, probability=min(1.0, share),
                )
            )  # fmt: skip
    return panel, past


def _likely(
    runs: Runs, in_category: Flags, behaviour: int, share: float, paths: Paths | None
) -> schema.LikelyBehaviour:
    such: Ints = np.flatnonzero(in_category & (runs.ids == behaviour))
    figures, latest = runs.figures, int(such[-1])
    digest = runs.digests[latest] if runs.digests else None
    ranges: dict[str, Any] = {name: _range(figures[name][such]) for name in (*TOTALS, "files", "runtime_s", "in_io_s")}
    of_latest = list(paths([digest])[digest]) if paths is not None and digest is not None else []
    return schema.LikelyBehaviour(
        behaviour=behaviour, probability=min(1.0, share), runs=len(such), **ranges,
        operations=_range(figures["reads"][such] + figures["writes"][such]),
        resembles=schema.KnownRun(digest=digest, submitted=float(runs.submitted[latest]), paths=of_latest),
    )  # fmt: skip


def _range(values: Floats) -> schema.ExpectedRange | None:
    known = values[np.isfinite(values) & (values >= 0)]
    if not len(known):
        return None
    low, median, high = np.quantile(known, (0.05, 0.5, 0.95)).tolist()
    return schema.ExpectedRange(low=low, median=median, high=high)


_MAX_ROWS: Final = 20
"""Maximum number of ranking rows whose next run is predicted."""


class PredictSettings(HistorySettings):
    """The run to predict."""

    processes: int | None = Field(
        None, ge=1, le=10_000_000, description="Its number of processes; by default as in the latest run."
    )


def history_predict(
    application: str, user: str | None = None, settings: PredictSettings | None = None, *, at: float | None = None,
    **fields: Any,
) -> schema.BehaviourPrediction:
    """Predict the behaviour of an application's next run, with probabilities.

    Parameters
    ----------
    user
        User of the run; None takes that of the latest matching run.
    at
        Start of the run, in seconds since 1970: only runs that had ended by then are used. None uses all.

    Returns
    -------
    BehaviourPrediction
        Contains no behaviours if no run of the category is known.

    Raises
    ------
    InputError
        There is no history, or it contains no run of the application.
    """
    settings = PredictSettings.of(settings, **fields)
    with Store(settings.db).reading() as connection:
        categories = read.categories_of(connection, application, user, settings.processes)
        fits = [category for category in categories if category[3] is not None]
        # Read only the runs of the user in question.
        runs = kept_runs(connection, application, fits[0][0] if fits else user)
        if not len(runs):
            raise unknown_runs(connection, application, user)
        paths, processes = partial(read.paths_of, connection), settings.processes
        return next_run(runs, application, user=user, processes=processes, among=len(fits), at=at, paths=paths)


def history_next_runs(ranking: Ranking, *, db: PathLike | None = None) -> list[schema.BehaviourPrediction]:
    """Predict the next run for each application and user of a ranking, in its order.

    Parameters
    ----------
    db
        As in `history_add`.

    Raises
    ------
    InputError
        There is no history.
    """
    predictions = []
    with Store(db).reading() as connection:
        for row in ranking.rows[:_MAX_ROWS]:
            if row.application is None:
                continue
            runs = kept_runs(connection, row.application, row.user)
            if len(runs):
                predictions.append(next_run(runs, row.application, user=row.user))
    return predictions


def history_page(db: PathLike, format: str) -> str:
    """The ranking of `history_top` with the next runs of its applications: `text`, `markdown` or `html`.

    Raises
    ------
    InputError
        There is no history.
    """
    ranking = history_top(db=db)
    return RANKING_FORMATS.render(format, ranking, next_runs=history_next_runs(ranking, db=db))


@click.command("predict")
@click.argument("application", metavar="APP")
@user_options("The same as USER; by default the user of the latest run.")
@settings_options(PredictSettings)
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def command(
    application: str, user: str | None, settings: PredictSettings, kind: str | None, output: Path | None
) -> None:
    """Predict the behaviour of the next run of APP, with probabilities and bytes.

    Runs have the same behaviour where bytes read, bytes written and metadata operations agree within a factor of 1.2.
    """
    check_outputs([output])
    prediction = history_predict(application, user, settings)
    emit(FORMATS.render(FORMATS.chosen(kind, output, "text"), prediction), output)
