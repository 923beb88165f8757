"""Numbers per phase and file, added up by groups of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.tables.factorized import Factorized
from vani.analyzers.tables.int_table import How, IntTable, group
from vani.analyzers.tables.keys import KINDS

Ints = NDArray[np.int64]


class _ByCell(Protocol):
    """Columns per phase and file."""

    @property
    def phase(self) -> Ints: ...

    @property
    def file(self) -> Ints: ...


Groups = Callable[[NDArray[Any], NDArray[Any]], Ints]
"""Maps phases and files, shape (n,) each, to groups; -1 omits a row."""


def grouped(number: Ints, columns: Mapping[str, NDArray[Any]], how: Mapping[str, How] | None = None) -> IntTable:
    """Columns added up by group number; -1 omits a row."""
    keep = number >= 0
    return group(number[keep], {name: column[keep] for name, column in columns.items()}, how)


def summed(groups: Groups, table: _ByCell, columns: Sequence[str]) -> IntTable:
    """Columns of a table added up by group; for first and last times, the minimum and maximum are kept."""
    by_name = {name: getattr(table, name) for name in columns}
    return grouped(groups(table.phase, table.file), by_name, {"first": "min", "last": "max"})


@dataclass(frozen=True, eq=False)
class ByGroup:
    """A row of numbers for each group."""

    groups: Ints
    """Shape (n,), ascending and distinct."""
    values: Ints
    """Shape (n, width)."""

    @staticmethod
    def summed(group: Ints, values: Ints) -> ByGroup:
        """Add up rows with the same group; -1 omits a row."""
        keep = group >= 0
        dense = Factorized.of(group[keep])
        sums = np.zeros((len(dense.keys), values.shape[1]), np.int64)
        np.add.at(sums, dense.codes, values[keep])
        return ByGroup(dense.keys, sums)

    @staticmethod
    def of_cells(group: Ints, kind: Ints, values: Ints) -> ByGroup:
        """Add up single times by group and by kind, or `ALL_KINDS`; -1 omits a time."""
        keep = group >= 0
        dense = Factorized.of(group[keep])
        sums = np.zeros((len(dense.keys), KINDS + 1), np.int64)
        np.add.at(sums, (dense.codes, kind[keep]), values[keep])
        return ByGroup(dense.keys, sums)

    def at(self, groups: Ints) -> Ints:
        """The rows of some groups, 0 for missing ones; shape (groups, width)."""
        rows = np.zeros((len(groups), self.values.shape[1]), np.int64)
        if len(self.groups):
            place = np.minimum(np.searchsorted(self.groups, groups), len(self.groups) - 1)
            known = self.groups[place] == groups
            rows[known] = self.values[place[known]]
        return rows
