"""Kernels that follow files and streams decline false counts and 64-bit overflows, but no valid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from switched import needs_kernels

from vani.kernels import call, dtype_of

pytestmark = needs_kernels
MAX = (1 << 63) - 1
NO_VALUE = -(1 << 63)
SOUND = {
    "known": np.array([True, True]),
    "since": np.array([0, 5]),
    "keys": np.array([0, 3, 11]),
    "reach": np.array([100, 200, 300]),
    "bucket_ns": 10,
    "level": 0,
    "buckets": 9,
    "moments": 10,
}
LYING_ENDS = [
    {"bucket_ns": 0},
    {"bucket_ns": -1},
    {"level": -1},
    {"level": 63},
    {"buckets": -1},
    {"moments": 9},
    {"moments": MAX},
]
JUST_SOUND_ENDS = [{}, {"bucket_ns": 1}, {"level": 62}, {"buckets": 0, "moments": 1}, {"moments": MAX // 3}]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("change", LYING_ENDS, ids=str)
def test_false_ends_are_declined(change):
    assert of_stream(SOUND | change) is None


@pytest.mark.parametrize("change", JUST_SOUND_ENDS, ids=str)
def test_barely_valid_ends_are_not_declined(change):
    assert of_stream(SOUND | change) is not None


def of_stream(ends: dict[str, Any] = SOUND, **change: Any) -> Any:
    """A read and a write of one process on two files, and a pending operation of each of their streams."""
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
    arguments = {name: ints(*values) for name, values in given.items()}
    arguments["held_stream"] = arguments.pop("stream")
    for name in ("bits", "of"):
        arguments[name] = arguments[name].astype(np.uint8)
    jumps, opens = np.zeros((2, 2 * len(given["file"])), np.uint8)
    held = np.zeros(len(given["stream"]), dtype_of("pattern", "held"))
    return call("pattern", **arguments, held=held, jumps=jumps, opens=opens, **ends)


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
def test_inconsistent_operations_are_declined(change):
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
def test_barely_valid_operations_are_not_declined(change):
    found = of_stream(**change)
    assert found is not None
    assert found["kept"][0] == len(change.get("codes", [0, 1])) + len(
        change.get("stream", [0, 3])
    ) - change.get("place", []).count(-1)


def test_stream_files_may_be_any_if_no_file_is_known():
    nothing = SOUND | {"known": np.empty(0, np.bool_), "since": ints()}
    assert of_stream(nothing, file=[7, 9]) is not None


def test_streams_without_a_call_keep_their_values():
    found = of_stream(codes=[], offset=[], bytes=[], start=[], bits=[], place=[])
    assert found["kept"].tolist() == [2]
    assert found["kept_stream"].tolist() == [0, 3]
    assert found["run"]["source"].tolist() == [-1, -2]
    assert not found["counts"].any()
