"""The pause that separates phases: worked examples, and its stability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vani.analyzers.phase_starts import MAX_PHASES, default_gap_ns, least_gap_ns, split

FLOOR = 1_000_000
SECOND = 1_000_000_000


def timeline(pauses: list[int], busy: int = 1000) -> tuple[np.ndarray, np.ndarray]:
    """Starts and ends of busy intervals with the pauses between them."""
    start = np.cumsum(np.array([0, *[p + busy for p in pauses]], dtype=np.int64))
    return start, start + busy


def phases(pauses: list[int]) -> tuple[int, list[int]]:
    """The gap, and the pauses after which a phase begins."""
    start, end = timeline(pauses)
    gap = default_gap_ns(start[1:] - end[:-1], run_ns=int(end[-1]), floor_ns=FLOOR)
    begins, _ = split(start, end, gap)
    return gap, [int(np.searchsorted(start, b)) for b in begins]


def test_a_run_without_pauses_is_one_phase():
    assert default_gap_ns(np.empty(0, np.int64), run_ns=SECOND, floor_ns=FLOOR) == SECOND // 2


def test_checkpoints_every_ten_seconds_are_a_phase_each():
    # Ten pauses of 10 s among hundreds of 200 to 400 ms: everything from 0.4 s to 10 s separates the same eleven.
    small = [200_000_000, 300_000_000, 400_000_000] * 10
    gap, begins = phases([p for _ in range(10) for p in [*small, 10 * SECOND]])
    assert 400_000_000 < gap < 10 * SECOND
    assert gap == pytest.approx((400_000_000 * 10 * SECOND) ** 0.5, rel=0.05)
    assert len(begins) == 11


def test_gap_is_between_separating_pauses_and_others():
    gap, begins = phases([50_000_000, 8 * SECOND, 60_000_000, 7 * SECOND])
    assert begins == [0, 2, 4]
    assert 60_000_000 < gap < 7 * SECOND


def test_ranks_that_wait_for_each_other_make_no_gap():
    # Recorder traces of 16 ranks on two cores: pauses of all lengths up to 0.32 s, without computing.
    waits = [2_000_000, 7_000_000, 15_900_000, 34_600_000, 86_000_000, 214_000_000, 318_000_000]
    assert phases(waits) == (SECOND // 2, [0])


def test_range_below_the_smallest_gap_does_not_count_at_any_width():
    # The widest range of all is 2 ms to 400 ms; of those that separate anything, 0.7 s to 3 s.
    gap, begins = phases([2_000_000, 400_000_000, 450_000_000, 700_000_000, 3 * SECOND])
    assert begins == [0, 5]
    assert 700_000_000 < gap < 3 * SECOND


def test_gap_in_a_long_run_is_at_least_a_thousandth_of_it():
    hour = 3600 * SECOND
    assert least_gap_ns(hour) == 3_600_000_000
    pauses = np.array([2 * SECOND] * 500 + [3 * SECOND] * 100)
    assert default_gap_ns(pauses, run_ns=hour, floor_ns=FLOOR) == least_gap_ns(hour)


def test_a_pause_as_long_as_the_gap_does_not_separate():
    start, end = timeline([100, 101])
    assert split(start, end, 100)[0].tolist() == [start[0], start[2]]


@given(pauses=st.lists(st.integers(FLOOR + 1, 100 * SECOND), min_size=1, max_size=60), data=st.data())
def test_noise_that_moves_no_pause_across_the_gap_changes_no_phase(pauses, data):
    gap, begins = phases(pauses)
    _, end = timeline(pauses)
    # Half of the distance between the gap and the pauses next to it, on the logarithmic scale on which it was
    # chosen.
    longer, shorter = [p for p in pauses if p > gap], [p for p in pauses if p <= gap]
    top = min(longer) if longer else max(int(end[-1]) / 30, 2 * gap)
    room = min(top / gap, gap / max([FLOOR, *shorter])) ** 0.5
    assume(room > 1.0001)
    noise = data.draw(st.lists(st.floats(1 / room, room), min_size=len(pauses), max_size=len(pauses)))
    moved, shifted = timeline([round(p * n) for p, n in zip(pauses, noise, strict=True)])
    again, _ = split(moved, shifted, gap)
    # Rounding to two digits may move a gap away from the middle.
    assert [int(np.searchsorted(moved, b)) for b in again] == begins or room < 1.06


@pytest.mark.slow
@given(periods=st.integers(3, 30), wide=st.integers(800, 8000), data=st.data())
def test_noise_below_half_the_range_does_not_change_the_phases(periods, wide, data):
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
    assume(min(p for p in noisy if p > short * room) > least_gap_ns(sum(noisy)))
    assert phases(noisy)[1] == phases(pauses)[1]


def test_no_more_phases_than_are_kept_come_from_a_run_with_more_pauses():
    start, end = timeline([(20 + i % 7) * SECOND for i in range(3 * MAX_PHASES)])
    gap = default_gap_ns(start[1:] - end[:-1], run_ns=int(end[-1]), floor_ns=FLOOR)
    assert len(split(start, end, gap)[0]) <= MAX_PHASES + 1
