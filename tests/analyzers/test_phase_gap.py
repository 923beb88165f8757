"""The pause that separates phases: worked examples, and its stability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vani.analyzers.phase_gap import MOST_PHASES, default_gap_ns, split

FLOOR = 1_000_000
SECOND = 1_000_000_000


def timeline(pauses: list[int], busy: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of busy intervals with the pauses between them."""
    start = np.cumsum(np.array([0, *[p + busy for p in pauses]], dtype=np.int64))
    return start, start + busy


def phases(pauses: list[int]) -> tuple[int, list[int]]:
    """The gap, and after which pauses a phase begins."""
    start, end = timeline(pauses)
    gap = default_gap_ns(start[1:] - end[:-1], run_ns=int(end[-1]), floor_ns=FLOOR)
    begins, _ = split(start, end, gap)
    return gap, [int(np.searchsorted(start, b)) for b in begins]


def test_a_run_without_pauses_is_one_phase():
    assert default_gap_ns(np.empty(0, np.int64), run_ns=SECOND, floor_ns=FLOOR) == FLOOR


def test_checkpoints_every_ten_seconds_are_a_phase_each():
    # Ten pauses of 10 s among hundreds of 2 to 4 ms: everything from 4 ms to 10 s separates the same eleven.
    small = [2_000_000, 3_000_000, 4_000_000] * 10
    gap, begins = phases([p for _ in range(10) for p in [*small, 10 * SECOND]])
    assert 4_000_000 < gap < 10 * SECOND
    assert gap == pytest.approx((4_000_000 * 10 * SECOND) ** 0.5, rel=0.05)
    assert len(begins) == 11


def test_the_gap_lies_below_the_pauses_that_it_separates_and_above_the_others():
    gap, begins = phases([5_000_000, 800_000_000, 6_000_000, 700_000_000])
    assert begins == [0, 2, 4]
    assert 6_000_000 < gap < 700_000_000


def test_a_pause_as_long_as_the_gap_does_not_separate():
    start, end = timeline([100, 101])
    assert split(start, end, 100)[0].tolist() == [start[0], start[2]]


@given(pauses=st.lists(st.integers(FLOOR + 1, 100 * SECOND), min_size=1, max_size=60), data=st.data())
def test_noise_that_moves_no_pause_across_the_gap_changes_no_phase(pauses, data):
    gap, begins = phases(pauses)
    _, end = timeline(pauses)
    # Half the chosen range, on the logarithmic scale on which it was chosen: the gap lies in its middle.
    longer, shorter = [p for p in pauses if p > gap], [p for p in pauses if p <= gap]
    top = min(longer) if longer else max(int(end[-1]) / 30, *pauses)
    room = (top / max([FLOOR, *shorter])) ** 0.25
    assume(room > 1.0001)
    noise = data.draw(st.lists(st.floats(1 / room, room), min_size=len(pauses), max_size=len(pauses)))
    moved, shifted = timeline([round(p * n) for p, n in zip(pauses, noise, strict=True)])
    again, _ = split(moved, shifted, gap)
    # A rounded gap may lie off the middle by the rounding, two digits.
    assert [int(np.searchsorted(moved, b)) for b in again] == begins or room < 1.06


@given(periods=st.integers(3, 30), wide=st.integers(50, 2000), data=st.data())
def test_noise_below_half_the_range_finds_the_same_phases_anew(periods, wide, data):
    # Pauses of two lengths, a factor `wide` apart; each is lengthened or shortened by less than its quarter root.
    room = wide**0.25
    short = 2_000_000
    pauses = []
    for _ in range(periods):
        pauses += [short] * 5 + [short * wide]
    noise = data.draw(st.lists(st.floats(room**-0.5, room**0.5), min_size=len(pauses), max_size=len(pauses)))
    noisy = [round(p * n) for p, n in zip(pauses, noise, strict=True)]
    longest = max(noisy)
    assume(sum(noisy) / 30 < longest * room and min(noisy) / FLOOR < room)
    assert phases(noisy)[1] == phases(pauses)[1]


def test_no_more_phases_than_are_kept_come_from_a_run_with_more_pauses():
    start, end = timeline([(2 + i % 7) * FLOOR for i in range(3 * MOST_PHASES)])
    gap = default_gap_ns(start[1:] - end[:-1], run_ns=int(end[-1]), floor_ns=FLOOR)
    assert len(split(start, end, gap)[0]) <= MOST_PHASES + 1
