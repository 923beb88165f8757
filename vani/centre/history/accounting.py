"""A batch system's accounting of the runs: who is charged for which run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from vani.centre.history.rows import AccountedJob
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.history.sacct import SacctJob, read_sacct
from vani.errors import InputError, StoreError

_AT_ONCE: Final = 5000


@dataclass(frozen=True)
class ImportedJobs:
    """Counts of a file's jobs: all, new ones, those with runs, and lines that are not jobs."""

    jobs: int
    new: int
    with_runs: int
    refused: int


def is_accounting(path: Path) -> bool:
    """Whether a file is text; files written by `vani history export` are compressed."""
    try:
        with path.open("rb") as file:
            return file.read(2) != b"\x1f\x8b"
    except OSError:
        return False


def import_jobs(store: Store, path: Path, say: Callable[[str], None]) -> ImportedJobs:
    """Store the jobs of a file from sacct, all or none; known jobs are replaced.

    Parameters
    ----------
    say
        Called with a message for each line that is not a job.

    Raises
    ------
    InputError
        The file is not from sacct, or contains no job.
    StoreError
        The store is anonymised, so plain names would be mixed with hashes.
    """
    jobs = new = with_runs = refused = 0
    entries = read_sacct(path)
    first = list(islice(entries, 1))  # Refuse a file that is not accounting before a database is created.
    with store.writing(make=True) as connection:
        if read.fact(connection, "names") is not None:
            raise StoreError(
                "is anonymised", where=store.name, todo="import the accounting first, then anonymise again"
            )
        while some := [*first, *islice(entries, _AT_ONCE)]:
            first = []
            faults = [entry for entry in some if isinstance(entry, InputError)]
            refused += len(faults)
            for fault in faults:
                say(str(fault))
            own: list[AccountedJob] = [entry.job for entry in some if isinstance(entry, SacctJob)]
            jobs += len(own)
            new += write.add_jobs(connection, own)
            with_runs += read.count_jobs_with_runs(connection, [job.job for job in own])
        if not jobs:
            raise InputError("has no job", where=path, todo="see `vani history import --help`")
    return ImportedJobs(jobs, new, with_runs, refused)
