"""Pauses and turns of a process are found from its own calls, independent of other processes."""

from __future__ import annotations

import random

import numpy as np
import pytest

from vani.analyzers.activity import Cells
from vani.analyzers.phase_starts import pauses_of

SHORT = 10

Steps = list[tuple[int, int, int]]
"""Time since the previous cell, and bytes read and written in it."""

READS: Steps = [(1, 4, 0)] * 4
WRITES: Steps = [(1, 0, 4)] * 4


def cells_of(processes: dict[int, Steps]) -> Cells:
    rows = []
    for process, steps in processes.items():
        now = 0
        for wait, read, written in steps:
            now += wait
            rows.append((process, now, now + 1, read, written, (read > 0) + (written > 0), 1, 3))
            now += 1
    return Cells(*np.array(rows, np.int64).T)


def found(processes: dict[int, Steps]) -> list[tuple[int, int, bool]]:
    cells = cells_of(processes)
    pauses = pauses_of(cells, np.zeros(len(cells), np.int64), SHORT)
    return sorted(zip(pauses.low.tolist(), pauses.high.tolist(), pauses.turn.tolist(), strict=True))


def apart(every: list[Steps]) -> list[tuple[int, int, bool]]:
    return sorted(one for number, steps in enumerate(every) for one in found({number: steps}))


def test_a_process_turns_once_from_reading_to_writing():
    assert [turn for _, _, turn in found({0: READS + WRITES})] == [True]


def test_processes_with_one_direction_do_not_shift_the_turns_of_others():
    every = [READS, READS + WRITES, WRITES, WRITES + READS]
    assert len(apart(every)) == 2
    assert found(dict(enumerate(every))) == apart(every)


# Freshly drawn large numbers: shares that exactly reach the threshold of a turn depend on rounding.
@pytest.mark.parametrize("seed", range(100))
def test_processes_together_pause_and_turn_like_single_ones(seed):
    draw = random.Random(seed)
    every = [
        [
            (draw.choice([1, 50]), *(draw.choice([0, 1]) * draw.randrange(1, 10**6) for _ in range(2)))
            for _ in range(draw.randrange(1, 12))
        ]
        for _ in range(draw.randrange(1, 5))
    ]
    assert found(dict(enumerate(every))) == apart(every)
