"""What the applications of a ranking are expected to do next, for the report of a history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.api.given import PathLike

if TYPE_CHECKING:
    from vani.schema.history import Ranking
    from vani.schema.prediction import BehaviourPrediction

__all__ = ["history_next_runs"]

_MOST: Final = 20


def history_next_runs(ranking: Ranking, *, db: PathLike | None = None) -> list[BehaviourPrediction]:
    """Predict the next run of each application and user of a ranking, in its order.

    Parameters
    ----------
    db
        As in `history_add`.

    Raises
    ------
    InputError
        There is no history.
    """
    from vani.database.runs.connect import Store  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.history.behaviour.kept_runs import kept_runs  # noqa: PLC0415
    from vani.history.behaviour.next_run import next_run  # noqa: PLC0415
    from vani.history.place import default_place  # noqa: PLC0415

    found = []
    with Store(db if db is not None else default_place()).reading() as connection:
        for row in ranking.rows[:_MOST]:
            if row.application is None:
                continue
            runs = kept_runs(connection, row.application, row.user)
            if len(runs):
                found.append(next_run(runs, row.application, user=row.user))
    return found
