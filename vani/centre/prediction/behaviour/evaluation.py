"""Tests predictors on later runs, each predicted only from earlier knowledge: `vani history evaluate`."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final

import click
import numpy as np
from pydantic import Field

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.history.runs.store import Store
from vani.centre.history.settings import HistorySettings
from vani.centre.prediction.behaviour.panel import AUTO, Panel, most_likely, replay
from vani.centre.prediction.behaviour.predictors import Begin, begins
from vani.centre.prediction.behaviour.runs import Runs, kept_runs, read_table
from vani.centre.prediction.behaviour.self_attention import is_installed, prepare
from vani.cli.options import FILE, settings_options
from vani.errors import InputError, one_line
from vani.render.table import table
from vani.schema.settings import Option, PathLike
from vani.units import counted

_DRAWS: Final = 2000
_INNER: Final = 0.7


SURE: Final = 0.9
"""Least probability of a prediction that counts as sure."""


ShareRange = tuple[float, float, float]
"""A share, 0..1, and the ends of its 95 % bootstrap interval over categories."""


@dataclass(frozen=True)
class Score:
    """The score of a predictor.

    Attributes
    ----------
    per_run
        Share of the runs that were predicted correctly.
    per_category
        Mean of that share over the categories.
    brier
        Brier score of the most probable behaviour: mean square of (probability - outcome).
    sure
        Share of the runs predicted with a probability of at least `SURE`.
    sure_right
        Share of those predictions that were right; None if there are none.
    """

    name: str
    per_run: ShareRange
    per_category: ShareRange
    brier: float
    sure: float
    sure_right: float | None


@dataclass(frozen=True)
class Reliability:
    """Predictions of `auto` with a probability of `low` to `high`: mean probability (`said`), share that was right."""

    low: float
    high: float
    runs: int
    said: float
    right: float


@dataclass(frozen=True)
class Mode:
    """The scores of all predictors.

    Attributes
    ----------
    known
        Number of predicted runs. The `unknown` ones had no earlier run of their category.
    categories
        Number of categories of the predicted runs.
    seen
        Share of the runs whose behaviour had occurred before, an upper bound for every predictor.
    """

    ended_only: bool
    known: int
    unknown: int
    categories: int
    seen: float
    scores: tuple[Score, ...]
    reliability: tuple[Reliability, ...]


@dataclass(frozen=True)
class Comparison:
    """The scores in both modes; `behaviours` is their number over all categories."""

    runs: int
    categories: int
    behaviours: int
    first: float
    modes: tuple[Mode, Mode]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Tested:
    """Predictions for each test run whose category was known; arrays have the shape (runs,).

    Attributes
    ----------
    place
        Index of the run.
    seen
        Whether its behaviour was known already, which is the upper limit for any predictor.
    guesses, sure
        By predictor, the most likely id and its probability.
    actual
        The actual id.
    unknown
        Number of test runs in categories without a known run, for which nothing is predicted.
    """

    place: Ints
    seen: Flags
    guesses: Mapping[str, Ints]
    probabilities: Mapping[str, Floats]
    actual: Ints
    unknown: int


def learnt(runs: Runs, first: int) -> tuple[dict[str, Begin], frozenset[str]]:
    """Factories of followers trained on the runs before `first`, and the names of predictors that lose there.

    A predictor loses if, trained on the first part of these runs, it is right in the last part no more often than
    the best of the others, including `auto`.
    """
    if not is_installed():
        return {}, frozenset()
    name, train, inner = "self-attention", runs.only(np.arange(len(runs)) < first), int(_INNER * first)
    tried = begins() | {name: prepare(_sequences(train, inner))}
    tested = judge(train, inner, ended_only=False, begin=tried, unweighed=frozenset({name}))
    right = {name: int((guesses == tested.actual).sum()) for name, guesses in tested.guesses.items()}
    loses = right.pop(name) <= max(right.values())
    return {name: prepare(_sequences(train, first))}, frozenset({name} if loses else ())


def _sequences(runs: Runs, number: int) -> list[list[int]]:
    """The ids of each category within the first `number` runs."""
    by_category: dict[int, list[int]] = {}
    for category, behaviour in zip(runs.category[:number].tolist(), runs.ids[:number].tolist(), strict=True):
        by_category.setdefault(category, []).append(behaviour)
    return list(by_category.values())


def judge(
    runs: Runs, first: int, *, ended_only: bool, begin: Mapping[str, Begin], unweighed: frozenset[str] = frozenset()
) -> Tested:
    """Predict each run from `first` on, using the runs before it.

    Parameters
    ----------
    ended_only
        Use only runs that had ended when it was submitted, in the order in which they ended; otherwise use all runs
        submitted earlier.
    unweighed
        Predictors that `auto` ignores.
    """
    panel = Panel(begin, unweighed)
    rows: list[tuple[int, bool, list[int], list[float]]] = []
    unknown = 0
    for place in replay(runs, panel, range(len(runs)), ended_only=ended_only):
        if place < first:
            continue
        said = [most_likely(shares) for shares in panel.predict(int(runs.category[place]))]
        if said[-1][0] < 0:
            unknown += 1
            continue
        seen = panel.has_seen(int(runs.category[place]), int(runs.ids[place]))
        rows.append((place, seen, [guess for guess, _ in said], [share for _, share in said]))
    where, seen_before = np.array([row[0] for row in rows], np.int64), np.array([row[1] for row in rows], np.bool_)
    guesses = np.array([row[2] for row in rows], np.int64).reshape(-1, len(panel.names))
    sure = np.array([row[3] for row in rows], np.float64).reshape(-1, len(panel.names))
    by_name = dict(zip(panel.names, guesses.T, strict=True)), dict(zip(panel.names, sure.T, strict=True))
    return Tested(where, seen_before, *by_name, runs.ids[where], unknown)


def score(tested: Tested, category: Ints, name: str) -> Score:
    """The score of a predictor on test runs; `category` is the category of each run, shape (runs,)."""
    right = tested.guesses[name] == tested.actual
    said = tested.probabilities[name]
    sure = said >= SURE
    sure_right = float(right[sure].mean()) if sure.any() else None
    return Score(name, *shares(right, category), float(np.mean((said - right) ** 2)), float(sure.mean()), sure_right)


def shares(right: Flags, category: Ints) -> tuple[ShareRange, ShareRange]:
    """Share of correct runs and mean share per category, each with its bootstrap range over categories."""
    _, group = np.unique(category, return_inverse=True)
    runs = np.bincount(group)
    hits = np.bincount(group, weights=right)
    number = len(runs)
    drawn = np.random.default_rng(1).multinomial(number, np.full(number, 1 / number), _DRAWS)
    of_runs = (drawn @ hits) / (drawn @ runs)
    of_categories = (drawn @ (hits / runs)) / number
    of_run, of_category = float(hits.sum() / runs.sum()), float((hits / runs).mean())
    ends = [np.quantile(drawn, (0.025, 0.975)).tolist() for drawn in (of_runs, of_categories)]
    return (of_run, *ends[0]), (of_category, *ends[1])


_MAX_RUNS: Final = 100_000
_EDGES: Final = (0.0, 0.5, 0.7, 0.9, 0.97, 1.0)


def compare_predictors(runs: Runs, last: float) -> Comparison:
    """Compare predictors on the last runs, a share `last` of all.

    Raises
    ------
    InputError
        None of the runs to predict has a category with an earlier run.
    """
    notes = list(runs.notes)
    if len(runs) > _MAX_RUNS:
        notes.append(f"of {counted(len(runs), 'run')}, the last {_MAX_RUNS:,} are used")
        runs = runs.only(np.arange(len(runs)) >= len(runs) - _MAX_RUNS)
    first = int((1 - last) * len(runs))
    more, lose = learnt(runs, first)
    notes += [f"auto skips {name}, which did not help before" for name in sorted(lose)]
    modes = []
    for ended_only in (False, True):
        tested = judge(runs, first, ended_only=ended_only, begin=begins() | more, unweighed=lose)
        if not len(tested.place):
            what = f"{counted(len(runs), 'run')}: of the last {last:.0%} none belongs to a known category"
            raise InputError(what, where="runs", todo="add more runs (vani history add)")
        modes.append(_mode(runs, tested, ended_only=ended_only))
    categories = len(np.unique(runs.category))
    behaviours = len(np.unique(np.column_stack([runs.category, runs.ids]), axis=0))
    begin = float(runs.submitted[first])
    return Comparison(len(runs), categories, behaviours, begin, (modes[0], modes[1]), tuple(notes))


def _mode(runs: Runs, tested: Tested, *, ended_only: bool) -> Mode:
    category = runs.category[tested.place]
    scores = tuple(score(tested, category, name) for name in tested.guesses)
    reliability = _reliability(tested.probabilities[AUTO], tested.guesses[AUTO] == tested.actual)
    counts = len(tested.place), tested.unknown, len(np.unique(category))
    return Mode(ended_only, *counts, float(tested.seen.mean()), scores, reliability)


def _reliability(probabilities: Floats, right: Flags) -> tuple[Reliability, ...]:
    rows = []
    for low, high in pairwise(_EDGES):
        among = (probabilities >= low) & ((probabilities < high) | (high == _EDGES[-1]))
        if among.any():
            means = float(probabilities[among].mean()), float(right[among].mean())
            rows.append(Reliability(low, high, int(among.sum()), *means))
    return tuple(rows)


def behaviour_scores(comparison: Comparison) -> str:
    """A table for each mode; ranges cover 95 % of resamplings of categories."""
    since = datetime.fromtimestamp(comparison.first, UTC) if 0 <= comparison.first < 1 << 33 else None
    when = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None else ""
    lines = [
        f"{counted(comparison.runs, 'run')}, {counted(comparison.categories, 'category')}, "
        f"{counted(comparison.behaviours, 'behaviour')}; predicted: runs{when}."
    ]
    for mode in comparison.modes:
        lines += ["", *_mode_lines(mode)]
    lines += [line for note in comparison.notes for line in ("", f"Note: {one_line(note)}.")]
    return "\n".join([*lines, ""])


def _mode_lines(mode: Mode) -> Iterator[str]:
    known = "earlier runs that had ended" if mode.ended_only else "all earlier runs"
    yield f"Each from {known}: {counted(mode.known, 'run')} of {counted(mode.categories, 'category')};" + (
        f" {counted(mode.unknown, 'run')} not known" if mode.unknown else " all known"
    )
    yield ""
    head = ("predictor", "per run", "95 %", "per category", "95 %", "Brier", "sure", "correct")
    rows = [
        (
            score.name, *_judged(score.per_run), *_judged(score.per_category), f"{score.brier:.3f}",
            f"{score.sure:.3f}", "" if score.sure_right is None else f"{score.sure_right:.3f}",
        )
        for score in mode.scores
    ]
    yield from table(head, [*rows, ("seen before", f"{mode.seen:.3f}", *[""] * 6)])
    yield ""
    bands = [
        (f"{band.low:.2f} to {band.high:.2f}", f"{band.runs:,}", f"{band.said:.3f}", f"{band.right:.3f}")
        for band in mode.reliability
    ]
    yield from table(("auto stated", "runs", "on average", "right"), bands)


def _judged(figure: ShareRange) -> tuple[str, str]:
    return f"{figure[0]:.3f}", f"{figure[1]:.2f} to {figure[2]:.2f}"


class EvaluateSettings(HistorySettings):
    """Which runs to predict."""

    last: Annotated[float, Field(gt=0, lt=1), Option(metavar="SHARE")] = Field(
        0.3, description="Share of the runs to predict."
    )


def history_evaluate(
    table: PathLike | None = None, settings: EvaluateSettings | None = None, **fields: Any
) -> Comparison:
    """Test all predictors of behaviour on the last runs, predicting each from the runs before it.

    Parameters
    ----------
    table
        A CSV file of runs; None takes the runs of a history.

    Raises
    ------
    InputError
        The table cannot be read, there is no history, or there are too few runs.
    """
    settings = EvaluateSettings.of(settings, **fields)
    if table is not None:
        if settings.db is not None:
            raise InputError("a table and a history", where=table, todo="name one of them")
        return compare_predictors(read_table(Path(table)), settings.last)
    with Store(settings.db).reading() as connection:
        return compare_predictors(kept_runs(connection), settings.last)


@click.command("evaluate")
@click.argument("table", type=FILE, required=False, metavar="[FILE.csv]")
@settings_options(EvaluateSettings)
def command(table: Path | None, settings: EvaluateSettings) -> None:
    """Test all predictors of behaviour on the latest runs of a history, or of a table of runs.

    Each run is predicted from all earlier runs, and again from only the runs that had ended before it started. FILE
    has a row per run: application, user, processes, start, end, bytes_read, bytes_written, metadata_ops.
    """
    click.echo(behaviour_scores(history_evaluate(table, settings)), nl=False)
