"""Memory that forks share: what is laid down is found where it was, and is not written to by those who read it."""

from __future__ import annotations

import numpy as np
import pytest

from vani.engine import shared_memory
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


def test_who_reads_does_not_write():
    memory = SharedMemory(256)
    (there,) = memory.at(memory.put(parts(np.zeros(8, np.uint8))))
    with pytest.raises(TypeError, match="read-only"):
        there[0] = 1


def test_regions_are_apart():
    memory = SharedMemory(1 << 12)
    regions = [memory.region(number) for number in (1, 2)]
    places = [one.put(parts(np.full(9, i), np.full(300, i))) for i, one in enumerate([memory, *regions])]
    for i, there in enumerate(places):
        assert [{*np.frombuffer(part, np.int64).tolist()} for part in memory.at(there)] == [{i}, {i}]
    assert regions[0].put(parts(np.zeros(4000, np.uint8))) is None


def test_parts_of_no_bytes_have_a_place():
    memory = SharedMemory(256)
    assert [part.nbytes for part in memory.at(memory.put(parts(np.empty(0))))] == [0]
    assert [part.nbytes for part in memory.at(memory.put(parts(np.empty(0), np.zeros(2))))] == [0, 16]
    assert [part.nbytes for part in memory.at(memory.put(parts(np.zeros(7, np.uint8), np.empty(0))))] == [7, 0]
    assert memory.at(memory.put([])) == []


def test_what_was_read_stays_when_the_memory_is_given_up():
    memory = SharedMemory(1 << 16)
    (there,) = memory.at(memory.put(parts(np.arange(5000))))
    del memory
    assert np.frombuffer(there, np.int64).tolist() == list(range(5000))


def test_where_the_system_takes_nothing_more_there_is_no_room(monkeypatch):
    memory = SharedMemory(256)
    monkeypatch.setattr(shared_memory.os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    assert memory.put(parts(np.zeros(8))) is None
    monkeypatch.undo()
    assert memory.put(parts(np.zeros(8))) == [slice(0, 64)]


def test_what_is_taken_in_pieces_is_laid_down_whole(monkeypatch):
    memory = SharedMemory(1 << 12)
    real = shared_memory.os.pwrite
    monkeypatch.setattr(shared_memory.os, "pwrite", lambda file, part, at: real(file, part[:100], at))
    (there,) = memory.at(memory.put(parts(np.arange(400))))
    assert np.frombuffer(there, np.int64).tolist() == list(range(400))


def test_a_system_without_files_in_memory_is_told_apart(monkeypatch):
    monkeypatch.delattr(shared_memory.os, "memfd_create")
    with pytest.raises(OSError, match="in memory"):
        SharedMemory(1)
