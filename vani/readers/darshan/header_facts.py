"""Facts in a log's header besides its counters: the job, its user and command, and hints of MPI-IO."""

from __future__ import annotations

from typing import Final

from vani.counts import JobFacts
from vani.readers.darshan.records import Records

__all__ = ["hints_of", "job_of"]

_HINTS: Final = "h"
_SOURCE: Final = "the log's header"


def job_of(records: Records) -> JobFacts:
    """The job as the header names it. A user is a number there; job 0 means none, and so does a user below 0."""
    user, job = records.user, records.job_id
    return JobFacts(
        id=str(job) if job is not None and job > 0 else None,
        user=str(user) if user is not None and user >= 0 else None,
        command=records.exe.strip() or None,
        source=_SOURCE,
    )


def hints_of(records: Records) -> dict[str, str]:
    """Hints of MPI-IO by name: `romio_no_indep_rw=true;cb_nodes=4`."""
    pairs = (part.partition("=") for part in records.metadata.get(_HINTS, "").split(";"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}
