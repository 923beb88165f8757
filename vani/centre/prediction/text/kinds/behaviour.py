"""Predictions of kind `behaviour`: the most likely ones, their bytes, and how predictions of the last runs did."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted, format_bytes, format_number, format_seconds, format_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from vani.centre.prediction.schema import BehaviourPrediction, ExpectedRange, LikelyBehaviour

def body(prediction: BehaviourPrediction) -> list[str]:
    """Likely behaviours as a table, the run closest to the most likely one, and predictions of the last runs."""
    first = f"{category_text(prediction)}: {counted(prediction.runs, 'run')} known."
    if not prediction.behaviours:
        return [f"{category_text(prediction)}: not known."]
    likeliest = prediction.behaviours[0].resembles
    paths = f": {one_line(likeliest.paths[0])}" if likeliest.paths else ""
    return [
        first,
        "",
        *table(
            (
                "behaviour",
                "probability",
                "read",
                "written",
                "metadata",
                "reads, writes",
                "files",
                "run time",
                "runs",
            ),
            [*likely_rows(prediction), ("another", format_share(prediction.other), *[""] * 7)],
        ),
        "",
        f"Behaviour {prediction.behaviours[0].behaviour}: like the run of {when(likeliest.submitted)}{paths}",
        past_text(prediction),
    ]


def category_text(prediction: BehaviourPrediction) -> str:
    """Category of a run: its user, application and number of processes."""
    whose = f" by {one_line(prediction.user)}" if prediction.user is not None else ""
    on = f" on {counted(prediction.processes, 'process')}" if prediction.processes is not None else ""
    return f"Next run of {one_line(prediction.application)}{whose}{on}"


def likely_rows(prediction: BehaviourPrediction) -> list[tuple[str, ...]]:
    """A row per behaviour with its probability, and the median and range (nine in ten) of its figures."""
    return [_row(behaviour) for behaviour in prediction.behaviours]


def past_text(prediction: BehaviourPrediction) -> str:
    """How many of the last runs were predicted correctly."""
    predicted = [run for run in prediction.past if run.expected is not None]
    if not predicted:
        return "No predictions to check: only one behaviour is known."
    right = sum(run.expected == run.behaviour for run in predicted)
    return f"{right:,} of the last {counted(len(predicted), 'run')} matched the prediction."


def when(moment: float) -> str:
    """A point in time, in UTC."""
    return (
        f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M} UTC"
        if 0 <= moment < 1 << 33
        else f"{moment:g}"
    )


def _row(behaviour: LikelyBehaviour) -> tuple[str, ...]:
    return (
        str(behaviour.behaviour),
        format_share(behaviour.probability),
        _range(behaviour.bytes_read, format_bytes),
        _range(behaviour.bytes_written, format_bytes),
        _range(behaviour.metadata, _count),
        _range(behaviour.operations, _count),
        _range(behaviour.files, _count),
        _range(behaviour.runtime_s, format_seconds),
        f"{behaviour.runs:,}",
    )


def _range(bounds: ExpectedRange | None, show: Callable[[float], str]) -> str:
    if bounds is None:
        return ""
    low, median, high = show(bounds.low), show(bounds.median), show(bounds.high)
    return median if low == high else f"{median} ({low} to {high})"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else format_number(value)
