"""Compares running jobs with their predictions, and with the machine's present state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.pools import pools_of
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.plan.schema.snapshot import BUSY_CPU, BUSY_MEMORY, Snapshot
from vani.centre.prediction.creations.following import Misses, ToDo
from vani.errors import InputError, VaniError
from vani.units import counted, format_rate, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema.snapshot import Target
    from vani.centre.prolog.state import JobFacts, State

# Bytes and rates of a running job, compared with its plan.
#
# A rate is bytes divided by the slowest process's seconds in I/O calls, like the expected I/O time of a plan: a
# program that computes is not slow.

_LEAST_S: Final = 5.0
"""Seconds in I/O calls below which a rate says little (our choice)."""
_BUSY: Final = 0.9


@dataclass(frozen=True)
class Moved:
    """Bytes that a job has read and written so far, and its slowest process's seconds in I/O calls."""

    bytes: int
    io_s: float


@dataclass
class Watched:
    """An earlier observation of a job, its time in seconds since 1970, and why the job is slow; None if it is not."""

    moved: Moved
    at_s: float
    cause: str | None = None


def moved_so_far(number: str, traces: str) -> Moved | None:
    """Bytes and seconds of a job so far, from its growing trace; None if unknown."""
    try:
        return _by_trace(number, traces)
    except VaniError:
        return None  # The file is being written at this moment, or the job ended.


def _by_trace(number: str, traces: str) -> Moved | None:
    path = Path(traces.replace("%j", number))
    if not path.exists():
        return None
    from vani.calls import FileClass, Flag, Kind, Layer  # noqa: PLC0415 - loads Arrow
    from vani.readers.open import open_trace  # noqa: PLC0415
    from vani.readers.trace_reader import KeepsCounts, Piece  # noqa: PLC0415

    reader = open_trace(path)
    if isinstance(reader, KeepsCounts):
        return None
    is_data = reader.files()["class"].to_numpy() == FileClass.DATASET
    moved, seconds = 0, np.zeros(reader.ranks)
    for batch in reader.batches(range(reader.ranks), Piece()):
        file = batch.column("file").fill_null(-1).to_numpy()
        own = (batch.column("layer").to_numpy() <= Layer.STDIO) & (file >= 0)
        own &= (batch.column("flags").to_numpy() & Flag.NESTED) == 0
        own[own] = is_data[file[own]]
        np.add.at(seconds, batch.column("rank").to_numpy()[own], batch.column("duration_ns").to_numpy()[own] / 1e9)
        carries = own & (batch.column("kind").to_numpy() <= Kind.WRITE)
        moved += int(batch.column("bytes").fill_null(0).to_numpy()[carries].clip(0).sum())
    return Moved(moved, float(seconds.max(initial=0.0)))


def why_slow(plan: JobPlan, now: Moved, before: Watched, targets: list[Target]) -> str | None:
    """Explain why a job is slower than its plan expects; None if it is not, or the explanation is not new.

    Parameters
    ----------
    before
        An earlier observation, replaced once enough seconds in I/O calls have passed.
    targets
        Present state of the machine's OSTs.
    """
    bytes_, io_s = now.bytes - before.moved.bytes, now.io_s - before.moved.io_s
    expected = plan.io_s
    if expected is None or not expected.bytes or not expected.high or not expected.seconds or io_s < _LEAST_S:
        return None
    rate, least = bytes_ / io_s, expected.bytes / expected.high
    since, before.moved, before.at_s = before.at_s, now, time.time()
    own = set() if plan.layout is None else set(plan.layout.osts)
    slow = [f"OST {target.index} {why}" for target in targets if target.index in own and (why := _trouble(target))]
    cause = ", ".join(slow) or (f"none of its {counted(len(own), 'OST')} is busy" if own else "the cause is not known")
    is_news = rate < least and cause != before.cause
    before.cause = cause if rate < least else None
    if not is_news:
        return None
    return (
        f"{format_rate(rate)} in {format_seconds(io_s)} of I/O since {datetime.fromtimestamp(since, UTC):%H:%M} UTC, "
        f"{format_rate(expected.bytes / expected.seconds)} (at least {format_rate(least)}) expected; {cause}"
    )


def _trouble(target: Target) -> str | None:
    if target.state != "ok":
        return f"is {target.state}"
    return f"is {target.load:.0%} busy".replace("%", " %") if (target.load or 0.0) >= _BUSY else None


# Implements `vani plan watch`: compares running jobs with their predictions, and with the machine's present state.
#
# It makes a suggestion in three cases.
#
# - A job with a placement database creates files that are missing in it (misses). Tarazu's rules apply
# (sections 5.5.1
#   and 5.7, `prediction.creations.following`): misses reach a tenth of the predicted files for the fourth time in a
#   row (30 % in the paper), or exceed half of all files.
# - A running job's I/O node is out of service, or one is back in service and belongs to no job.
# - A job with predicted bytes and I/O time has a rate below the range in its plan.

Action = Literal["plan again", "predict again", "retrain", "start over", "wait", "slow"]

_PATIENCE_S: Final = 10.0
"""Seconds to wait for a prolog that is planning."""


@dataclass(frozen=True)
class Suggestion:
    """An action for a job, or for all jobs if `job` is None, and the reason."""

    job: str | None
    action: Action
    why: str

    def __str__(self) -> str:
        return f"{'all jobs' if self.job is None else f'job {self.job}'}: {self.action}: {self.why}"


def look(
    state: State,
    jobs: Iterable[JobFacts],
    rules: SharingRules,
    *,
    traces: str | None = None,
    watched: dict[str, Watched] | None = None,
) -> Iterator[Suggestion]:
    """Yield suggestions for running jobs, without changing the jobs.

    Parameters
    ----------
    traces
        Path of a job's growing trace; %j is the job's number. A missing file is not an error.
    watched
        The last observation of each job, updated in place: rates are measured since then. None: since the job
        began.

    Raises
    ------
    InputError
        The pool cannot be read.
    """
    plans = {job.job: plan for job in jobs if (plan := _plan_of(state, job.job)) is not None}
    yield from _of_machine(plans, rules)
    for number in plans:
        yield from _of_creations(state, number, traces)
    if traces is not None:
        yield from _of_rates(plans, rules, traces, {} if watched is None else watched)


def plan_again(state: State, rules: SharingRules, *, now_s: float, say: Callable[[str], None]) -> str:
    """Plan for all running jobs, as when a job starts, and return the result as one line.

    Raises
    ------
    InputError
        There can be no plan, because an input is missing or the state cannot be written.
    """
    end_s = time.monotonic() + _PATIENCE_S
    with state.locked(lambda: time.monotonic() > end_s) as is_ours:
        if not is_ours:
            return "not planned again: another process is planning"
        return f"planned again: {plan_running_jobs(state, rules, None, now_s=now_s, say=say)}"


def _plan_of(state: State, number: str) -> JobPlan | None:
    try:
        return JobPlan.load(state.file_of(number, "yaml"))
    except InputError:
        return None  # The job ended, or another process is planning for it.


def _of_machine(plans: dict[str, JobPlan], rules: SharingRules) -> Iterator[Suggestion]:
    pools = pools_of(rules)
    working = {node for pool in pools for node in pool.working}
    known = {node for pool in pools for node in pool.numbers}
    used: set[str] = set()
    for number, plan in plans.items():
        used.update(plan.io_nodes)
        lost = [node for node in plan.io_nodes if node in known and node not in working]
        if lost:
            yield Suggestion(number, "plan again", f"no longer in service: {', '.join(lost)}")
    short = [number for number, plan in plans.items() if plan.over_capacity or plan.unplaced]
    if short and working - used:
        free, few = counted(len(working - used), "I/O node"), counted(len(short), "job")
        yield Suggestion(
            None, "plan again", f"{free} without a job, and {few} with fewer I/O nodes than the policy assigns"
        )
    if rules.snapshot is not None:
        server = Snapshot.load(rules.snapshot).mds
        if server is not None and ((server.cpu or 0.0) >= BUSY_CPU or (server.memory or 0.0) >= BUSY_MEMORY):
            shares = f"{_share(server.cpu)} of its processors and {_share(server.memory)} of its memory"
            yield Suggestion(None, "wait", f"the metadata server uses {shares}: do not allocate OSTs now")


def _share(share: float | None) -> str:
    return "an unknown share" if share is None else format_share(share)


def _of_creations(state: State, number: str, traces: str | None) -> Iterator[Suggestion]:
    place = state.file_of(number, "sqlite")
    if not place.is_file():
        return  # There is no prediction.
    try:
        from vani.centre.placement_library.database import read  # noqa: PLC0415 - loads SQL, an extra

        foreseen = {row.file for row in read(str(place))}
        created = list(created_files(number, traces))
    except InputError:
        return  # The job ended, or its log is being written.
    misses, done = Misses(len(foreseen)), ToDo.NOTHING
    missed = 0
    for path in created:
        hit = path in foreseen
        missed += not hit
        done = max(done, misses.saw(hit=hit), key=_ORDER.index)
    if done is ToDo.NOTHING:
        return
    of = f"{missed:,} of {counted(len(created), 'file')} were not predicted, {len(foreseen):,} were"
    yield Suggestion(number, _ACTIONS[done][0], f"{of}; {_ACTIONS[done][1]}")


def _of_rates(
    plans: dict[str, JobPlan],
    rules: SharingRules,
    traces: str,
    watched: dict[str, Watched],
) -> Iterator[Suggestion]:
    targets = [] if rules.snapshot is None else Snapshot.load(rules.snapshot).ost
    for number, plan in plans.items():
        moved = moved_so_far(number, traces)
        if moved is None:
            continue
        before = watched.setdefault(number, Watched(Moved(0, 0.0), plan.job.start or time.time()))
        why = why_slow(plan, moved, before, targets)
        if why is not None:
            yield Suggestion(number, "slow", why)


_ORDER: Final = (ToDo.NOTHING, ToDo.PREDICT, ToDo.RETRAIN, ToDo.START_OVER)
_ACTIONS: Final[dict[ToDo, tuple[Action, str]]] = {
    ToDo.PREDICT: ("predict again", "vani history creations APPLICATION --begun TRACE predicts the rest"),
    ToDo.RETRAIN: ("retrain", "vani plan learn chooses the predictor again when the job has ended"),
    ToDo.START_OVER: ("start over", "trace its next run and learn from that: earlier runs do not predict it"),
}


def created_files(number: str, traces: str | None) -> Iterator[str]:
    """Yield the paths of the files that a job has created so far, in order, from its trace.

    Raises
    ------
    InputError
        The trace cannot be read.
    """
    trace = None if traces is None else Path(traces.replace("%j", number))
    if trace is None or not trace.exists():
        return
    from vani.centre.prediction.creations.extraction import creations_of_trace  # noqa: PLC0415 - loads Arrow

    creations = creations_of_trace(trace)
    if creations is not None:
        yield from creations.paths
