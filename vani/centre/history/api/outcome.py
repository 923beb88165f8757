"""Implements `vani history outcome`, and the records of letters."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.centre.history.api.show import nothing_found, story_and_runs
from vani.centre.history.days import begin_of
from vani.centre.history.outcome import outcome
from vani.centre.history.rows import Letter
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import Promise
from vani.centre.history.story import CategoryRuns
from vani.errors import InputError, one_line
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    import sqlalchemy as sa

    from vani.centre.history.schema import Outcome

def history_record_letter(
    application: str, user: str, *, db: PathLike | None = None, sent: str | None = None
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
    with Store(db).writing() as connection:
        story, _ = story_and_runs(connection, application, user, read.ALWAYS)
        saved = story.saved
        shares: tuple[float | None, float | None, float | None] = (None, None, None)
        if saved is not None and saved.state == "saves" and story.waiting_s:
            low, expected, high = (
                seconds / story.waiting_s for seconds in (saved.low_s, saved.expected_s, saved.high_s)
            )
            shares = (low, expected, high)
        rule, setting = ("", "") if saved is None else (saved.rule, saved.setting)
        letter = Letter(application, user, written, rule, setting, *shares)
        write.put(connection, [letter])
    return letter


def history_outcome(
    application: str, user: str | None = None, *, db: PathLike | None = None, changed: str | None = None
) -> list[Outcome]:
    """Compare the I/O wait of runs before and after each letter about an application, or before and after a change.

    Parameters
    ----------
    changed
        The day of the change, as YYYY-MM-DD; None takes the days of the recorded letters.

    Raises
    ------
    InputError
        There is no history, run or letter, or the day is invalid.
    """
    with Store(db).reading() as connection:
        if not read.categories_of(connection, application, user):
            pairs = [group.pair for group in read.groups(connection, "pair", read.ALWAYS)]
            raise nothing_found(application, user, pairs)
        if changed is not None:
            at = begin_of(changed, "--changed")
            return [outcome(application, user, _runs(connection, application, user), at)]
        outcomes = outcomes_in(connection, application, user)
    if not outcomes:
        raise InputError(
            f"no letter about {one_line(application)} is recorded",
            todo="name the day of a change with --changed, or record letters with `vani history letter --sent DAY`",
        )
    return outcomes


def outcomes_in(
    connection: sa.Connection, application: str | None = None, user: str | None = None
) -> list[Outcome]:
    """Outcome of each recorded letter, up to the next one to the same user; the latest first."""
    chosen = list(read.rows(connection, Letter, read.whose(tables.letters, application, user)))
    outcomes = []
    for letter in chosen:
        later = [
            other.written
            for other in chosen
            if (other.application, other.user) == (letter.application, letter.user)
            and other.written > letter.written
        ]
        promise = Promise(
            rule=letter.rule, setting=letter.setting, low=letter.low, expected=letter.expected, high=letter.high
        )
        runs = _runs(connection, letter.application, letter.user)
        until = min(later, default=None)
        outcomes.append(
            outcome(letter.application, letter.user, runs, letter.written, until=until, promise=promise)
        )
    return outcomes[::-1]


def _runs(connection: sa.Connection, application: str, user: str | None) -> list[CategoryRuns]:
    categories = read.category_figures(connection, application, user, read.ALWAYS)
    runs = [CategoryRuns(name, processes, *figures) for name, processes, figures in categories]
    return sorted(runs, key=lambda some: (-some.latest, some.user, some.processes))
