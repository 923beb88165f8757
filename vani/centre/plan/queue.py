"""A strict FIFO queue of jobs. I/O nodes are shared again among the running jobs whenever a job starts or ends.

A job moves its bytes at the rate of its number of I/O nodes, and ends when all are moved (Bez et al., IPDPS 2021,
section 5.3). Clients poll for a new mapping at fixed intervals, so the number of a running job changes at the next
poll. A starting job reads the mapping that was made for it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from vani.centre.plan.curves import Offer, Option
from vani.errors import InputError
from vani.units import format_rate

LONGEST: Final = 1e12
"""Longest replay in seconds. Beyond it, a clock with 53 bits does not resolve milliseconds."""


@dataclass(frozen=True)
class Period:
    """A period in which a job has a constant number of I/O nodes, and the bytes that it moves then."""

    start_s: float
    seconds: float
    option: Option
    bytes: float


@dataclass
class Life:
    """A job of the queue, from submission to end. `left` is the number of bytes still to move."""

    offer: Offer
    left: float
    start_s: float = math.nan
    end_s: float = math.inf
    option: Option = field(default_factory=lambda: Option(0, None))
    """The option that the job's clients use."""
    wanted: Option = field(default_factory=lambda: Option(0, None))
    """The option that the mapping gives the job."""
    periods: list[Period] = field(default_factory=list)
    _period_s: float = math.nan
    """Start time of using the present option."""

    @property
    def runtime_s(self) -> float:
        """Run time as a sum of periods, which is more precise than a difference of two large times."""
        return math.fsum(period.seconds for period in self.periods)

    @property
    def rate(self) -> float:
        """Bytes per second while the clients move data."""
        return self.option.rate or 0.0

    def begin(self, clock: float) -> None:
        self.start_s = clock
        self._use(self.wanted, clock)

    def change(self, clock: float) -> None:
        """Switch to the option of the mapping."""
        moved = self.left - self.left_at(clock)
        if clock > self._period_s:
            self.periods.append(Period(self._period_s, clock - self._period_s, self.option, moved))
        self.left -= moved
        self._use(self.wanted, clock)

    def end(self) -> None:
        self.periods.append(Period(self._period_s, self.left / self.rate, self.option, self.left))
        self.left = 0.0

    def left_at(self, clock: float) -> float:
        """Bytes still to move at a time."""
        return max(0.0, self.left - max(0.0, clock - self._period_s) * self.rate)

    def _use(self, option: Option, clock: float) -> None:
        self.option, self._period_s = option, clock
        self.end_s = clock + (self.left / self.rate if self.rate else math.inf)
        if self.end_s > LONGEST:
            raise InputError(
                f"would not end within {LONGEST:g} s at {format_rate(self.rate)}",
                where=f"job {self.offer.job.name}",
                todo="check its bytes and its curve",
            )


Share = Callable[[Sequence[Life], float], Sequence[Option]]
"""Function from the running jobs and the time to one option per job, in the same order."""


@dataclass(frozen=True)
class Replayed:
    """Result of a replay, with jobs in submission order.

    Attributes
    ----------
    most
        Most I/O nodes that a mapping assigned at once, including the shared one.
    late_s
        Seconds in which clients used more I/O nodes than the pool has, because some had not yet seen the new mapping.
    solved
        Number of times that I/O nodes were shared again because the set of running jobs changed.
    changes
        Number of times that a running job's number changed.
    """

    lives: list[Life]
    most: int
    late_s: float
    solved: int
    changes: int


def replayed(
    offers: Sequence[Offer],
    share: Share,
    *,
    nodes: int,
    io_nodes: int,
    poll_s: float = 0.0,
) -> Replayed:
    """Replay the queue: its first job starts as soon as enough nodes are free, and no job overtakes it.

    Parameters
    ----------
    offers
        Offers of jobs with bytes and at most `nodes` nodes. Jobs submitted at the same time keep this order.
    share
        Gives every running job an option with a rate.
    poll_s
        Running clients look for a new mapping at every multiple of this; 0: immediately.

    Raises
    ------
    InputError
        A job would not end, or `share` raises it.
    """
    lives = [Life(offer, offer.job.bytes or 0.0) for offer in offers]
    lives.sort(key=lambda life: life.offer.job.submit_s)
    waiting, running = deque(lives), list[Life]()
    clock, look_s, free = 0.0, math.inf, nodes
    most, late_s, solved, changes = 0, 0.0, 0, 0
    while waiting or running:
        last, clock = clock, _next(clock, waiting, running, look_s)
        if _used(running, seen=True) > io_nodes >= _used(running, seen=False):
            late_s += clock - last
        ended = [life for life in running if life.end_s <= clock]
        running = [life for life in running if life.end_s > clock]
        for life in ended:
            life.end()
            free += life.offer.job.nodes
        begun = []
        while waiting and waiting[0].offer.job.submit_s <= clock and waiting[0].offer.job.nodes <= free:
            begun.append(waiting.popleft())
            free -= begun[-1].offer.job.nodes
        if (ended or begun) and (running or begun):
            solved += 1
            for life, option in zip([*running, *begun], share([*running, *begun], clock), strict=True):
                life.wanted = option
            most = max(most, _used([*running, *begun], seen=False))
            look_s = math.ceil(clock / poll_s) * poll_s if poll_s else clock
            for life in running:
                # The number is the same, but the rate on the shared I/O node depends on the number of jobs.
                if _number(life.wanted) == _number(life.option) and life.wanted.rate != life.option.rate:
                    life.change(clock)
            for life in begun:
                life.begin(clock)
            running += begun
        if look_s <= clock:
            for life in running:
                if _number(life.wanted) != _number(life.option):
                    life.change(clock)
                    changes += 1
            look_s = math.inf
    return Replayed(lives, most, late_s, solved, changes)


def _next(clock: float, waiting: Sequence[Life], running: Sequence[Life], look_s: float) -> float:
    """Time of the next event: a poll of the mapping, the end of a job, or a submission to an empty queue."""
    coming = min((life.end_s for life in running), default=math.inf)
    if waiting and (submit_s := waiting[0].offer.job.submit_s) > clock:
        coming = min(coming, submit_s)
    elif waiting and not running:
        coming = clock
    return max(clock, min(coming, look_s))


def _number(option: Option) -> tuple[int, bool]:
    return option.io_nodes, option.shared


def _used(running: Sequence[Life], *, seen: bool) -> int:
    """Number of I/O nodes that clients use (`seen`), or that the mapping gives them."""
    options = [life.option if seen else life.wanted for life in running]
    return sum(option.io_nodes for option in options) + any(option.shared for option in options)
