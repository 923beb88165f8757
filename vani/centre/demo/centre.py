"""A day of forty jobs of five programs, without the hook of `vani plan job` and with it, before and after learning.

Programs run on the model of a striped file system (`vani.demo.striped_model`), so all seconds are modelled. They
do not depend on the machine and say nothing about Lustre. The hook is the real one: its state, plans, placement
database, Darshan logs, history and `known/` are files in a folder.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from vani.centre.demo.cluster import Ended, Machinery, Measured, Submitted, run_day
from vani.centre.demo.darshan_log import log_bytes
from vani.centre.demo.programs import PROGRAMS, Program
from vani.centre.history.rows import PlannedRun
from vani.centre.placement_library.database import read as read_interactions
from vani.centre.plan.job_settings import SharingRules
from vani.centre.plan.learn import plan_learn
from vani.centre.plan.outcome import plan_outcome
from vani.centre.plan.running_jobs import plan_running_jobs
from vani.centre.plan.schema.jobs import Demand
from vani.centre.plan.schema.snapshot import Snapshot, Target
from vani.centre.prolog.state import State
from vani.demo.striped_model import MACHINES, Component, Layout, Machine, Storage
from vani.errors import InputError

MACHINE: Final = "many slow targets"
NODES: Final = 12
JOBS: Final = 40
_PAUSE_S: Final = 5.0
"""Mean time between two submissions."""
_TARGET_BYTES: Final = 64 << 30
_EPOCH_S: Final = 1_793_491_200.0
_DAY_S: Final = 86400.0
_LIBRARY: Final = "/opt/vani/lib/libvani_place.so"
"""Placement library in the hook's options. It is not loaded: the scheduler looks files up as it would."""
_SLOWER: Final = 1.1

Progress = Callable[[str], None]


@dataclass(frozen=True)
class DayCosts:
    """Cost of a program's jobs: mean over jobs of the slowest process's seconds in I/O calls."""

    program: str
    jobs: int
    io_s: float


@dataclass(frozen=True)
class CentreDay:
    """Figures of a day.

    Attributes
    ----------
    io_s, makespan_s
        Mean I/O time of a job, and the time from the first submission to the last end.
    ost_cost
        Bytes on the fullest target over the mean.
    gain
        Mean I/O time of the day without the hook over that of this day.
    slower, worst
        Number of jobs with more than 1.1 times their I/O time without the hook, and the largest such ratio.
    expected
        Number of jobs with an expected I/O time.
    error
        Median of |measured / expected - 1|; None without expected times.
    within
        Share of measured times within the expected range; None without expected times.
    changed
        Number of jobs to which the plan gave other stripes or OSTs.
    """

    name: str
    io_s: float
    makespan_s: float
    ost_cost: float
    gain: float
    slower: int
    worst: float
    expected: int
    error: float | None
    within: float | None
    changed: int
    programs: tuple[DayCosts, ...]


@dataclass(frozen=True)
class CentreReport:
    """All days, the first without the hook, and the modelled machine.

    Attributes
    ----------
    pace
        With real I/O calls under Slurm, the share of the modelled day's seconds and bytes. None for the modelled day.
    """

    machine: str
    jobs: int
    nodes: int
    days: tuple[CentreDay, ...]
    seconds: float
    pace: float | None = None


def silent(text: str) -> None:
    """Show no progress."""
    del text


class _SlurmHook:
    """The hook of PrologSlurmctld and EpilogSlurmctld, run in this process."""

    def __init__(self, folder: Path, machine: Machine, number: int) -> None:
        self.state, self.logs, self.history = State(folder / "state"), folder / "logs", folder / "history.sqlite"
        self.known, self.snapshot = folder / "known", folder / "now.yaml"
        self.rows: list[PlannedRun] = []
        self._machine, self._number = machine, number
        self.logs.mkdir(exist_ok=True)
        self.state.ended.mkdir(exist_ok=True)
        self._rules = SharingRules.of(
            io_nodes=0, snapshot=self.snapshot, known=self.known, place_library=_LIBRARY
        )

    def begins(self, job: Submitted, storage: Storage) -> Callable[[str], Layout | None]:
        self._observe(storage)
        nodes, number = job.program.nodes, str(job.number)
        self.state.register(
            {
                "SLURM_JOB_ID": number,
                "SLURM_JOB_NAME": job.program.name,
                "SLURM_JOB_USER": job.program.user,
                "SLURM_JOB_NUM_NODES": str(nodes),
                "SLURM_JOB_NODELIST": f"n[1-{nodes}]",
            }
        )
        plan_running_jobs(self.state, self._rules, number, now_s=time.time(), say=silent)
        variables = (line.removeprefix("export ").partition("=") for line in self._exported(number))
        database = {name: value for name, _, value in variables}.get("VANI_PLACE_DB")
        return lambda path: None if database is None else _layout_in(database, path)

    def _exported(self, number: str) -> list[str]:
        with suppress(OSError):
            return self.state.file_of(number, "env").read_text().splitlines()
        return []

    def ended(self, ended: Ended) -> None:
        number, program = str(ended.job.number), ended.job.program
        begin = _EPOCH_S + self._number * _DAY_S
        log = replace(ended.log, start_s=begin + ended.begin_s, end_s=begin + ended.end_s)
        path = self.logs / f"{program.user}_{program.name}_id{number}-1_1-1-1-1_1.darshan"
        path.write_bytes(log_bytes(log))
        self.state.forget(number)
        plan_running_jobs(self.state, self._rules, None, now_s=time.time(), say=silent)
        for outcome in plan_outcome(self.history, self.state.folder, self.logs, job=number):
            if outcome.row is not None:
                self.rows.append(outcome.row)

    def _observe(self, storage: Storage) -> None:
        """Write the snapshot that the collector would write."""
        snapshot_of(self._machine, storage.stored, storage.busy_s()).save(self.snapshot)


def snapshot_of(machine: Machine, stored: Iterable[int], busy_s: Iterable[float]) -> Snapshot:
    """The state of a stand-in as a snapshot: bytes on each target, and seconds of outstanding work."""
    rates = Demand(iobw=machine.target_rate)
    targets = [
        Target(index=index, size=_TARGET_BYTES, used=used, load=min(1.0, busy), peak=rates)
        for index, (used, busy) in enumerate(zip(stored, busy_s, strict=True))
    ]
    return Snapshot(ost=targets)


def _layout_in(database: str, path: str) -> Layout | None:
    """The layout that the placement library would give a new file; None if it would give none."""
    try:
        rows = read_interactions(database, path)
    except InputError:
        return None
    return (
        tuple(Component(row.extent_end, row.stripe_count, row.stripe_size, targets=row.osts) for row in rows)
        or None
    )


def run_centre(folder: Path, *, seed: int = 0, progress: Progress = silent) -> CentreReport:
    """Run the days in a new folder.

    The result depends only on the seed. All days have the same jobs. Each day with the hook has its own noise and is
    compared with a day without the hook that has the same noise.

    Raises
    ------
    InputError
        The folder cannot be written.
    """
    begin = time.perf_counter()
    machine = MACHINES[MACHINE]
    jobs = jobs_of_day(seed)
    progress("a day without the hook")
    plain = Machinery(machine, NODES, seed)
    without = run_day(plain, jobs, None)
    days = [day_costs("without the hook", without, without, [], plain.storage.stored)]
    progress("the same day without the hook once more, with other noise")
    other = Machinery(machine, NODES, seed, day=1)
    again = run_day(other, jobs, None)
    days.append(day_costs("without, other noise", again, without, [], other.storage.stored))
    third = run_day(Machinery(machine, NODES, seed, day=2), jobs, None)
    names = ("hook, nothing known", "hook, learned a day", "hook, learned two days")
    for number, (name, same_noise) in enumerate(zip(names, (without, again, third), strict=True)):
        progress(f"a day: {name}")
        hook = _SlurmHook(folder, machine, number)
        # Judge what was learned with noise that it did not see.
        machinery = Machinery(machine, NODES, seed, day=number)
        numbered = [replace(job, number=job.number + 1000 * number) for job in jobs]
        ended = run_day(machinery, numbered, hook)
        days.append(day_costs(name, ended, same_noise, hook.rows, machinery.storage.stored))
        plan_learn(hook.history, hook.known, processes_per_node=1, days=100_000)
    return CentreReport(MACHINE, len(jobs), NODES, tuple(days), time.perf_counter() - begin)


def jobs_of_day(
    seed: int, each: int = JOBS // len(PROGRAMS), programs: Sequence[Program] = PROGRAMS
) -> list[Submitted]:
    """Jobs of a day: `each` of every program, in random order and with random pauses."""
    draw = random.Random(seed)
    drawn = [program for program in programs for _ in range(each)]
    draw.shuffle(drawn)
    jobs, when = [], 0.0
    for number, program in enumerate(drawn, start=101):
        jobs.append(Submitted(number, program, when))
        when += draw.expovariate(1 / _PAUSE_S)
    return jobs


def day_costs(
    name: str,
    ended: Sequence[Measured],
    without: Sequence[Measured],
    rows: Iterable[PlannedRun],
    stored: Sequence[int],
) -> CentreDay:
    """Figures of a day. Job 2103 is the same as job 103 of the day without the hook. `stored` has bytes by target."""
    before = {entry.job.number % 1000: entry.io_s for entry in without}
    ratios = [entry.io_s / before[entry.job.number % 1000] for entry in ended]
    io_s = statistics.fmean(entry.io_s for entry in ended)
    outcomes = list(rows)
    judged = [
        (row.measured, row.expected, row.low, row.high) for row in outcomes if row.measured and row.expected
    ]
    errors = [abs(measured / expected - 1) for measured, expected, _, _ in judged if measured and expected]
    within = [low <= measured <= high for measured, _, low, high in judged if measured and high and low is not None]
    costs = []
    for program in PROGRAMS:
        times = [entry.io_s for entry in ended if entry.job.program is program]
        costs.append(DayCosts(program.name, len(times), statistics.fmean(times) if times else 0.0))
    return CentreDay(
        name=name,
        io_s=io_s,
        makespan_s=max(entry.end_s for entry in ended),
        ost_cost=max(stored) / statistics.fmean(stored),
        gain=statistics.fmean(entry.io_s for entry in without) / io_s,
        slower=sum(ratio > _SLOWER for ratio in ratios),
        worst=max(ratios),
        expected=len(judged),
        error=statistics.median(errors) if errors else None,
        within=sum(within) / len(within) if within else None,
        changed=sum(row.changed for row in outcomes),
        programs=tuple(costs),
    )
