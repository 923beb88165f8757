"""A day of forty jobs of five programs, by each fixed rule for the layouts of their files.

Programs run on the model of a striped file system (`vani.demo.striped_model`), so all seconds are modelled. They
do not depend on the machine and say nothing about Lustre.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from vani.centre.demo.cluster import Ended, Machinery, Measured, Submitted, run_day
from vani.centre.demo.programs import PROGRAMS, Program
from vani.demo.striped_model import MACHINES, Layout, Storage, layout_of

MACHINE: Final = "many slow targets"
NODES: Final = 12
JOBS: Final = 40
_PAUSE_S: Final = 5.0
"""Mean time between two submissions."""
RULES: Final = {
    "default of 2 stripes": "-c 2",
    "default of 4 stripes": "-c 4",
    "default of 8 stripes": "-c 8",
    "1 stripe to 1 MiB, then 16": "-E 1M -c 1 -E -1 -c 16",
}
"""Layouts of all new files, as options of `lfs setstripe`."""
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
        Mean I/O time of the day without a rule over that of this day.
    slower, worst
        Number of jobs with more than 1.1 times their I/O time without a rule, and the largest such ratio.
    """

    name: str
    io_s: float
    makespan_s: float
    ost_cost: float
    gain: float
    slower: int
    worst: float
    programs: tuple[DayCosts, ...]


@dataclass(frozen=True)
class CentreReport:
    """All days, the first without a rule, and the modelled machine."""

    machine: str
    jobs: int
    nodes: int
    days: tuple[CentreDay, ...]
    seconds: float


def silent(text: str) -> None:
    """Show no progress."""
    del text


class _FixedLayout:
    """A rule that gives each new file the same layout."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def begins(self, job: Submitted, storage: Storage) -> Callable[[str], Layout | None]:
        del job, storage
        return lambda _: self._layout

    def ended(self, ended: Ended) -> None:
        del ended


def run_centre(*, seed: int = 0, progress: Progress = silent) -> CentreReport:
    """Run the days.

    The result depends only on the seed. All days have the same jobs, and all but the second the same noise.
    """
    begin = time.perf_counter()
    machine = MACHINES[MACHINE]
    jobs = jobs_of_day(seed)

    def day(name: str, rule: str | None, noise: int = 0) -> tuple[list[Ended], list[int]]:
        progress(f"a day: {name}")
        machinery = Machinery(machine, NODES, seed, day=noise)
        hook = None if rule is None else _FixedLayout(layout_of(rule.split(), machine))
        return run_day(machinery, jobs, hook), list(machinery.storage.stored)

    without, stored = day("no rule", None)
    days = [day_costs("no rule", without, without, stored)]
    other, stored = day("no rule, other noise", None, noise=1)
    days.append(day_costs("no rule, other noise", other, without, stored))
    for name, rule in RULES.items():
        ended, stored = day(name, rule)
        days.append(day_costs(name, ended, without, stored))
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
    stored: Sequence[int],
) -> CentreDay:
    """Figures of a day. `stored` has bytes by target."""
    before = {entry.job.number: entry.io_s for entry in without}
    ratios = [entry.io_s / before[entry.job.number] for entry in ended]
    io_s = statistics.fmean(entry.io_s for entry in ended)
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
        programs=tuple(costs),
    )
