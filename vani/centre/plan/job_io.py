"""A job's demand on the I/O path and its access pattern, from jobs.yaml or the profile of an earlier run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vani.centre.plan.curves import curve_for
from vani.models.striping import neighbour_distance

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import PlannedJob
    from vani.schema.profile import FileEntity, PhaseIO, Profile


Reads = tuple[int, int]
"""A job's reads: the usual request in bytes and the number of files."""


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
        files = max(files, 0 if profile.lists_all_files else roles.get("input", 0) + roles.get("intermediate", 0))
        if sizes is None or sizes.p50 is None or not files:
            return "its profile does not show how it reads"
        return sizes.p50, files
    if pattern is None:
        return "how it reads is not known"
    if pattern.operation != "read":
        return "it writes most of its bytes"
    if pattern.layout == "shared":
        return pattern.request, 1
    if job.processes is None:
        return "its number of input files is unknown without its number of processes"
    return pattern.request, job.processes


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
