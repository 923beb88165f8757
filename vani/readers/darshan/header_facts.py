"""Facts in a log about the whole job: its number, user and command, and whether the program passed MPI-IO hints."""

from __future__ import annotations

from typing import Final

from vani.counts import JobFacts
from vani.readers.darshan.records import Records

_SOURCE: Final = "the log's header"


def job_of(records: Records) -> JobFacts:
    """The job as the header names it. The user is a number; job 0 and a negative user mean that it is unknown."""
    user, job = records.user, records.job_id
    return JobFacts(
        id=str(job) if job is not None and job > 0 else None,
        user=str(user) if user is not None and user >= 0 else None,
        command=records.exe.strip() or None,
        source=_SOURCE,
    )


def hints_passed(records: Records) -> int | None:
    """MPI-IO opens and views for which the program or a library passed hints; None if they were not counted.

    No log records the hints themselves: `h` in the header lists those with which Darshan writes the log.
    """
    module = records.modules.get("MPI-IO")
    if module is None or "MPI-IO" in records.partial or "MPIIO_HINTS" not in module.counters:
        return None
    counts = module.counters["MPIIO_HINTS"]
    return None if (counts < 0).any() else int(counts.sum())
