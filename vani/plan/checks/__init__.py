"""Needs of each kind of plan: a module per kind, each with a function that `vani.plan.check` lists.

Such a function takes the plan and a snapshot, both documents that are valid by themselves, and gives `Findings`. It
reads no file and no clock. What the plan uses and the snapshot does not name is broken, since it is unreliable;
a figure that is missing of something that is there is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vani.schema.plan import Left

__all__ = ["Findings"]


@dataclass(frozen=True)
class Findings:
    """Nothing, or what breaks the plan, what could not be compared, and what is only worth knowing."""

    broken: Sequence[Left] = ()
    unknown: Sequence[Left] = ()
    notes: Sequence[str] = ()

    def __add__(self, other: Findings) -> Findings:
        return Findings(
            [*self.broken, *other.broken], [*self.unknown, *other.unknown], [*self.notes, *other.notes]
        )
