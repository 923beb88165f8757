"""Waiting before and after letters and changes, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from vani.centre.history.text.rows import hours
from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.units import format_share

if TYPE_CHECKING:
    from vani.centre.history.schema import CategoryOutcome, Outcome, Promise

VERDICTS: Final = {
    "less": "waits less",
    "more": "waits more",
    "no_difference": "no visible difference",
    "too_few_runs": "fewer than five runs before or after",
    "other_amounts": "different amounts of data: not comparable",
}


def outcomes_as_text(outcomes: Sequence[Outcome]) -> str:
    """Write each outcome, with a line for each category."""
    return "\n".join("\n".join(_lines(entry)) + "\n" for entry in outcomes)


def promised(promise: Promise | None) -> str:
    """The share of the waiting that a letter promised to save."""
    if promise is None or promise.expected is None or promise.low is None or promise.high is None:
        return "no number"
    ends = f"{format_share(promise.low)} to {format_share(promise.high)}"
    return f"{format_share(promise.expected)} of the waiting ({ends})"


def measured(entry: Outcome) -> str:
    """The share of the waiting that was saved, or why it is unknown."""
    if entry.saved_s is None or entry.low_s is None or entry.high_s is None or not entry.before_s:
        return "not known yet: no category has five runs before and after with similar amounts"
    ends = f"{signed_hours(entry.low_s)} to {signed_hours(entry.high_s)} core-hours"
    if entry.low_s <= 0 <= entry.high_s:
        return f"no visible difference ({ends})"
    saved = entry.saved_s / entry.before_s
    share = f"{format_share(saved)} of the waiting" if saved >= 0 else f"{format_share(-saved)} more waiting"
    return f"{share}, {signed_hours(entry.saved_s)} ({ends})"


def signed_hours(seconds: float | None) -> str:
    """Core-hours, possibly negative; empty if unknown."""
    if seconds is None:
        return ""
    return hours(seconds) if seconds >= 0 else f"-{hours(-seconds)}"


def _lines(entry: Outcome) -> list[str]:
    day = f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d}"
    whose = f" of {one_line(entry.user)}" if entry.user is not None else ""
    what = "change on" if entry.promise is None else "letter of"
    lines = [f"{one_line(entry.application)}{whose}, {what} {day}"]
    if entry.promise is not None and entry.promise.rule:
        by = f"{one_line(entry.promise.setting)} ({entry.promise.rule})"
        lines.append(f"promised: {promised(entry.promise)}, by {by}")
    lines.append(f"measured: {measured(entry)}")
    head = ("user", "processes", "runs before", "after", "waiting per run before", "after", "saved", "nine of ten", "")
    return [*lines, *columns(head, [_row(category) for category in entry.categories], left=1, last=True)]


def _row(category: CategoryOutcome) -> tuple[str, ...]:
    known = category.saved_s is not None
    return (
        one_line(category.user),
        f"{category.processes:,}",
        f"{category.runs_before:,}",
        f"{category.runs_after:,}",
        "" if category.before_s is None else hours(category.before_s),
        "" if category.after_s is None else hours(category.after_s),
        signed_hours(category.saved_s),
        f"{signed_hours(category.low_s)} to {signed_hours(category.high_s)}" if known else "",
        VERDICTS[category.verdict],
    )
