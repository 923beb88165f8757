"""Stripes, OSTs and path of a job that starts, in addition to its I/O nodes, and its expected I/O time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from vani.centre.placement_library.interactions import extents_of
from vani.centre.plan.job_stripes import StripeChoice, choose_stripes, expected_io
from vani.centre.plan.path import path
from vani.centre.plan.place import place
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import ExpectedIo, JobLayout, JobPath, Left, PathSettings, PlaceSettings
from vani.errors import InputError
from vani.schema.model import Model
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.schema.jobs import Creation, PlannedJob
    from vani.centre.plan.schema.plans import PlacedExtent, PlacedFile, PlacePlan
    from vani.centre.plan.schema.snapshot import Snapshot, Target
    from vani.centre.prolog.state import State

# OSTs for the files of a starting job, chosen so that its files and those of running jobs do not interfere.
#
# A file on more targets than before is written in bursts that fill all of them, and a small file on the same targets
# waits for the end of such a burst. Jobs with widened files therefore leave some OSTs to other jobs, which
# use those, and
# no job writes where another one reads.

_LEFT: Final = 0.25
"""Share of the OSTs that all widened files together leave to other files."""
_AMPLE: Final = 4
"""With this many times the OSTs that its rate fills, a job does not notice that it has no more."""


@dataclass(frozen=True)
class InUse:
    """Indexes of the OSTs that running jobs use for widened files, for other files, and to read from."""

    wide: Set[int] = frozenset()
    narrow: Set[int] = frozenset()
    read: Set[int] = frozenset()

    def most_widened(self, targets: Sequence[Target]) -> int:
        """Most OSTs that all widened files together may use."""
        writable = sum(target.index not in self.read for target in targets)
        return writable - math.ceil(_LEFT * writable)

    def most_of_one(self, targets: Sequence[Target]) -> int:
        """Most OSTs for the widened files of one more job."""
        return min(self.free(targets), self.most_widened(targets) // 2)

    def free(self, targets: Sequence[Target]) -> int:
        """Number of unused OSTs that one more job with widened files may use; all if it is the only such job."""
        unused = sum(target.index not in self.wide | self.narrow | self.read for target in targets)
        return max(0, min(unused, self.most_widened(targets) - len(self.wide))) if self.wide else unused


def osts_for(
    job: PlannedJob,
    count: int,
    targets: Sequence[Target],
    in_use: InUse,
    *,
    is_widened: bool,
    target_rate: float | None,
) -> list[Target]:
    """The targets on which to place a job's files, which have `count` stripes each.

    Parameters
    ----------
    target_rate
        Bytes per second of a target; None if unknown.
    """
    files = 1 if job.pattern is not None and job.pattern.layout == "shared" else job.processes or len(targets)
    least, most_free = files * count, len(targets)
    if is_widened:
        least, most_free = count, in_use.free(targets)
        wanted = min(files * count, in_use.most_widened(targets) // 2)
        worse = (in_use.read, in_use.narrow, in_use.wide)
    elif target_rate is None or job.bytes is None or job.io_s is None or not job.io_s.low:
        return list(targets)
    else:
        wanted = max(least, math.ceil(_AMPLE * job.bytes / job.io_s.low / target_rate))
        worse = (in_use.read, in_use.wide, in_use.narrow)
    # Of the targets in use, take only as many as the job needs.
    chosen: list[Target] = []
    for target in sorted(
        targets,
        key=lambda target: (*(target.index in group for group in worse), target.used - target.size, target.index),
    ):
        is_free = not any(target.index in group for group in worse)
        if len(chosen) < (min(most_free, max(least, wanted)) if is_free else least):
            chosen.append(target)
    return chosen


# Stripes, OSTs and path of a job that starts, in addition to its I/O nodes, and its expected I/O time.

_DRAWS: Final = 10
"""Number of simulated draws of Lustre's allocator; a prolog has no time for more."""
_ALIKE: Final = 1.03
_EVEN: Final = 1.001
"""Times within the first factor, and costs within the second, count as equal, as in `placement_advice`."""
_LEAST_SHARE: Final = 0.05
"""Minimum share of data for a busy OST, which still accepts some."""
_LEVEL: Final = 0.9
"""OSTs with at least this share of the emptiest one's free space are filled equally."""
_SETTINGS: Final = PlaceSettings.of(seeds=_DRAWS)


class Design(Model):
    """Everything that a job gets except its I/O nodes.

    Attributes
    ----------
    reserved
        Bytes that the job will write, by OST; 0 for an OST that it only reads.
    """

    layout: JobLayout | None = None
    path: JobPath | None = None
    io_s: ExpectedIo | None = None
    unchanged: tuple[Left, ...] = ()
    reserved: Mapping[int, int] = {}

    @property
    def is_widened(self) -> bool:
        """Whether its files get more stripes than before."""
        return self.layout is not None and self.layout.source != "unchanged"


def design_job(
    state: State,
    job: PlannedJob,
    io_nodes: tuple[str, ...],
    snapshot: Snapshot | None,
    running: Sequence[Design],
    library: str | None,
) -> Design:
    """Plan stripes, OSTs and path of a job, and write its placement database and hints.

    Whatever cannot be planned stays unchanged, with the reason.

    Parameters
    ----------
    io_nodes
        Names of the job's I/O nodes; empty for direct access.
    running
        Designs of the running jobs.
    library
        Path of the placement library; None: files cannot get a layout by name.
    """
    unchanged: list[Left] = []
    route = _path(job, io_nodes, snapshot)
    if isinstance(route, str):
        unchanged.append(Left(name="path", reason=route))
    targets = [] if snapshot is None else _targets(snapshot, io_nodes)
    in_use = _in_use(running)
    choice = _choice(job, targets, in_use, library)
    if isinstance(choice, str):
        unchanged.append(Left(name="stripes", reason=choice))
    chosen = None if isinstance(choice, str) else choice
    layout: JobLayout | None = None
    bytes_by_ost: dict[int, int] = {}
    placed = _placed(state, job, chosen, targets, running, in_use, library)
    if isinstance(placed, str):
        unchanged.append(Left(name="OSTs", reason=placed))
    else:
        layout, bytes_by_ost = placed
    if layout is None and chosen is not None:
        layout = _hinted(state, job, chosen)
    if job.reads_from and job.pattern is not None and job.pattern.operation == "read":
        bytes_by_ost = {**dict.fromkeys(job.reads_from, 0), **bytes_by_ost}
    expected = expected_io(job, chosen, laid_out=None if layout is None or not layout.osts else layout.stripe_count)
    if isinstance(expected, str):
        unchanged.append(Left(name="io_s", reason=expected))
    return Design(
        layout=layout,
        path=None if isinstance(route, str) else _with_layout(route, layout),
        io_s=None if isinstance(expected, str) else expected,
        unchanged=tuple(unchanged),
        reserved=bytes_by_ost,
    )


def _path(job: PlannedJob, io_nodes: tuple[str, ...], snapshot: Snapshot | None) -> JobPath | str:
    if not io_nodes:
        return "it uses no I/O nodes"
    if snapshot is None:
        return "there is no snapshot of the machine"
    own = [node for node in snapshot.forwarding if node.name in io_nodes]
    reach = snapshot.reach and {name: nodes for name, nodes in snapshot.reach.items() if name in io_nodes}
    part = snapshot.model_copy(update={"forwarding": own, "reach": reach or None})
    settings = PathSettings.of()
    try:
        (route,) = path(Jobs(jobs=[job]), part, settings).jobs
    except InputError as error:
        return str(error)
    return route


def _with_layout(route: JobPath, layout: JobLayout | None) -> JobPath:
    """The path with only the stripes that the job gets."""
    count = None if layout is None else layout.stripe_count
    lines = [line for line in route.lines if "setstripe" not in line and "striping_factor" not in line]
    size = None if layout is None else layout.stripe_size
    return route.model_copy(
        update={"stripe_count": count or None, "stripe_size": size or None, "dom": None, "lines": lines}
    )


def _targets(snapshot: Snapshot, io_nodes: tuple[str, ...]) -> list[Target]:
    """OSTs that are in service and reachable from the job's I/O nodes."""
    serving = [target for target in snapshot.ost if target.state == "ok"]
    if not io_nodes or snapshot.reach is None:
        return serving
    reached = {name for node in io_nodes for name in snapshot.reach.get(node, ())}
    if snapshot.storage:
        behind = {index for node in snapshot.storage if node.name in reached for index in node.ost}
        return [target for target in serving if target.index in behind]
    return [target for target in serving if target.oss in reached]


def _in_use(running: Sequence[Design]) -> InUse:
    written = [{index for index, size in design.reserved.items() if size} for design in running]
    wide = [osts for osts, design in zip(written, running, strict=True) if design.is_widened]
    narrow = [osts for osts, design in zip(written, running, strict=True) if not design.is_widened]
    read = {index for design in running for index, size in design.reserved.items() if not size}
    return InUse(frozenset().union(*wide), frozenset().union(*narrow), read)


def _choice(job: PlannedJob, targets: list[Target], in_use: InUse, library: str | None) -> StripeChoice | str:
    """The stripe count; a smaller one for which enough targets are free, if that gains at least half as much."""
    if not targets:
        return "the snapshot lists no usable OST"
    is_placed = bool(job.creations) and library is not None
    together = in_use.most_of_one(targets) if is_placed else None
    choice = choose_stripes(job, len(targets), _rate(targets), together=together)
    free = in_use.free(targets)
    if not isinstance(choice, str) and 0 < free < choice.count:
        fewer = choose_stripes(job, free, _rate(targets), together=together)
        if not isinstance(fewer, str) and fewer.speedup >= choice.speedup / 2:
            choice = fewer
    if isinstance(choice, str) or job.mpi_io or is_placed:
        return choice
    return (
        f"{counted(choice.count, 'stripe')} would help, but nothing can apply it: the job does not use MPI-IO, and "
        + ("the names of its files are not known" if library is not None else "--place-library is not given")
    )


def _rate(targets: list[Target]) -> float | None:
    """Bytes per second of the slowest target; None if unknown."""
    rates = [target.peak.iobw for target in targets if target.peak is not None and target.peak.iobw]
    return min(rates, default=None)


def _placed(
    state: State,
    job: PlannedJob,
    choice: StripeChoice | None,
    targets: list[Target],
    running: Sequence[Design],
    in_use: InUse,
    library: str | None,
) -> tuple[JobLayout, dict[int, int]] | str:
    """Layouts of the files with known names, in a database of their own; or the reason why there is none."""
    if not targets:
        return "the snapshot lists no usable OST"
    if library is None:
        return "--place-library is not given"
    if not job.creations:
        return "the names of its files are not known"
    count = job.usual_stripes if choice is None else choice.count
    if count is None:
        return "the stripes of its files are not known"
    if choice is None and any(entry.stripe_count == count for entry in job.avoid):
        return "chosen OSTs made earlier runs slower"
    reserved: Counter[int] = Counter()
    for design in running:
        reserved.update(design.reserved)
    to_be = [target.model_copy(update={"used": target.used + reserved[target.index]}) for target in targets]
    own = {
        target.index
        for target in osts_for(job, count, to_be, in_use, is_widened=choice is not None, target_rate=_rate(targets))
    }
    try:
        plan = _plan(job, count, [target for target in targets if target.index in own], reserved)
    except InputError as error:
        return str(error)
    pin, why = (True, "separate from other jobs' files") if len(own) < len(targets) else _pins(plan)
    if choice is None and not pin:
        return why
    files = _spread_turns(plan.files, job.creations)
    extents = [extent for file in files for extent in file.extents]
    database = state.file_of(job.name, "sqlite")
    rows = [row for file in files if file.command is not None for row in extents_of(file, pin=pin)]
    if not rows:
        return "no OSTs have room for its files below 95 %"
    try:
        from vani.centre.placement_library.database import store  # noqa: PLC0415 - loads SQL, an extra

        store(rows, str(database))
    except InputError as error:
        return str(error)
    layout = JobLayout(
        stripe_count=count,
        stripe_size=_common([extent.set_stripe_size for extent in extents]),
        before=job.usual_stripes,
        source="unchanged" if choice is None else choice.source,
        files=len(files),
        osts=sorted({ost for extent in extents for ost in extent.osts}) if pin else [],
        osts_reason=why,
        database=str(database),
        hints=_hints(state, job, count, extents[0].set_stripe_size),
    )
    return layout, _bytes_by_ost(extents) if pin else {}


def _pins(plan: PlacePlan) -> tuple[bool, str]:
    """Whether to choose OSTs, and why.

    A job that runs alone is pinned if that is worth it. With other jobs running, it is pinned unless that makes it
    slower or fills OSTs less evenly: jobs that start later can avoid known OSTs.
    """
    if plan.pin or plan.before is None or plan.before.time_cost is None or plan.after.time_cost is None:
        return plan.pin, plan.pin_reason
    slower = plan.after.time_cost > plan.before.time_cost.median * _ALIKE
    fuller = (plan.after.ost_cost or 0.0) > plan.before.ost_cost.median * _EVEN
    if slower or fuller:
        return False, plan.pin_reason
    return True, "as fast and as even as by Lustre's own allocator, and separate from other jobs' files"


def _plan(job: PlannedJob, count: int, targets: list[Target], reserved: Mapping[int, int]) -> PlacePlan:
    """Place its files by free space, given the writes of running jobs; load reduces an OST's capacity."""
    from vani.centre.plan.schema.snapshot import Snapshot  # noqa: PLC0415 - loaded where there is a snapshot

    creations = [creation.model_copy(update={"layout": count}) for creation in _by_turn(job.creations or [])]
    free = []
    rooms = [(target.size - target.used) * max(_LEAST_SHARE, 1 - (target.load or 0.0)) for target in targets]
    for target, room in zip(targets, rooms, strict=True):
        # Otherwise all small files would go to an OST that is only slightly emptier.
        size = max(1, round(max(rooms) if room >= _LEVEL * max(rooms) else room))
        used = min(reserved.get(target.index, 0), size)
        free.append(target.model_copy(update={"oss": None, "size": size, "used": used}))
    return place(
        Jobs(jobs=[job.model_copy(update={"creations": creations})]), Snapshot(ost=free), _SETTINGS
    )


def _turns(creations: Sequence[Creation]) -> list[int]:
    """The turn of each file; in one turn, every process creates one file."""
    turns: Counter[int | None] = Counter()
    numbers = []
    for creation in creations:
        numbers.append(turns[creation.rank])
        turns[creation.rank] += 1
    return numbers


def _by_turn(creations: Sequence[Creation]) -> list[Creation]:
    """The first file of each process, then the second ...: files created together get different OSTs."""
    return [creation for _, creation in sorted(zip(_turns(creations), creations, strict=True), key=itemgetter(0))]


def _spread_turns(files: Sequence[PlacedFile], creations: Sequence[Creation]) -> Sequence[PlacedFile]:
    """Redistribute the OSTs of files with one stripe of equal size: each turn takes the most frequent ones left.

    If they were placed one by one, two files of a turn could share an emptier OST and take twice as long.
    """
    if any(len(file.extents) != 1 or len(file.extents[0].osts) != 1 for file in files):
        return files
    if len({file.extents[0].bytes[0] for file in files}) != 1:
        return files
    left = Counter(file.extents[0].osts[0] for file in files)
    turn_of = dict(zip((creation.path for creation in creations), _turns(creations), strict=True))
    dealt = []
    for _, group in groupby(sorted(files, key=lambda file: turn_of[file.path]), key=lambda file: turn_of[file.path]):
        turn = [*group]
        osts: list[int] = []
        while len(osts) < len(turn):
            most = [ost for ost, _ in left.most_common(len(turn) - len(osts))]
            osts += most
            left = +(left - Counter(most))
        for file, ost in zip(turn, osts, strict=True):
            extent = file.extents[0].model_copy(update={"osts": [ost]})
            dealt.append(file.model_copy(update={"extents": [extent]}))
    return dealt


def _hinted(state: State, job: PlannedJob, choice: StripeChoice) -> JobLayout:
    return JobLayout(
        stripe_count=choice.count,
        stripe_size=None,
        before=job.usual_stripes,
        source=choice.source,
        files=0,
        osts=[],
        osts_reason="the names of its files are not known",
        database=None,
        hints=_hints(state, job, choice.count, None),
    )


def _hints(state: State, job: PlannedJob, count: int, size: int | None) -> str | None:
    """Write the file of hints for ROMIO_HINTS; None if the job does not use MPI-IO."""
    if not job.mpi_io:
        return None
    place_ = state.file_of(job.name, "hints")
    unit = "" if size is None else f"striping_unit {size}\n"
    state.write(place_, f"striping_factor {count}\n{unit}".encode())
    return str(place_)


def _common(sizes: list[int]) -> int | None:
    return sizes[0] if len(set(sizes)) == 1 else None


def _bytes_by_ost(extents: list[PlacedExtent]) -> dict[int, int]:
    sums: dict[int, int] = {}
    for extent in extents:
        for ost, size in zip(extent.osts, extent.bytes, strict=True):
            sums[ost] = sums.get(ost, 0) + size
    return {ost: size for ost, size in sums.items() if size}
