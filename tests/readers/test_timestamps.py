"""Time stamps: two differences per call become starts and durations; wrapped ones are repaired and counted.

Expected values are worked out by hand from the format document, section 5.3.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from switched import numpy_alone

from tests.traces.recorder_writer import encode_times
from vani.errors import TraceError
from vani.readers.recorder.batches import Clock

TICK = 1e-7


def deltas(*pairs: tuple[int, int]) -> np.ndarray:
    return (np.array(pairs, dtype=np.int64).reshape(-1, 2) % 2**32).astype(np.uint32)


def times(clock: Clock, *pairs: tuple[int, int]) -> list[tuple[int, int]]:
    plain = replace(clock)
    start, duration = clock.times(deltas(*pairs))
    # With the kernel, and without.
    with numpy_alone():
        assert [part.tolist() for part in plain.times(deltas(*pairs))] == [start.tolist(), duration.tolist()]
    assert plain == clock
    return list(zip(start.tolist(), duration.tolist(), strict=True))


def test_numbers_are_relative_to_the_previous_start():
    # Ticks of 100 ns: starts at 10, 15, 15; ends at 12, 25, 15.
    assert times(Clock(TICK), (10, 12), (5, 15), (0, 0)) == [(1000, 200), (1500, 1000), (1500, 0)]


def test_next_batch_continues_where_the_last_one_ended():
    clock = Clock(TICK)
    assert times(clock, (10, 12)) == [(1000, 200)]
    assert times(clock) == []
    assert times(clock, (5, 6)) == [(1500, 100)]


def test_start_before_the_previous_one_is_repaired_and_counted_once():
    clock = Clock(TICK)
    # The second call began 3 ticks before the first and ended 1 tick before it: both numbers wrapped.
    assert times(clock, (100, 110), (-3, -1), (3, 9)) == [(10000, 1000), (9700, 200), (10000, 600)]
    assert clock.repaired == 1


def test_negative_start_is_repaired():
    clock = Clock(TICK)
    assert times(clock, (100, 110), (-50, 20)) == [(10000, 1000), (5000, 7000)]
    assert clock.repaired == 1


def test_gap_of_seven_minutes_is_not_a_wraparound():
    # 2^32 ticks of 100 ns are 429.5 s; a gap is taken as negative only within 10 s below that.
    clock = Clock(TICK)
    edge = 2**32 - 100_000_000
    assert times(clock, (edge - 1, edge - 1))[0] == ((edge - 1) * 100, 0)
    assert clock.repaired == 0
    assert times(Clock(TICK), (edge, edge))[0] == (-10_000_000_000, 0)


@pytest.mark.parametrize("resolution", [1e-3, 1.0, 1e-2])
def test_coarse_ticks_allow_ten_negative_seconds(resolution):
    ticks = round(10 / resolution)
    clock = Clock(resolution)
    assert times(clock, (2**32 - ticks, 2**32 - ticks))[0][0] == -10 * 10**9
    assert times(Clock(resolution), (2**32 - ticks - 1, 2**32 - ticks - 1))[0][0] > 0


def test_nanosecond_ticks_still_distinguish_negative_from_positive():
    # 10 s would be more than 2^32 ticks, and everything would be negative. The upper half is used.
    assert times(Clock(1e-9), (2**31 - 1, 2**31 - 1), (-5, -5)) == [(2**31 - 1, 0), (2**31 - 6, 0)]


def test_end_before_start_gives_zero_duration_and_is_counted():
    clock = Clock(TICK)
    assert times(clock, (10, 4), (1, 2)) == [(1000, 0), (1100, 100)]
    assert clock.repaired == 1


def test_fractional_ticks_are_summed_before_rounding():
    # A third of a microsecond: 3,000 ticks are exactly a millisecond.
    clock = Clock(1e-6 / 3)
    start, _ = clock.times(deltas(*[(1, 1)] * 3000))
    assert start[:3].tolist() == [333, 667, 1000] and start[-1] == 1_000_000


@pytest.mark.parametrize("resolution", [1.0, 0.7312])
def test_times_beyond_64_bits_are_refused(resolution):
    with pytest.raises(TraceError, match="claim a run of"):
        Clock(resolution).times(deltas(*[(2**31, 2**31 + 5)] * 10_000))


@given(
    calls=st.lists(st.tuples(st.integers(-1_000, 5_000), st.integers(0, 10_000)), max_size=60),
    cuts=st.lists(st.integers(0, 60)),
)
def test_encoded_records_are_decoded_however_they_are_split(calls, cuts):
    starts = np.cumsum([gap for gap, _ in calls], dtype=np.int64)
    ends = starts + np.array([length for _, length in calls], dtype=np.int64)
    raw = np.frombuffer(encode_times(starts, ends), "<u4").reshape(-1, 2)
    clock, found = Clock(TICK), []
    for part in np.split(raw, sorted(cut % (len(raw) + 1) for cut in cuts)):
        start, duration = clock.times(part)
        found += zip(start.tolist(), duration.tolist(), strict=True)
    assert found == [(s * 100, (e - s) * 100) for s, e in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert clock.repaired == sum(gap < 0 for gap, _ in calls)


@given(
    pairs=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), max_size=40),
    resolution=st.sampled_from([TICK, 1e-9, 1e-6, 0.5, 0.7312e-7, 3e-9]),
    previous=st.sampled_from([0, -5, 1 << 50, 1 << 61]),
)
def test_kernel_equals_numpy(pairs, resolution, previous):
    def found() -> object:
        clock = Clock(resolution, previous)
        try:
            return [part.tolist() for part in clock.times(deltas(*pairs))], clock
        except TraceError as error:
            return str(error)

    with numpy_alone():
        plain = found()
    assert found() == plain
