"""Implements `vani history targets`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.centre.history.days import period_of
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.targets import ranked_targets
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.schema import TargetRow

def history_targets(
    *, db: PathLike | None = None, since: str | None = None, until: str | None = None, job: str | None = None
) -> list[TargetRow]:
    """Rank Lustre targets by the extra time of files on them, compared with similar runs on other targets.

    Parameters
    ----------
    db, since, until
        As in `history_top`.
    job
        A batch job; its lost time is compared with similar runs.

    Returns
    -------
    list of TargetRow
        The target with the largest loss first; empty if the logs name no targets, or too few.

    Raises
    ------
    InputError
        There is no history, a day is invalid, or the job is unknown.
    """
    period = period_of(since, until)
    with Store(db).reading() as connection:
        return ranked_targets(read.target_times(connection, period), job)
