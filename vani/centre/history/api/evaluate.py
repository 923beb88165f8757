"""Implements `vani history evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vani.centre.history.runs.store import Store
from vani.centre.prediction.behaviour.evaluation import compare_predictors
from vani.centre.prediction.behaviour.run_table import read_table
from vani.centre.prediction.behaviour.runs import kept_runs
from vani.errors import InputError
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.prediction.behaviour.results import Comparison

def history_evaluate(
    table: PathLike | None = None, *, last: float = 0.3, db: PathLike | None = None
) -> Comparison:
    """Test all predictors of behaviour on the last runs, predicting each from the runs before it.

    Parameters
    ----------
    table
        A CSV file of runs; None takes the runs of a history.
    last
        Share of the runs to predict, 0..1.
    db
        As in `history_add`.

    Raises
    ------
    InputError
        The table cannot be read, there is no history, or there are too few runs.
    """
    if not 0 < last < 1:
        raise InputError(f"is {last:g}", where="--last", todo="give a share above 0 and below 1, such as 0.3")
    if table is not None and db is not None:
        raise InputError("a table and a history", where=table, todo="name one of them")
    if table is not None:
        return compare_predictors(read_table(Path(table)), last)
    with Store(db).reading() as connection:
        return compare_predictors(kept_runs(connection), last)
