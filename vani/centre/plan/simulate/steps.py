"""A bounded record of what happens between events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.centre.plan.simulate.rates import Floats, Ints

_MOST: Final = 400
_LEAST: Final = 20
_MOST_FIGURES: Final = 100_000


def most_steps(jobs: int) -> int:
    """Number of steps to keep for a number of jobs."""
    return max(_LEAST, min(_MOST, _MOST_FIGURES // max(1, jobs)))


@dataclass(frozen=True)
class Step:
    """A step from `begin` to `end`, in seconds."""

    begin: float
    end: float
    moved: Floats
    """Bytes by job, shape (jobs,)."""
    carried: Floats
    """Seconds of full use by kind of resource, summed over members, shape (kinds,)."""
    most: Floats
    """Seconds of full use of the busiest member of each kind, shape (kinds,)."""


@dataclass
class Steps:
    """Steps of a run. If there are too many, neighbours are merged.

    `kind` has the kind of each resource, from 0 to `kinds` - 1.
    """

    kind: Ints
    kinds: int
    rows: list[Step] = field(default_factory=list)

    def add(self, begin: float, end: float, moved: Floats, carried: Floats) -> None:
        """Add a step; `carried` is by resource."""
        most = np.zeros(self.kinds)
        np.maximum.at(most, self.kind, carried)
        together = np.bincount(self.kind, carried, minlength=self.kinds).astype(np.float64)
        self.rows.append(Step(begin, end, moved, together, most))
        if len(self.rows) > 2 * most_steps(len(moved)):
            self.rows = [_joined(*self.rows[n : n + 2]) for n in range(0, len(self.rows), 2)]


def _joined(step: Step, other: Step | None = None) -> Step:
    if other is None:
        return step
    return Step(
        step.begin,
        other.end,
        step.moved + other.moved,
        step.carried + other.carried,
        step.most + other.most,
    )
