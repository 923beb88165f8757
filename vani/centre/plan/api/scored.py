"""Implements `vani plan scored`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.api.arguments import PathLike
from vani.centre.history.contents import default_place
from vani.centre.history.runs.connect import Store
from vani.centre.history.runs.planned import planned_runs
from vani.centre.history.scored import plan_scores

if TYPE_CHECKING:
    from vani.centre.history.schema import PlanScore

def plan_scored(db: PathLike | None = None) -> list[PlanScore]:
    """Score plans per job name and user: expected against measured I/O time.

    Parameters
    ----------
    db
        As in `history_add`.

    Raises
    ------
    InputError
        There is no history.
    """
    with Store(db if db is not None else default_place()).reading() as connection:
        return plan_scores(planned_runs(connection))
