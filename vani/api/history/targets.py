"""`vani history targets` for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.database.runs import read
from vani.database.runs.connect import Store
from vani.history.contents import default_place
from vani.history.days import period_of
from vani.history.targets import ranked_targets

if TYPE_CHECKING:
    from vani.schema.history import TargetRow

__all__ = ["history_targets"]


def history_targets(
    *, db: PathLike | None = None, since: str | None = None, until: str | None = None, job: str | None = None
) -> list[TargetRow]:
    """Rank Lustre targets by the time that files on them take longer than files of runs like theirs on others.

    Parameters
    ----------
    db, since, until
        As in `history_top`.
    job
        A job of the batch system: what it lost, compared with similar runs.

    Returns
    -------
    list of TargetRow
        The target on which most seconds are lost first; empty where the logs name no targets, or too few.

    Raises
    ------
    InputError
        There is no history, no such day, or no such job.
    """
    period = period_of(since, until)
    with Store(db if db is not None else default_place()).reading() as connection:
        return ranked_targets(read.target_times(connection, period), job)
