"""Predictors of behaviours side by side, with all earlier runs known and with those that had ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.table import table
from vani.units import counted

if TYPE_CHECKING:
    from vani.models.behaviour import Comparison, Mode, ShareRange

__all__ = ["behaviour_scores"]


def behaviour_scores(found: Comparison) -> str:
    """A table for each mode; ranges are those of 95 % of drawings of categories."""
    since = datetime.fromtimestamp(found.first, UTC) if 0 <= found.first < 1 << 33 else None
    when = f" since {since:%Y-%m-%d %H:%M} UTC" if since is not None else ""
    lines = [
        f"{counted(found.runs, 'run')}, {counted(found.categories, 'category')}, "
        f"{counted(found.behaviours, 'behaviour')}; predicted are those{when}."
    ]
    for mode in found.modes:
        lines += ["", *_mode(mode)]
    lines += [line for note in found.notes for line in ("", f"Note: {one_line(note)}.")]
    return "\n".join([*lines, ""])


def _mode(mode: Mode) -> Iterator[str]:
    known = "those before it that had ended" if mode.ended_only else "all before it"
    yield f"Each from {known}: {counted(mode.known, 'run')} of {counted(mode.categories, 'category')};" + (
        f" {counted(mode.unknown, 'run')} not known" if mode.unknown else " all known"
    )
    yield ""
    head = ("predictor", "per run", "95 %", "per category", "95 %", "Brier", "sure", "of these right")
    rows = [
        (
            one.name,
            *_judged(one.per_run),
            *_judged(one.per_category),
            f"{one.brier:.3f}",
            f"{one.sure:.3f}",
            "" if one.sure_right is None else f"{one.sure_right:.3f}",
        )
        for one in mode.scores
    ]
    yield from table(head, [*rows, ("seen before", f"{mode.seen:.3f}", *[""] * 6)])
    yield ""
    yield from table(
        ("auto said", "runs", "on average", "right"),
        [
            (f"{one.low:.2f} to {one.high:.2f}", f"{one.runs:,}", f"{one.said:.3f}", f"{one.right:.3f}")
            for one in mode.reliability
        ],
    )


def _judged(one: ShareRange) -> tuple[str, str]:
    return f"{one.share:.3f}", f"{one.low:.2f} to {one.high:.2f}"
