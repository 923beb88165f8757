"""A workload that is ready to run, with its resources."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vani.centre.plan.simulate.events import Resources, Workload
from vani.centre.plan.simulate.placement import Placer
from vani.centre.plan.simulate.rates import Floats


@dataclass(frozen=True)
class Built:
    """A workload with its resources.

    `place_of` is the index of the first resource of each kind. `direction` is the operation of each phase, or None.
    """

    work: Workload
    resources: Resources
    place_of: dict[str, int]
    direction: list[str | None]
    placer: Placer
    clipped: bool
    """True if a component requests more targets than there are."""
    has_dom: bool
    """True if there are bytes on the metadata target."""

    @cached_property
    def bytes_by_phase(self) -> Floats:
        """Bytes that each phase has to move, shape (phases,)."""
        work = self.work
        ends = np.concatenate([[0.0], np.cumsum(np.where(work.is_bytes, work.amount, 0.0))])
        own = (ends[work.chain[:, 1]] - ends[work.chain[:, 0]]) * work.count
        sums = np.concatenate([[0.0], np.cumsum(own)])
        starts = np.array([phase.flows.start for phase in work.phases], dtype=np.int64)
        stops = np.array([phase.flows.stop for phase in work.phases], dtype=np.int64)
        moved: Floats = sums[stops] - sums[starts]
        return moved

    @cached_property
    def phases_by_job(self) -> list[list[int]]:
        """Indexes of the phases of each job."""
        phases: list[list[int]] = [[] for _ in range(self.work.jobs)]
        for number, phase in enumerate(self.work.phases):
            phases[phase.job].append(number)
        return phases
