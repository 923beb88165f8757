"""The plain layout that a large shared file should have, as all rules on stripe counts choose it.

The count is AIOT's equation 3, capped where the contention model sees no more use of further targets; the size
keeps what neighbouring processes access at the same moment in stripes of their own.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from vani.advisors.anchored_gain import anchored_gain
from vani.advisors.data_files import SHOWN, extent
from vani.advisors.movers import Movers, movers_of
from vani.advisors.placement import Lustre, lustre_under
from vani.advisors.rule import Evidence, Gain, seconds
from vani.advisors.site_layouts import (
    keeps_own_layout,
    own_stripes,
    present_stripes,
    site_rule,
    targets_text,
)
from vani.models import contention, striping
from vani.models.contention import Burst, Path
from vani.models.run_time import of_files_s
from vani.models.striping import neighbour_distance
from vani.units import MiB, format_bytes, format_rate, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile, Sizes
    from vani.schema.system import FileSystem, StripingRule, System

__all__ = [
    "Case",
    "Choice",
    "Striping",
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
    min_part: int
    max_part: int
    reach: float
    collective_reach: float
    margin: float
    process_rate: float
    processes_per_node: int
    target_rate: float
    object_rate: float
    cached_per_node: int
    cached_per_target: int
    max_collective_size: int


@dataclass(frozen=True)
class Striping:
    """The layout that a file gets, and the one it has or is assumed to have (`default`).

    None is unknown; -1 targets are all.

    `rule` is the site's own rule where that gave count, size and pool.
    """

    count: int
    size: int
    default_count: int | None
    default_size: int | None
    rule: StripingRule | None = None

    @property
    def pool(self) -> str | None:
        return self.rule.pool if self.rule else None

    @property
    def changes(self) -> bool:
        return self.pool is not None or (self.count, self.size) != (self.default_count, self.default_size)

    @property
    def options(self) -> str:
        """As `lfs setstripe` and `lfs migrate` take it."""
        pool = "" if self.pool is None else f" -p {shlex.quote(self.pool)}"
        return f"-c {self.count} -S {lfs_size(self.size)}{pool}"


@dataclass(frozen=True)
class Case:
    """One file and the layout that it should have.

    `object_rate` is what one target gives the file, bytes per second; `cached`: its bytes stay in the memory of the
    nodes that write.
    """

    index: int
    file: FileEntity
    reads: bool
    movers: Movers
    path: Path
    object_rate: float
    burst: Burst
    layout: Striping
    size_from: SizeFrom
    place: Lustre
    cached: bool = False
    interleaved: bool = False

    @property
    def busy_s(self) -> float:
        return seconds(self.file.io.busy_s.read) if self.reads else seconds(self.file.io.busy_s.write)


SizeFrom: TypeAlias = Literal["distance", "largest", "transfer", "aggregators", "site"]
"""The reason for a stripe size: simultaneous offsets, no larger one was measured, the usual transfer, ..."""


def spent_s(group: Sequence[Case], profile: Profile) -> float:
    """Seconds of the run that moving the bytes of these files costs."""
    return of_files_s([case.file for case in group], profile, "read" if group[0].reads else "write")


def choose(index: int, file: FileEntity, profile: Profile, system: System, by: Choice) -> Case | str:
    """The layout for a shared file, or why it stays as it is."""
    place = lustre_under(file.path, profile, system)
    if isinstance(place, str):
        return place
    reads = (file.io.bytes.read or 0) > (file.io.bytes.written or 0)
    movers = movers_of(file, profile, reads=reads)
    if movers.processes < 2:
        return "each large shared file is moved by one process: more targets serve many"
    disk, rule = place.figures, site_rule(extent(file) or 0, place)
    own_layout = None if rule else keeps_own_layout(disk)
    if own_layout:
        return own_layout
    path = contention.path_of(system, disk, reads=reads, target_rate=by.target_rate)
    if isinstance(path, str):
        return path
    # The locks of one object cost more than a fast target behind it. The anchor of the gain shows if they do here.
    objects = path if reads else replace(path, target=min(path.target, by.object_rate))
    distance = None if movers.collective else neighbour_distance(file, movers.processes, reads=reads)
    interleaved = distance is not None and distance < by.min_stripe_size
    nodes = min(movers.processes, profile.job.nodes or math.ceil(movers.processes / by.processes_per_node))
    # Records of a node's processes lie one after another, so that one lock serves them.
    piece = min(distance * max(1, movers.processes // nodes), MiB - 1) if distance and interleaved else None
    burst = Burst(bytes=float(extent(file) or 1), nodes=nodes, processes=movers.processes, piece=piece)
    cached = rule is None and not reads and not movers.collective and _is_cached(file, burst, by)
    if cached:
        count = contention.neat(burst.bytes / by.cached_per_target, _most(burst, disk, by.min_stripe_size))
    else:
        reach = by.collective_reach if movers.collective else by.reach
        rate = process_rate(file, movers, by, reads=reads)
        count = _count(burst, objects, disk, by, rate=rate, reach=reach)
    size, size_from = _stripe_size(file, movers, distance, count, by, reads=reads)
    # A file of three stripes lies on three targets, whatever its stripe count.
    most = _most(burst, disk, size)
    if distance is not None and not interleaved:
        # In one step each process is at one stripe, or at as many as its run has.
        most = max(1, min(most, movers.processes * max(1, distance // size)))
    if interleaved and nodes > 1 and not cached:
        count = max(count, nodes)
    count = contention.neat(min(count, most), most)
    default, default_size = present_stripes(file, disk)
    layout = Striping(count, size, default, default_size)
    if rule is not None:
        layout = Striping(rule.stripe_count, rule.stripe_size or size, default, default_size, rule)
    elif default is not None and not 0 < default < count:
        if cached:
            return (
                "the large shared files are written to the memory of the nodes, and nothing flushes them: "
                "their layout hardly shows"
            )
        # The default has as many targets or more (-1 is all): fewer is not this question.
        layout = Striping(default, size, default, default_size)
    if not layout.changes:
        if own_stripes(file) is not None:
            return "the layout that the large shared files have already fits them"
        return "the default layout of the file system already fits the large shared files"
    source: SizeFrom = "site" if rule is not None and rule.stripe_size else size_from
    return Case(
        index, file, reads, movers, path, objects.target, burst, layout, source, place, cached, interleaved
    )


def _is_cached(file: FileEntity, burst: Burst, by: Choice) -> bool:
    """Nothing waits for the file's bytes to leave the nodes that write them."""
    return not file.io.ops.sync and burst.bytes / burst.nodes <= by.cached_per_node


def _most(burst: Burst, disk: FileSystem | None, size: int) -> int:
    limits = [math.ceil(burst.bytes / size), contention.LUSTRE_MAX_STRIPES]
    limits += [n for n in (disk.targets, disk.max_stripe_count) if n] if disk else []
    return max(1, min(limits))


def _count(
    burst: Burst, path: Path, disk: FileSystem | None, by: Choice, *, rate: float, reach: float
) -> int:
    most = _most(burst, disk, by.min_stripe_size)
    offered = striping.equation_3_count(rate, burst.processes, path.target)
    targets_needed = contention.fewest_targets(burst, path, most, reach) * by.margin
    return contention.neat(min(offered, targets_needed), most)


def process_rate(file: FileEntity, movers: Movers, by: Choice, *, reads: bool) -> float:
    """Bytes per second of one process: equation 3's "I/O bandwidth of a single process".

    What was measured on the present layout is limited by it: a process can do that at least, never at most. Reads
    and writes that nothing flushes are measured at the speed of memory.
    """
    synced = None if reads else file.io.bandwidth.write_synced
    return min(max(by.process_rate, (synced or 0.0) / movers.processes), contention.PROCESS_RATE)


def _stripe_size(
    file: FileEntity, movers: Movers, distance: int | None, count: int, by: Choice, *, reads: bool
) -> tuple[int, SizeFrom]:
    """The stripe size in bytes, and what it follows."""
    if distance is not None:
        if distance > by.max_part:
            return by.max_guessed_size, "largest"
        part = striping.parted(distance, movers.processes, count, by.min_part)
        return striping.whole_stripes(part, by.min_stripe_size), "distance"
    sizes = _sizes(file, reads=reads)
    usual = sizes.common[0][0] if sizes and sizes.common else None
    if not usual or usual % striping.STRIPE_UNIT:
        # Lustre's own default: no size is aligned with such transfers.
        return MiB, "aggregators" if movers.collective else "transfer"
    if movers.collective:
        # ROMIO cuts what aggregators write at stripes: one that is larger leaves targets idle in each round.
        return striping.whole_stripes(min(usual, by.max_collective_size), MiB), "aggregators"
    return striping.whole_stripes(usual, MiB, by.max_guessed_size), "transfer"


def gain(group: Sequence[Case], profile: Profile, system: System) -> Gain | str:
    """Seconds of the run for moving bytes of these files; a sentence where the count stays or none is known."""
    first = group[0]
    before, after = first.layout.default_count, first.layout.count
    if before is None:
        return "For an expected gain, supply the default stripe count (`lfs getstripe -d`) in --system."
    if first.cached:
        return (
            "Nothing flushes what is written, and the memory of the nodes takes it: the layout hardly shows in the "
            "run, and no gain is expected."
        )
    spent = spent_s(group, profile)
    if before < 1 or not (after > before or after == -1) or not spent:
        return ""
    if first.movers.collective:
        return (
            "How much of a collective call is exchange between processes is not modelled, so no gain is given: "
            "measure a run with the new layout."
        )
    old, new = (
        sum(contention.predict(_with(case, count), case.path).seconds for case in group)
        for count in (before, after)
    )
    return anchored_gain(
        "read_time_s" if first.reads else "write_time_s",
        spent,
        old,
        new,
        f"contention model (docs/models.md) from {'' if own_stripes(first.file) else 'the default of '}"
        f"{targets_text(before)}: {_rates(first)}",
        system,
    )


def _with(case: Case, count: int) -> Burst:
    moved = case.file.io.bytes.read if case.reads else case.file.io.bytes.written
    wide = count if count > 0 else case.path.targets or case.burst.processes
    return replace(case.burst, bytes=float(moved or case.burst.bytes), stripe_count=wide)


def _rates(case: Case) -> str:
    text = f"target {format_rate(case.path.target)}"
    if case.path.client:
        text += f", node {format_rate(case.path.client)} x {case.burst.nodes}"
    return text + (f" (assumed: {'; '.join(case.path.assumed)})" if case.path.assumed else "")


_BECAUSE: Final[Mapping[SizeFrom, str]] = {
    "distance": "the distance between what neighbours access at the same time",
    "largest": "the largest that was measured without harm, since neighbours access places much further apart",
    "transfer": "a multiple of the usual transfer",
    "aggregators": "what an aggregator writes at a time",
    "site": "as the site has it",
}


def sentence(group: Sequence[Case]) -> str:
    """The finding, the recommendation, and the figures behind it."""
    first, layout = group[0], group[0].layout
    verb = "read" if first.reads else "write"
    files_text = first.file.path if len(group) == 1 else f"{len(group)} files like {first.file.path}"
    has = ""
    if layout.default_count is not None:
        which = "which lies" if len(group) == 1 else "which lie"
        lie = "and new files lie" if own_stripes(first.file) is None else which
        has = f", {lie} on {targets_text(layout.default_count)}"
    who = f"{first.movers.processes} processes"
    if first.movers.collective:
        who += " in collective calls"
    is_single = layout.count == 1
    if first.cached:
        enough = "is enough" if is_single else "are enough"
    else:
        enough = "carries what they offer" if is_single else "carry what they offer"
    text = f"{who} {verb} {files_text} ({format_bytes(extent(first.file))}){has}: "
    text += (
        _site_sentence(layout, layout.rule)
        if layout.rule is not None
        else (
            f"{targets_text(layout.count)}{_rate_text(first)} {enough}, in stripes of "
            f"{lfs_size(layout.size)}, {_BECAUSE[first.size_from]}."
        )
    )
    if first.interleaved and not first.cached:
        text = (
            "Collective buffering or larger records come first: records of less than a stripe alternate between "
            f"processes, and each takes a lock from the one before. {text}"
        )
    if first.movers.collective:
        text += " Aggregators follow the stripes: set `cb_nodes` with them (MIO002)."
    if first.place.because:
        text += f" Note: {first.place.because}."
    return text


def _rate_text(case: Case) -> str:
    """Rate that a target gives the file, which may be below the target's own rate."""
    rate = format_rate(case.object_rate)
    is_less = case.object_rate < case.path.target
    return f", of which one shared file gets {rate} each," if is_less else f" of {rate}"


def _site_sentence(layout: Striping, rule: StripingRule) -> str:
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
    sizes = []
    for case in group[:SHOWN]:
        where, file = f"files[{case.index}]", case.file
        size = "io.footprint.read" if case.reads else "io.footprint.written"
        footprint = file.io.footprint.read if case.reads else file.io.footprint.written
        sizes += [
            Evidence(f"{where}.path", file.path),
            Evidence(f"{where}.{size}", footprint),
            Evidence(f"{where}.{'readers' if case.reads else 'writers'}", case.movers.calling),
        ]
        if own_stripes(file) is not None:
            sizes += [
                Evidence(f"{where}.stripe_count", file.stripe_count),
                Evidence(f"{where}.stripe_size", file.stripe_size),
            ]
        if file.stride is not None:
            sizes.append(Evidence(f"{where}.stride", file.stride))
        elif case.size_from == "distance" and file.io.access_pattern is not None:
            sizes.append(
                Evidence(f"{where}.io.access_pattern.consecutive", file.io.access_pattern.consecutive)
            )
    disk, prefix = group[0].place.figures, group[0].place.prefix
    if disk is not None:
        rate = disk.bandwidth_per_target.read if group[0].reads else disk.bandwidth_per_target.write
        direction = "read" if group[0].reads else "write"
        sizes += [
            Evidence(f"{prefix}.targets", disk.targets),
            Evidence(f"{prefix}.bandwidth_per_target.{direction}", rate),
        ]
        if (rule := group[0].layout.rule) is not None:
            sizes.append(
                Evidence(f"{prefix}.striping_rules[{disk.striping_rules.index(rule)}].above", rule.above)
            )
    return sizes
