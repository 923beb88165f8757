"""The quality of plans as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.units import format_share

if TYPE_CHECKING:
    from vani.centre.history.schema import PlanScore

SCORE_HEAD: Final = (
    "job", "user", "jobs", "judged", "measured/expected", "eight of ten", "in range", "changed", "times as fast",
    "slower",
)  # fmt: skip


def scores_as_text(scores: Sequence[PlanScore]) -> str:
    """Write a line for each job name and user."""
    if not scores:
        return "No outcomes are stored yet (vani plan outcome).\n"
    return "\n".join(columns(SCORE_HEAD, [score_row(score) for score in scores], left=2)) + "\n"


def score_row(score: PlanScore) -> tuple[str, ...]:
    """The cells of a score; empty if a figure is unknown."""
    has_range = score.low is not None and score.high is not None
    return (
        one_line(score.name),
        one_line(score.user),
        f"{score.jobs:,}",
        f"{score.judged:,}",
        "" if score.ratio is None else f"{score.ratio:.2f}",
        f"{score.low:.2f} to {score.high:.2f}" if has_range else "",
        "" if score.within is None else format_share(score.within),
        f"{score.changed:,}",
        "" if score.gain is None else f"{score.gain:.2f}",
        f"{score.worse:,}",
    )
