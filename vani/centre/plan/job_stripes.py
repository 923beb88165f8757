"""The stripe count of a job's files, and its expected I/O time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.centre.plan.curves import curve_for
from vani.centre.plan.schema.plans import ExpectedIo
from vani.models import stripe_count
from vani.models.calibration import SPREAD
from vani.models.contention import CLIENT_RATE, neat
from vani.models.striping import neighbour_distance
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import PlannedJob, StripeItem
    from vani.schema.profile import FileEntity, PhaseIO, Profile

# A job's demand on the I/O path and its access pattern, from jobs.yaml or the profile of an earlier run.

@dataclass(frozen=True)
class Reads:
    """A job's reads: the usual request in bytes and the number of files."""

    request: int
    files: int


@dataclass(frozen=True)
class SharedFile:
    """A file that several processes write (or read).

    `distance` is the number of bytes between the offsets that neighbours access at the same moment, and `size` the
    number of bytes of the file; None if unknown.
    """

    processes: int
    distance: int | None
    size: int | None


@dataclass(frozen=True)
class JobIo:
    """Known figures of a job's I/O.

    Attributes
    ----------
    demand
        Bytes, data operations and metadata operations per second; None if unknown.
    reads
        The reads, or, as a string, why they are unknown.
    layout
        The largest shared file, or "file_per_process", or why neither is known.
    lacks
        The missing parts of the demand, as a sentence; None if complete.
    file_size
        Bytes of a typical file that the job creates; None if unknown.
    notes
        Substitutes for figures that jobs.yaml does not have.
    """

    demand: tuple[float | None, float | None, float | None]
    reads: Reads | str
    layout: SharedFile | str
    lacks: str | None
    notes: str | None = None
    file_size: int | None = None

    @property
    def is_file_per_process(self) -> bool:
        return self.layout == "file_per_process"


def io_of(job: PlannedJob, profile: Profile | None) -> JobIo:
    """Known figures of a job. Its own take precedence over those of its profile, and these over its curve."""
    own_demand = job.demand
    own = (None, None, None) if own_demand is None else (own_demand.iobw, own_demand.iops, own_demand.mdops)
    run = (None, None, None) if profile is None else _rates(profile, job.nodes)
    points, lack_of_curve = curve_for(job)
    best = max((point.bandwidth for point in points), default=None)
    curve = (best, None, None)
    rates = tuple(
        next((rate for rate in rates if rate is not None), None) for rates in zip(own, run, curve, strict=True)
    )
    demand = (rates[0], rates[1], rates[2])
    words = ("iobw", "iops", "mdops")
    missing = [name for name, rate in zip(words, demand, strict=True) if rate is None]
    notes = None
    if demand != own:
        taken = [name for name, a, b in zip(words, demand, own, strict=True) if a != b]
        source = (
            "the busiest phase of its profile"
            if profile is not None and any(rate is not None for rate in run)
            else "the best of its curve"
        )
        notes = f"{' and '.join(taken)} of {job.name}: {source}"
    if lack_of_curve is not None and (best is None or rates[0] == best):
        notes = f"{lack_of_curve} ({job.name})" if notes is None else f"{notes}, {lack_of_curve}"
    lacks = None
    if len(missing) == len(words):
        lacks = "no demand: it gets no capacity, and its compute nodes use forwarding nodes in turn"
    elif missing:
        lacks = f"no {' and no '.join(missing)}: not checked against any peak"
    return JobIo(demand, _reads(job, profile), _layout(job, profile), lacks, notes, _file_size(job, profile))


def _rates(profile: Profile, nodes: int) -> tuple[float | None, float | None, float | None]:
    """The highest rate in any phase, by dimension, scaled to the number of nodes."""
    scale = nodes / profile.job.nodes if profile.job.nodes else 1.0

    def most(amount: Callable[[PhaseIO], int | None]) -> float | None:
        rates = [
            value / phase.runtime_s * scale
            for phase in profile.phases or ()
            if phase.runtime_s and (value := amount(phase.io)) is not None
        ]
        return max(rates, default=None)

    return (
        most(lambda io: io.bytes.total),
        most(lambda io: None if io.ops is None else io.ops.read + io.ops.write),
        most(_sent),
    )


def _sent(io: PhaseIO) -> int | None:
    """Metadata operations that leave the compute node, which seeks do not."""
    if io.ops is None:
        return None
    return io.ops.metadata - (io.metadata_kinds.seek.count if io.metadata_kinds is not None else 0)


def _reads(job: PlannedJob, profile: Profile | None) -> Reads | str:
    pattern = job.pattern
    if profile is not None:
        sizes = profile.dataset.io.transfer_size.read
        if not profile.dataset.io.ops.read:
            return "it reads nothing"
        files = sum(1 for file in profile.files if file.readers > 0)
        roles = profile.dataset.roles or {}
        files = max(
            files, 0 if profile.lists_all_files else roles.get("input", 0) + roles.get("intermediate", 0)
        )
        if sizes is None or sizes.p50 is None or not files:
            return "its profile does not show how it reads"
        return Reads(sizes.p50, files)
    if pattern is None:
        return "how it reads is not known"
    if pattern.operation != "read":
        return "it writes most of its bytes"
    if pattern.layout == "shared":
        return Reads(pattern.request, 1)
    if job.processes is None:
        return "its number of input files is unknown without its number of processes"
    return Reads(pattern.request, job.processes)


def _layout(job: PlannedJob, profile: Profile | None) -> SharedFile | str:
    pattern, processes = job.pattern, job.processes
    if profile is not None:
        return _largest_file(profile)
    if pattern is None:
        return "its file layout is not known"
    if pattern.layout == "file_per_process":
        return "file_per_process"
    if processes is None:
        return "the number of processes that share its file is not known"
    size = int(job.bytes) if job.bytes else None
    if pattern.order == "strided":
        return SharedFile(processes, pattern.request, size)
    return SharedFile(processes, max(1, size // processes) if size else None, size)


def _file_size(job: PlannedJob, profile: Profile | None) -> int | None:
    """Size of the median file that the job creates. With a file per process, an equal share of its bytes."""
    if job.creations:
        return statistics.median_high(creation.size for creation in job.creations)
    if profile is not None:
        sizes = [file.size for file in profile.files if file.writers and file.size]
        return statistics.median_high(sizes) if sizes else None
    if job.pattern is None or job.pattern.layout == "shared" or not job.bytes or not job.processes:
        return None
    return math.ceil(job.bytes / job.processes)


def _largest_file(profile: Profile) -> SharedFile | str:
    """The layout of the file with most bytes, or why it is unknown."""

    def moved(file: FileEntity) -> int:
        return file.io.bytes.total or 0

    largest = max((file for file in profile.files if moved(file)), key=moved, default=None)
    if largest is None:
        return "its profile names no file with bytes"
    reads = (largest.io.bytes.read or 0) > (largest.io.bytes.written or 0)
    movers = largest.readers if reads else largest.writers
    if largest.access != "shared":
        alone = sum(moved(file) > 0 and file.access != "shared" for file in profile.files)
        return "file_per_process" if alone > 1 else "one process moves the bytes of its largest file"
    if movers < 2:
        return "one process moves the bytes of its largest file"
    return SharedFile(movers, neighbour_distance(largest, movers, reads=reads), largest.size or None)


# The stripe count of a job's files and the expected I/O time, from earlier runs.
#
# A count that was faster in measurements takes precedence over one that a model expects to be faster. Neither
# is used if
# the lower end of its range is no gain, or if runs with it took longer than others.

_LEAST_RUNS: Final = 3
_TEN: Final = 1.2816
"""Standard deviations on each side that contain eight of ten runs."""
_LEAST_WIDTH: Final = 0.05
_LEAST_SHARE: Final = 0.1
"""If a file's targets give less than this share of their rate, something else slows it (our choice)."""
_NODE_RATE: Final = 0.8e9
_EXPONENT: Final = 0.4
_RANGE_EXPONENT: Final = 0.3
"""Bytes per second that a node writes to a shared file, the exponent of the number of targets, and that of the range:
the middle of the sweeps of five other machines."""


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
    if target_rate is not None and rate < _LEAST_SHARE * target_rate * min(files * usual, targets):
        return "its files are slower than their targets: something else limits them"
    per_node = stripe_count.PER_NODE if is_shared else stripe_count.OWN_PER_NODE / files
    most = stripe_count.most_targets(size, targets)
    wanted = stripe_count.wanted_targets(
        nodes=min(job.nodes, job.processes), most=most, per_node=per_node, least=1
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
    gain = _speedup(usual, each, rate, nodes=job.nodes)
    spread = max(SPREAD, (each / usual) ** _RANGE_EXPONENT)
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


def _speedup(before: int, after: int, rate: float, *, nodes: int) -> float:
    """Speed-up on `after` targets of a file that reached `rate` bytes per second on `before` (fewer) targets.

    The geometric mean of two models: the times of nodes and targets add up, and bandwidth grows with a power of the
    number of targets. 1 if the nodes already send as much as clients can.
    """
    if rate >= nodes * CLIENT_RATE:
        return 1.0
    own = min(1.0, rate / (nodes * _NODE_RATE))
    added = 1 / (own + (1 - own) * before / after)
    return math.sqrt(added * math.pow(after / before, _EXPONENT))
