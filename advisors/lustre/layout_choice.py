"""Which plain layout a large shared file should have: what the rules on stripe counts share.

The count is AIOT's equation 3, capped where the contention model sees no more use of further targets; the size
keeps what neighbouring processes access at the same moment in stripes of their own.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vani.advisors.base import Evidence, Gain, seconds
from vani.advisors.data_files import SHOWN, extent
from vani.advisors.placement import Lustre, lustre_under
from vani.advisors.site_layouts import default_stripes, keeps_own_layout, site_rule, targets_text
from vani.models import contention, striping
from vani.models.contention import Burst, Path
from vani.models.run_time import of_files_s
from vani.units import MiB, format_bytes, format_rate, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile, Sizes
    from vani.schema.system import FileSystem, StripingRule, System

__all__ = [
    "Case",
    "Choice",
    "Layout",
    "choose",
    "evidence",
    "gain",
    "process_rate",
    "sentence",
    "spent_s",
]


@dataclass(frozen=True)
class Choice:
    """Thresholds of a rule; see the rules for their sources."""

    min_stripe_size: int
    max_guessed_size: int
    reach: float
    margin: float
    process_rate: float
    large_transfer: int
    processes_per_node: int
    target_rate: float


@dataclass(frozen=True)
class Layout:
    """What a file gets, and what it is thought to have; None is unknown, -1 targets are all.

    `rule` is the site's own rule where that gave count, size and pool.
    """

    count: int
    size: int
    default_count: int | None
    default_size: int | None
    rule: StripingRule | None = None

    @property
    def changes(self) -> bool:
        return (self.count, self.size) != (self.default_count, self.default_size)

    @property
    def pool(self) -> str | None:
        return self.rule.pool if self.rule else None

    @property
    def options(self) -> str:
        """As `lfs setstripe` and `lfs migrate` take them."""
        pool = f" -p {shlex.quote(self.pool)}" if self.pool else ""
        return f"-c {self.count} -S {lfs_size(self.size)}{pool}"


@dataclass(frozen=True)
class Case:
    """One file and the layout that it should have."""

    index: int
    file: FileEntity
    reads: bool
    parallelism: int
    path: Path
    burst: Burst
    layout: Layout
    has_distance: bool
    place: Lustre

    @property
    def busy_s(self) -> float:
        return seconds(self.file.io.busy_s.read) if self.reads else seconds(self.file.io.busy_s.write)


def spent_s(group: Sequence[Case], profile: Profile) -> float:
    """Seconds of the run that moving the bytes of these files costs."""
    return of_files_s([case.file for case in group], profile, "read" if group[0].reads else "write")


def choose(index: int, file: FileEntity, profile: Profile, system: System, by: Choice) -> Case | str:
    """The layout for a shared file, or why it stays as it is."""
    place = lustre_under(file.path, profile, system)
    if isinstance(place, str):
        return place
    reads = (file.io.bytes.read or 0) > (file.io.bytes.written or 0)
    parallelism = max(1, file.readers if reads else file.writers)
    if parallelism < 2:
        return "each large shared file is moved by one process: more targets serve many"
    disk, rule = place.figures, site_rule(extent(file) or 0, place)
    kept = None if rule else keeps_own_layout(disk)
    if kept:
        return kept
    path = contention.path_of(system, disk, reads=reads, target_rate=by.target_rate)
    if isinstance(path, str):
        return path
    rate = process_rate(file, by, reads=reads)
    size, has_distance = _stripe_size(file, by, reads=reads, parallelism=parallelism)
    nodes = min(parallelism, profile.job.nodes or math.ceil(parallelism / by.processes_per_node))
    burst = Burst(bytes=float(extent(file) or size), nodes=nodes, processes=parallelism)
    count = _count(burst, path, disk, by, rate=rate, size=size)
    default, default_size = default_stripes(disk, extent(file) or 0)
    layout = Layout(count, size, default, default_size)
    if rule is not None:
        layout = Layout(rule.stripe_count, rule.stripe_size or size, default, default_size, rule)
    elif default is not None and not 0 < default < count:
        # The default has as many targets or more (-1 is all): fewer is not this question.
        layout = Layout(default, size, default, default_size)
    if not layout.changes:
        return "the default layout of the file system already fits the large shared files"
    return Case(index, file, reads, parallelism, path, burst, layout, has_distance, place)


def _count(burst: Burst, path: Path, disk: FileSystem | None, by: Choice, *, rate: float, size: int) -> int:
    # A file of three stripes lies on three targets, whatever its stripe count.
    limits = [math.ceil(burst.bytes / size), contention.LUSTRE_MAX_STRIPES]
    limits += [n for n in (disk.targets, disk.max_stripe_count) if n] if disk else []
    most = min(limits)
    offered = striping.equation_3_count(rate, burst.processes, path.target)
    return contention.neat(
        min(offered, contention.fewest_targets(burst, path, most, by.reach) * by.margin), most
    )


def process_rate(file: FileEntity, by: Choice, *, reads: bool) -> float:
    """Bytes per second of one process: equation 3's "I/O bandwidth of a single process"."""
    moved, time = (
        (file.io.bytes.read, file.io.time_s.read) if reads else (file.io.bytes.written, file.io.time_s.write)
    )
    measured = moved / time if moved and time else 0.0
    sizes = _sizes(file, reads=reads)
    is_large = sizes is None or sizes.p50 is None or sizes.p50 >= by.large_transfer
    rate = max(measured, by.process_rate) if is_large or not measured else measured
    # Writes that end in the client's memory are measured at its speed.
    return min(rate, contention.PROCESS_RATE)


def _stripe_size(file: FileEntity, by: Choice, *, reads: bool, parallelism: int) -> tuple[int, bool]:
    """The stripe size in bytes, and whether the processes' simultaneous offsets gave it."""
    pattern, bytes_, footprint = file.io.access_pattern, file.io.bytes, file.io.footprint
    run = None
    if pattern is not None:
        # The pattern is that of both directions together, so the runs are, too.
        run = striping.mean_run(
            moved=bytes_.total,
            distinct=(footprint.read or 0) + (footprint.written or 0),
            operations=file.io.ops.read + file.io.ops.write,
            jumps=pattern.sequential + pattern.random,
            streams=file.readers + file.writers,
        )
    distance = striping.step_distance(
        stride=file.stride,
        shares=(pattern.consecutive, pattern.strided, pattern.random) if pattern else None,
        footprint=footprint.read if reads else footprint.written,
        processes=parallelism,
        mean_run=run,
    )
    if distance is not None:
        return striping.whole_stripes(distance, by.min_stripe_size), True
    sizes = _sizes(file, reads=reads)
    usual = sizes.common[0][0] if sizes and sizes.common else None
    if not usual or usual % striping.STRIPE_UNIT:
        return MiB, False  # Lustre's own default: no size is aligned with such transfers.
    return striping.whole_stripes(usual, MiB, by.max_guessed_size), False


def gain(group: Sequence[Case], profile: Profile) -> Gain | None:
    """Seconds of the run for moving bytes of these files; None where the count stays or is unknown."""
    first = group[0]
    before, after = first.layout.default_count, first.layout.count
    spent = spent_s(group, profile)
    if before is None or before < 1 or not (after > before or after == -1) or not spent:
        return None
    least, expected, most = contention.ratio(
        _with(first.burst, before, first.path), _with(first.burst, after, first.path), first.path
    )
    return Gain(
        metric="read_time_s" if first.reads else "write_time_s",
        before_s=spent,
        after_s=min(spent, spent / expected),
        best_s=min(spent, spent / most),
        worst_s=min(spent, spent / least),
        method=f"contention model (docs/models.md) from the default of {targets_text(before)}: "
        f"{_rates(first)}; low: all stages overlap, or repetitions differ by {contention.VARIATION}",
    )


def _with(burst: Burst, count: int, path: Path) -> Burst:
    return replace(burst, stripe_count=count if count > 0 else path.targets or burst.processes)


def _rates(case: Case) -> str:
    text = f"target {format_rate(case.path.target)}"
    if case.path.client:
        text += f", node {format_rate(case.path.client)} x {case.burst.nodes}"
    return text + (f" (assumed: {'; '.join(case.path.assumed)})" if case.path.assumed else "")


def sentence(group: Sequence[Case]) -> str:
    """What is found, what is wanted, and on what it rests."""
    first, layout = group[0], group[0].layout
    verb = "read" if first.reads else "write"
    what = first.file.path if len(group) == 1 else f"{len(group)} files like {first.file.path}"
    has = (
        "" if layout.default_count is None else f", and new files lie on {targets_text(layout.default_count)}"
    )
    why = (
        "the distance between what neighbours access at the same time"
        if first.has_distance
        else "a multiple of the usual transfer"
    )
    text = f"{first.parallelism} processes {verb} {what} ({format_bytes(extent(first.file))}){has}: "
    if layout.rule is None:
        text += (
            f"{targets_text(layout.count)} of {format_rate(first.path.target)} carry what they offer, in stripes of "
            f"{lfs_size(layout.size)}, {why}."
        )
    else:
        text += _site_sentence(layout, layout.rule)
    if first.place.because:
        text += f" Note: {first.place.because}."
    if layout.default_count is None:
        text += " For an expected gain, supply the default stripe count (`lfs getstripe -d`) in --system."
    return text


def _site_sentence(layout: Layout, rule: StripingRule) -> str:
    pool = f" of the pool {rule.pool}" if rule.pool else ""
    text = (
        f"for files from {format_bytes(rule.above)} on the site asks for {targets_text(layout.count)}{pool}, in "
        f"stripes of {lfs_size(layout.size)}"
    )
    return f"{text}: {rule.reason.rstrip('.')}." if rule.reason else f"{text}."


def _sizes(file: FileEntity, *, reads: bool) -> Sizes | None:
    return file.io.transfer_size.read if reads else file.io.transfer_size.write


def evidence(group: Sequence[Case]) -> list[Evidence]:
    """The figures that the layout of a group rests on."""
    found = []
    for case in group[:SHOWN]:
        where, file = f"files[{case.index}]", case.file
        size = "io.footprint.read" if case.reads else "io.footprint.written"
        footprint = file.io.footprint.read if case.reads else file.io.footprint.written
        found += [
            Evidence(f"{where}.path", file.path),
            Evidence(f"{where}.{size}", footprint),
            Evidence(f"{where}.{'readers' if case.reads else 'writers'}", case.parallelism),
        ]
        if file.stride is not None:
            found.append(Evidence(f"{where}.stride", file.stride))
        elif case.has_distance and file.io.access_pattern is not None:
            found.append(
                Evidence(f"{where}.io.access_pattern.consecutive", file.io.access_pattern.consecutive)
            )
    disk, prefix = group[0].place.figures, group[0].place.prefix
    if disk is not None:
        rate = disk.bandwidth_per_target.read if group[0].reads else disk.bandwidth_per_target.write
        direction = "read" if group[0].reads else "write"
        found += [
            Evidence(f"{prefix}.targets", disk.targets),
            Evidence(f"{prefix}.bandwidth_per_target.{direction}", rate),
        ]
        if (rule := group[0].layout.rule) is not None:
            found.append(Evidence(f"{prefix}.striping_rules[{disk.striping_rules.index(rule)}].above", rule.above))
    return found
