"""Findings of a check of a plan."""

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
