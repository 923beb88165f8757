"""The plain layout of a large shared file, chosen in the same way for all rules on stripe counts.

The count follows from the nodes that move the file's bytes (`vani/models/stripe_count.py`) or from measurements on the
machine. The size keeps simultaneous accesses of neighbouring processes in separate stripes.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from vani.advisors.data_files import extent
from vani.advisors.file_layout import keeps_own_layout, own_stripes, present_stripes, site_rule, targets_text
from vani.advisors.gains import WIDEST
from vani.advisors.movers import Movers, moved_in, movers_of, nodes_between
from vani.advisors.placement import Lustre, lustre_under
from vani.advisors.rule import Gain, Perhaps
from vani.advisors.small_requests import SMALL, sizes_of, small_at_least, small_share
from vani.models import contention, stripe_count, striping
from vani.models.run_time import of_files_s
from vani.models.striping import neighbour_distance
from vani.units import MiB, counted, format_rate, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile, Sizes
    from vani.schema.system import FileSystem, StripingRule, System

@dataclass(frozen=True)
class Choice:
    """Thresholds of a rule. The rules give their sources."""

    per_node: float
    collective_per_node: float
    processes_per_node: int
    cached_per_node: int
    cached_per_target: int
    min_stripe_size: int
    max_guessed_size: int
    max_stripe_size: int
    max_collective_size: int
    min_part: int
    target_rate: float


@dataclass(frozen=True)
class Striping:
    """The layout that a file gets, and the one that it has or is assumed to have (`default`).

    None means unknown, and -1 all targets. `rule` is the site's rule if that gave count, size and pool.
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
    def changes_size_alone(self) -> bool:
        """True if only the size changes, between sizes without a measured difference (Xie et al., footnote 6)."""
        sizes = (self.size, self.default_size or 0)
        return self.changes and self.count == self.default_count and min(sizes) >= MiB and max(sizes) <= 32 * MiB

    @property
    def options(self) -> str:
        """Options of `lfs setstripe` and `lfs migrate`."""
        pool = "" if self.pool is None else f" -p {shlex.quote(self.pool)}"
        return f"-c {self.count} -S {lfs_size(self.size)}{pool}"


@dataclass(frozen=True)
class Case:
    """A file and the layout that it should have.

    `nodes` is the number of nodes that move its bytes, and `least_nodes` the least; both are the job's if known.
    `targets` is the file system's number of targets, and `target_rate` the bytes per second of one. `is_measured`: the
    count comes from a curve of this machine. `cached`: the nodes' memory absorbs the bytes; `may_be_cached`: it does
    with the largest number of nodes.
    """

    index: int
    file: FileEntity
    reads: bool
    movers: Movers
    nodes: int
    least_nodes: int
    knows_nodes: bool
    targets: int | None
    target_rate: float
    client_rate: float | None
    per_node: float
    is_measured: bool
    layout: Striping
    size_from: SizeFrom
    place: Lustre
    cached: bool = False
    may_be_cached: bool = False
    interleaved: bool = False

    @property
    def busy_s(self) -> float:
        return moved_in(self.file, reads=self.reads)[1]

    @property
    def is_fewer(self) -> bool:
        """True if the file should be on fewer targets than at present."""
        now = self.layout.default_count
        return now is not None and 0 < self.layout.count < (self.targets or math.inf if now < 0 else now)


SizeFrom: TypeAlias = Literal["distance", "largest", "transfer", "aggregators", "site"]
"""Origin of a stripe size: distance of simultaneous offsets, largest advised size, usual transfer, ..."""

_MOST: Final = 0.5

# Our choice: with four times the targets that writers of collective calls keep busy, fewer were faster in all
# measurements (ARCHER, MI250X on one node; Perlmutter, where 64 processes are 100 times slower on 366 targets than 64).
_FAR_TOO_MANY: Final = 4


def spent_s(group: Sequence[Case], profile: Profile) -> float:
    """Seconds of the run spent moving the bytes of these files, including flushes."""
    return of_files_s([case.file for case in group], profile, "read" if group[0].reads else "write_synced")


def choose(index: int, file: FileEntity, profile: Profile, system: System, by: Choice) -> Case | str:
    """The layout for a shared file, or why it stays the same."""
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
    size_of_file = extent(file) or 1
    least_nodes, nodes = nodes_between(
        file, movers, profile, system, per_node=by.processes_per_node, reads=reads
    )
    distance = None if movers.collective else neighbour_distance(file, movers.processes, reads=reads)
    interleaved = distance is not None and distance < by.min_stripe_size
    is_kept = rule is None and not (reads or movers.collective or file.io.ops.sync)
    may_be_cached = is_kept and size_of_file / nodes <= by.cached_per_node
    cached = is_kept and size_of_file / least_nodes <= by.cached_per_node
    own = stripe_count.measured_per_node(
        disk.stripe_curves if disk else (),
        nodes=nodes,
        collective=movers.collective,
        reads=reads,
        strided=interleaved,
    )
    per_node = own or (by.collective_per_node if movers.collective else by.per_node)
    most = _most(size_of_file, disk, by.min_stripe_size)
    if least_nodes < nodes:
        most = min(most, max(stripe_count.MOST_GUESSED, math.ceil(per_node * least_nodes)))
    count = stripe_count.wanted_targets(
        bytes_=size_of_file,
        nodes=nodes,
        processes=movers.processes,
        most=most,
        per_node=per_node,
        collective=movers.collective,
        cached=by.cached_per_target if may_be_cached else None,
    )
    size, size_from = _stripe_size(file, movers, distance, count, by, profile, reads=reads)
    # A file of three stripes uses only three targets even with a larger stripe count.
    most = min(most, _most(size_of_file, disk, size))
    if movers.collective:
        most = min(most, movers.processes)
    elif distance is not None and not interleaved:
        # In one step, each process accesses one stripe, or as many as its run has.
        most = max(1, min(most, movers.processes * max(1, distance // size)))
    count = contention.neat(min(count, most), most)
    default, default_size = present_stripes(file, disk)
    layout = Striping(count, size, default, default_size)
    now = default if default is None or default > 0 else (disk.targets if disk else None)
    if rule is not None:
        layout = Striping(rule.stripe_count, rule.stripe_size or size, default, default_size, rule)
    elif default is not None and not 0 < default < count:
        if cached:
            return (
                "the large shared files are written to the memory of the nodes, and nothing flushes them: "
                "their layout hardly shows"
            )
        too_many = now is not None and (
            now >= _FAR_TOO_MANY * count or (now > movers.processes and now >= 2 * count)
        )
        if not (movers.collective and not reads and too_many):
            # The file has as many targets or more (-1 is all), and this is not about using fewer.
            layout = Striping(default, size, default, default_size)
    if rule is None and size_from in ("transfer", "aggregators") and layout.changes_size_alone:
        return (
            "the large shared files are on enough targets already, and stripes of 1 to 32 MiB made no difference where "
            "that was measured"
        )
    if not layout.changes:
        if own_stripes(file) is not None:
            return "the layout that the large shared files have already fits them"
        return "the default layout of the file system already fits the large shared files"
    return Case(
        index=index,
        file=file,
        reads=reads,
        movers=movers,
        nodes=nodes,
        least_nodes=least_nodes,
        knows_nodes=profile.job.nodes is not None,
        targets=disk.targets if disk else None,
        target_rate=path.target,
        client_rate=_client_rate(disk, reads=reads),
        per_node=per_node,
        is_measured=own is not None,
        layout=layout,
        size_from="site" if rule is not None and rule.stripe_size else size_from,
        place=place,
        cached=cached,
        may_be_cached=may_be_cached,
        interleaved=interleaved,
    )


def _client_rate(disk: FileSystem | None, *, reads: bool) -> float | None:
    rates = disk.bandwidth_per_client if disk else None
    return (rates.read if reads else rates.write) if rates else None


def _most(bytes_: int, disk: FileSystem | None, size: int) -> int:
    limits = [math.ceil(bytes_ / size), contention.LUSTRE_MAX_STRIPES]
    limits += [n for n in (disk.targets, disk.max_stripe_count) if n] if disk else []
    return max(1, min(limits))


def _stripe_size(
    file: FileEntity,
    movers: Movers,
    distance: int | None,
    count: int,
    by: Choice,
    profile: Profile,
    *,
    reads: bool,
) -> tuple[int, SizeFrom]:
    """The stripe size in bytes, and its origin."""
    if distance is not None and knows_offsets(profile):
        part = striping.parted(distance, movers.processes, count, by.min_part)
        if part <= by.max_stripe_size:
            return striping.usual_size(part, by.max_stripe_size), "distance"
        if count >= movers.processes and (whole := striping.whole_stripes(part, MiB)) == part:
            # Each process has a target of its own.
            return whole, "distance"
        return by.max_stripe_size, "largest"
    sizes = _sizes(file, reads=reads)
    usual = sizes.common[0][0] if sizes and sizes.common else None
    if movers.collective:
        # ROMIO splits the writes of aggregators at stripes, so a larger stripe leaves targets idle in each round.
        return striping.usual_size(usual or MiB, by.max_collective_size), "aggregators"
    return striping.usual_size(usual or MiB, by.max_guessed_size), "transfer"


def knows_offsets(profile: Profile) -> bool:
    """True if the traces have the offsets of calls. Counters such as Darshan's have only sums."""
    return all(trace.tool != "darshan" for trace in profile.traces)


def gain(group: Sequence[Case], profile: Profile) -> Gain | Perhaps | str:
    """The gain in seconds of moving the bytes of these files; a reason if it is unknown or none is expected."""
    first = group[0]
    before, after = first.layout.default_count, first.layout.count
    if before is None:
        return "supply the default stripe count (`lfs getstripe -d`) in --system"
    spent = spent_s(group, profile)
    if first.is_fewer:
        return "no model gives the cost of too many targets"
    if first.cached or before < 1 or not (after > before or after == -1) or not spent:
        return ""
    if after < 1 and first.targets is None:
        return "supply the number of targets (`lfs df`) in --system"
    moved, busy = moved_in(first.file, reads=first.reads)
    rate = moved / (busy or spent)
    least = stripe_count.LEAST_SHARE * before * first.target_rate
    if rate < least:
        return Perhaps(
            f"the file moves at {format_rate(rate)}, far less than {targets_text(before)} can give, so something else "
            "slows it, too"
        )
    if (why := _slowed_by(first.file, reads=first.reads)) is not None:
        return Perhaps(f"{why}, which more targets do not change")
    wide = after if after > 0 else first.targets or before
    client_rate = (first.client_rate or contention.CLIENT_RATE) if first.knows_nodes else math.inf
    # More targets gain more with more nodes. Use the geometric mean of the least and the largest number.
    nodes_between = round(math.sqrt(first.least_nodes * first.nodes))
    faster = stripe_count.speedup(before, wide, rate, nodes=nodes_between, client_rate=client_rate)
    spread = stripe_count.range_factor(before, wide) if first.least_nodes == first.nodes else WIDEST
    if faster == 1 and first.layout.rule is not None:
        return ""
    if (faster < spread or first.per_node * first.least_nodes <= before) and first.least_nodes < first.nodes:
        return Perhaps(
            f"{targets_text(before)} may be nearly enough: the number of nodes is unknown, perhaps only "
            f"{first.least_nodes}"
        )
    nodes = counted(first.nodes, "node")
    if first.least_nodes < first.nodes:
        nodes = f"{first.least_nodes} to {nodes}"
    return Gain(
        metric="read_time_s" if first.reads else "write_time_s",
        before_s=spent,
        after_s=spent / faster,
        best_s=spent / faster / spread,
        worst_s=spent / faster * spread,
        method=f"from the {format_rate(rate)} that {'' if own_stripes(first.file) else 'the default of '}"
        f"{targets_text(before)} gave to {nodes}, in proportion to what measured runs gain (docs/models.md); range: "
        + ("four of five of these" if first.least_nodes == first.nodes else "on all these numbers of nodes"),
    )


def _slowed_by(file: FileEntity, *, reads: bool) -> str | None:
    """Why a file takes time that more targets do not save; None if nothing but its bytes is known to take the time."""

    io = file.io
    if not reads and io.ops.write and (io.ops.sync or 0) >= _MOST * io.ops.write:
        return "most writes are flushed one by one"
    small = max(small_share(sizes_of(io, reads=reads), SMALL) or 0.0, small_at_least(io, SMALL, reads=reads))
    return "most requests are small" if small >= _MOST else None


def _sizes(file: FileEntity, *, reads: bool) -> Sizes | None:
    return file.io.transfer_size.read if reads else file.io.transfer_size.write
