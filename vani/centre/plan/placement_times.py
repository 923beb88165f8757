"""The time and evenness of placements, a plan's and those of Lustre's own allocator, and the advice that follows.

All are simulated by `vani.centre.plan.simulate`, with the nodes and processes of the jobs and the rates of the
snapshot, on one model of the allocator: components get their OSTs when their files reach them.
"""

from __future__ import annotations

import posixpath
import shlex
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.plan.placement.layouts import BUFFERED, Extent, sized
from vani.centre.plan.placement.search import Targets
from vani.centre.plan.schema.plans import AllocatorRange, Answer, OstCosts, PlacedExtent, PlaceSettings, Range
from vani.centre.plan.schema.scenario import Machine, Placement
from vani.centre.plan.simulate import machine as machines
from vani.centre.plan.simulate.events import run
from vani.centre.plan.simulate.flows import Builder
from vani.centre.plan.simulate.jobs import Choices, Job, job_of_creations
from vani.models.pfl import Layout
from vani.units import counted, format_bytes, format_share

if TYPE_CHECKING:
    from vani.centre.plan.inputs import FileToPlace
    from vani.centre.plan.placement_methods import Pool
    from vani.centre.plan.schema.jobs import Jobs
    from vani.centre.plan.schema.scenario import Pieces
    from vani.centre.plan.schema.snapshot import Snapshot


Rule = Literal["as-set", "going-on", "random-start", "by-space"]
RULES: Final[tuple[Rule, ...]] = ("as-set", "going-on", "random-start", "by-space")

_POLICIES: Final[dict[Rule, Literal["lsa", "round_robin", "random_start", "weighted"]]] = {
    "as-set": "lsa",
    "going-on": "round_robin",
    "random-start": "random_start",
    "by-space": "weighted",
}
TARGET_RATE: Final = 5e8
"""Bytes per second of a target whose rate the snapshot lacks (our choice)."""
OTHER_RATES: Final = (TARGET_RATE / 4, TARGET_RATE * 4)
"""Rates with which a plan must be worth pinning, too, if the snapshot lacks them."""
MAX_TIMED: Final = 2_000
"""Most files whose writing is simulated; more take too long, and their plan is left to Lustre."""
_TIMED: Final[dict[Rule, int]] = {"as-set": 5, "going-on": 5, "random-start": 3, "by-space": 3}
"""Most draws of each rule whose writing is simulated."""
_STRIPES: Final = 200_000
"""Most stripes of all draws of a rule: many stripes reduce the number of draws."""
_TOLERANCE: Final = 0.01


@dataclass(frozen=True)
class Trials:
    """Files of jobs to simulate on the OSTs of a snapshot, all jobs from the same moment on.

    Attributes
    ----------
    targets
        Columns of the OSTs in service, in the order of `machine.targets`' usable ones.
    is_timed
        Whether there are few enough files to simulate their writing.
    """

    jobs: Sequence[Job]
    machine: machines.Machine
    targets: Targets
    settings: PlaceSettings
    stripes: int
    is_timed: bool
    ideal_s: float

    @classmethod
    def of(
        cls,
        jobs: Jobs,
        files: Sequence[FileToPlace],
        snapshot: Snapshot,
        targets: Targets,
        settings: PlaceSettings,
        rate: float = TARGET_RATE,
    ) -> Trials:
        """Prepare the files, each with the stripe sizes of the plan. Files that cannot be placed are left out.

        Parameters
        ----------
        rate
            Bytes per second of a target, if the snapshot lacks those of some.
        """
        layouts = {
            (file.job, file.creation.path): sized(file.layout, file.extents).to_options()
            for file in files
            if all(extent.why_free is None for extent in file.extents)
        }
        runs, moved = [], 0.0
        for job in jobs.jobs:
            creations = [
                creation.model_copy(update={"layout": layouts[job.name, creation.path]})
                for creation in job.creations or ()
                if (job.name, creation.path) in layouts
            ]
            if creations:
                alone = job.model_copy(update={"creations": creations, "submit_s": 0.0})
                runs.append(job_of_creations(alone))
                moved += sum(creation.size for creation in creations)
        target = None if has_rates(snapshot) else rate
        machine = machines.machine_of(
            Machine(snapshot="snapshot", target=target, process=machines.PAGE_CACHE_RATE),
            nodes=max(1, sum(job.nodes for job in runs)),
            snapshot=snapshot,
        )
        stripes = sum(extent.count for file in files for extent in file.extents)
        is_timed = 0 < len(files) <= MAX_TIMED and moved > 0
        return cls(runs, machine, targets, settings, stripes, is_timed, moved / float(paces_of(machine).sum()))

    def seconds(self, extents: dict[tuple[str, str], Sequence[PlacedExtent]]) -> float | None:
        """Time to write all files with these OSTs, in seconds; None if it is not simulated or never ends."""
        if not self.is_timed:
            return None
        placer = machines.Placer(self.machine.targets, Placement(), self.settings.seed)
        return self._run(placer, Choices(extents=extents))

    def range_of(self, rule: Rule, among: np.ndarray | None = None) -> AllocatorRange:
        """Figures of one rule over its draws. `among` is a mask of the OSTs that Lustre may choose; None: all."""
        placement = Placement(policy=_POLICIES[rule], window=self.settings.window)
        mask = self.machine.targets.usable.copy()
        if among is not None:
            mask[mask] = among
        draws = max(1, min(self.settings.seeds, _STRIPES // max(1, self.stripes)))
        costs, times = [], []
        for number in range(draws):
            placer = machines.Placer(
                self.machine.targets, placement, self.settings.seed + number, turn=self.settings.turn, among=mask
            )
            if self.is_timed and number < _TIMED[rule]:
                times.append(self._run(placer, Choices()))
            else:
                self._placed_by(placer)
            costs.append(costs_of(self.targets.base + placer.placed[self.machine.targets.usable], self.targets))
        known = [None if time is None else time / self.ideal_s for time in times]
        return AllocatorRange.model_validate(
            {
                "rule": rule,
                "ost_cost": _range([cost.ost_cost for cost in costs]),
                "oss_cost": _range([cost.oss_cost for cost in costs]),
                "time_cost": _range(known),
            }
        )

    def drawn_by_lustre(self) -> dict[tuple[str, str, int], list[int]]:
        """OSTs by job, path and number of the component, in one draw of Lustre's allocator as it is configured."""
        placement = Placement(policy="lsa", window=self.settings.window)
        placer = machines.Placer(self.machine.targets, placement, self.settings.seed, turn=self.settings.turn)
        return {
            (job.name, file.path, number): self.machine.targets.index[osts].tolist()
            for job, lists in zip(self.jobs, self._placed_by(placer), strict=True)
            for file, own in zip(job.files, lists, strict=True)
            for number, osts in enumerate(own, start=1)
        }

    def _placed_by(self, placer: machines.Placer) -> list[list[list[Ints]]]:
        """OSTs, as positions, of each component of each file of each job."""
        return [placer.place(*of_job) for of_job in self._files]

    @cached_property
    def _files(self) -> list[tuple[list[tuple[float, tuple[machines.Component, ...]]], list[int]]]:
        """Sizes and components of the files of each job, and their turns."""
        count, size = int(self.machine.targets.usable.sum()), self.machine.stripe_size
        layouts = {file.layout for job in self.jobs for file in job.files}
        parts = {
            layout: machines.components_of(layout, targets=count, count=1, size=size, where="jobs")
            for layout in layouts
        }
        turns = [machines.turns_of(file.rank for file in job.files) for job in self.jobs]
        return [
            ([(file.size, parts[file.layout]) for file in job.files], turns_of_job)
            for job, turns_of_job in zip(self.jobs, turns, strict=True)
        ]

    def _run(self, placer: machines.Placer, choices: Choices) -> float | None:
        pieces: Pieces = "contiguous" if self.settings.method == "tarazu" else "in_turn"
        built = Builder(self.jobs, self.machine, placer, choices, pieces, serial=False).built()
        end = run(built.work, tolerance=_TOLERANCE).phase_end.max(initial=0.0)
        return float(end) if np.isfinite(end) else None


def has_rates(snapshot: Snapshot) -> bool:
    """Whether the snapshot has the rate of each target."""
    return all(target.peak is not None and target.peak.iobw for target in snapshot.ost)


def paces_of(machine: machines.Machine) -> Floats:
    """Bytes per second of each target in service: its peak times the share that its load leaves."""
    stage = machine.stages["target"]
    return np.asarray(stage.pace.write * stage.share[machine.targets.usable])


def costs_of(load: Floats, targets: Targets, time_cost: float | None = None) -> OstCosts:
    """Costs with `load` bytes on each target."""
    level = load / targets.size
    # Mean over all space rather than over levels: otherwise a small target that fills up would lower the cost.
    mean = float(load.sum() / targets.size.sum()) if len(level) else 0.0
    servers = None
    if mean > 0 and not np.any(targets.server < 0):
        servers = float((targets.by_server(load) / targets.server_sizes).max() / mean)
    fullest = float(level.max(initial=0.0))
    return OstCosts(
        ost_cost=fullest / mean if mean > 0 else None, oss_cost=servers, fullest=fullest, time_cost=time_cost
    )


def _range(values: Sequence[float | None]) -> Range | None:
    known = [value for value in values if value is not None]
    return Range(low=min(known), median=statistics.median(known), high=max(known)) if known else None


# Advice for readers of a placement: whether to pin files to OSTs, and notes on the figures.

_WORTH: Final = 1.05
"""Least gain in simulated time that makes pinning worthwhile: 1.03, and the differences between draws (our choice)."""
_ALIKE: Final = 1.03
"""Times within this factor count as equal."""


def pinning(after: OstCosts, ranges: Sequence[AllocatorRange], settings: PlaceSettings) -> tuple[bool, str]:
    """True if pinning is worthwhile, and the reason.

    The plan is compared with Lustre as configured and with OSTs in turn, whichever is faster.
    """
    if not ranges or after.ost_cost is None:
        return False, "no bytes are placed"
    if settings.method == "lsa":
        return False, "Lustre's own allocator may choose the same OSTs"
    usual = min(
        (figures for figures in ranges if figures.rule in {"as-set", "going-on"} and figures.time_cost is not None),
        key=lambda figures: figures.time_cost.median if figures.time_cost is not None else 0.0,
        default=None,
    )
    if usual is None or usual.time_cost is None or after.time_cost is None:
        return False, f"more than {MAX_TIMED:,} files: their writing is not simulated"
    time, gain = usual.time_cost, usual.time_cost.median / after.time_cost
    figures = (
        f"simulated time {time.median:.2f} ({time.low:.2f} to {time.high:.2f}) of the minimum by Lustre's own "
        f"allocator, {after.time_cost:.2f} by this plan; OST Cost {usual.ost_cost.median:.2f} and {after.ost_cost:.2f}"
    )
    if gain * _ALIKE < 1:
        return False, f"{figures}, which is slower"
    # Worth it even next to the fastest draw: where Lustre begins is not known.
    if gain < _WORTH or time.low < _ALIKE * after.time_cost:
        return False, f"{figures}: too little to switch Lustre's own balancing off"
    return True, figures


def notes_of(
    files: Sequence[FileToPlace],
    snapshot: Snapshot,
    settings: PlaceSettings,
    pool: Pool,
    added: Floats,
    after: OstCosts,
    before: AllocatorRange | None,
    *,
    is_least: bool,
) -> list[str]:
    """Notes on a placement, the most important first."""
    notes = [*_on_pinning(snapshot, files, settings, before), *_on_dom(files), *_on_large_stripes(files)]
    notes += _on_widths(files, pool, after, is_least=is_least)
    if settings.method == "tarazu":
        notes += _on_stripe_sizes(files)
        notes.append(
            "algorithm 1 has linear costs: it puts all stripes of a batch on the cheapest OSTs until these are "
            "full; --method balanced spreads them"
        )
    degraded = pool.index[~pool.is_sound & (added > 0)].tolist()
    if degraded:
        listed = ", ".join(map(str, degraded[:20])) + (", ..." if len(degraded) > 20 else "")
        notes.append(f"degraded OSTs are used, because the others are not enough: {listed}")
    return notes + snapshot.reasons_to_wait() + list(snapshot.notes)


def _on_pinning(
    snapshot: Snapshot, files: Sequence[FileToPlace], settings: PlaceSettings, before: AllocatorRange | None
) -> Iterator[str]:
    yield (
        "an OST list (-o) switches Lustre's own balancing off: it ignores what others write in the meantime, and a "
        "file cannot be created while one of its OSTs is offline"
    )
    free = [target.size - target.used for target in snapshot.ost if target.state == "ok"]
    is_level = bool(free) and max(free) - min(free) <= settings.window * max(free)
    if is_level and len({file.job for file in files}) == 1 and before is not None:
        yield (
            f"free space differs by at most {format_share(settings.window)} and one job creates all files: Lustre "
            f"uses OSTs in turn, which is even if no other job writes (here OST Cost {before.ost_cost.median:.2f})"
        )


def _on_dom(files: Sequence[FileToPlace]) -> Iterator[str]:
    on_mdt = [extent.on_mdt for file in files for extent in file.extents if extent.on_mdt is not None]
    if on_mdt:
        yield (
            f"{counted(len(on_mdt), 'file')} {'begins' if len(on_mdt) == 1 else 'begin'} on the metadata target (DoM): "
            f"{format_bytes(sum(on_mdt))} there; a snapshot does not show the free space there"
        )


def _on_large_stripes(files: Sequence[FileToPlace]) -> Iterator[str]:
    large = {
        extent.settable
        for file in files
        for extent in file.extents
        if is_one_by_one(file, extent) and extent.purpose == "stated"
    }
    if large:
        yield (
            f"stripes of {format_bytes(max(large))} exceed a client's cache per OST: a process that writes in order "
            "uses one OST at a time"
        )


def is_one_by_one(file: FileToPlace, extent: Extent) -> bool:
    """True if the file's process writes the stripes of the extent one after another."""
    return file.writing.writers == 1 and extent.count > 1 and extent.settable > BUFFERED


def _on_widths(files: Sequence[FileToPlace], pool: Pool, after: OstCosts, *, is_least: bool) -> Iterator[str]:
    count, extents = int(pool.is_sound.sum()), [extent for file in files for extent in file.extents]
    alone = len(files) == len(extents) == 1 and 0 < extents[0].count < count
    if alone and is_least and after.ost_cost and not np.any(pool.targets.base > 0):
        yield (
            f"one file of {counted(extents[0].count, 'stripe')} on {counted(count, 'OST')} has OST Cost "
            f"{after.ost_cost:.4g} with any placement; more stripes lower it"
        )


def _on_stripe_sizes(files: Sequence[FileToPlace]) -> Iterator[str]:
    refused = (extent for file in files for extent in file.extents if extent.size != extent.settable)
    first: dict[tuple[int, int, int], Extent] = {}
    for extent in refused:
        first.setdefault((extent.size, extent.settable, extent.number), extent)
    for extent in list(first.values())[:5]:
        part = sum(extent.stripes) < extent.size * extent.count
        yield (
            f"extent {extent.number} has stripes of {extent.size:,} bytes by the paper, which Lustre rejects; commands "
            f"set {extent.settable:,}, which "
            + ("spreads its bytes more evenly" if part else "puts the same bytes on each OST")
        )


# Alternatives to a list of OSTs: Lustre settings, who can set them, and their effect.

_FOLDERS: Final = 3
"""Most folders that get a line of their own. Others are only counted."""
_POOL: Final = "vani"
_FULL: Final = 85
"""Percent of a pool in use at which files spill, as in the example of Lustre's commit (LU-14825)."""
_OVER: Final = 4
"""Most objects per OST, as in IO500's template for ior-hard."""


def answers_to(
    files: Sequence[FileToPlace],
    trials: Trials,
    pool: Pool,
    ranges: Sequence[AllocatorRange],
    settings: PlaceSettings,
) -> list[Answer]:
    """Alternatives to pinning. Those that a user can set come first.

    Parameters
    ----------
    trials
        The placed files on all OSTs in service.
    ranges
        Figures of the rules of Lustre's allocator.
    """
    if not ranges:
        return []
    layouts = _by_folder(files)
    by_rule: dict[str, AllocatorRange] = {figures.rule: figures for figures in ranges}
    answers = [_of("leave to Lustre", "user", _lines(layouts), by_rule["as-set"], "a layout without OSTs")]
    count = int(pool.is_sound.sum())
    crowded = [file for file in files if file.writing.writers > count]
    if crowded:
        wide = {
            folder: _overstriped(layout, min(crowded[0].writing.writers, _OVER * count))
            for folder, layout in _by_folder(crowded).items()
        }
        why = "more processes than OSTs write a file: with one object per process, each has its own lock (Lustre 2.13)"
        answers.append(_of("overstripe", "user", _lines(wide), None, why))
    free = pool.targets.room
    uneven = bool(len(free)) and float(free.max() - free.min()) > settings.window * float(free.max())
    if uneven:
        why = f"free space differs by more than {format_share(settings.window)}, so Lustre draws OSTs by free space"
        for name, rule, value, effect in (
            ("use OSTs in turn", "going-on", "100", "in turn, all are equally busy, and the fullest fill up first"),
            (
                "draw OSTs by free space only", "by-space", "0 lod.*.qos_prio_free=100",
                "that balances existing bytes, not new ones",
            ),
        ):
            line = f"lctl set_param lod.*.qos_threshold_rr={value}"
            answers.append(_of(name, "administrator", [line], by_rule[rule], f"{why}; {effect}"))
    usable = pool.is_sound & (100 * pool.used < _FULL)
    widest = max((extent.count for file in files for extent in file.extents), default=0)
    if usable.sum() < len(pool.index) and widest <= usable.sum():
        answers.append(_in_pool(layouts, trials, pool, usable))
    return answers


def _in_pool(layouts: Mapping[str, Layout], trials: Trials, pool: Pool, usable: np.ndarray) -> Answer:
    names = " ".join(f"OST{index:04x}" for index in pool.index[usable].tolist())
    lines = [
        f"lctl pool_new FSNAME.{_POOL}",
        f"lctl pool_add FSNAME.{_POOL} {names}",
        *_lines({folder: _in(layout, _POOL) for folder, layout in layouts.items()}),
        f"lctl set_param lod.*.pool.{_POOL}.spill_target=OTHER_POOL lod.*.pool.{_POOL}.spill_threshold_pct={_FULL}",
    ]
    why = (
        f"Lustre chooses among {counted(int(usable.sum()), 'OST')}, without the {int((~usable).sum()):,} that are "
        f"degraded or at least {_FULL} % full; with a spill target (Lustre 2.15), new files go to another pool once "
        f"this one is {_FULL} % full; replace FSNAME by the file system's name"
    )
    return _of("pool", "administrator", lines, trials.range_of("as-set", among=usable), why)


def _of(
    name: str, who: Literal["user", "administrator"], lines: list[str], figures: AllocatorRange | None, why: str
) -> Answer:
    costs = (None, None) if figures is None else (figures.ost_cost, figures.time_cost)
    return Answer(name=name, who=who, lines=lines, ost_cost=costs[0], time_cost=costs[1], why=why)


def _by_folder(files: Sequence[FileToPlace]) -> dict[str, Layout]:
    """The layout of each folder's largest file, with the plan's stripe sizes."""

    largest: dict[str, FileToPlace] = {}
    for file in files:
        folder = posixpath.dirname(file.creation.path)
        if folder not in largest or file.creation.size > largest[folder].creation.size:
            largest[folder] = file
    return {folder: sized(file.layout, file.extents) for folder, file in largest.items()}


def _overstriped(layout: Layout, count: int) -> Layout:
    last = replace(layout.components[-1], count=count, overstripe=True)
    return Layout((*layout.components[:-1], last), layout.max_stripes)


def _in(layout: Layout, pool: str) -> Layout:
    parts = (part if part.on_mdt else replace(part, pool=pool) for part in layout.components)
    return Layout(tuple(parts), layout.max_stripes)


def _lines(layouts: Mapping[str, Layout]) -> list[str]:
    rows = [f"lfs setstripe {layout.to_options()} {shlex.quote(folder)}" for folder, layout in layouts.items()]
    more = len(rows) - _FOLDERS
    return rows[:_FOLDERS] + ([f"# and {counted(more, 'folder')} more"] if more > 0 else [])
