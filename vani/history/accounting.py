"""The accounting of a batch system for the runs: who is charged for which run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from vani.database.runs import read
from vani.database.runs.accounting import AccountedJob, add_jobs, count_with_runs
from vani.database.runs.connect import Store
from vani.errors import InputError, StoreError
from vani.history.sacct import SacctJob, read_sacct

__all__ = ["ImportedJobs", "import_jobs", "is_accounting"]

_AT_ONCE: Final = 5000


@dataclass(frozen=True)
class ImportedJobs:
    """Jobs of a file: how many it has, how many were not known, how many have runs, and lines that are none."""

    jobs: int
    new: int
    with_runs: int
    refused: int


def is_accounting(path: Path) -> bool:
    """True for a file of text: what `vani history export` writes is compressed."""
    try:
        with path.open("rb") as file:
            return file.read(2) != b"\x1f\x8b"
    except OSError:
        return False


def import_jobs(store: Store, path: Path, say: Callable[[str], None]) -> ImportedJobs:
    """Keep the jobs of a file of sacct, all or none; a job that is there is replaced.

    Parameters
    ----------
    say
        Called with a message for each line of the file that is not a job.

    Raises
    ------
    InputError
        It is no such file, or has no job.
    StoreError
        The store is anonymised: names of the file would be next to hashes.
    """
    jobs = new = with_runs = refused = 0
    entries = read_sacct(path)
    first = list(islice(entries, 1))  # What is no accounting is refused before a database is made.
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
            new += add_jobs(connection, own)
            with_runs += count_with_runs(connection, [job.job for job in own])
        if not jobs:
            raise InputError("has no job", where=path, todo="see `vani history import --help`")
    return ImportedJobs(jobs, new, with_runs, refused)
