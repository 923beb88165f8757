"""`vani plan watch`: running jobs, compared with their predictions and with the machine's current state.

Of a job with a placement database, files that it creates and that are not in it are misses. The rules are Tarazu's
(sections 5.5.1 and 5.7, `vani.history.creations.following`): misses of a tenth of the files that were foreseen, the
fourth time in a row (the paper's 30 %), and of more than half of all files. Of the machine, an I/O node of a running
job that does not serve any more, or one that serves again and belongs to no job. Of a job whose bytes and I/O time are
foreseen, a rate below the range that its plan expects.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vani.api.plan.job import plan_running_jobs
from vani.api.plan.pools import SharingRules, pools_of
from vani.api.plan.rates import Moved, Watched, moved_so_far, why_slow
from vani.database.interactions import read
from vani.errors import InputError
from vani.history.creations.following import Misses, ToDo
from vani.schema.plan import JobPlan
from vani.schema.snapshot import BUSY_CPU, BUSY_MEMORY, Snapshot
from vani.units import counted, format_share

if TYPE_CHECKING:
    from vani.prolog.job_facts import JobFacts
    from vani.prolog.state import State

__all__ = ["Created", "Suggestion", "created_files", "look", "plan_again"]

Action = Literal["plan again", "predict again", "retrain", "start over", "wait", "slow"]

_LINE: Final = re.compile(r"\d+ (placed|default|unknown)\b[^/]*(/.*)")
"""Of the placement library's log: files that it was to create, and whether the database had them."""
_MOST_BYTES: Final = 1 << 28
_PATIENCE_S: Final = 10.0
"""Seconds to wait for a prolog that plans."""


@dataclass(frozen=True)
class Created:
    """A file that a job created, and whether it was foreseen; None: the log does not say, so its name is looked up."""

    path: str
    hit: bool | None = None


@dataclass(frozen=True)
class Suggestion:
    """A thing to do for a job, or for all of them where `job` is None, and why."""

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
    logs: str | None = None,
    traces: str | None = None,
    running: Path | None = None,
    watched: dict[str, Watched] | None = None,
) -> Iterator[Suggestion]:
    """Suggestions for jobs that run; nothing of them is changed.

    Parameters
    ----------
    logs, traces
        Paths of what the placement library logs of a job (VANI_PLACE_LOG), and of its growing trace; %j is the job's
        number. A missing file means nothing.
    running
        Folder of the files that a Darshan with --enable-mmap-logs updates while programs run.
    watched
        What the last look saw of each job, which this one replaces: rates are those since then. None: since it began.

    Raises
    ------
    InputError
        The pool cannot be read.
    """
    plans = {job.job: plan for job in jobs if (plan := _plan_of(state, job.job)) is not None}
    yield from _of_machine(plans, rules)
    for number in plans:
        yield from _of_creations(state, number, logs, traces)
    if running is not None or traces is not None:
        yield from _of_rates(plans, rules, traces, running, {} if watched is None else watched)


def plan_again(state: State, rules: SharingRules, *, now_s: float, say: Callable[[str], None]) -> str:
    """Plan for all running jobs, as a job's beginning does; what became of it, in a line.

    Raises
    ------
    InputError
        There is no plan, for want of an input or of a place to write.
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
        return None  # It ended, or is being planned for.


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


def _of_creations(state: State, number: str, logs: str | None, traces: str | None) -> Iterator[Suggestion]:
    place = state.file_of(number, "sqlite")
    if not place.is_file():
        return  # Nothing was predicted.
    try:
        foreseen = {row.file for row in read(str(place))}
        created = list(created_files(number, logs, traces))
    except InputError:
        return  # It ended, or its log is being written.
    misses, done = Misses(len(foreseen)), ToDo.NOTHING
    missed = 0
    for file in created:
        hit = file.path in foreseen if file.hit is None else file.hit
        missed += not hit
        done = max(done, misses.saw(hit=hit), key=_ORDER.index)
    if done is ToDo.NOTHING:
        return
    of = f"{missed:,} of {counted(len(created), 'file')} were not predicted, {len(foreseen):,} were"
    yield Suggestion(number, _ACTIONS[done][0], f"{of}; {_ACTIONS[done][1]}")


def _of_rates(
    plans: dict[str, JobPlan],
    rules: SharingRules,
    traces: str | None,
    running: Path | None,
    watched: dict[str, Watched],
) -> Iterator[Suggestion]:
    targets = [] if rules.snapshot is None else Snapshot.load(rules.snapshot).ost
    for number, plan in plans.items():
        moved = moved_so_far(number, traces, running)
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


def created_files(number: str, logs: str | None, traces: str | None) -> Iterator[Created]:
    """Files that a job created so far, in order: of the placement library's log, else of its trace.

    Raises
    ------
    InputError
        The trace cannot be read.
    """
    log = None if logs is None else Path(logs.replace("%j", number))
    if log is not None and log.is_file():
        with log.open("rb") as file:
            content = file.read(_MOST_BYTES)
        # A line that is being written has no end yet.
        for line in content[: content.rfind(b"\n") + 1].decode(errors="surrogateescape").splitlines():
            match = _LINE.fullmatch(line)
            if match is not None:
                yield Created(match[2], match[1] != "unknown")
        return
    trace = None if traces is None else Path(traces.replace("%j", number))
    if trace is None or not trace.exists():
        return
    from vani.history.creations.extraction import creations_of_trace  # noqa: PLC0415 - loads Arrow

    creations = creations_of_trace(trace)
    for path in () if creations is None else creations.paths:
        yield Created(path)
