"""Compares the I/O times of ended jobs with those their plans expected."""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vani.centre.history.ingest import add_files
from vani.centre.history.rows import PlannedRun
from vani.centre.history.runs import read, write
from vani.centre.history.runs.store import Store
from vani.centre.history.scored import plan_scores
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import State, is_number
from vani.cli.profile import profile
from vani.errors import InputError
from vani.schema.settings import PathLike

if TYPE_CHECKING:
    from vani.centre.history.rows import StoredRun
    from vani.centre.history.schema import PlanScore
    from vani.schema.profile import Profile

# Implements `vani plan outcome`: compares the I/O times of ended jobs with those their plans expected.

_WAIT_S: Final = 86400.0
"""Time after the end of a job beyond which its log is no longer expected."""
_LONGEST_RUN: Final = timedelta(days=31)
_MAX_LOGS: Final = 1000
_CLOCKS_S: Final = 2.0
"""Tolerance for Darshan's times, which are whole seconds of another host's clock."""


@dataclass(frozen=True)
class JobOutcome:
    """A job that ended, and its row in the history; None if its log does not exist yet."""

    job: str
    row: PlannedRun | None


def plan_outcome(
    db: PathLike | None,
    state: PathLike,
    logs: PathLike,
    *,
    job: str | None = None,
    now: datetime | None = None,
) -> list[JobOutcome]:
    """Add the logs of ended jobs to the history, with measured and expected I/O times.

    Darshan's log names contain `_id` and the job's number. They are in the folder itself or in its folders for the
    days (`2026/1/31`) since the job may have started. The names of traces and other documents contain the number as
    a part. Only files owned by the job's user, root or the calling user count. For a day, each call looks again for
    the logs of jobs without one.

    Slurm numbers each job of an array. Under PBS and LSF, Darshan records the array's number: a job's log is then
    the one that began and ended while the job ran and that belongs to no other job. If there are several, none is
    used.

    Parameters
    ----------
    db
        As in `history_add`.
    state
        Folder of running jobs and plans.
    logs
        Folder of Darshan logs or traces.
    job
        Number of the job; None: all ended jobs.

    Raises
    ------
    InputError
        A folder or the history cannot be used, or `job` is not a job number.
    """
    if job is not None and not is_number(job):
        raise InputError(f"is {job[:40]!r}", where="--job", todo="give the number of a job")
    folder = Path(logs)
    if not folder.is_dir():
        raise InputError("is not a folder", where=folder, todo="name the folder of Darshan's logs, or of traces")
    ended = State(Path(state)).ended
    ended.mkdir(mode=0o755, exist_ok=True)
    store = Store(db)
    moment = (now or datetime.now(UTC)).timestamp()
    names = [f"{job}.yaml"] if job is not None else sorted(path.name for path in ended.glob("*.yaml"))
    outcomes = []
    for place in (ended / name for name in names):
        if not is_number(place.stem) or not place.is_file():
            continue
        try:
            plan = JobPlan.load(place)
        except InputError:
            # Nothing will read it any more.
            place.unlink(missing_ok=True)
            continue
        ended_s = place.stat().st_mtime
        run, reason = _run_of(store, plan, folder, ended_s)
        if run is None and moment - ended_s < _WAIT_S:
            outcomes.append(JobOutcome(plan.job.id, None))
            continue
        row = _row(plan, run, ended_s, reason)
        with store.writing(make=True) as connection:
            write.put(connection, [row])
        place.unlink(missing_ok=True)
        outcomes.append(JobOutcome(plan.job.id, row))
    return outcomes


def _run_of(store: Store, plan: JobPlan, folder: Path, ended_s: float) -> tuple[StoredRun | None, str]:
    """The job's run with the longest I/O time, or None and the reason."""
    paths = list(_logs(folder, plan, ended_s))[:_MAX_LOGS]
    if not paths:
        return None, "no log or trace of it was found"
    added = add_files(store, paths, make=_profile_of, user=plan.job.user)
    runs = [run for _, run in added if not isinstance(run, str)]
    if not runs:
        _, reason = added[0]
        return None, f"its log cannot be used: {reason}"
    if "_" in plan.job.id and all(run.kind == "darshan" for run in runs):
        runs = _of_array(store, plan, runs, ended_s)
        if not runs:
            return None, "no log of its job array is from its time"
        if len(runs) > 1:
            return None, f"{len(runs):,} logs of its job array are from its time, so its own is not known"
    return max(runs, key=lambda run: (run.slowest_s or 0.0, run.digest)), ""


def _of_array(store: Store, plan: JobPlan, runs: list[StoredRun], ended_s: float) -> list[StoredRun]:
    """Runs that began and ended while the job ran, except those of other jobs in its array."""
    begin_s = (plan.job.start or 0.0) - _CLOCKS_S
    with store.reading() as connection:
        others = {row.digest for row in read.rows(connection, PlannedRun) if row.job != plan.job.id}
    return [
        run
        for run in runs
        if run.digest not in others
        and run.submitted is not None
        and begin_s <= run.submitted
        and run.submitted + (run.runtime_s or 0.0) <= ended_s + _CLOCKS_S
    ]


def _profile_of(path: Path) -> Profile:
    return profile(path)


def _logs(folder: Path, plan: JobPlan, ended_s: float) -> Iterator[Path]:
    """Logs and traces of a job, by its number."""
    number, array = plan.job.id, plan.job.array
    # Darshan takes the leading digits: 123 for `123[4].server`, and for LSF the array's number.
    is_log = re.compile(rf"_id{number.partition('_')[0]}[-_].*\.darshan")
    numbers = [number] if array is None else [number, array, f"{array.replace('_', '[')}]"]
    is_other = re.compile(rf"(.*[^0-9])?({'|'.join(map(re.escape, numbers))})([^0-9].*)?")
    owners = _owners(plan.job.user)
    day = datetime.fromtimestamp(ended_s, UTC)
    # Darshan names folders by the local time of the program's start or end, which may be a day off in UTC.
    days = [day + timedelta(days=1), *(day - timedelta(days=back) for back in range(_LONGEST_RUN.days))]
    for place in [folder, *(folder / f"{day.year}" / f"{day.month}" / f"{day.day}" for day in days)]:
        try:
            entries = sorted(place.iterdir())
        except OSError:
            continue
        for entry in entries:
            darshan = entry.name.endswith(".darshan")
            if not (is_log.search(entry.name) if darshan else is_other.fullmatch(entry.name)):
                continue
            # Any user can write to Darshan's folder, so a log owned by another user proves nothing.
            if not darshan and place != folder:
                continue
            try:
                status = entry.stat()
            except OSError:
                continue
            # A log is written when its program ends, so logs of array jobs that ended before this one are not
            # opened.
            is_older = darshan and "_" in number and status.st_mtime < (plan.job.start or 0.0)
            if not is_older and (owners is None or status.st_uid in owners):
                yield entry


def _owners(user: str | None) -> set[int] | None:
    """User ids whose files count; None if the user is unknown here."""
    try:
        return {pwd.getpwnam(user or "").pw_uid, os.geteuid(), 0}
    except KeyError:
        return None


def _row(plan: JobPlan, run: StoredRun | None, ended_s: float, reason: str) -> PlannedRun:
    expected, layout = plan.io_s, plan.layout
    measured = None if run is None else run.slowest_s
    if run is not None and measured is None:
        reason = "its log has no I/O time"
    if expected is None and not reason:
        reason = "no expectation: " + next((left.reason for left in plan.unchanged if left.name == "io_s"), "?")
    return PlannedRun(
        job=plan.job.id,
        ended=ended_s,
        name=plan.job.name or plan.job.id,
        user=plan.job.user or (run.user if run is not None else ""),
        nodes=plan.job.nodes,
        digest=None if run is None else run.digest,
        application=None if run is None else run.application,
        processes=None if run is None else run.processes,
        stripe_count=None if layout is None else layout.stripe_count,
        io_nodes=None if plan.access is None else len(plan.io_nodes),
        changed=layout is not None,
        before=getattr(expected, "before", None),
        expected=getattr(expected, "seconds", None),
        low=getattr(expected, "low", None),
        high=getattr(expected, "high", None),
        measured=measured,
        method="" if expected is None else expected.method,
        reason=reason,
    )


# Implements `vani plan scored`.

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
    with Store(db).reading() as connection:
        return plan_scores(read.rows(connection, PlannedRun))
