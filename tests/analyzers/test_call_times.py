"""Times of calls are the same whether stored in memory or in a file, and are cut at the ends of a window."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vani.analyzers.passes.call_times import CallTimes, NotedTimes, _saved, _table
from vani.errors import NoRoomError

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 33))
NOBODY = np.empty(0, np.int64)


@st.composite
def calls(draw: st.DrawFn) -> CallTimes:
    start = np.sort(np.array(draw(st.lists(NUMBERS, min_size=1, max_size=20)), np.int64))
    start -= draw(st.sampled_from([0, 1 << 34]))
    lasts = [draw(NUMBERS) + 1 for _ in start]
    dtype, most = draw(st.sampled_from([(np.int32, 3), (np.int32, 70_000), (np.int64, 1 << 40)]))
    code = np.array([draw(st.integers(0, most)) for _ in start], dtype)
    return CallTimes(code, start, start + np.array(lasts))


def rows(times: CallTimes) -> list[tuple[int, int, int]]:
    return list(zip(times.code.tolist(), times.start.tolist(), times.end.tolist(), strict=True))


# Was: codes of 32 bits came back negative.
@example(times=CallTimes(np.array([1 << 31]), np.array([0]), np.array([1])), in_file=False)
@given(times=calls(), in_file=st.booleans())
def test_noted_times_are_read_as_they_were(tmp_path_factory, times, in_file):
    table = _table(CallTimes.joined([times, times]))
    place = _saved(table, tmp_path_factory.getbasetemp()) if in_file else table
    noted = NotedTimes(len(times), 0, 0, 0, place, len(times))
    low, high = int(times.start.min()), int(times.end.max())
    read = noted.within(low, high)
    assert rows(read) == rows(times)


@given(times=calls(), ends=st.tuples(NUMBERS, NUMBERS))
def test_within_a_stretch_of_time_calls_are_cut_at_its_ends(times, ends):
    begin, end = sorted(ends)
    expected = [
        (code, max(start, begin), min(stop, end))
        for code, start, stop in rows(times)
        if max(start, begin) < min(stop, end)
    ]
    assert rows(times.within(begin, end)) == expected


def test_a_call_takes_sixteen_bytes_at_most():
    start = np.cumsum(np.full(1000, 50_000))
    assert _table(CallTimes(np.full(1000, 70_000, np.int32), start, start + 4_000_000_000)).itemsize <= 16


def test_full_folder_is_reported_in_one_line(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("numpy.save", full)
    with pytest.raises(NoRoomError, match=r"No space left on device.*VANI_CACHE"):
        _saved(np.zeros(1), tmp_path)
