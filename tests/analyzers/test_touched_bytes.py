"""Distinct bytes of groups of phases and files, compared with counting bytes one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.entities.io_stats import touched_bytes
from vani.analyzers.int_table import SIDES, pack
from vani.analyzers.measures.extents import PlacelessCalls, Touched

PHASES, FILES, END = 3, 3, 30


class Cell(NamedTuple):
    phase: int
    file: int
    kind: int
    extents: list[tuple[int, int]]


@st.composite
def cells(draw) -> Cell:
    borders = sorted(draw(st.sets(st.integers(0, END), min_size=2, max_size=8)))
    extents = list(zip(borders[::2], borders[1::2], strict=False))
    phase, file = draw(st.integers(0, PHASES)), draw(st.integers(-1, FILES - 1))
    return Cell(phase, file, draw(st.integers(0, 1)), extents)


def touched(found: list[Cell]) -> Touched:
    nothing = np.empty(0, np.int64)
    many = np.array([len(cell.extents) for cell in found], np.int64)
    start, end = np.array([one for cell in found for one in cell.extents], np.int64).reshape(-1, 2).T
    return Touched(
        np.array([cell.phase for cell in found], np.int32),
        np.array([cell.file for cell in found], np.int32),
        np.array([cell.kind for cell in found], np.int8),
        np.cumsum(many) - many,
        np.array([sum(b - a for a, b in cell.extents) for cell in found], np.int64),
        start,
        end,
        PlacelessCalls(nothing, nothing, nothing, nothing),
        given_up=False,
    )


@given(
    st.lists(cells(), max_size=12),
    st.lists(st.integers(-1, 2), min_size=(PHASES + 1) * (FILES + 1), max_size=(PHASES + 1) * (FILES + 1)),
)
def test_bytes_of_a_file_count_once_in_a_group(found, groups):
    table = np.array(groups).reshape(PHASES + 1, FILES + 1)
    expected: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for cell in found:
        number = int(table[cell.phase, cell.file])
        if number >= 0:
            some = expected.setdefault((number, cell.kind), set())
            some |= {(cell.file, at) for begin, end in cell.extents for at in range(begin, end)}
    lengths = touched_bytes(touched(found), lambda phase, file: table[phase, file], FILES)
    wanted = np.array(sorted(expected), np.int64).reshape(-1, 2)
    assert lengths.keys.tolist() == pack((wanted[:, 0], wanted[:, 1]), SIDES).tolist()
    assert lengths.at(lengths.keys, "length").tolist() == [len(expected[key]) for key in sorted(expected)]
