"""Predictors of behaviour side by side, given all earlier runs and given only those that had ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.prediction.behaviour.results import Comparison, Mode, ShareRange

def behaviour_scores(comparison: Comparison) -> str:
    """A table for each mode; ranges cover 95 % of resamplings of categories."""
    since = datetime.fromtimestamp(comparison.first, UTC) if 0 <= comparison.first < 1 << 33 else None
    when = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None else ""
    lines = [
        f"{counted(comparison.runs, 'run')}, {counted(comparison.categories, 'category')}, "
        f"{counted(comparison.behaviours, 'behaviour')}; predicted: runs{when}."
    ]
    for mode in comparison.modes:
        lines += ["", *_mode(mode)]
    lines += [line for note in comparison.notes for line in ("", f"Note: {one_line(note)}.")]
    return "\n".join([*lines, ""])


def _mode(mode: Mode) -> Iterator[str]:
    known = "earlier runs that had ended" if mode.ended_only else "all earlier runs"
    yield f"Each from {known}: {counted(mode.known, 'run')} of {counted(mode.categories, 'category')};" + (
        f" {counted(mode.unknown, 'run')} not known" if mode.unknown else " all known"
    )
    yield ""
    head = ("predictor", "per run", "95 %", "per category", "95 %", "Brier", "sure", "correct")
    rows = [
        (
            score.name,
            *_judged(score.per_run),
            *_judged(score.per_category),
            f"{score.brier:.3f}",
            f"{score.sure:.3f}",
            "" if score.sure_right is None else f"{score.sure_right:.3f}",
        )
        for score in mode.scores
    ]
    yield from table(head, [*rows, ("seen before", f"{mode.seen:.3f}", *[""] * 6)])
    yield ""
    yield from table(
        ("auto stated", "runs", "on average", "right"),
        [
            (f"{band.low:.2f} to {band.high:.2f}", f"{band.runs:,}", f"{band.said:.3f}", f"{band.right:.3f}")
            for band in mode.reliability
        ],
    )


def _judged(figure: ShareRange) -> tuple[str, str]:
    return f"{figure.share:.3f}", f"{figure.low:.2f} to {figure.high:.2f}"
