"""The time and evenness of placements: a plan's, and those of Lustre's own allocator.

All are simulated by `vani.centre.plan.simulate`, with the nodes and processes of the jobs and the rates of the
snapshot, on one model of the allocator: components get their OSTs when their files reach them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.placement.layouts import sized
from vani.centre.plan.placement.search import Floats, Ints, Targets
from vani.centre.plan.schema.plans import AllocatorRange, OstCosts, PlacedExtent, PlaceSettings, Range
from vani.centre.plan.schema.scenario import Machine as Figures
from vani.centre.plan.schema.scenario import Placement
from vani.centre.plan.simulate import machine as machines
from vani.centre.plan.simulate.events import run
from vani.centre.plan.simulate.flows import build
from vani.centre.plan.simulate.jobs import Choices, Job, job_of_creations

if TYPE_CHECKING:
    from vani.centre.plan.inputs import FileToPlace
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
            Figures(snapshot="snapshot", target=target, process=machines.PAGE_CACHE_RATE),
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
        built = build(self.jobs, self.machine, placer, choices, pieces=pieces, serial=False)
        end = run(built.work, built.resources, tolerance=_TOLERANCE).phase_end.max(initial=0.0)
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
