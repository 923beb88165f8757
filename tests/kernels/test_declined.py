"""Kernels that follow files and streams decline what lies about its counts or leaves 64 bits; what is just sound they take."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from switched import needs_kernels

from vani.kernels.ends import ByTime
from vani.kernels.past_end import past_end
from vani.kernels.pattern import SOURCE, Calls, Held, pattern

pytestmark = needs_kernels
MOST = (1 << 63) - 1
NO_VALUE = -(1 << 63)
SOUND = ByTime(
    known=np.array([True, True]),
    since=np.array([0, 5]),
    keys=np.array([0, 3, 11]),
    reach=np.array([100, 200, 300]),
    bucket_ns=10,
    level=0,
    buckets=9,
    moments=10,
)
LYING_ENDS = [
    {"bucket_ns": 0},
    {"bucket_ns": -1},
    {"level": -1},
    {"level": 63},
    {"buckets": -1},
    {"moments": 9},
    {"moments": MOST},
]
JUST_SOUND_ENDS = [{}, {"bucket_ns": 1}, {"level": 62}, {"buckets": 0, "moments": 1}, {"moments": MOST // 3}]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def of_reads(ends: ByTime = SOUND, **change: Any) -> tuple[list[int], list[int]] | None:
    """Two reads of 50 bytes, one of each of two files, at 150 and 350."""
    given = {"codes": [0, 1], "offset": [150, 350], "bytes": [50, 50], "start": [40, 40], "duration": [1, 1]}
    given |= {"file": [0, 1]} | change
    columns = tuple(ints(*given[name]) for name in ("codes", "offset", "bytes", "start", "duration"))
    found = past_end(columns, ints(*given["file"]), ends)
    return None if found is None else (found[0].tolist(), found[1].tolist())


@pytest.mark.parametrize("change", LYING_ENDS, ids=str)
def test_ends_that_lie_are_declined(change):
    assert of_reads(replace(SOUND, **change)) is None
    assert of_stream(replace(SOUND, **change)) is None


@pytest.mark.parametrize("change", JUST_SOUND_ENDS, ids=str)
def test_ends_that_are_just_sound_are_not(change):
    assert of_reads(replace(SOUND, **change)) is not None
    assert of_stream(replace(SOUND, **change)) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"codes": [0, 2]},
        {"codes": [-1, 1]},
        {"file": [0, 2]},
        {"file": [0, -2]},
        {"bytes": [50, -1]},
        {"bytes": [50, -MOST]},
        {"start": [40, MOST]},
        {"offset": [MOST, 350]},
        {"offset": [MOST - 49, 350]},
        {"codes": [0, 0], "offset": [200, 200], "bytes": [1 << 62, 1 << 62]},
    ],
    ids=str,
)
def test_reads_that_lie_are_declined(change):
    assert of_reads(**change) is None


@pytest.mark.parametrize(
    ("change", "beyond", "reads"),
    [
        ({}, [0, 50], [1, 1]),
        ({"file": [0, -1]}, [0, 0], [1, 0]),
        ({"bytes": [0, 0]}, [0, 0], [1, 1]),
        ({"bytes": [NO_VALUE, 50]}, [0, 50], [0, 1]),
        ({"offset": [150, NO_VALUE]}, [0, 0], [1, 0]),
        ({"offset": [MOST - 50, 350]}, [50, 50], [1, 1]),
        ({"start": [29, 3]}, [0, 0], [1, 0]),
        ({"start": [28, 4], "duration": [1, 1]}, [50, 50], [1, 1]),
        ({"start": [0, 40], "duration": [0, 0]}, [50, 50], [1, 1]),
        ({"codes": [0, 0], "offset": [200, 200], "bytes": [1 << 62, (1 << 62) - 1]}, [MOST, 0], [2, 0]),
        ({"offset": [180, 290], "bytes": [20, 21]}, [0, 11], [1, 1]),
        ({"offset": [180, 290], "bytes": [21, 10]}, [1, 0], [1, 1]),
    ],
    ids=str,
)
def test_reads_that_are_just_sound_are_counted(change, beyond, reads):
    assert of_reads(**change) == (beyond, reads)


def test_no_reads_are_none_beyond_the_end():
    nothing: dict[str, list[int]] = {"codes": [], "offset": [], "bytes": [], "start": [], "duration": []}
    assert of_reads(**nothing) == ([0, 0], [0, 0])
    assert of_reads(**nothing, file=[]) == ([], [])


def test_reads_before_time_began_are_declined():
    assert of_reads(replace(SOUND, since=ints(-9, 5)), start=[-5, 40]) is None
    assert of_reads(replace(SOUND, since=ints(-9, 5)), start=[-1, 40]) == ([100 - 50, 50], [1, 1])


def of_stream(ends: ByTime = SOUND, **change: Any) -> Any:
    """A read and a write of one process on two files, and a held operation of each of their streams."""
    given: dict[str, list[int]] = {
        "codes": [0, 1],
        "offset": [0, 100],
        "bytes": [100, 100],
        "start": [0, 1],
        "bits": [1, 3],
        "place": [0, 1],
        "file": [0, 1],
        "of": [64, 64],
        "stream": [0, 3],
    } | change
    old, places = len(given["stream"]), len(given["file"])
    calls = Calls(
        *(
            ints(*given[name])
            for name in ("codes", "offset", "bytes", "start", "bits", "place", "file", "of")
        ),
        np.zeros(2 * places, np.bool_),
        np.zeros(2 * places, np.bool_),
    )
    return pattern(calls, Held(ints(*given["stream"]), np.zeros((old, 6), np.int64)), ends)


@pytest.mark.parametrize(
    "change",
    [
        {"codes": [0, 2]},
        {"codes": [-1, 1]},
        {"place": [0, 2]},
        {"place": [0, -2]},
        {"file": [0, 2]},
        {"file": [-1, 1]},
        {"stream": [0, 4]},
        {"stream": [-1, 3]},
        {"stream": [3, 0]},
        {"bytes": [100, -1]},
        {"start": [0, -1]},
    ],
    ids=str,
)
def test_operations_that_lie_are_declined(change):
    assert of_stream(**change) is None


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"place": [0, -1]},
        {"stream": []},
        {"stream": [3, 3]},
        {"stream": [0, 0]},
        {"bytes": [100, NO_VALUE]},
        {"bytes": [0, 0]},
        {"codes": [], "offset": [], "bytes": [], "start": []},
        {"codes": [], "offset": [], "bytes": [], "start": [], "bits": [], "place": []},
    ],
    ids=str,
)
def test_operations_that_are_just_sound_are_not(change):
    found = of_stream(**change)
    assert found is not None
    assert len(found.held.stream) == len(change.get("codes", [0, 1])) + len(
        change.get("stream", [0, 3])
    ) - change.get("place", []).count(-1)


def test_without_any_file_known_those_of_streams_may_be_any():
    nothing = replace(SOUND, known=np.empty(0, np.bool_), since=ints())
    assert of_stream(nothing, file=[7, 9]) is not None
    assert of_reads(nothing, file=[0, 1]) is None
    assert of_reads(nothing, file=[-1, -1]) == ([0, 0], [0, 0])


def test_places_without_a_call_hold_what_they_held():
    found = of_stream(codes=[], offset=[], bytes=[], start=[], bits=[], place=[])
    assert found.held.stream.tolist() == [0, 3]
    assert found.held.operations[:, SOURCE].tolist() == [-1, -2]
    assert not found.counts.any()
