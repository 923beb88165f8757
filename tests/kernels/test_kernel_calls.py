"""Kernels get arrays as their sources declare them; others are refused."""

from __future__ import annotations

import re

import numpy as np
import pytest
from switched import needs_kernels, numpy_alone

from vani import kernels
from vani.kernels import call, columns, dtype_of, times_used
from vani.kernels.build import FOLDER

DELTAS = np.array([1, 3, 2, 2, 4, 9], np.uint32)
CODES = np.zeros(3, np.int32)
OFFSET = np.array([0, 10, 50])
SIZE = np.array([10, 10, 10])


def times(**change):
    arguments = {"deltas": DELTAS, "n": 3, "threshold": 1 << 31, "ns_per_tick": 10, "most": 1 << 40}
    return call("times", **arguments | {"state": np.zeros(3, np.int64)} | change)


def extents(**change):
    arguments = {"codes": CODES, "offset": OFFSET, "bytes": SIZE, "side": np.zeros(1, np.int32), "sides": 1}
    return call("extents", **arguments | change)


@needs_kernels
def test_kernel_returns_the_arrays_it_writes():
    state = np.array([5, 0, 0])
    out = times(state=state)
    assert out["state"] is state
    assert (out["start"].tolist(), out["duration"].tolist()) == ([60, 80, 120], [20, 0, 50])
    assert state.tolist() == [12, 0, 7]


@needs_kernels
def test_array_length_can_give_a_number_and_truncate_rows():
    found = extents()["extents"]
    assert [column.tolist() for column in columns(found)] == [[0, 0], [0, 50], [20, 60]]


@needs_kernels
@pytest.mark.parametrize(
    "offset",
    [
        OFFSET.astype(np.int16),
        np.stack((OFFSET, OFFSET), axis=1)[:, 0],
        np.frombuffer(OFFSET.tobytes(), np.int64),
        np.frombuffer(b"?" + OFFSET.tobytes(), np.int64, offset=1),
    ],
    ids=["narrow", "strided", "read-only", "not aligned"],
)
def test_read_only_array_is_converted(offset):
    assert extents(offset=offset)["extents"].tolist() == extents()["extents"].tolist()


@needs_kernels
def test_empty_table_is_not_an_error():
    nothing = np.empty(0, np.int64)
    assert len(extents(codes=nothing, offset=nothing, bytes=nothing)["extents"]) == 0


@needs_kernels
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": OFFSET[:2]}, "offset has 2 elements, kernel extents takes 3"),
        ({"offset": OFFSET.astype(float)}, "Cannot cast"),
        ({"offset": None}, "kernel extents needs offset"),
        ({"sides": None}, "kernel extents needs sides"),
        ({"place": OFFSET}, "kernel extents takes no place"),
        ({"open": np.zeros(1, np.int64)}, "open is not a contiguous array of int32"),
    ],
    ids=str,
)
def test_unsupported_arguments_of_a_kernel_are_refused(change, message):
    with pytest.raises(TypeError, match=message):
        extents(**change)


@needs_kernels
@pytest.mark.parametrize(
    "state", [np.zeros(6, np.int64)[::2], np.frombuffer(bytes(24), np.int64), np.zeros(3, np.int32)]
)
def test_an_array_that_the_kernel_changes_is_not_copied(state):
    with pytest.raises(TypeError, match="state is not a contiguous array of int64"):
        times(state=state)


@needs_kernels
def test_kernel_calls_and_refusals_are_counted():
    used, declined = times_used().get("extents", (0, 0))
    assert extents() is not None
    assert extents(codes=CODES - 1) is None
    with numpy_alone():
        assert extents() is None
    assert times_used()["extents"] == (used + 1, declined + 1)


def test_types_of_structs_match_the_source():
    assert dtype_of("calls", "outer").itemsize == 12
    assert dtype_of("calls", "outer").fields["inside"][1] == 8
    assert dtype_of("activity", "cells").names[:4] == ("process", "moment", "start", "end")


def test_every_kernel_in_the_sources_is_known():
    declared = [name for path in FOLDER.glob("*.c") for name in re.findall(r"KERNEL vani_(\w+)", path.read_text())]
    assert sorted(declared) == sorted(kernels._parameters())
    for kernel, parameters in kernels._parameters().items():
        numbers = {p.name for p in parameters if not p.role}
        for p in parameters:
            names = {name for _, factors in p.length for name in factors}
            assert names <= numbers, (kernel, p.name)


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("activity", kernels.ActivityBit),
        ("reach", kernels.ReachKind),
        ("pattern", kernels.PatternBit),
        ("pattern", kernels.OperationBit),
    ],
)
def test_codes_are_those_of_the_source(kernel, kind):
    numbers = dict(re.findall(r"\b([A-Z_]+) = (\d+)", (FOLDER / f"{kernel}.c").read_text()))
    # Of both kinds of pattern bits one is named COUNTED.
    assert {name: int(numbers[name]) for name in kind.__members__} == {m.name: m.value for m in kind}
