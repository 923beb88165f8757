"""The plain layout of a large shared file, chosen in the same way for all rules on stripe counts.

The count follows from the nodes that move the file's bytes (`vani/models/stripe_count.py`) or from measurements on the
machine. The size keeps simultaneous accesses of neighbouring processes in separate stripes; where the trace has no
offsets, it stays.
"""

from __future__ import annotations

import math
import posixpath
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from vani.advisors import placement
from vani.advisors.data_files import extent
from vani.advisors.movers import Movers, moved_in, movers_of, nodes_between
from vani.advisors.rule import Gain, Perhaps, Rule
from vani.advisors.small_requests import SMALL, small_share_of
from vani.models import stripe_count, striping
from vani.models.calibration import SPREAD
from vani.models.run_time import of_files_s
from vani.models.striping import neighbour_distance
from vani.units import KiB, MiB, counted, format_rate, lfs_size

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, Profile
    from vani.schema.system import FileSystem, StripeCurve, StripingRule, System

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
    def options(self) -> str:
        """Options of `lfs setstripe` and `lfs migrate`."""
        pool = "" if self.pool is None else f" -p {shlex.quote(self.pool)}"
        return f"-c {self.count} -S {lfs_size(self.size)}{pool}"


@dataclass(frozen=True)
class Case:
    """A file and the layout that it should have.

    `nodes` is the number of nodes that move its bytes, and `least_nodes` the least; both are the job's if known.
    `targets` is the file system's number of targets. `curve` is the machine's curve from which the count comes.
    """

    index: int
    file: FileEntity
    reads: bool
    movers: Movers
    nodes: int
    least_nodes: int
    knows_nodes: bool
    targets: int | None
    per_node: float
    curve: StripeCurve | None
    layout: Striping
    size_from: SizeFrom
    place: placement.Lustre
    interleaved: bool = False

    @property
    def busy_s(self) -> float:
        return moved_in(self.file, reads=self.reads)[1]

    @property
    def is_fewer(self) -> bool:
        """True if the file should be on fewer targets than at present."""
        now = self.layout.default_count
        return now is not None and 0 < self.layout.count < (self.targets or math.inf if now < 0 else now)


SizeFrom: TypeAlias = Literal["distance", "present", "site"]
"""Origin of a stripe size: distance of simultaneous offsets, the present one, or the site."""

_MOST: Final = 0.5

# Our choice: with four times the targets that writers of collective calls keep busy, fewer were faster in all
# measurements (ARCHER, MI250X on one node; Perlmutter, where 64 processes are 100 times slower on 366 targets than 64).
_FAR_TOO_MANY: Final = 4


class LayoutRule(Rule):
    """A rule that gives large shared files a plain layout: its thresholds, and the files of each command."""

    # Twice max_dirty_mb, the 32 MiB that a Lustre client buffers per target before it must send (general knowledge:
    # typical default). Smaller writes end in the client's memory, so that no layout makes a difference, and smaller
    # inputs stay in the servers' memory after the first reader.
    min_bytes = 64 * MiB
    # Targets per node for independent calls and for collective calls, and the least: the fixed rule with the least
    # regret (vani/models/stripe_count.py).
    per_node = stripe_count.PER_NODE
    # As the line above.
    collective_per_node = stripe_count.COLLECTIVE_PER_NODE
    # As the line above.
    least = stripe_count.LEAST
    # As the line above, for reads.
    least_read = stripe_count.LEAST_READ
    # Bytes per second and node from which on more targets gained nothing (vani/models/stripe_count.py).
    enough = stripe_count.ENOUGH
    # As the line above.
    collective_enough = stripe_count.COLLECTIVE_ENOUGH
    # If the number of nodes is unknown. Measured runs have 1 to 128 processes per node, and too few targets cost more
    # than too many: of 1 to 16, 1 was best on held-out machines (benchmarks/stripes.py). Full nodes have more.
    processes_per_node = 1
    # Lustre manual, section 19.2: the smallest stripe size that makes sense, because RPCs are 1 MiB.
    min_stripe_size = 512 * KiB
    # Our choice: twice what Xie et al. measured.
    max_stripe_size = 64 * MiB
    # Our choice: if the runs of few processes are split to reach more targets, parts have at least four RPCs of 4 MiB.
    # So has the part of a target in a file that is read.
    min_part = 16 * MiB

    def groups(
        self, files: Iterable[tuple[int, FileEntity]], profile: Profile, system: System
    ) -> list[list[Case]] | str:
        """Groups of files that share a folder and get the same layout, by I/O time; a sentence if none changes.

        `files` has the index in the profile with each file.
        """
        groups: defaultdict[tuple[object, ...], list[Case]] = defaultdict(list)
        reasons: list[str] = []
        for index, file in files:
            case = choose(index, file, profile, system, self)
            if isinstance(case, Case) and (objection := self.objection(case)) is not None:
                case = objection
            if isinstance(case, str):
                reasons.append(case)
            else:
                groups[posixpath.dirname(file.path), case.layout].append(case)
        if not groups:
            return "; ".join(dict.fromkeys(reasons))
        return [sorted(group, key=lambda case: -case.busy_s) for group in groups.values()]

    def objection(self, case: Case) -> str | None:  # noqa: ARG002 - one rule has some
        """The reason not to change the layout of a file; None if there is none."""
        return None


def spent_s(group: Sequence[Case], profile: Profile) -> float:
    """Seconds of the run spent moving the bytes of these files, including flushes."""
    return of_files_s([case.file for case in group], profile, "read" if group[0].reads else "write_synced")


def choose(index: int, file: FileEntity, profile: Profile, system: System, by: LayoutRule) -> Case | str:
    """The layout for a shared file, or why it stays the same."""
    place = placement.lustre_under(file.path, profile, system)
    if isinstance(place, str):
        return place
    reads = (file.io.bytes.read or 0) > (file.io.bytes.written or 0)
    movers = movers_of(file, profile, reads=reads)
    if movers.processes < 2:
        return "each large shared file is moved by one process: more targets serve many"
    disk, rule = place.figures, placement.site_rule(extent(file) or 0, place)
    own_layout = None if rule else placement.keeps_own_layout(disk)
    if own_layout:
        return own_layout
    size_of_file = extent(file) or 1
    least_nodes, nodes = nodes_between(
        file, movers, profile, system, per_node=max(1, int(by.processes_per_node)), reads=reads
    )
    distance = None if movers.collective else neighbour_distance(file, movers.processes, reads=reads)
    interleaved = distance is not None and distance < by.min_stripe_size
    curves = disk.stripe_curves if disk else ()
    curve = stripe_count.nearest_curve(
        curves, nodes=nodes, collective=movers.collective, reads=reads, strided=interleaved
    )
    usual = by.collective_per_node if movers.collective else by.per_node
    per_node = usual if curve is None else stripe_count.measured_per_node(curve)
    most = _most(size_of_file, disk, int(by.min_part if reads else by.min_stripe_size))
    if least_nodes < nodes:
        most = min(most, max(stripe_count.MAX_GUESSED, math.ceil(per_node * least_nodes)))
    if movers.collective:
        # Each aggregator writes to its own target.
        most = min(most, movers.processes)
    least = by.least_read if reads else by.least
    count = stripe_count.wanted_targets(nodes=nodes, most=most, per_node=per_node, least=1 if curve else least)
    default, default_size = placement.present_stripes(file, disk)
    known = distance if knows_offsets(profile) else None
    # A curve of this machine has shown what so many targets give, so that the file gets a stripe for each.
    least_part = int(by.min_part if curve is None else by.min_stripe_size)
    size, size_from = _stripe_size(movers, known, count, default_size, least_part, int(by.max_stripe_size))
    # A file of three stripes uses only three targets even with a larger stripe count.
    most = min(most, _most(size_of_file, disk, size))
    if distance is not None and not interleaved:
        # In one step, each process accesses one stripe, or as many as its run has.
        most = max(1, min(most, movers.processes * max(1, distance // size)))
    count = stripe_count.neat(min(count, most), most)
    layout = Striping(count, size, default, default_size)
    now = default if default is None or default > 0 else (disk.targets if disk else None)
    if rule is not None:
        layout = Striping(rule.stripe_count, rule.stripe_size or size, default, default_size, rule)
    elif default is not None and not 0 < default < count:
        too_many = now is not None and (
            now >= _FAR_TOO_MANY * count or (now > movers.processes and now >= 2 * count)
        )
        if not (movers.collective and not reads and too_many):
            # The file has as many targets or more (-1 is all), and this is not about using fewer.
            layout = Striping(default, size, default, default_size)
    elif default is not None and curve is None and least_nodes < nodes and 2 * default >= stripe_count.MAX_GUESSED:
        return "the number of nodes is unknown, and the large shared files are on many targets already"
    elif default is not None and curve is None:
        moved, busy = moved_in(file, reads=reads)
        each = moved / busy / nodes if busy else 0.0
        if each >= (by.collective_enough if movers.collective else by.enough):
            return (
                f"each node already moves {format_rate(each)} of the large shared files: where that was measured, more "
                "targets gained nothing"
            )
    if not layout.changes:
        if placement.own_stripes(file) is not None:
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
        per_node=per_node,
        curve=curve,
        layout=layout,
        size_from="site" if rule is not None and rule.stripe_size else size_from,
        place=place,
        interleaved=interleaved,
    )


def _most(bytes_: int, disk: FileSystem | None, size: int) -> int:
    limits = [math.ceil(bytes_ / max(1, size)), stripe_count.LUSTRE_MAX_STRIPES]
    limits += [n for n in (disk.targets, disk.max_stripe_count) if n] if disk else []
    return max(1, min(limits))


def _stripe_size(
    movers: Movers, distance: int | None, count: int, present: int | None, least_part: int, most: int
) -> tuple[int, SizeFrom]:
    """The stripe size in bytes, and its origin."""
    if distance is None:
        # Measured machines contradict each other: 1 MiB was faster than 4 on Perlmutter, and 8 than 1 on ARCHER.
        return present or MiB, "present"
    return striping.usual_size(striping.parted(distance, movers.processes, count, least_part), most), "distance"


def knows_offsets(profile: Profile) -> bool:
    """True if the traces have the offsets of calls. Darshan's have where DXT kept all, and phases show that."""
    phases = profile.phases or ()
    return all(trace.tool != "darshan" for trace in profile.traces) or (
        bool(phases) and all(phase.io.access_pattern is not None for phase in phases)
    )


def gain(group: Sequence[Case], profile: Profile) -> Gain | Perhaps | str:
    """The gain in seconds of moving the bytes of these files; a reason if it is unknown or none is expected."""
    first = group[0]
    before, after = first.layout.default_count, first.layout.count
    if before is None:
        return "supply the default stripe count (`lfs getstripe -d`) in --system"
    spent = spent_s(group, profile)
    now, wide = (count if count > 0 else first.targets for count in (before, after))
    if not spent or now == wide:
        return ""
    if now is None or wide is None:
        return "supply the number of targets (`lfs df`) in --system"
    if (why := _slowed_by(first.file, reads=first.reads)) is not None:
        return Perhaps(f"{why}, which more targets do not change")
    if first.curve is None:
        return "no model gives the cost of too many targets" if first.is_fewer else Perhaps(stripe_count.UNMEASURED)
    if max(first.curve.nodes / first.nodes, first.nodes / first.curve.nodes) > stripe_count.ALIKE_NODES:
        return Perhaps(f"this machine was measured with {counted(first.curve.nodes, 'node')} only")
    moved, busy = moved_in(first.file, reads=first.reads)
    expected = stripe_count.speedup(first.curve.points, now, wide, moved / busy if busy else None)
    if expected is None:
        return Perhaps(f"no number of targets near {now:,} and {wide:,} was measured on this machine")
    faster, spread = expected
    spread = max(spread, SPREAD)
    nodes = counted(first.curve.nodes, "node")
    return Gain(
        metric="read_time_s" if first.reads else "write_time_s",
        before_s=spent,
        after_s=spent / faster,
        best_s=spent / faster / spread,
        worst_s=spent / faster * spread,
        method=f"from {placement.targets_text(now)} to {wide:,} on this machine's curve of {nodes}; range: four of "
        "five factors that were taken from a curve like that (docs/accuracy.md)",
    )


def _slowed_by(file: FileEntity, *, reads: bool) -> str | None:
    """Why a file takes time that more targets do not save; None if nothing but its bytes is known to take the time."""

    io = file.io
    if not reads and io.ops.write and io.ops.sync >= _MOST * io.ops.write:
        return "most writes are flushed one by one"
    small = small_share_of(io, SMALL, reads=reads)
    return "most requests are small" if small >= _MOST else None
