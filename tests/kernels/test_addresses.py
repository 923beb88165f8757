"""Kernels get the address that numpy tells, of arrays of any kind that they may be given, and no others."""

from __future__ import annotations

import sys
import weakref

import numpy as np
import pytest

from vani.kernels.arrays import address

FEW = np.arange(6)


@pytest.mark.parametrize(
    "array",
    [
        FEW,
        FEW[2:],
        FEW[:0],
        np.empty((0, 3), np.int64),
        FEW.reshape(2, 3),
        np.frombuffer(FEW.tobytes(), np.int64),
        np.frombuffer(b"", np.int64),
        np.broadcast_to(FEW, FEW.shape),
    ],
    ids=[
        "whole",
        "part",
        "nothing",
        "no rows",
        "rows",
        "read-only",
        "read-only nothing",
        "view that is read-only",
    ],
)
def test_the_address_is_where_the_elements_lie(array):
    assert address(array, np.int64, array.size) == array.ctypes.data


def test_an_array_may_go_after_its_address_was_asked_for():
    array = np.arange(4)
    before, gone = sys.getrefcount(array), weakref.ref(array)
    address(array, np.int64)
    assert sys.getrefcount(array) == before
    del array
    assert gone() is None


@pytest.mark.parametrize("array", [FEW.astype(np.int32), FEW.astype(">i8"), FEW[::2], FEW.reshape(2, 3).T])
def test_other_types_and_what_does_not_lie_in_a_row_are_refused(array):
    with pytest.raises(TypeError, match="contiguous and aligned int64"):
        address(array, np.int64)


def test_another_number_of_elements_is_refused():
    with pytest.raises(TypeError, match="5 elements, not 6"):
        address(FEW, np.int64, 5)
