"""A strict FIFO queue on compute nodes whose running jobs are given I/O nodes again whenever one begins or ends.

A job moves its bytes at the rate of its number of I/O nodes, and ends when all are moved (Bez et al., IPDPS 2021,
section 5.3). Clients look for a new mapping every so many seconds: a running job changes its number no earlier, one
that begins reads the mapping that is made for it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from vani.errors import InputError
from vani.plan.curves import Offer, Option
from vani.units import format_rate

__all__ = ["LONGEST", "Life", "Replayed", "Share", "replayed"]

LONGEST: Final = 1e12
"""Longest replay in seconds: beyond it, a clock of 53 bits does not resolve milliseconds."""


@dataclass(frozen=True)
class Period:
    """Seconds that a job has one number of I/O nodes, and the bytes that it moves in them."""

    start_s: float
    seconds: float
    option: Option
    bytes: float


@dataclass
class Life:
    """One job of the queue, from its submission to its end; `left` are bytes that are not moved yet."""

    offer: Offer
    left: float
    start_s: float = math.nan
    end_s: float = math.inf
    option: Option = field(default_factory=lambda: Option(0, None))
    """The option that its clients use."""
    wanted: Option = field(default_factory=lambda: Option(0, None))
    """The option that the mapping gives it."""
    periods: list[Period] = field(default_factory=list)
    _period_s: float = math.nan
    _moves_s: float = math.nan
    """Since when the clients use the option, and since when they move bytes with it."""

    @property
    def runtime_s(self) -> float:
        """From its beginning to its end, not as a difference of two large times."""
        return math.fsum(period.seconds for period in self.periods)

    @property
    def rate(self) -> float:
        """Bytes per second while its clients move any."""
        return self.option.rate or 0.0

    def begin(self, clock: float) -> None:
        self.start_s = clock
        self._use(self.wanted, clock, 0.0)

    def change(self, clock: float, stop_s: float) -> None:
        """Use what the mapping gives; a change of the number stops the job's I/O for `stop_s` seconds."""
        moved = self.left - self.left_at(clock)
        if clock > self._period_s:
            self.periods.append(Period(self._period_s, clock - self._period_s, self.option, moved))
        # A job that is still paused by an earlier change stays paused.
        still = max(0.0, self._moves_s - clock)
        self.left -= moved
        self._use(self.wanted, clock, stop_s if _number(self.wanted) != _number(self.option) else still)

    def end(self) -> None:
        still = max(0.0, self._moves_s - self._period_s)
        self.periods.append(Period(self._period_s, still + self.left / self.rate, self.option, self.left))
        self.left = 0.0

    def left_at(self, clock: float) -> float:
        """Bytes that are not moved yet."""
        return max(0.0, self.left - max(0.0, clock - self._moves_s) * self.rate)

    def _use(self, option: Option, clock: float, stop_s: float) -> None:
        self.option, self._period_s, self._moves_s = option, clock, clock + stop_s
        self.end_s = self._moves_s + (self.left / self.rate if self.rate else math.inf)
        if self.end_s > LONGEST:
            raise InputError(
                f"would not end within {LONGEST:g} s at {format_rate(self.rate)}",
                where=f"job {self.offer.job.name}",
                todo="check its bytes and its curve",
            )


Share = Callable[[Sequence[Life], float], Sequence[Option]]
"""Function that gives each running job an option, in their order, from a moment on."""


@dataclass(frozen=True)
class Replayed:
    """Course of a queue: jobs in the order of their submission, and the most that they had at once.

    Attributes
    ----------
    most
        I/O nodes that a mapping assigned at once at most, the shared one included.
    late_s
        Seconds in which clients used more I/O nodes than the pool has although the mapping did not: those of a job
        that had not yet looked.
    solved
        How often the set of running jobs changed, and I/O nodes were shared again.
    changes
        How often a running job's number changed.
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
    stop_s: float = 0.0,
) -> Replayed:
    """Run the jobs: the first of the queue begins as soon as enough nodes are free, and no job before it.

    Parameters
    ----------
    offers
        Of jobs with bytes, of at most `nodes` nodes each; of jobs submitted at once the first comes first.
    share
        Gives every job an option with a rate.
    poll_s
        Running clients look for a new mapping at every multiple of this; 0: at once.
    stop_s
        Seconds without I/O that a change of its number costs a running job.

    Raises
    ------
    InputError
        A job that would not end, or what `share` raises.
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
                # The same number, of which the I/O node that is shared gives each job another rate now.
                if _number(life.wanted) == _number(life.option) and life.wanted.rate != life.option.rate:
                    life.change(clock, stop_s)
            for life in begun:
                life.begin(clock)
            running += begun
        if look_s <= clock:
            for life in running:
                if _number(life.wanted) != _number(life.option):
                    life.change(clock, stop_s)
                    changes += 1
            look_s = math.inf
    return Replayed(lives, most, late_s, solved, changes)


def _next(clock: float, waiting: Sequence[Life], running: Sequence[Life], look_s: float) -> float:
    """Time of the next event: a look at the mapping, an end, or a submission to a queue in which no job waits."""
    coming = min((life.end_s for life in running), default=math.inf)
    if waiting and (submit_s := waiting[0].offer.job.submit_s) > clock:
        coming = min(coming, submit_s)
    elif waiting and not running:
        coming = clock
    return max(clock, min(coming, look_s))


def _number(option: Option) -> tuple[int, bool]:
    return option.io_nodes, option.shared


def _used(running: Sequence[Life], *, seen: bool) -> int:
    """I/O nodes that clients use, or that the mapping gives them."""
    options = [life.option if seen else life.wanted for life in running]
    return sum(option.io_nodes for option in options) + any(option.shared for option in options)
