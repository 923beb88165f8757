"""Checks of plans against a snapshot: one module per kind of plan, with a function that `vani.centre.plan.check` lists.

Such a function takes a plan and a snapshot, each valid by itself, and returns `Findings`. It reads neither files
nor the clock. If the plan uses a component that the snapshot does not name, the plan is broken, because the component
may be gone. If the snapshot names a component but lacks a figure of it, the finding is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vani.centre.plan.schema import Left

__all__ = ["Findings"]


@dataclass(frozen=True)
class Findings:
    """Reasons that break a plan, comparisons that were impossible, and notes. All are empty by default."""

    broken: Sequence[Left] = ()
    unknown: Sequence[Left] = ()
    notes: Sequence[str] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            [*self.broken, *other.broken], [*self.unknown, *other.unknown], [*self.notes, *other.notes]
        )
