"""When calls took place is the same whether it was noted, in memory or in a file, or is read from a store."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vani.analyzers.passes.calls_in_time import CallsInTime
from vani.analyzers.passes.scratch_file import ScratchFile, can_lie_in_memory
from vani.analyzers.passes.timed_groups import NotedGroup
from vani.errors import NoRoomError

NUMBERS = st.one_of(st.integers(0, 300), st.integers(0, 1 << 33))


@st.composite
def calls(draw: st.DrawFn) -> CallsInTime:
    start = np.sort(np.array(draw(st.lists(NUMBERS, min_size=1, max_size=20)), np.int64))
    start -= draw(st.sampled_from([0, 1 << 34]))
    lasts = [draw(NUMBERS) + 1 for _ in start]
    codes = draw(st.sampled_from([(np.int32, 3), (np.int32, 70_000), (np.int64, 1 << 40)]))
    code = np.array([draw(st.integers(0, codes[1])) for _ in start], codes[0])
    return CallsInTime(code, start, start + np.array(lasts))


def rows(some: CallsInTime) -> list[tuple[int, int, int]]:
    return list(zip(some.code.tolist(), some.start.tolist(), some.end.tolist(), strict=True))


# Was: codes of 32 bits came back negative.
@example(some=CallsInTime(np.array([1 << 31]), np.array([0]), np.array([1])), place="here")
@given(some=calls(), place=st.sampled_from(["here", "in memory", "in a folder"]))
def test_what_is_packed_is_unpacked_as_it_was(tmp_path_factory, some, place):
    folder = None if place == "in memory" and can_lie_in_memory() else tmp_path_factory.getbasetemp()
    file = None if place == "here" else ScratchFile(folder)
    group = NotedGroup.of(some, file)
    assert rows(group.calls()) == rows(some)
    assert (group.rows, group.first, group.last) == (len(some), some.start[0], some.start[-1])
    assert group.reach == some.end.max()


@given(some=calls(), ends=st.tuples(NUMBERS, NUMBERS))
def test_within_a_stretch_of_time_calls_are_cut_at_its_ends(some, ends):
    begin, end = sorted(ends)
    expected = [
        (code, max(start, begin), min(stop, end))
        for code, start, stop in rows(some)
        if max(start, begin) < min(stop, end)
    ]
    assert rows(some.within(begin, end)) == expected


def test_calls_one_after_the_other_take_ten_bytes_each_at_most():
    start = np.cumsum(np.full(1000, 50_000))
    group = NotedGroup.of(CallsInTime(np.full(1000, 700, np.int32), start, start + 40_000), None)
    assert isinstance(group.packed, bytes)
    assert len(group.packed) == (2 + 2 + 2) * 1000


@pytest.fixture
def folders(tmp_path, monkeypatch) -> tuple[Path, Path]:
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    cache.mkdir()
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    return cache, temporary


def full(monkeypatch, times: int) -> None:
    """Let nothing be written some times."""
    real, left = os.pwrite, [times]

    def write(descriptor, part, at):
        if left[0]:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(descriptor, part, at)

    monkeypatch.setattr("os.pwrite", write)


def test_a_folder_that_takes_nothing_more_is_left_for_the_temporary_one(folders, monkeypatch):
    file = ScratchFile(folders[0])
    first = file.append([b"one"])
    full(monkeypatch, 1)
    second = file.append([b"t", b"wo"])
    assert (first.read(), second.read(), file.append([b"three"]).read()) == (b"one", b"two", b"three")


def test_where_both_are_full_it_is_one_line_to_every_thread(folders, monkeypatch):
    full(monkeypatch, 3)
    file = ScratchFile(folders[0])
    for _ in range(2):
        # Was: threads that came after the first one ended in an IndexError.
        with pytest.raises(NoRoomError, match=r"No space left on device.*VANI_CACHE"):
            file.append([b"one"])


def test_bytes_of_which_few_are_taken_at_a_time_are_written_whole(folders, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda descriptor, part, at: real(descriptor, part[:2], at))
    file = ScratchFile(folders[0])
    assert [file.append([b"abcde"]).read(), file.append([b"fghij"]).read()] == [b"abcde", b"fghij"]


def test_a_folder_that_cannot_be_written_is_passed_over(folders):
    place = ScratchFile(folders[0] / "missing").append([b"one"])
    assert place.read() == b"one"
    assert list(folders[1].iterdir()) == []


@pytest.mark.skipif(not can_lie_in_memory(), reason="the system makes no files in memory")
def test_what_memory_does_not_take_goes_to_the_temporary_folder(folders, monkeypatch):
    file = ScratchFile(None)
    full(monkeypatch, 1)
    assert [file.append([part]).read() for part in (b"one", b"two")] == [b"one", b"two"]
    full(monkeypatch, 2)
    with pytest.raises(NoRoomError, match="No space left on device"):
        file.append([b"three"])
