"""Implements `vani history show` and `vani history letter`."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from vani.centre.history.days import period_of
from vani.centre.history.ranking import saved_of
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.saved import shares
from vani.centre.history.story import CategoryRuns, story
from vani.errors import InputError, one_line
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    import sqlalchemy as sa

    from vani.centre.history.schema import Story

def history_show(
    application: str,
    user: str | None = None,
    *,
    db: PathLike | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Story:
    """Summarise an application: trend, spread, changes in behaviour, the worst run and its advice.

    Parameters
    ----------
    user
        User who ran them; None: all users.
    db, since, until
        As in `history_top`.

    Raises
    ------
    InputError
        There is no history, or it contains no such run.
    """
    period = period_of(since, until)
    with Store(db).reading() as connection:
        return story_and_runs(connection, application, user, period)[0]


def story_and_runs(
    connection: sa.Connection, application: str, user: str | None, period: read.Period
) -> tuple[Story, list[CategoryRuns]]:
    """Summarise an application like `history_show`, and return the figures of its runs as well."""
    pairs = read.groups(connection, "pair", period)
    own = [group for group in pairs if group.pair[0] == application and user in (None, group.pair[1])]
    if not own:
        raise nothing_found(application, user, [group.pair for group in pairs])
    categories = [
        CategoryRuns(name, processes, *figures)
        for name, processes, figures in read.category_figures(connection, application, user, period)
    ]
    known = shares(read.verdicts(connection))
    judged = [group for group in own if group.pair in known]
    best = max(judged, key=lambda group: group.waiting_s * known[group.pair].expected, default=None)
    (worst,) = read.costliest_runs(connection, application, user, period, 1)
    summary = story(
        application,
        user,
        categories,
        worst=worst,
        saved=saved_of(own, known),
        lines=() if best is None else known[best.pair].best.lines,
        paths=read.paths_of(connection, [worst.digest])[worst.digest],
    )
    return summary, categories


_USERS = 3
"""Number of users of an application that an error names."""


def nothing_found(application: str, user: str | None, pairs: list[tuple[str, str]]) -> InputError:
    """Error for runs that are not among `pairs`; it suggests the closest user or application."""
    whose = "" if user is None else f" by {one_line(user)}"
    names = [user_ for app, user_ in pairs if app == application] if user is not None else []
    near = difflib.get_close_matches(user or "", names, 1)
    if not near and not names:
        near = difflib.get_close_matches(application, {app for app, _ in pairs}, 1)
    todo = "`vani history top` lists applications and users"
    if near:
        todo = f"did you mean {one_line(near[0])!r}?"
    elif names:
        more = f" and {len(names) - _USERS} more" if len(names) > _USERS else ""
        todo = f"its users are {', '.join(map(one_line, sorted(names)[:_USERS]))}{more}"
    return InputError(f"no runs of {one_line(application)}{whose} in this time", todo=todo)
