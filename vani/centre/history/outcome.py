"""Whether a change helped: the waiting of runs before and after a letter or a change, per category.

A category is application, user and number of processes. The saving is the number of runs after the change times the
difference between the mean waiting per run before and after. Its interval is that of the difference of two means,
by bootstrap. Runs that move different amounts of data since the change are no evidence, and are not part of the
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import click
import numpy as np
from pydantic import Field

from vani.centre.columns import Floats
from vani.centre.history import story
from vani.centre.history.ranking_text import hours
from vani.centre.history.rows import Letter
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import CategoryOutcome, ChangeOutcome, Promise
from vani.centre.history.settings import HistorySettings, PeriodSettings, begin_of, json_list
from vani.cli.options import output_option, settings_options
from vani.cli.output import check_outputs, emit
from vani.errors import InputError, one_line
from vani.render.table import table
from vani.schema.settings import Option
from vani.units import format_share

if TYPE_CHECKING:
    import sqlalchemy as sa

BEFORE_DAYS: Final = 90
"""Older runs say little about what would have happened without the change."""
_LEAST_RUNS: Final = 5
_OTHER_AMOUNTS: Final = 1.5
"""Ratio between medians of bytes beyond which amounts differ; the same as for a change of behaviour."""
_DRAWS: Final = 2000
_MANY: Final = 400
"""Number of runs above which the mean is practically normal, and is drawn from a normal distribution."""
_ENDS: Final = (5, 95)



def outcome(
    application: str, user: str | None, categories: Sequence[story.CategoryRuns], at: float, *,
    until: float | None = None, promise: Promise | None = None,
) -> ChangeOutcome:
    """Compare runs before and after a point in time.

    Parameters
    ----------
    at
        Time of the letter or the change, in seconds since 1970.
    until
        End of the period after it, such as the next letter; None: no end.
    promise
        Promise of the letter.
    """
    random = np.random.default_rng(0)
    some, drawn = [], np.zeros(_DRAWS)
    for category in categories:
        entry, differences = _category(category, at, until, random)
        some.append(entry)
        drawn += differences
    known = [entry for entry in some if entry.saved_s is not None]
    low, high = np.percentile(drawn, _ENDS).tolist() if known else (None, None)
    return ChangeOutcome(
        application=application, user=user, at=at, promise=promise,
        categories=sorted(some, key=lambda entry: (-abs(entry.saved_s or 0.0), entry.user, entry.processes)),
        saved_s=sum(entry.saved_s or 0.0 for entry in known) if known else None, low_s=low, high_s=high,
        before_s=sum(entry.runs_after * (entry.before_s or 0.0) for entry in known) if known else None,
    )  # fmt: skip


def _category(
    runs: story.CategoryRuns, at: float, until: float | None, random: np.random.Generator
) -> tuple[CategoryOutcome, Floats]:
    """The comparison of one category, and draws of its saving, shape (draws,); zeros if it has none."""
    known = ~np.isnan(runs.waiting_s)
    before = known & (runs.submitted >= at - BEFORE_DAYS * read.DAY_S) & (runs.submitted < at)
    after = known & (runs.submitted >= at) & (runs.submitted < (np.inf if until is None else until))
    old, new = runs.waiting_s[before], runs.waiting_s[after]
    saved, (low, high), differences = None, (None, None), np.zeros(_DRAWS)
    if min(len(old), len(new)) < _LEAST_RUNS:
        verdict = "too_few_runs"
    elif _is_other(runs.moved[before], runs.moved[after]):
        verdict = "other_amounts"
    else:
        differences = len(new) * (_means(old, random) - _means(new, random))
        low, high = np.percentile(differences, _ENDS).tolist()
        saved = len(new) * (float(old.mean()) - float(new.mean()))
        verdict = "less" if low > 0 else "more" if high < 0 else "no_difference"
    entry = CategoryOutcome.model_validate(
        {
            "user": runs.user, "processes": runs.processes, "runs_before": len(old), "runs_after": len(new),
            "before_s": _mean(old), "after_s": _mean(new), "saved_s": saved, "low_s": low, "high_s": high,
            "verdict": verdict,
        }
    )  # fmt: skip
    return entry, differences


def _is_other(before: Floats, after: Floats) -> bool:
    """Whether runs move different amounts of data than before."""
    medians = float(np.median(before)), float(np.median(after))
    return max(medians) > _OTHER_AMOUNTS * max(min(medians), 1.0)


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _means(values: Floats, random: np.random.Generator) -> Floats:
    """Means of values drawn again from these, shape (draws,)."""
    if len(values) > _MANY:
        return random.normal(values.mean(), values.std(ddof=1) / np.sqrt(len(values)), _DRAWS)
    drawn: Floats = values[random.integers(len(values), size=(_DRAWS, len(values)))].mean(axis=1)
    return drawn


VERDICTS: Final = {
    "less": "waits less", "more": "waits more", "no_difference": "no visible difference",
    "too_few_runs": "fewer than five runs before or after",
    "other_amounts": "different amounts of data: not comparable",
}


def outcomes_as_text(outcomes: Sequence[ChangeOutcome]) -> str:
    """Write each outcome, with a line for each category."""
    return "\n".join("\n".join(_lines(entry)) + "\n" for entry in outcomes)


def promised(promise: Promise | None) -> str:
    """The share of the waiting that a letter promised to save."""
    if promise is None or promise.expected is None or promise.low is None or promise.high is None:
        return "no number"
    ends = f"{format_share(promise.low)} to {format_share(promise.high)}"
    return f"{format_share(promise.expected)} of the waiting ({ends})"


def measured(entry: ChangeOutcome) -> str:
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


def _lines(entry: ChangeOutcome) -> list[str]:
    day = f"{datetime.fromtimestamp(entry.at, UTC):%Y-%m-%d}"
    whose = f" of {one_line(entry.user)}" if entry.user is not None else ""
    what = "change on" if entry.promise is None else "letter of"
    lines = [f"{one_line(entry.application)}{whose}, {what} {day}"]
    if entry.promise is not None and entry.promise.rule:
        by = f"{one_line(entry.promise.setting)} ({entry.promise.rule})"
        lines.append(f"promised: {promised(entry.promise)}, by {by}")
    lines.append(f"measured: {measured(entry)}")
    head = ("user", "processes", "runs before", "after", "waiting per run before", "after", "saved", "nine of ten", "")
    return [*lines, *table(head, [_category_row(category) for category in entry.categories], left=(8,), all_rows=True)]


def _category_row(category: CategoryOutcome) -> tuple[str, ...]:
    known = category.saved_s is not None
    return (
        one_line(category.user), f"{category.processes:,}", f"{category.runs_before:,}",
        f"{category.runs_after:,}", "" if category.before_s is None else hours(category.before_s),
        "" if category.after_s is None else hours(category.after_s), signed_hours(category.saved_s),
        f"{signed_hours(category.low_s)} to {signed_hours(category.high_s)}" if known else "",
        VERDICTS[category.verdict],
    )


def history_record_letter(
    application: str, user: str, settings: HistorySettings | None = None, *, sent: str | None = None, **fields: Any
) -> Letter:
    """Record that a letter about an application was sent to a user, with the gain it promised.

    Parameters
    ----------
    sent
        The day, as YYYY-MM-DD; None: today.

    Raises
    ------
    InputError
        There is no history, it contains no such run, or the day is invalid.
    """
    day = sent or datetime.now(UTC).strftime("%Y-%m-%d")
    written = begin_of(day, "--sent")
    with Store(HistorySettings.of(settings, **fields).db).writing() as connection:
        about = story.story_and_runs(connection, application, user, read.ALWAYS)[0]
        saved = about.saved
        shares: list[float | None] = [None] * 3
        if saved is not None and saved.state == "saves" and about.waiting_s:
            shares = [(end or 0.0) / about.waiting_s for end in (saved.low_s, saved.expected_s, saved.high_s)]
        rule, setting = ("", "") if saved is None else (saved.rule, saved.setting)
        letter = Letter(application, user, written, rule, setting, *shares)
        write.put(connection, [letter])
    return letter


class OutcomeSettings(HistorySettings):
    """The change to judge."""

    changed: Annotated[str | None, Option(metavar="DAY")] = Field(
        None, description="Day of a change, YYYY-MM-DD; by default the days of recorded letters."
    )


def history_outcome(
    application: str, user: str | None = None, settings: OutcomeSettings | None = None, **fields: Any
) -> list[ChangeOutcome]:
    """Compare the I/O wait of runs before and after each letter about an application, or before and after a change.

    Raises
    ------
    InputError
        There is no history, run or letter, or the day is invalid.
    """
    settings = OutcomeSettings.of(settings, **fields)
    with Store(settings.db).reading() as connection:
        if not read.categories_of(connection, application, user):
            raise story.unknown_runs(connection, application, user)
        if settings.changed is not None:
            at = begin_of(settings.changed, "--changed")
            return [outcome(application, user, _runs(connection, application, user), at)]
        outcomes = outcomes_in(connection, application, user)
    if not outcomes:
        todo = "name the day of a change with --changed, or record letters with `vani history letter --sent DAY`"
        raise InputError(f"no letter about {one_line(application)} is recorded", todo=todo)
    return outcomes


def outcomes_in(
    connection: sa.Connection, application: str | None = None, user: str | None = None
) -> list[ChangeOutcome]:
    """ChangeOutcome of each recorded letter, up to the next one to the same user; the latest first."""
    chosen = list(read.rows(connection, Letter, read.whose(tables.letters, application, user)))
    outcomes = []
    for letter in chosen:
        later = [
            other.written for other in chosen
            if (other.application, other.user) == (letter.application, letter.user) and other.written > letter.written
        ]
        promise = Promise(
            rule=letter.rule, setting=letter.setting, low=letter.low, expected=letter.expected, high=letter.high
        )
        runs = _runs(connection, letter.application, letter.user)
        until = min(later, default=None)
        outcomes.append(outcome(letter.application, letter.user, runs, letter.written, until=until, promise=promise))
    return outcomes[::-1]


def _runs(connection: sa.Connection, application: str, user: str | None) -> list[story.CategoryRuns]:
    categories = story.categories_in(connection, application, user, read.ALWAYS)
    return sorted(categories, key=lambda some: (-some.latest, some.user, some.processes))


class _Shown(OutcomeSettings):
    format: Literal["text", "json"] = Field("text", description="Output format.")


@click.command("outcome")
@click.argument("application", metavar="APP")
@click.argument("user", required=False)
@settings_options(_Shown)
def command(application: str, user: str | None, settings: _Shown) -> None:
    """Compare APP's waiting for I/O before and after each letter, or before and after a change.

    It compares the runs of 90 days on either side, by user and number of processes, and prints means with the
    interval of their difference. Other changes in that time, such as the machine's load, are part of the difference.
    """
    outcomes = history_outcome(application, user, settings)
    click.echo(json_list(outcomes) if settings.format == "json" else outcomes_as_text(outcomes), nl=False)


class _LetterSettings(PeriodSettings):
    sent: Annotated[str | None, Option(metavar="DAY")] = Field(
        None, description="Record that it was sent on this day, YYYY-MM-DD, for `vani history outcome`."
    )


@click.command("letter")
@click.argument("application", metavar="APP")
@click.argument("user")
@settings_options(_LetterSettings)
@output_option()
def letter_command(application: str, user: str, settings: _LetterSettings, output: Path | None) -> None:
    """Write a letter to USER about APP, with the lines to paste, or state that nothing can be saved."""
    check_outputs([output])
    if settings.sent is not None:
        history_record_letter(application, user, db=settings.db, sent=settings.sent)
    emit(story.letter_text(story.history_show(application, user, settings)), output)
