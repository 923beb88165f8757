"""`vani history show` and `vani history letter` for programs."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.database.runs import read
from vani.database.runs.connect import Store
from vani.errors import InputError, one_line
from vani.history.contents import default_place
from vani.history.days import period_of
from vani.history.ranking import saved_of
from vani.history.saved import shares
from vani.history.story import story, worst_of

if TYPE_CHECKING:
    from vani.schema.history import Story

__all__ = ["history_show", "nothing_found"]


def history_show(
    application: str,
    user: str | None = None,
    *,
    db: PathLike | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Story:
    """Summarise an application: trend, spread, changes of behaviour, the worst run and its advice.

    Parameters
    ----------
    user
        Whose runs; None: everybody's.
    db, since, until
        As in `history_top`.

    Raises
    ------
    InputError
        There is no history, or no such run in it.
    """
    period = period_of(since, until)
    with Store(db if db is not None else default_place()).reading() as connection:
        runs = read.runs_of(connection, application, user, period)
        groups = read.groups(connection, "pair", period)
        if not runs:
            raise nothing_found(application, user, [group.pair for group in groups])
        known = shares(read.verdicts(connection))
        own_groups = [
            group for group in groups if group.pair in {(run.application, run.user) for run in runs}
        ]
        saved = saved_of(own_groups, known)
        judged = [group for group in own_groups if group.pair in known]
        best = max(judged, key=lambda group: group.waiting_s * known[group.pair].expected, default=None)
        worst = worst_of(runs)
        paths = {} if worst is None else read.paths_of(connection, [worst.digest])
    return story(
        application,
        user,
        runs,
        saved=saved,
        lines=() if best is None else known[best.pair].best.lines,
        paths=paths[worst.digest] if worst is not None else (),
    )


def nothing_found(application: str, user: str | None, pairs: list[tuple[str, str]]) -> InputError:
    """Error for runs that are not among those of `pairs`; it names the nearest application."""
    whose = "" if user is None else f" by {one_line(user)}"
    names = [user_ for app, user_ in pairs if app == application] if user is not None else []
    near = difflib.get_close_matches(user or "", names, 1) or difflib.get_close_matches(
        application, {app for app, _ in pairs}, 1
    )
    return InputError(
        f"no runs of {one_line(application)}{whose} in this time",
        todo=f"did you mean {one_line(near[0])!r}?" if near else "`vani history top` lists who is there",
    )
