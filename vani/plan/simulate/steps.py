"""The time between events, in a bounded number of steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.plan.simulate.rates import Floats, Ints

__all__ = ["Step", "Steps", "most_steps"]

_MOST: Final = 400
_LEAST: Final = 20
_MOST_FIGURES: Final = 100_000


def most_steps(jobs: int) -> int:
    """Steps that are worth keeping of so many jobs."""
    return max(_LEAST, min(_MOST, _MOST_FIGURES // max(1, jobs)))


@dataclass(frozen=True)
class Step:
    """From `begin` to `end`, in seconds."""

    begin: float
    end: float
    moved: Floats
    """Bytes by job."""
    carried: Floats
    """Seconds of full use by kind of resource, over all its members."""
    most: Floats
    """The same of its busiest member."""


@dataclass
class Steps:
    """Steps of a run; where they become too many, neighbours are joined.

    `kind` is the number, of `kinds`, of each resource's kind.
    """

    kind: Ints
    kinds: int
    rows: list[Step] = field(default_factory=list)

    def add(self, begin: float, end: float, moved: Floats, carried: Floats) -> None:
        """Note a step; `carried` is by resource."""
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
