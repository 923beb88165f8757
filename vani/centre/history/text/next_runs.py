"""Applications over time, the expected behaviour of their next run, and how well earlier predictions did."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.rows import Table
from vani.errors import one_line
from vani.units import format_bytes, format_share

if TYPE_CHECKING:
    from vani.centre.prediction.schema import BehaviourPrediction

TITLE: Final = "Expected behaviour of the next runs"
ABOUT: Final = (
    "Behaviours are numbered by first appearance in a category (application, user, processes). Runs have the "
    "same behaviour if their bytes and metadata operations agree within a factor of 1.2. The table shows the "
    "last 30 runs, oldest first, and how many of them matched the prediction from earlier runs."
)


def next_table(predictions: Sequence[BehaviourPrediction]) -> Table:
    """A row per category; the names and the behaviours over time are text."""
    head = (
        "", "application", "user", "processes", "behaviours over time", "as expected", "next", "probability", "read",
        "written", "similar runs",
    )  # fmt: skip
    return head, 5, [_row(number, prediction) for number, prediction in enumerate(predictions, start=1)]


def _row(number: int, prediction: BehaviourPrediction) -> tuple[str, ...]:
    predicted = [run for run in prediction.past if run.expected is not None]
    right = sum(run.expected == run.behaviour for run in predicted)
    names = (
        str(number),
        one_line(prediction.application),
        one_line(prediction.user or ""),
        f"{prediction.processes or 0:,}",
    )
    over_time = _over_time([run.behaviour for run in prediction.past])
    known = f"{right:,} of {len(predicted):,}" if predicted else "no predictions"
    if not prediction.behaviours:
        return (*names, over_time, known, "not known", "", "", "", "")
    likely = prediction.behaviours[0]
    return (
        *names,
        over_time,
        known,
        str(likely.behaviour),
        format_share(likely.probability),
        format_bytes(likely.bytes_read.median),
        format_bytes(likely.bytes_written.median),
        f"{likely.runs:,}",
    )


def _over_time(behaviours: Sequence[int]) -> str:
    """`0 x12, 1, 0 x3`."""
    runs = [(behaviour, len(list(some))) for behaviour, some in groupby(behaviours)]
    return ", ".join(f"{behaviour} x{often}" if often > 1 else str(behaviour) for behaviour, often in runs)
