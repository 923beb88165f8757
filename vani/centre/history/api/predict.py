"""Implements `vani history predict`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from vani.centre.history.api.show import nothing_found
from vani.centre.history.days import period_of
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.prediction.behaviour.next_run import next_run
from vani.centre.prediction.behaviour.runs import kept_runs
from vani.errors import InputError
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.schema import Ranking
    from vani.centre.prediction.schema import BehaviourPrediction

_MOST_PROCESSES: Final = 10_000_000
_MOST_ROWS: Final = 20
"""Maximum number of ranking rows whose next run is predicted."""


def history_predict(
    application: str,
    *,
    user: str | None = None,
    processes: int | None = None,
    at: float | None = None,
    db: PathLike | None = None,
) -> BehaviourPrediction:
    """Predict the behaviour of an application's next run, with probabilities.

    Parameters
    ----------
    user, processes
        User and number of processes of the run; None takes those of the latest matching run.
    at
        Start of the run, in seconds since 1970: only runs that had ended by then are used. None uses all.
    db
        As in `history_add`.

    Returns
    -------
    BehaviourPrediction
        Contains no behaviours if no run of the category is known.

    Raises
    ------
    InputError
        There is no history, or it contains no run of the application.
    """
    if processes is not None and not 1 <= processes <= _MOST_PROCESSES:
        raise InputError(f"is {processes:,}", where="--processes", todo=f"give 1 to {_MOST_PROCESSES:,}")
    with Store(db).reading() as connection:
        categories = read.categories_of(connection, application, user, processes)
        fits = [category for category in categories if category[3] is not None]
        # Read only the runs of the user in question.
        runs = kept_runs(connection, application, fits[0][0] if fits else user)
        if not len(runs):
            groups = read.groups(connection, "pair", period_of(None, None))
            raise nothing_found(application, user, [group.pair for group in groups])
        return next_run(
            runs,
            application,
            user=user,
            processes=processes,
            among=len(fits),
            at=at,
            paths=partial(read.paths_of, connection),
        )


def history_next_runs(ranking: Ranking, *, db: PathLike | None = None) -> list[BehaviourPrediction]:
    """Predict the next run for each application and user of a ranking, in its order.

    Parameters
    ----------
    db
        As in `history_add`.

    Raises
    ------
    InputError
        There is no history.
    """
    predictions = []
    with Store(db).reading() as connection:
        for row in ranking.rows[:_MOST_ROWS]:
            if row.application is None:
                continue
            runs = kept_runs(connection, row.application, row.user)
            if len(runs):
                predictions.append(next_run(runs, row.application, user=row.user))
    return predictions
