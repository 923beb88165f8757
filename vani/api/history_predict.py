"""What `vani history predict` does, for programs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from vani.api.given import PathLike
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.schema.prediction import BehaviourPrediction

__all__ = ["history_predict"]

_MOST = 10_000_000


def history_predict(
    application: str,
    *,
    user: str | None = None,
    processes: int | None = None,
    at: float | None = None,
    db: PathLike | None = None,
) -> BehaviourPrediction:
    """Tell which behaviour the next run of an application has, with probabilities.

    Parameters
    ----------
    user, processes
        Whose run it is, on how many processes; None: as the latest run that fits.
    at
        When it begins, in seconds since 1970: known are runs that had ended by then. None: all.
    db
        As in `history_add`.

    Returns
    -------
    BehaviourPrediction
        Without behaviours where no run of the category is known.

    Raises
    ------
    InputError
        There is no history, or no run of the application in it.
    """
    from vani.api.history_show import nothing_found  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.database.runs import read  # noqa: PLC0415
    from vani.database.runs.connect import Store  # noqa: PLC0415
    from vani.history.behaviour.kept_runs import kept_runs  # noqa: PLC0415
    from vani.history.behaviour.next_run import next_run  # noqa: PLC0415
    from vani.history.days import period_of  # noqa: PLC0415
    from vani.history.place import default_place  # noqa: PLC0415

    if processes is not None and not 1 <= processes <= _MOST:
        raise InputError(f"is {processes:,}", where="--processes", todo=f"give 1 to {_MOST:,}")
    with Store(db if db is not None else default_place()).reading() as connection:
        found = read.categories_of(connection, application, user, processes)
        fits = [one for one in found if one[3] is not None]
        # Of many users, only the runs of the one that is meant are read.
        runs = kept_runs(connection, application, fits[0][0] if fits else user)
        if not len(runs):
            groups = read.groups(connection, "pair", period_of(None, None))
            raise nothing_found(application, user, [one.pair for one in groups])
        return next_run(
            runs,
            application,
            user=user,
            processes=processes,
            among=len(fits),
            at=at,
            paths=partial(read.paths_of, connection),
        )
