"""Functions that maintain a history's runs: list, remove, anonymise, export, import."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vani.centre.history.accounting import ImportedJobs, import_jobs, is_accounting
from vani.centre.history.anonymise import anonymise
from vani.centre.history.contents import contents_of
from vani.centre.history.exchange import export, import_
from vani.centre.history.run_export import export_runs
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.errors import InputError, one_line
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.rows import Source
    from vani.centre.history.runs.store import Store
    from vani.centre.history.schema import HistoryContents

def history_list(*, db: PathLike | None = None) -> HistoryContents:
    """Count the runs per month, and the files.

    Raises
    ------
    InputError
        There is no history; this applies to all functions here.
    """
    store = _store(db)
    with store.reading() as connection:
        return contents_of(connection, store.name, read.count_damaged(connection))


def history_damaged(*, db: PathLike | None = None) -> list[Source]:
    """Files that could not be read, each with its reason."""
    with _store(db).reading() as connection:
        return read.damaged(connection)


def history_remove(*, user: str, application: str | None = None, db: PathLike | None = None) -> int:
    """Delete all runs of a user, or those of one application, completely; return their number.

    Raises
    ------
    InputError
        No such runs.
    """
    store = _store(db)
    with store.writing() as connection:
        removed = write.forget_user(connection, user, application)
        if not removed:
            of = "" if application is None else f" of {one_line(application)}"
            raise InputError(
                f"no runs{of} by {one_line(user)}",
                where=store.name,
                todo="`vani history top --by user` lists users",
            )
    store.compact()
    return removed


def history_anonymise(key: PathLike, *, db: PathLike | None = None) -> int:
    """Replace users and paths with keyed hashes, creating the key if it is missing; return the number of runs."""
    return anonymise(_store(db), Path(key))


def history_export(path: PathLike, *, db: PathLike | None = None) -> int:
    """Export the whole history to a file; return the number of runs."""
    return export(_store(db), Path(path))


def history_export_runs(path: PathLike, *, db: PathLike | None = None) -> int:
    """Write one row per run to a Parquet file, for other programs; return the number of runs."""
    return export_runs(_store(db), Path(path))


def history_import(path: PathLike, *, db: PathLike | None = None) -> tuple[int, int]:
    """Add an exported history; return the number of new runs, and of all runs in the file."""
    return import_(_store(db), Path(path))


def history_import_jobs(
    path: PathLike, *, db: PathLike | None = None, say: Callable[[str], None] = lambda _: None
) -> ImportedJobs:
    """Add jobs from Slurm's accounting, read by `vani.centre.history.sacct`, to the history.

    Parameters
    ----------
    say
        Called with a message for each line that is not a job, which is then skipped.

    Raises
    ------
    InputError
        The file is not Slurm accounting or contains no job, or the history is anonymised.
    """
    return import_jobs(_store(db), Path(path), say)


def is_accounting_file(path: PathLike) -> bool:
    """Whether a file is text rather than an exported history."""
    return is_accounting(Path(path))


def _store(db: PathLike | None) -> Store:
    return Store(db)
