"""The stripe count of a job's files and the expected I/O time, from earlier runs.

A count that was faster in measurements takes precedence over one that a model expects to be faster. Neither is used if
the lower end of its range is no gain, or if runs with it took longer than others.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.centre.plan.schema import ExpectedIo
from vani.models import stripe_count
from vani.models.calibration import SPREAD
from vani.models.contention import neat
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import PlannedJob, StripeItem

_LEAST_RUNS: Final = 3
_TEN: Final = 1.2816
"""Standard deviations on each side that contain eight of ten runs."""
_LEAST_WIDTH: Final = 0.05


@dataclass(frozen=True)
class StripeChoice:
    """A number of stripes per file and the expected speed-up of the I/O time, with its range."""

    count: int
    speedup: float
    low: float
    high: float
    source: Literal["measured", "estimated"]
    method: str


def choose_stripes(
    job: PlannedJob, targets: int, target_rate: float | None, *, together: int | None = None
) -> StripeChoice | str:
    """The stripe count with the largest gain, or, as a string, why it stays the same.

    Parameters
    ----------
    targets
        Number of targets in service.
    target_rate
        Bytes per second of a target; None if unknown.
    together
        Most OSTs for all files together, if that is more than the stripes of a file; None: all OSTs.
    """
    if job.io_s is None or job.usual_stripes is None:
        return "the I/O time or the stripes of earlier runs are not known"
    if job.io_s.runs < _LEAST_RUNS:
        return f"{counted(job.io_s.runs, 'run')} of it: too few to know how much runs differ"
    measured = _measured(job, targets)
    if measured is not None:
        return measured
    estimated = _estimated(job, targets, target_rate, together)
    if isinstance(estimated, str):
        return estimated
    for entry in job.avoid:
        if entry.stripe_count == estimated.count:
            return (
                f"{counted(entry.stripe_count, 'stripe')} made {counted(entry.runs, 'run')} {entry.slower:.2f} times "
                "as slow"
            )
    if any(item.stripe_count == estimated.count and item.runs >= _LEAST_RUNS for item in job.by_stripes or ()):
        return f"{counted(estimated.count, 'stripe')}, as the model suggests, was measured and is not faster"
    return estimated


def expected_io(job: PlannedJob, choice: StripeChoice | None, *, laid_out: int | None = None) -> ExpectedIo | str:
    """The expected I/O time with a choice, or without one as before; a string states why it is unknown.

    Runs whose files a plan laid out in the same way are better evidence than other runs and a model.

    Parameters
    ----------
    laid_out
        Stripes of each file on the OSTs that the plan chooses; None: it chooses none.
    """
    usual = job.io_s
    if usual is None or not usual.median:
        return "the I/O time of earlier runs is not known"
    for item in job.by_plan or ():
        if item.stripe_count == laid_out and item.runs >= _LEAST_RUNS:
            return ExpectedIo(
                seconds=item.median,
                low=item.low,
                high=item.high,
                before=usual.median,
                bytes=job.bytes,
                method=f"as {counted(item.runs, 'run')} with such a plan, {_share_within(item.runs)}",
            )
    if choice is None:
        # No run with chosen OSTs shows the I/O time yet, so the range includes the error of a model.
        factor = 1.0 if laid_out is None else SPREAD
        why = "" if laid_out is None else f"; a factor {SPREAD:g} more either way, since the plan chooses its OSTs"
        return ExpectedIo(
            seconds=usual.median,
            low=usual.low / factor,
            high=usual.high * factor,
            before=usual.median,
            bytes=job.bytes,
            method=f"as {counted(usual.runs, 'run')} before, {_share_within(usual.runs)}{why}",
        )
    return ExpectedIo(
        seconds=usual.median / choice.speedup,
        low=min(usual.low, usual.median) / choice.high,
        high=max(usual.high, usual.median) / choice.low,
        before=usual.median,
        bytes=job.bytes,
        method=choice.method,
    )


def _share_within(runs: int) -> str:
    """Words for the share of future runs inside the range of these, if nothing else changes."""
    return f"{min(0.8, (runs - 1) / (runs + 1)):.0%} of further ones within the range".replace("%", " %")


def _measured(job: PlannedJob, targets: int) -> StripeChoice | None:
    """The count with the best measured bandwidth; None unless it is significantly better than the usual one."""
    items = {item.stripe_count: item for item in job.by_stripes or () if item.stripe_count <= targets}
    usual = items.get(job.usual_stripes or 0)
    avoided = {entry.stripe_count for entry in job.avoid}
    better = [item for item in items.values() if item.stripe_count not in avoided and item.runs >= _LEAST_RUNS]
    if usual is None or not better:
        return None
    best = max(better, key=lambda item: item.bandwidth)
    if best is usual:
        return None
    gain = best.bandwidth / usual.bandwidth
    # Uncertainty of the mean gain; a single run may differ by more.
    width = _TEN * math.hypot(*(_width(item) / math.sqrt(item.runs) for item in (best, usual)))
    if gain * math.exp(-width) <= 1:
        return None
    spread = math.exp(_TEN * _width(best))
    return StripeChoice(
        count=best.stripe_count,
        speedup=gain,
        low=gain / spread,
        high=gain * spread,
        source="measured",
        method=f"{counted(best.runs, 'run')} with {counted(best.stripe_count, 'stripe')} against {usual.runs:,} with "
        f"{usual.stripe_count:,}",
    )


def _width(item: StripeItem) -> float:
    return max(_LEAST_WIDTH, item.deviation / item.bandwidth)


def _estimated(
    job: PlannedJob, targets: int, target_rate: float | None, together: int | None
) -> StripeChoice | str:
    assert job.io_s is not None
    usual = job.usual_stripes or 1
    if job.pattern is None or not job.bytes or not job.processes:
        return "how it reads and writes is not known"
    if job.pattern.operation == "read":
        return "it mostly reads, from existing files"
    rate = job.bytes / job.io_s.median
    is_shared = job.pattern.layout == "shared"
    # With a file per process, all files are written at the same time.
    files = 1 if is_shared else job.processes
    sizes = [creation.size for creation in job.creations or ()]
    size = statistics.median_high(sizes) if sizes else job.bytes / files
    if target_rate is not None and rate < stripe_count.LEAST_SHARE * target_rate * min(files * usual, targets):
        return "its files are slower than their targets: something else limits them"
    per_node = stripe_count.PER_NODE if is_shared else stripe_count.OWN_PER_NODE / files
    most = stripe_count.most_targets(size, targets)
    wanted = stripe_count.wanted_targets(
        bytes_=int(size),
        nodes=min(job.nodes, job.processes),
        processes=job.processes,
        most=most,
        per_node=per_node,
        collective=False,
        cached=None,
    )
    count = neat(wanted, most)
    if count <= usual:
        return f"{counted(usual, 'stripe')}, as before, are as many as it is known to need"
    # Files written at the same time share their OSTs.
    osts = targets if together is None else max(count, together)
    each = min(count, osts // files)
    if each <= usual:
        return (
            f"its {counted(files, 'file')} would share {counted(osts, 'OST')}: no more for each than with "
            f"{counted(usual, 'stripe')}"
        )
    gain = stripe_count.speedup(usual, each, rate, nodes=job.nodes)
    spread = stripe_count.range_factor(usual, each)
    if gain / spread <= 1:
        return f"{count:,} stripes for {usual:,} are expected to make it {gain:.2f} times as fast, or slower"
    return StripeChoice(
        count=count,
        speedup=gain,
        low=gain / spread,
        high=gain * spread,
        source="estimated",
        method=f"{counted(count, 'stripe')} for {usual:,}, by the model of stripe counts (docs/models.md), from the "
        f"I/O time of {counted(job.io_s.runs, 'run')}",
    )
