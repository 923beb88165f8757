"""Figures of a future job, from the runs of one application at one scale: the content of `known/` for `vani plan job`.

All figures are from runs of one behaviour, the most likely next one. Runs that a plan changed count for curves, but
not for the usual I/O time. A setting is to be avoided if the median of its runs took longer than nine out of ten
others.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.plan.schema.jobs import (
    AccessPattern,
    AvoidedSetting,
    Creation,
    CurveItem,
    Demand,
    IoSeconds,
    PlannedIoSeconds,
    PlannedJob,
    StripeItem,
    Unknown,
)
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.history.rows import PlannedRun, StoredRun

LEAST_RUNS: Final = 3
"""Number of runs below which nothing is claimed about noise."""
_NOISE: Final = 1.1
"""Factor over the median up to which slower runs are noise, however alike the others are (our choice)."""
_LEAST_RATE: Final = 1.0


@dataclass(frozen=True)
class Scale:
    """Runs of one application at one scale.

    Attributes
    ----------
    name
        Name of the job in the document.
    runs
        Runs of one behaviour, the oldest first.
    planned
        Planned runs, by digest.
    pattern, creations
        Access pattern, and the files that the job will create; or the reason why they are unknown.
    """

    name: str
    nodes: int
    processes: int
    runs: Sequence[StoredRun]
    planned: Mapping[str, PlannedRun]
    pattern: AccessPattern | str
    creations: Sequence[Creation] | str


def job_learned(scale: Scale) -> PlannedJob:
    """The figures at a scale; unknown ones are None, with the reason in `unknown`."""
    timed = [run for run in scale.runs if run.slowest_s and _moved(run)]
    usual = [run for run in timed if not _is_changed(run, scale)]
    stripes = _by_stripes(timed)
    curve = _curve(timed, scale)
    bytes_ = [moved for run in scale.runs if (moved := _moved(run)) is not None]
    seconds = _seconds(usual)
    return PlannedJob(
        name=scale.name,
        nodes=scale.nodes,
        processes=scale.processes,
        bytes=float(statistics.median(bytes_)) if bytes_ else None,
        curve=curve if len(curve) > 1 else None,
        pattern=None if isinstance(scale.pattern, str) else scale.pattern,
        demand=_demand(timed),
        creations=None if isinstance(scale.creations, str) else list(scale.creations) or None,
        runs=len(scale.runs),
        io_s=seconds,
        usual_stripes=_usual_stripes(usual),
        by_stripes=stripes or None,
        by_plan=_by_plan(timed, scale) or None,
        mpi_io=_mpi_io(scale.runs),
        reads_from=_reads_from(scale.runs),
        avoid=_avoided(scale, seconds),
        unknown=list(_unknown(scale, timed, curve, stripes, seconds)),
    )


def plain_pattern(run: StoredRun) -> AccessPattern | str:
    """The pattern of a run from its sums alone, which suffice if each process has its own files."""
    operations, moved = (run.reads or 0) + (run.writes or 0), _moved(run)
    if not operations or not moved or run.files is None or run.shared_files is None:
        return "its runs do not show its access pattern"
    if run.shared_files or run.files < run.processes:
        return "a shared file, and no log or profile shows the order of its requests"
    return AccessPattern(
        operation="write" if (run.bytes_written or 0) >= (run.bytes_read or 0) else "read",
        layout="file_per_process",
        request=max(1, moved // operations),
    )


def _moved(run: StoredRun) -> int | None:
    if run.bytes_read is None or run.bytes_written is None:
        return None
    return run.bytes_read + run.bytes_written


def _rate(run: StoredRun) -> float:
    return max(_LEAST_RATE, (_moved(run) or 0) / (run.slowest_s or 1.0))


def _is_changed(run: StoredRun, scale: Scale) -> bool:
    plan = scale.planned.get(run.digest)
    return plan is not None and plan.changed


def _demand(runs: Sequence[StoredRun]) -> Demand | None:
    """Medians of the runs' rates during I/O."""
    if not runs:
        return None

    def rate(amounts: Sequence[float | None]) -> float | None:
        rates = [
            amount / run.slowest_s
            for run, amount in zip(runs, amounts, strict=True)
            if amount is not None and run.slowest_s
        ]
        return statistics.median(rates) if rates else None

    operations = [
        None if run.reads is None or run.writes is None else run.reads + run.writes for run in runs
    ]
    return Demand(
        iobw=rate([_moved(run) for run in runs]),
        iops=rate(operations),
        mdops=rate([run.metadata for run in runs]),
    )


def _seconds(runs: Sequence[StoredRun]) -> IoSeconds | None:
    times = [run.slowest_s for run in runs if run.slowest_s]
    if not times:
        return None
    low, median, high = _eight_of_ten(times)
    return IoSeconds(low=low, median=median, high=high, runs=len(times))


def _grouped(pairs: Iterable[tuple[int | None, float]]) -> list[tuple[int, list[float]]]:
    """The figures of each known number, in the order of the numbers."""
    figures: defaultdict[int, list[float]] = defaultdict(list)
    for number, figure in pairs:
        if number is not None:
            figures[number].append(figure)
    return sorted(figures.items())


def _times_by_plan(runs: Sequence[StoredRun], scale: Scale) -> list[tuple[int, list[float]]]:
    """I/O times of runs with files laid out by a plan, by stripe count."""
    plans = ((scale.planned.get(run.digest), run.slowest_s) for run in runs if run.slowest_s)
    changed = ((plan, seconds) for plan, seconds in plans if plan is not None and plan.changed)
    return _grouped((plan.stripe_count or None, seconds) for plan, seconds in changed)


def _by_plan(runs: Sequence[StoredRun], scale: Scale) -> list[PlannedIoSeconds]:
    items = []
    for count, some in _times_by_plan(runs, scale):
        low, median, high = _eight_of_ten(some)
        items.append(PlannedIoSeconds(stripe_count=count, low=low, median=median, high=high, runs=len(some)))
    return items


def _eight_of_ten(times: Sequence[float]) -> tuple[float, float, float]:
    """The median, and the range of eight out of ten further runs; with fewer than nine, the minimum and maximum.

    With Weibull's plotting positions, a further run is below the lower end with probability 0.1 for any
    distribution. With numpy's default it is more often, since that describes only these runs.
    """
    low, median, high = np.quantile(times, [0.1, 0.5, 0.9], method="weibull").tolist()
    return low, median, high


def _mean_and_deviation(rates: Sequence[float]) -> tuple[float, float]:
    return statistics.fmean(rates), statistics.stdev(rates) if len(rates) > 1 else 0.0


def _by_stripes(runs: Sequence[StoredRun]) -> list[StripeItem]:
    items = []
    for count, some in _grouped((run.stripes or None, _rate(run)) for run in runs):
        mean, deviation = _mean_and_deviation(some)
        items.append(StripeItem(stripe_count=count, bandwidth=mean, deviation=deviation, runs=len(some)))
    return items


def _usual_stripes(runs: Sequence[StoredRun]) -> int | None:
    counts = [run.stripes for run in runs if run.stripes]
    return statistics.mode(counts) if counts else None


def _curve(runs: Sequence[StoredRun], scale: Scale) -> list[CurveItem]:
    items = []
    plans = ((scale.planned.get(run.digest), _rate(run)) for run in runs)
    for number, some in _grouped((plan.io_nodes, rate) for plan, rate in plans if plan is not None):
        mean, deviation = _mean_and_deviation(some)
        items.append(CurveItem(io_nodes=number, bandwidth=mean, deviation=deviation))
    return items


def _mpi_io(runs: Sequence[StoredRun]) -> bool | None:
    calls = [
        run.collective + run.independent
        for run in runs
        if run.collective is not None and run.independent is not None
    ]
    return any(calls) if calls else None


def _reads_from(runs: Sequence[StoredRun]) -> list[int] | None:
    """OSTs of the files that runs read, if more than half of the runs read most of their bytes."""
    reading = [run for run in runs if (run.bytes_read or 0) > (run.bytes_written or 0) and run.target_times]
    seen = Counter(target for run in reading for target, *_ in json.loads(run.target_times or "[]"))
    return sorted(target for target, number in seen.items() if number > len(reading) / 2) or None


def _avoided(scale: Scale, usual: IoSeconds | None) -> list[AvoidedSetting]:
    if usual is None or usual.runs < LEAST_RUNS or not usual.median:
        return []
    most = max(usual.high, _NOISE * usual.median)
    return [
        AvoidedSetting(stripe_count=count, slower=statistics.median(some) / usual.median, runs=len(some))
        for count, some in _times_by_plan(scale.runs, scale)
        if statistics.median(some) > most
    ]


def _unknown(
    scale: Scale,
    timed: Sequence[StoredRun],
    curve: Sequence[CurveItem],
    stripes: Sequence[StripeItem],
    seconds: IoSeconds | None,
) -> list[Unknown]:
    reasons = {
        "curve": None if len(curve) > 1 else "all its runs had the same number of I/O nodes",
        "by_stripes": None if stripes else "no run has stripe counts of its files",
        "pattern": scale.pattern if isinstance(scale.pattern, str) else None,
        "creations": scale.creations if isinstance(scale.creations, str) else None,
        "demand": None if timed else "no run has both its bytes and its I/O time",
        "io_s": None
        if seconds is not None
        else f"none of {counted(len(scale.runs), 'run')} has its I/O time and was left unchanged by plans",
    }
    return [Unknown(name=name, reason=reason) for name, reason in reasons.items() if reason is not None]
