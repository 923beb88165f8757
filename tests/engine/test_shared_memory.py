"""Memory that forks share: what is laid down is found where it was, and is not written to by those who read it."""

from __future__ import annotations

import numpy as np
import pytest

from vani.engine.shared_memory import SharedMemory


def parts(*arrays):
    return [memoryview(array) for array in arrays]


def test_what_is_laid_down_lies_where_it_was_said():
    memory = SharedMemory(1 << 12)
    first, second = np.arange(5, dtype=np.int16), np.linspace(0, 1, 7)
    places = memory.put(parts(first, second))
    more = memory.put(parts(np.arange(3)))
    assert np.frombuffer(memory.at(places)[0], np.int16).tolist() == first.tolist()
    assert np.frombuffer(memory.at(places)[1]).tolist() == second.tolist()
    assert np.frombuffer(memory.at(more)[0], np.int64).tolist() == [0, 1, 2]
    assert all(place.start % 64 == 0 for place in [*places, *more])


def test_what_has_no_room_leaves_all_as_it_was():
    memory = SharedMemory(256)
    assert memory.put(parts(np.zeros(100, np.uint8), np.zeros(200, np.uint8))) is None
    assert memory.put(parts(np.zeros(256, np.uint8))) == [slice(0, 256)]
    assert memory.put(parts(np.zeros(1, np.uint8))) is None
    memory.clear()
    assert memory.put(parts(np.zeros(1, np.uint8))) == [slice(0, 1)]


def test_who_reads_does_not_write():
    memory = SharedMemory(256)
    (there,) = memory.at(memory.put(parts(np.zeros(8, np.uint8))))
    with pytest.raises(TypeError, match="read-only"):
        there[0] = 1
