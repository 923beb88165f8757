"""Runs of many applications as columns, and what tells their behaviours apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from vani.history.behaviour.ids import behaviour_ids

__all__ = ["TOTALS", "Bools", "Floats", "Ints", "Runs", "categories_of"]

TOTALS: Final = ("bytes_read", "bytes_written", "metadata")
"""Figures by which behaviours are told apart."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Runs:
    """Runs in order of submission.

    Attributes
    ----------
    names
        Of each category: application, user, processes.
    category
        Of each run, an index into `names`, shape (runs,).
    submitted, ended
        Seconds since 1970, shape (runs,).
    figures
        By name, of each run, shape (runs,); NaN where a figure is not known. Those of `TOTALS` are always known.
    digests
        Of each run, where they are from a store.
    notes
        What was left out.
    """

    names: Sequence[tuple[str, str, int]]
    category: Ints
    submitted: Floats
    ended: Floats
    figures: Mapping[str, Floats]
    digests: Sequence[str] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.category)

    @cached_property
    def ids(self) -> Ints:
        """The behaviour of each run, numbered within its category, shape (runs,)."""
        return behaviour_ids(self.category, np.column_stack([self.figures[name] for name in TOTALS]))

    def only(self, chosen: Bools) -> Runs:
        """Those where `chosen`, shape (runs,), is true; categories keep their numbers."""
        return Runs(
            self.names,
            self.category[chosen],
            self.submitted[chosen],
            self.ended[chosen],
            {name: values[chosen] for name, values in self.figures.items()},
            [one for one, taken in zip(self.digests, chosen.tolist(), strict=True) if taken]
            if self.digests
            else (),
            self.notes,
        )


def categories_of(
    applications: Sequence[str], users: Sequence[str], processes: Sequence[int]
) -> tuple[list[tuple[str, str, int]], Ints]:
    """Categories in order of their first run, and that of each run, shape (runs,)."""
    known: dict[tuple[str, str, int], int] = {}
    found = [
        known.setdefault(names, len(known)) for names in zip(applications, users, processes, strict=True)
    ]
    return list(known), np.array(found, np.int64)
