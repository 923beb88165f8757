"""Flows of bytes through resources over time, at max-min fair rates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints

# Max-min fair rates by progressive filling.


CAPPED: Final = -1
"""Bound of a flow that only its own cap limits."""

_SAME: Final = 1 + 1e-12


@dataclass(frozen=True)
class Usage:
    """The flows' use of resources, in compressed rows.

    `first`, shape (flows + 1,), is the index of each flow's first entry. Entry `e` takes `load[e]` of
    `resource[e]` for each unit per second of its flow. `cap`, shape (flows,), is the highest rate of each flow,
    inf without a cap. A flow that represents n equal ones has n times the load and the rate of one of them.
    """

    first: Ints
    resource: Ints
    load: Floats
    cap: Floats

    def of(self, flows: Ints) -> Usage:
        """The rows of a subset of flows."""
        lengths = self.first[flows + 1] - self.first[flows]
        first = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.first[flows] - first[:-1], lengths) + np.arange(first[-1])
        return Usage(first, self.resource[entries], self.load[entries], self.cap[flows])


def max_min(usage: Usage, capacity: Floats) -> tuple[Floats, Ints]:
    """Share resources among flows.

    A resource's level is the rate of each of its flows if it is shared equally among those that are not settled yet.
    Levels only rise while others settle, so every resource whose level is the lowest along all its flows can settle
    in the same round. The number of rounds is the longest chain of dependent bottlenecks, not their number.

    Returns
    -------
    Rates, shape (flows,), and the resource that limits each flow, `CAPPED` for its own cap. A flow without resources
    and cap has an infinite rate.
    """
    flows = len(usage.first) - 1
    rate, bound = usage.cap.copy(), np.full(flows, CAPPED)
    left = capacity.astype(np.float64)
    lengths = np.diff(usage.first)
    live = np.flatnonzero(lengths)
    lengths = lengths[live]
    resource, load = usage.resource, usage.load
    while len(live):
        starts = np.cumsum(lengths) - lengths
        demand = np.bincount(resource, load, minlength=len(left))
        level = np.divide(left, demand, out=np.zeros_like(left), where=demand > 0)[resource]
        free = np.minimum.reduceat(level, starts)
        cap = usage.cap[live]
        low = np.minimum(free, cap)
        everywhere = np.repeat(low, lengths)
        # If another of its flows may settle lower, a resource's level can still rise: it waits for the next round.
        tight = level <= everywhere * _SAME
        waits = np.zeros(len(left), dtype=bool)
        waits[resource[~tight]] = True
        binding = tight & ~waits[resource]
        capped = cap <= free
        settled = np.logical_or.reduceat(binding, starts) | capped
        rate[live[settled]] = low[settled]
        bound[np.repeat(live, lengths)[binding]] = resource[binding]
        bound[live[capped]] = CAPPED
        gone = np.repeat(settled, lengths)
        left -= np.bincount(resource[gone], (load * everywhere)[gone], minlength=len(left))
        np.maximum(left, 0.0, out=left)
        live, lengths = live[~settled], lengths[~settled]
        resource, load = resource[~gone], load[~gone]
    return rate, bound


# A bounded record of what happens between events.

_MAX: Final = 400
_LEAST: Final = 20
_MAX_FIGURES: Final = 100_000


def most_steps(jobs: int) -> int:
    """Number of steps to keep for a number of jobs."""
    return max(_LEAST, min(_MAX, _MAX_FIGURES // max(1, jobs)))


@dataclass(frozen=True)
class Step:
    """A step from `begin` to `end`, in seconds."""

    begin: float
    end: float
    moved: Floats
    """Bytes by job, shape (jobs,)."""
    carried: Floats
    """Seconds of full use by kind of resource, summed over members, shape (kinds,)."""
    most: Floats
    """Seconds of full use of the busiest member of each kind, shape (kinds,)."""

    def __add__(self, later: Step) -> Step:
        moved, carried = self.moved + later.moved, self.carried + later.carried
        return Step(self.begin, later.end, moved, carried, self.most + later.most)


@dataclass
class Steps:
    """Steps of a run. If there are too many, neighbours are merged.

    `kind` has the kind of each resource, from 0 to `kinds` - 1.
    """

    kind: Ints
    kinds: int
    rows: list[Step] = field(default_factory=list)

    def add(self, begin: float, end: float, moved: Floats, carried: Floats) -> None:
        """Add a step; `carried` is by resource."""
        most = np.zeros(self.kinds)
        np.maximum.at(most, self.kind, carried)
        together = np.bincount(self.kind, carried, minlength=self.kinds).astype(np.float64)
        self.rows.append(Step(begin, end, moved, together, most))
        if len(self.rows) > 2 * most_steps(len(moved)):
            self.rows = [reduce(add, self.rows[n : n + 2]) for n in range(0, len(self.rows), 2)]


# The event loop of the simulation. Rates are constant between two events.

_GONE: Final = 1e-9
"""Relative tolerance for the end of a segment, against rounding errors."""


@dataclass(frozen=True)
class Phase:
    """Flows that begin together: `delay` seconds after the end of phase `after`, but not before `at`.

    `flows` is the range of their indexes. A phase ends with its last flow; without flows, as soon as it begins.
    """

    job: int
    flows: range
    after: int | None = None
    delay: float = 0.0
    at: float = 0.0


@dataclass(frozen=True)
class Change:
    """A change of capacity: from `time` on, `resource` has `factor` times its full capacity."""

    time: float
    resource: int
    factor: float


@dataclass(frozen=True)
class Workload:
    """Flows, each a chain of segments that run one after another, and the resources that they share.

    `capacity` and `kind` (of `kinds`) describe each resource, shape (resources,).
    Flow `f` has the segments from `chain[f, 0]` to before `chain[f, 1]`, which flows of several phases may share.
    `amount[s]` is the amount that each flow moves in segment `s`, and `use` its load on resources. Row `f` represents
    `count[f]` equal flows. `is_bytes[s]` is false for operations and for bytes that another segment of the flow counts.
    """

    use: Usage
    amount: Floats
    is_bytes: Flags
    chain: Ints
    count: Ints
    phases: Sequence[Phase]
    jobs: int
    capacity: Floats
    kind: Ints
    kinds: int


@dataclass
class SimulatedRun:
    """Results of a run. Times are in seconds, inf for things that never end, NaN for things that never begin."""

    flow_begin: Floats
    flow_end: Floats
    phase_begin: Floats
    phase_end: Floats
    moved: Floats
    """Bytes by job, shape (jobs,)."""
    carried: Floats
    """Seconds of full use by resource, shape (resources,)."""
    bound: Floats
    """Seconds of flows by job and limiting kind, shape (jobs, kinds + 1). The last column is the flow's own cap."""
    events: int = 0
    elapsed: float = 0.0
    """Time of the last event."""
    steps: list[Step] = field(default_factory=list)


def run(
    work: Workload, changes: Sequence[Change] = (), *, tolerance: float = 0.0, keep_steps: bool = False
) -> SimulatedRun:
    """Run until all flows end, or until no flow can make progress.

    Parameters
    ----------
    tolerance
        Flows that end within this share of the shortest flow's length of each other form one event: each ends at its
        own time, but the resources that they free are shared again only once. 0: every end is an event.
    keep_steps
        Keep the steps between events.
    """
    return _Clock(work, changes, tolerance, keep_steps).run()


class _Clock:
    def __init__(self, work: Workload, changes: Sequence[Change], tolerance: float, keep_steps: bool) -> None:
        flows, self.work = len(work.count), work
        self.capacity, self.full = work.capacity.copy(), work.capacity
        self.kind_of = np.append(work.kind, work.kinds)
        self.steps = Steps(work.kind, work.kinds) if keep_steps else None
        self.changes = sorted(changes, key=lambda change: (change.time, change.resource))
        self.changed = 0
        self.tolerance = tolerance
        self.now = 0.0
        self.at = work.chain[:, 0].copy()
        self.rest = work.amount[self.at]
        self.active = np.zeros(0, dtype=np.int64)
        self.phase_of = np.zeros(flows, dtype=np.int64)
        self.job_of = np.zeros(flows, dtype=np.int64)
        for number, phase in enumerate(work.phases):
            self.phase_of[phase.flows.start : phase.flows.stop] = number
            self.job_of[phase.flows.start : phase.flows.stop] = phase.job
        self.open = np.array([len(phase.flows) for phase in work.phases], dtype=np.int64)
        self.followers: dict[int, list[int]] = {}
        self.due: list[tuple[float, int]] = []
        for number, phase in enumerate(work.phases):
            if phase.after is None:
                self.due.append((max(phase.at, 0.0) + phase.delay, number))
            else:
                self.followers.setdefault(phase.after, []).append(number)
        phases, bound = len(work.phases), np.zeros((work.jobs, work.kinds + 1))
        begin, end, begun, ended = (np.full(rows, math.nan) for rows in (flows, flows, phases, phases))
        self.result = SimulatedRun(begin, end, begun, ended, np.zeros(work.jobs), np.zeros(len(self.full)), bound)

    def run(self) -> SimulatedRun:
        while True:
            self._begin_what_is_due()
            coming = self._next_given()
            if not len(self.active):
                if coming == math.inf:
                    break
                self.now = coming
                continue
            use = self.work.use.of(self.at[self.active])
            count = np.repeat(self.work.count[self.active], np.diff(use.first))
            counted = replace(use, load=use.load * count)
            rates, bound = max_min(counted, self.capacity)
            with np.errstate(divide="ignore", invalid="ignore"):
                ends = np.where(rates > 0, self.rest[self.active] / rates, math.inf)
            first = float(ends.min())
            if first == math.inf and coming == math.inf:
                break
            step = min(self._horizon(ends, first), coming - self.now)
            self._move(counted, rates, bound, ends, step)
        result = self.result
        result.elapsed = self.now
        for begin, end in ((result.flow_begin, result.flow_end), (result.phase_begin, result.phase_end)):
            end[~np.isnan(begin) & np.isnan(end)] = math.inf
        if self.steps is not None:
            result.steps = self.steps.rows
        return result

    def _next_given(self) -> float:
        """Time of the next event that does not depend on rates; infinite if there is none."""
        times = [time for time, _ in self.due]
        # A change does not matter if nothing is left to move.
        if self.changed < len(self.changes) and (len(self.active) or times):
            times.append(self.changes[self.changed].time)
        return min(times, default=math.inf)

    def _begin_what_is_due(self) -> None:
        while self.changed < len(self.changes) and self.changes[self.changed].time <= self.now:
            change = self.changes[self.changed]
            self.capacity[change.resource] = self.full[change.resource] * change.factor
            self.changed += 1
        new = []
        ready = [entry for entry in self.due if entry[0] <= self.now]
        self.due = [entry for entry in self.due if entry[0] > self.now]
        while ready:
            _, number = ready.pop()
            phase = self.work.phases[number]
            self.result.phase_begin[number] = self.now
            if len(phase.flows):
                flows = np.arange(phase.flows.start, phase.flows.stop)
                self.result.flow_begin[flows] = self.now
                new.append(flows)
            else:
                ready += self._ended(number, self.now)
        if new:
            self.active = np.concatenate([self.active, *new])

    def _ended(self, number: int, time: float) -> list[tuple[float, int]]:
        """End a phase. Return the following phases that begin immediately; the others wait until they are due."""
        self.result.phase_end[number] = time
        at_once: list[tuple[float, int]] = []
        for follower in self.followers.get(number, ()):
            phase = self.work.phases[follower]
            begin = max(time + phase.delay, phase.at)
            (at_once if begin <= self.now else self.due).append((begin, follower))
        return at_once

    def _horizon(self, ends: Floats, first: float) -> float:
        """Seconds until the next event. Within the tolerance, flows that end earlier leave their resources unused."""
        if not self.tolerance:
            return first
        lengths = self.now + ends - self.result.flow_begin[self.active]
        last = float(np.max(ends, where=np.isfinite(ends), initial=first))
        return min(first + self.tolerance * float(lengths.min()), last)

    def _move(self, use: Usage, rates: Floats, bound: Ints, ends: Floats, step: float) -> None:
        active, work, totals = self.active, self.work, self.result
        over = ends <= step * (1 + _GONE)
        moved = np.where(over, self.rest[active], rates * step)
        self.rest[active] -= moved
        lengths = np.diff(use.first)
        each = use.load * np.repeat(moved, lengths)
        carried = np.bincount(use.resource, each, minlength=len(self.full)).astype(np.float64)
        jobs = self.job_of[active]
        bytes_moved = np.where(work.is_bytes[self.at[active]], moved * work.count[active], 0.0)
        by_job = np.bincount(jobs, bytes_moved, minlength=work.jobs).astype(np.float64)
        spent = np.minimum(ends, step) * work.count[active]
        # The cap's column is the last one.
        column = self.kind_of[bound]
        width = totals.bound.shape[1]
        totals.bound += np.bincount(jobs * width + column, spent, minlength=work.jobs * width).reshape(work.jobs, width)
        totals.moved += by_job
        totals.carried += carried
        totals.events += 1
        if self.steps is not None and step > 0:
            self.steps.add(self.now, self.now + step, by_job, carried)
        began, self.now = self.now, self.now + step
        self._end_segments(active[over], began + ends[over])

    def _end_segments(self, flows: Ints, times: Floats) -> None:
        self.at[flows] += 1
        last = self.at[flows] >= self.work.chain[flows, 1]
        going = flows[~last]
        self.rest[going] = self.work.amount[self.at[going]]
        ended = flows[last]
        if not len(ended):
            return
        self.result.flow_end[ended] = times[last]
        done = np.zeros(len(self.work.count), dtype=bool)
        done[ended] = True
        self.active = self.active[~done[self.active]]
        phases = self.phase_of[ended]
        np.subtract.at(self.open, phases, 1)
        for number in np.unique(phases[self.open[phases] == 0]):
            own = self.work.phases[number].flows
            self.due += self._ended(int(number), float(self.result.flow_end[own.start : own.stop].max()))
