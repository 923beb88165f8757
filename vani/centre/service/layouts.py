"""A replay of past jobs on a model of their file system, and the layout of new files that it chooses.

Each job is a sequence of steps: it computes, then its processes write or read files at the same time. A step costs each
storage target its bytes, a latency for each request, and a lock whenever another node wrote to the same object before.
Steps that use a target at the same time share it in proportion to the work that they have in flight there. Creating
a file costs the metadata server one operation, and more for each object.

The model is coarser than the machine: it only compares layouts. `fitted` finds the rates with which it agrees best with
the measured times. The first half of the jobs chooses, and the second half judges.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, product
from posixpath import commonpath
from typing import Final

import numpy as np
from pydantic import Field

from vani.centre.columns import Floats, Ints
from vani.centre.history.rows import StoredRun
from vani.centre.prediction.creations.series import Creations
from vani.models import pfl
from vani.schema.model import Model
from vani.units import KiB, MiB, lfs_size

_IN_FLIGHT: Final = 8
"""Requests that a client of Lustre has in flight on a target (its default, `max_rpcs_in_flight`)."""
_RPC: Final = 4 * MiB
"""Largest request of a client, into which it collects buffered writes."""
_SMALL: Final = 64 * KiB
"""A process that waits for each write of this size or less has one request in flight (our choice)."""
_MEMORY_S: Final = 2e-4
"""A small write that takes less time is buffered in memory (our choice)."""
_MAX_STEPS: Final = 24
"""Longer sequences of files are replayed as this many steps (our choice)."""
_MAX_PARTS: Final = 100_000
"""More objects of a step are taken to be evenly on all targets."""
_TOLERANCE: Final = 0.005
"""Parts of a step that would end within this share of their work end at once."""


@dataclass(frozen=True)
class Component:
    """A part of a layout: `count` stripes (-1: all targets) of `size` bytes, up to byte `end` (None: end of file)."""

    end: int | None
    count: int
    size: int


Layout = tuple[Component, ...]


@dataclass(frozen=True)
class Rates:
    """Figures of a file system, in seconds and bytes per second.

    Attributes
    ----------
    latency_s, lock_s
        Of a target, for each request, and for a request to an object that another node wrote before.
    metadata_s, object_s
        Of the metadata server, for each operation, and for each object of a new file after the first.
    client_rate
        Of one process.
    """

    targets: int
    target_rate: float
    latency_s: float
    lock_s: float
    metadata_s: float
    object_s: float
    client_rate: float


@dataclass(frozen=True)
class Step:
    """Files that the processes of a job use at the same time; arrays have shape (files,).

    Attributes
    ----------
    moved, length
        Bytes moved, and length of the file.
    processes
        Number of processes that use the file.
    stripes
        Recorded stripe count; 0 if unknown.
    request
        Mean bytes of a request.
    """

    moved: Floats
    length: Floats
    processes: Floats
    stripes: Ints
    request: float
    reads: bool = False


@dataclass(frozen=True)
class ReplayJob:
    """A past job.

    Attributes
    ----------
    begin_s, gap_s
        Start in seconds since the first job, and the time without I/O before each step.
    folder
        Common folder of the files that the job wrote; empty if unknown.
    renewed
        Share of its written bytes in files whose names no earlier run of the history used.
    """

    run: StoredRun
    begin_s: float
    gap_s: float
    steps: tuple[Step, ...]
    folder: str
    renewed: float


LayoutOf = Callable[[ReplayJob, bool], "Layout | None"]
"""Function from a job, and whether a file is read, to the layout of the file; None: as recorded."""


def job_of(run: StoredRun, created: Creations | None, first_s: float, known: set[str]) -> ReplayJob | None:
    """A stored run as a job to replay; None if it moved nothing, or its times are unknown.

    Parameters
    ----------
    known
        Paths that earlier runs wrote. Those of this run are added.
    """
    if run.submitted is None or not run.runtime_s or not run.slowest_s:
        return None
    steps: list[Step] = []
    paths: tuple[str, ...] = ()
    renewed = 1.0
    if created is not None and len(created) and run.bytes_written:
        paths = created.paths
        shared = created.ranks < 0
        # A file of several processes, and the nth files of each process, make a step.
        nth = np.where(shared, np.arange(len(created)), created.nth)
        keys = np.unique(np.stack([~shared, nth]), axis=1, return_inverse=True)[1].reshape(-1)
        sizes = created.values * min(1.0, run.bytes_written / max(1.0, created.values.sum()))
        request = _request(run.bytes_written, run.writes, run.write_s)
        for some in _grouped(keys):
            processes = np.where(shared[some], run.processes, 1).astype(np.float64)
            steps.append(Step(sizes[some], created.values[some], processes, created.stripes[some], request))
        if paths:
            new = sum(size for size, path in zip(sizes.tolist(), paths, strict=True) if path not in known)
            renewed = new / max(1.0, float(sizes.sum()))
            known.update(paths)
    if run.bytes_read:
        steps += _reads(run, 0 if created is None else len(created))
    if not steps:
        return None
    gap_s = max(0.0, run.runtime_s - run.slowest_s) / len(steps)
    folders = [path.rpartition("/")[0] for path in paths if path.startswith("/")]
    folder = commonpath(folders) if folders else ""
    return ReplayJob(run, run.submitted - first_s, gap_s, tuple(steps), folder, renewed)


def _grouped(keys: Ints) -> list[Ints]:
    """Indices of the files of each step, the first step first; several steps are one if there are too many."""
    steps = int(keys.max()) + 1
    merged = keys * min(steps, _MAX_STEPS) // steps
    return [np.flatnonzero(merged == number) for number in range(int(merged.max()) + 1)]


def _request(moved: int, calls: int | None, seconds: float | None) -> float:
    request = moved / max(1, calls or 1)
    if request <= _SMALL and (seconds or 0.0) / max(1, calls or 1) < _MEMORY_S:
        return float(_RPC)
    return min(float(_RPC), max(1.0, request))


def _reads(run: StoredRun, created: int) -> list[Step]:
    """Steps of reads. The history has their sums alone: all files are taken to be of the same size."""
    assert run.bytes_read is not None
    number = max(1, (run.files or 1) - created)
    shared = bool(run.shared_files and run.shared_files > max(0, created - run.processes))
    each = max(1, min(_MAX_STEPS, number if shared else -(-number // run.processes)))
    files = 1 if shared else min(number, run.processes)
    moved = np.full(files, run.bytes_read / each / files)
    step = Step(
        moved, moved / (run.processes if shared else 1),
        np.full(files, float(run.processes if shared else 1)), np.full(files, run.stripes or 0),
        _request(run.bytes_read, run.reads, None), reads=True,
    )  # fmt: skip
    return [step] * each


class _Work:
    """Work of a step on targets, on its slowest process's node, and on the metadata server."""

    def __init__(self, targets: int) -> None:
        self.seconds, self.in_flight = np.zeros(targets), np.zeros(targets)
        self.link_s = self.metadata_s = 0.0


def _work_of(job: ReplayJob, step: Step, rates: Rates, layout_of: LayoutOf, default: Layout, first: Floats) -> _Work:
    """The work of a step. `first` has a random first target of each file, as a share of all."""
    work = _Work(rates.targets)
    begins = (first * rates.targets).astype(np.int64)
    layout = layout_of(job, step.reads)
    for stripes in np.unique(step.stripes).tolist() if layout is None else ():
        recorded = (Component(None, stripes, default[-1].size),) if stripes else default
        files = np.flatnonzero(step.stripes == stripes)
        _add(work, step, files, recorded, rates, begins[files])
    if layout is not None:
        _add(work, step, np.arange(len(step.moved)), layout, rates, begins)
    seconds = step.moved / step.processes / rates.client_rate
    work.link_s = float(seconds.max(initial=0.0)) * max(1.0, len(step.moved) / job.run.processes)
    work.metadata_s += rates.metadata_s * 2 * float(step.processes.sum())
    return work


def _add(work: _Work, step: Step, files: Ints, layout: Layout, rates: Rates, begins: Ints) -> None:
    low = 0.0
    for number, part in enumerate(layout):
        high = step.length[files] if part.end is None else np.minimum(step.length[files], part.end)
        inside = np.maximum(0.0, high - low)
        low = float(part.end or 0)
        if not inside.any():
            continue
        objects = rates.targets if part.count < 0 else min(part.count, rates.targets)
        if not step.reads:
            work.metadata_s += rates.object_s * float(((objects - (number == 0)) * (inside > 0)).sum())
        moved = step.moved[files] * inside / np.maximum(1.0, step.length[files])
        used = np.clip(np.ceil(inside / part.size), 1, objects).astype(np.int64)
        # A request that is longer than a stripe goes to several objects.
        each = np.minimum(used, max(1, int(np.ceil(step.request / part.size))))
        requests = np.maximum(step.processes[files], moved / step.request) * each / used
        lock_s = 0.0 if step.reads else rates.lock_s * (1 - 1 / step.processes[files])
        seconds = moved / used / rates.target_rate + requests * (rates.latency_s + lock_s)
        depth = 1 if step.request <= _SMALL else _IN_FLIGHT
        in_flight = np.minimum(seconds, seconds / np.maximum(1.0, requests) * depth * step.processes[files])
        if used.sum() > _MAX_PARTS:
            work.seconds += float((seconds * used).sum()) / rates.targets
            work.in_flight += float((in_flight * used).sum()) / rates.targets
            continue
        rows = np.repeat(np.arange(len(files)), used)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(used) - used, used)
        targets = (begins[rows] + number + nth) % rates.targets
        np.add.at(work.seconds, targets, seconds[rows])
        np.add.at(work.in_flight, targets, in_flight[rows])


def replayed(jobs: Sequence[ReplayJob], rates: Rates, layout_of: LayoutOf, default: Layout, seed: int = 0) -> Floats:
    """Seconds of I/O of each job, shape (jobs,).

    Parameters
    ----------
    default
        Layout of files whose stripe count is not recorded; its stripe size applies to all others.
    seed
        Seed of the first target of each file.
    """
    return _Replay(jobs, rates, layout_of, default, seed).run()


_PART: Final = np.dtype([("target", np.int64), ("left", np.float64), ("in_flight", np.float64), ("step", np.int64)])
"""A part of a step in progress: its target, the seconds left, the work in flight and the number of the step."""


class _Replay:
    def __init__(
        self, jobs: Sequence[ReplayJob], rates: Rates, layout_of: LayoutOf, default: Layout, seed: int
    ) -> None:
        self._jobs, self._rates, self._layout_of, self._default = jobs, rates, layout_of, default
        self._seed = seed
        self._order = count()
        self._events: list[tuple[float, int, int, int]] = []
        self._metadata_s = 0.0
        self._io_s = np.zeros(len(jobs))
        self._begun: dict[int, tuple[int, int, float, float]] = {}
        self._active = np.zeros(0, _PART)

    def run(self) -> Floats:
        for number, job in enumerate(self._jobs):
            self._at(job.begin_s + job.gap_s, number, 0)
        now = 0.0
        while self._events or len(self._active):
            arrives = self._events[0][0] if self._events else np.inf
            now = self._advance(now, arrives)
            while self._events and self._events[0][0] <= now:
                _, _, number, step = heapq.heappop(self._events)
                self._begin(now, number, step)
        return self._io_s

    def _at(self, when: float, number: int, step: int) -> None:
        heapq.heappush(self._events, (when, next(self._order), number, step))

    def _begin(self, now: float, number: int, at: int) -> None:
        job = self._jobs[number]
        step = job.steps[at]
        # The same files are on the same targets with every layout, so that layouts are compared alike.
        drawn = np.random.default_rng((self._seed, number, at)).random(len(step.moved))
        work = _work_of(job, step, self._rates, self._layout_of, self._default, drawn)
        self._metadata_s = max(self._metadata_s, now) + work.metadata_s
        name = next(self._order)
        self._begun[name] = number, at, now, max(self._metadata_s, now + work.link_s)
        targets = np.flatnonzero(work.seconds)
        parts = np.zeros(len(targets), _PART)
        parts["target"], parts["step"] = targets, name
        parts["left"], parts["in_flight"] = work.seconds[targets], work.in_flight[targets]
        self._active = np.concatenate([self._active, parts])
        if not len(targets):
            self._end(name, now)

    def _advance(self, now: float, arrives: float) -> float:
        """Advance to the next end of a part, or to the arrival of a step."""
        active = self._active
        if not len(active):
            return float(arrives)
        target, left, in_flight = (active[name] for name in ("target", "left", "in_flight"))
        speed = in_flight / np.bincount(target, in_flight, self._rates.targets)[target]
        soonest = float((left / speed).min())
        seconds = min(soonest, arrives - now)
        left -= speed * seconds
        done = left <= _TOLERANCE * soonest * speed if seconds >= soonest else left <= 0
        if done.any():
            self._active = active[~done]
            ended = set(active["step"][done].tolist()) - set(self._active["step"].tolist())
            for name in sorted(ended):
                self._end(name, now + seconds)
        return float(now + seconds)

    def _end(self, name: int, now: float) -> None:
        number, at, begun, least = self._begun.pop(name)
        end = max(now, least)
        self._io_s[number] += end - begun
        job = self._jobs[number]
        if at + 1 < len(job.steps):
            self._at(end + job.gap_s, number, at + 1)


def as_recorded(job: ReplayJob, reads: bool) -> Layout | None:
    """Leave every file as it is."""
    del job, reads
    return None


_GUESS: Final = {
    "target_rate": 500e6, "client_rate": 1e9, "latency_s": 1e-3, "metadata_s": 5e-4, "object_s": 2.5e-4,
    "lock_s": 2e-3,
}  # fmt: skip
"""Where the search for rates begins."""
_FACTORS: Final = (2.0, 4.0, 8.0)
_BETTER: Final = 1e-4
_AS_GOOD: Final = 0.02
"""Rates whose mean error is larger by less than this fit as well (our choice)."""


@dataclass(frozen=True)
class Fit:
    """Fitted rates, others that fit as well, and the median factor between replayed and measured times."""

    rates: Rates
    doubts: tuple[Rates, ...]
    error: float


def fitted(jobs: Sequence[ReplayJob], targets: int, default: Layout) -> Fit:
    """Find the rates with which the replay of jobs, as they were, agrees best with their measured times.

    Each rate in turn is raised or lowered as long as that helps, by smaller and smaller factors.
    """
    measured = np.array([job.run.slowest_s for job in jobs], np.float64)
    weights = np.sqrt(measured / measured.sum())

    def errors_of(rates: Rates) -> Floats:
        return np.abs(np.log(np.maximum(1e-9, replayed(jobs, rates, as_recorded, default)) / measured))

    def error_of(rates: Rates) -> float:
        return float(np.average(errors_of(rates), weights=weights))

    def searched(rates: Rates, factors: Sequence[float]) -> tuple[float, Rates]:
        best = error_of(rates)
        for factor, name, sign in product(factors, _GUESS, (1, -1)):
            while (error := error_of(trial := _scaled(rates, name, factor**sign))) < best - _BETTER:
                rates, best = trial, error
        return best, rates

    # Either the targets or the processes limit the jobs; from one, the search would not find the other.
    rate = _rate(jobs)
    begins = [
        Rates(targets, **_GUESS | {"target_rate": rate * by, "client_rate": rate * other})
        for by, other in ((1, 4), (32, 1))
    ]
    _, rates = min((searched(begin, (4.0,)) for begin in begins), key=lambda fit: fit[0])
    best, rates = searched(rates, (4.0, 2.0, 1.4, 1.15))
    doubts: list[Rates] = []
    for name in _GUESS:
        for sign in (1, -1):
            well = [
                trial for factor in _FACTORS if error_of(trial := _scaled(rates, name, factor**sign)) < best + _AS_GOOD
            ]
            doubts += well[-1:]
    return Fit(rates, tuple(doubts), float(np.exp(np.median(errors_of(rates)))))


def _scaled(rates: Rates, name: str, factor: float) -> Rates:
    """Rates with another one. What a further object costs shows only if files have different layouts."""
    names = ("metadata_s", "object_s") if name == "metadata_s" else (name,)
    return replace(rates, **{each: factor * getattr(rates, each) for each in names})


def _rate(jobs: Sequence[ReplayJob]) -> float:
    """Bytes per second of a process, in the fastest tenth of the jobs."""
    rates = [
        sum(float(step.moved.sum()) for step in job.steps) / job.run.processes / (job.run.slowest_s or 1.0)
        for job in jobs
    ]
    return max(1.0, float(np.quantile(rates, 0.9)))


SLOWER: Final = 1.1
"""Factor from which on a job counts as slower."""
MORE_SLOWER: Final = 0.1
"""Share of the jobs that may be slower, beyond those that chance alone makes slower."""
LEAST_GAIN: Final = 1.03
"""A rule whose gain may be less is not recommended."""
MOST_ERROR: Final = 2.0
"""Median factor between replayed and measured times above which nothing is recommended (our choice). On drawn
machines it is at most 1.4; on a file system of another kind than the replayed one it was 4.9."""
LEAST_JOBS: Final = 10
"""Jobs in each half below which nothing is claimed."""
_BEST: Final = 3
"""Rules whose ranges are compared: the one with the highest low end is chosen."""
_WORTH: Final = 1.01
_LARGER: Final = 1.1
"""Gain that other stripes than the default's need: measured effects of their size have either sign (our choice)."""
_SEEDS: Final = (0, 1)
_OTHER: Final = 100
_DRAWS: Final = 400
_ENDS: Final = (0.1, 0.9)
_MAX_GROUPS: Final = 5
_SMALL_FILES: Final = MiB


@dataclass(frozen=True)
class Rule:
    """A layout for all new files."""

    name: str
    layout: Layout

    @property
    def options(self) -> str:
        """Options of `lfs setstripe`."""
        return pfl.Layout(tuple(pfl.Component(part.end, part.count, part.size) for part in self.layout)).to_options()

    def of_stripes(self, size: int) -> Rule:
        """The same with other stripes in its last component."""
        *first, last = self.layout
        return Rule(f"{self.name}, stripes of {lfs_size(size)}", (*first, replace(last, size=size)))


def fixed_rules(targets: int, size: int) -> list[Rule]:
    """Every rule of thumb that the file system can have: a fixed count, all stripes, or a progressive layout."""
    counts = [number for number in (1, 2, 4, 8) if number < targets]
    rules = [Rule(f"{number} stripe{'s' * (number > 1)}", (Component(None, number, size),)) for number in counts]
    rules.append(Rule("all stripes", (Component(None, -1, size),)))
    for number in (4, 16):
        if number == 4 < targets or number == 16:
            wide = -1 if number >= targets else number
            name = f"progressive, 1 to 1 MiB, then {'all' if wide < 0 else wide}"
            rules.append(Rule(name, (Component(_SMALL_FILES, 1, size), Component(None, wide, size))))
    return rules


class Trial(Model):
    """A replay of jobs with another layout: gains in mean I/O time."""

    new_files: float = Field(description="gain if only files that jobs write have the layout")
    all_files: float = Field(description="gain once the files that jobs read have it, too")
    slower: float = Field(description="number of jobs whose I/O takes more than 1.1 times as long")

    @property
    def together(self) -> float:
        """The geometric mean of both gains."""
        return math.sqrt(self.new_files * self.all_files)


class Half:
    """Some of the jobs, with their replay as they were."""

    def __init__(self, jobs: Sequence[ReplayJob], fit: Fit, default: Layout) -> None:
        self.jobs, self.fit, self.default = jobs, fit, default
        self.plain = self.times(as_recorded)
        self._doubted: dict[int, Floats] = {}
        self.chance = self._slower(self.times(as_recorded, _OTHER))
        """Number of jobs that are slower with other targets for their files alone."""

    def times(self, layout_of: LayoutOf, offset: int = 0) -> Floats:
        """I/O seconds, shape (seeds, jobs)."""
        return np.array(
            [replayed(self.jobs, self.fit.rates, layout_of, self.default, seed + offset) for seed in _SEEDS]
        )

    def _slower(self, times: Floats) -> float:
        return float((times > SLOWER * self.plain).sum() / len(_SEEDS))

    def gain(self, layout_of: LayoutOf) -> float:
        """Mean I/O time as it was, over that with other layouts."""
        return float(self.plain.mean() / self.times(layout_of).mean())

    def trial(self, layout_of: LayoutOf) -> Trial:
        """Replay with other layouts of new files, and of all files."""
        written = self.gain(_written(layout_of))
        # Files get other targets as well, as by chance.
        slower = self._slower(self.times(_written(layout_of), _OTHER))
        return Trial(new_files=written, all_files=self.gain(layout_of), slower=slower)

    def accepts(self, trial: Trial) -> bool:
        """Whether no more jobs are slower than by chance, and a tenth of all."""
        return trial.slower <= self.chance + MORE_SLOWER * len(self.jobs)

    def range_of(self, layout_of: LayoutOf) -> tuple[float, float]:
        """Eight of ten gains for new files, over jobs drawn again and over all rates that fit as well."""
        random, ends = np.random.default_rng(0), []
        drawn = random.integers(len(self.jobs), size=(_DRAWS, len(self.jobs)))
        for number, rates in enumerate((self.fit.rates, *self.fit.doubts)):
            if number not in self._doubted:
                self._doubted[number] = replayed(self.jobs, rates, as_recorded, self.default)
            times = replayed(self.jobs, rates, _written(layout_of), self.default)
            gains = self._doubted[number][drawn].mean(1) / times[drawn].mean(1)
            ends += np.quantile(gains, _ENDS).tolist()
        return min(ends), max(ends)


def _written(layout_of: LayoutOf) -> LayoutOf:
    return lambda job, reads: None if reads else layout_of(job, reads)


def _of(layout: Layout | None) -> LayoutOf:
    return lambda *_: layout


Key = Callable[[ReplayJob], Hashable]


def _laid_out(rules: Mapping[Hashable, Rule], key: Key, line: Layout | None) -> LayoutOf:
    """The layouts of some groups of jobs; all others have the same."""
    return lambda job, _: rules[name].layout if (name := key(job)) in rules else line


class RuleTrial(Trial):
    """A rule for all new files, replayed with the first half of the jobs."""

    rule: str
    options: str = Field(description="options of `lfs setstripe`")


class FolderLayout(Model):
    """Another layout for the new files of a folder, to which a user writes."""

    folder: str
    user: str
    rule: str
    options: str


class LayoutAdvice(Model):
    """Advice on the layout of new files, from a replay of the centre's own jobs."""

    mount: str
    targets: int
    chose: int = Field(description="number of jobs with which the rule was chosen")
    judged: int = Field(description="number of later jobs with which it was judged")
    error: float = Field(description="median factor between replayed and measured I/O times, as the jobs were")
    chance: float = Field(description="number of judged jobs that are slower with other targets alone")
    rules: list[RuleTrial]
    rule: str | None = Field(description="the rule to set; null: leave the layout as it is")
    options: str | None = Field(description="options of `lfs setstripe`; null: leave it")
    outcome: Trial | None = Field(description="the replay of the judged jobs with the rule")
    low: float | None = Field(description="lower end of the gain for new files: eight of ten, over jobs and rates")
    high: float | None
    renewed: float = Field(description="share of the written bytes in files whose names no earlier run used")
    folders: list[FolderLayout]
    with_folders: float = Field(description="gain of the judged jobs with the layouts of folders, too")
    hook: float = Field(description="gain with a layout for each application and user, as the hook sets")
    hook_is_better: bool
    hook_layouts: list[FolderLayout] = Field(description="what the hook would set")


def choose(jobs: Sequence[ReplayJob], targets: int, default: Layout, mount: str) -> LayoutAdvice:
    """Choose a rule on the first half of the jobs, and judge it on the second.

    Parameters
    ----------
    jobs
        At least twice `LEAST_JOBS`, the oldest first.
    default
        Present layout of new files on the file system at `mount`.
    """
    middle = len(jobs) // 2
    fit = fitted(jobs[:middle], targets, default)
    first, second = (Half(some, fit, default) for some in (jobs[:middle], jobs[middle:]))
    rules = [(rule, first.trial(_of(rule.layout))) for rule in fixed_rules(targets, default[-1].size)]
    explains = fit.error <= MOST_ERROR
    rule, judged, low, high = _best(first, rules) if explains else None, None, None, None
    if rule is not None:
        judged, (low, high) = second.trial(_of(rule.layout)), second.range_of(_of(rule.layout))
        if low < LEAST_GAIN or not second.accepts(judged):
            rule = judged = low = high = None
    line = None if rule is None else rule.layout
    candidates = [entry for entry, _ in rules] if explains else []
    folders = pairs = _by_group(first, candidates, line, _folder)
    with_folders = hook = second.gain(_written(_laid_out(folders, _folder, line)))
    key = _folder
    if len({(_folder(job), _pair(job)) for job in jobs}) > len({_folder(job) for job in jobs}):
        key, pairs = _pair, _by_group(first, candidates, line, _pair)
        hook = second.gain(_written(_laid_out(pairs, key, line)))
    if with_folders < LEAST_GAIN * (alone := 1.0 if judged is None else judged.new_files):
        folders, with_folders = {}, alone
    return LayoutAdvice(
        mount=mount, targets=targets, chose=len(first.jobs), judged=len(second.jobs), error=fit.error,
        chance=second.chance,
        rules=[RuleTrial(rule=entry.name, options=entry.options, **dict(trial)) for entry, trial in rules],
        rule=None if rule is None else rule.name, options=None if rule is None else rule.options,
        outcome=judged, low=low, high=high, renewed=float(np.mean([job.renewed for job in jobs])),
        folders=_layouts(jobs, folders, _folder), with_folders=with_folders, hook=hook,
        hook_is_better=hook > LEAST_GAIN * max(1.0, with_folders), hook_layouts=_layouts(jobs, pairs, key),
    )  # fmt: skip


def _layouts(jobs: Sequence[ReplayJob], rules: Mapping[Hashable, Rule], key: Key) -> list[FolderLayout]:
    """The layout of each folder to which jobs of these groups write."""
    places = {(job.folder, job.run.user): rules[key(job)] for job in jobs if key(job) in rules and job.folder}
    return [
        FolderLayout(folder=folder, user=user, rule=rule.name, options=rule.options)
        for (folder, user), rule in places.items()
    ]


def _folder(job: ReplayJob) -> Hashable:
    return job.folder


def _pair(job: ReplayJob) -> Hashable:
    return job.run.application, job.run.user


def _best(half: Half, rules: Sequence[tuple[Rule, Trial]]) -> Rule | None:
    able = [(rule, trial) for rule, trial in rules if half.accepts(trial) and trial.new_files >= 1.0]
    most = max((trial.together for _, trial in able), default=0.0)
    if most < LEAST_GAIN:
        return None
    near = sorted(able, key=lambda entry: -entry[1].together)[:_BEST]
    rule, trial = max(near, key=lambda entry: half.range_of(_of(entry[0].layout))[0] * entry[1].together)
    for size in (4 * MiB, 16 * MiB):
        other = rule.of_stripes(size)
        if half.accepts(tried := half.trial(_of(other.layout))) and tried.together > _LARGER * trial.together:
            rule, trial = other, tried
    return rule


def _by_group(half: Half, rules: Sequence[Rule], line: Layout | None, key: Key) -> dict[Hashable, Rule]:
    """The layouts of the groups of jobs that wait most, where another one than that of all files is faster."""
    waiting: dict[Hashable, float] = {}
    for job in half.jobs:
        if key(job):
            waiting[key(job)] = waiting.get(key(job), 0.0) + (job.run.waiting_s or 0.0)
    chosen: dict[Hashable, Rule] = {}
    best = _once(half, _laid_out({}, key, line))
    for name in sorted(waiting, key=lambda group: -waiting[group])[:_MAX_GROUPS]:
        for rule in rules:
            seconds = _once(half, _laid_out({**chosen, name: rule}, key, line))
            if seconds * _WORTH < best:
                best, chosen[name] = seconds, rule
    return chosen


def _once(half: Half, layout_of: LayoutOf) -> float:
    """Mean I/O time with one seed, which suffices to choose."""
    return float(replayed(half.jobs, half.fit.rates, _written(layout_of), half.default).mean())
