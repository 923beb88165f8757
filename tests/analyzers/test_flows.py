"""Who read whose output, byte by byte: against loops over every byte, and at a size where loops would take hours."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.analyzers.entities import flows as module
from vani.analyzers.entities.flows import flows
from vani.analyzers.int_table import group, pack, unpack
from vani.analyzers.intervals import Intervals, merge
from vani.analyzers.measures.extents import NEVER, ExchangeCounts, Exchanges, Extents, ExtentsResult

FILES = 3
WRITE, READ = 1, 0


@dataclass(frozen=True)
class Used:
    """Bytes of a file that a process wrote or read, in calls that began between two times."""

    process: int
    file: int
    kind: int
    start: int
    end: int
    first: int
    last: int


@st.composite
def calls(draw):
    start, moment = draw(st.integers(0, 8)), draw(st.integers(0, 9))
    end = start + draw(st.integers(1, 5))
    process, file = draw(st.integers(0, 3)), draw(st.integers(0, FILES - 1))
    return Used(process, file, draw(st.sampled_from([WRITE, READ])), start, end, moment, moment)


WORLD = SimpleNamespace(processes=1280, files=FILES)


def arrays(used, far=1):
    key = pack([np.array([getattr(u, n) for u in used], np.int64) + (n == "file") for n in ("process", "file", "kind")], WIDTHS)
    columns = [[u.start * far for u in used], [u.end * far for u in used], [u.first for u in used]]
    return [key, *(np.array(column, np.int64) for column in columns)]


WIDTHS = (WORLD.processes, FILES + 1, 2)
NOTHING = ExchangeCounts(np.empty(0, np.int64), np.empty(0, np.int64), {})


def finished(result):
    return Extents().aggregate(result, WORLD, None)


def one_by_one(used, far=1):
    key, start, end, moment = arrays(used, far)
    return finished(ExtentsResult(Intervals(key, start, end), moment)), NOTHING


def merged(used):
    """The data kept for a run with many calls: merged extents, and first and last times by process and file."""
    key, start, end, moment = arrays(used)
    process, file, kind = unpack(key, WIDTHS)
    write = kind == WRITE
    columns = {
        "first_write": np.where(write, moment, NEVER),
        "last_write": np.where(write, moment, -NEVER),
        "first_read": np.where(write, NEVER, moment),
        "last_read": np.where(write, -NEVER, moment),
    }
    table = group(pack((process, file), WIDTHS[:2]), columns, Exchanges().how)
    process, file = unpack(table.keys, WIDTHS[:2])
    return finished(ExtentsResult(merge(key, start, end))), ExchangeCounts(process, file - 1, table.columns)


def as_merged(used):
    """The same in plain Python."""
    found = []
    for process, file, kind in {(u.process, u.file, u.kind) for u in used}:
        mine = [u for u in used if (u.process, u.file, u.kind) == (process, file, kind)]
        first, last = min(u.first for u in mine), max(u.last for u in mine)
        found += [
            Used(process, file, kind, byte, byte + 1, first, last)
            for byte in {byte for u in mine for byte in range(u.start, u.end)}
        ]
    return found


def expected(used, skew=0):
    """(writer, reader, file) for each byte that was read and each process that may have written it last before."""
    found = set()
    for read in used:
        for byte in range(read.start, read.end) if read.kind == READ else ():
            writes = [u for u in used if u.kind == WRITE and u.file == read.file and u.start <= byte < u.end]
            before = [w for w in writes if w.first <= read.last + skew]
            # The last writes that had certainly ended: data they replaced was not read.
            anew = max((w.first for w in before if w.last + skew <= read.first), default=-1)
            found |= {(w.process, read.process, read.file) for w in before if w.last + skew >= anew}
    return found


def of_blocks(blocks):
    return {
        (int(writer), int(reader), int(file))
        for number, file in enumerate(blocks.file)
        for writer in blocks.writer[blocks.writer_block == number]
        for reader in blocks.reader[blocks.reader_block == number]
    }


@given(used=st.lists(calls(), max_size=14), skew=st.integers(0, 2), far=st.sampled_from([1, 1 << 58]))
def test_a_read_sees_the_last_writer_of_each_byte(used, skew, far):
    found = flows(*one_by_one(used, far), skew)
    assert of_blocks(found.blocks) == expected(used, skew)
    assert not len(found.unresolved)


@given(used=st.lists(calls(), max_size=14), skew=st.integers(0, 2))
def test_merged_calls_have_seen_all_that_may_have_been_the_last(used, skew):
    found = flows(*merged(used), skew)
    assert of_blocks(found.blocks) == expected(as_merged(used), skew)
    assert of_blocks(found.blocks) >= expected(used, skew), "no writer is lost by merging"
    assert found.in_doubt or of_blocks(found.blocks) == expected(used, skew), "what may be too many is in doubt"
    assert not len(found.unresolved)


def write(process, start, end, at, file=0):
    return Used(process, file, WRITE, start, end, at, at)


def read(process, start, end, at, file=0):
    return Used(process, file, READ, start, end, at, at)


@pytest.mark.parametrize(
    ("used", "found"),
    [
        ([write(0, 0, 4, 1), write(1, 4, 8, 1), read(0, 0, 4, 2), read(1, 4, 8, 2)], {(0, 0), (1, 1)}),
        ([write(0, 0, 4, 1), write(1, 4, 8, 1), read(0, 4, 8, 2), read(1, 0, 4, 2)], {(0, 1), (1, 0)}),
        # Overwritten by another process, in part, and by the reader itself.
        ([write(0, 0, 8, 1), write(1, 0, 8, 2), read(2, 0, 8, 3)], {(1, 2)}),
        ([write(0, 0, 8, 1), write(1, 0, 4, 2), read(2, 0, 8, 3)], {(0, 2), (1, 2)}),
        ([write(0, 0, 8, 1), write(1, 0, 8, 2), read(1, 0, 8, 3)], {(1, 1)}),
        # Read before, between and after.
        ([read(2, 0, 8, 0), write(0, 0, 8, 1)], set()),
        ([write(0, 0, 8, 1), read(2, 0, 8, 2), write(1, 0, 8, 3)], {(0, 2)}),
        ([write(0, 0, 8, 1), write(1, 0, 8, 2), write(0, 0, 8, 3), read(2, 0, 8, 4)], {(0, 2)}),
        # The same time for both: the order is unknown, and a read may have seen what was written then.
        ([write(0, 0, 8, 1), write(1, 0, 8, 1), read(2, 0, 8, 1)], {(0, 2), (1, 2)}),
        # Outside the written range, and in another file.
        ([write(0, 0, 4, 1), read(2, 4, 8, 2)], set()),
        ([write(0, 0, 4, 1), read(2, 0, 4, 2, file=1)], set()),
    ],
)
def test_programs_by_hand(used, found):
    assert {(w, r) for w, r, _ in of_blocks(flows(*one_by_one(used)).blocks)} == found


def test_clocks_that_disagree_leave_writers_in_doubt():
    used = [write(0, 0, 8, 10), write(1, 0, 8, 15), read(2, 0, 8, 20), read(3, 0, 8, 8)]
    assert {(w, r) for w, r, _ in of_blocks(flows(*one_by_one(used)).blocks)} == {(1, 2)}
    found = {(w, r) for w, r, _ in of_blocks(flows(*one_by_one(used), 5).blocks)}
    assert found == {(0, 2), (1, 2), (0, 3)}


def many(processes, records, reads):
    """All processes write a file in turn, record by record; `reads` (process, start, end) follow."""
    number = np.arange(processes * records)
    process = np.concatenate([number % processes, reads[0]])
    start, end = (np.concatenate([64 * (number + i), reads[1 + i]]) for i in range(2))
    key = pack((process, 1, np.arange(len(process)) < len(number)), WIDTHS)
    moments = {"first_write": 0, "last_write": 10, "first_read": 20, "last_read": 30}
    columns = {name: np.full(processes, at) for name, at in moments.items()}
    exchanges = ExchangeCounts(np.arange(processes), np.zeros(processes, np.int64), columns)
    return finished(ExtentsResult(merge(key, start, end))), exchanges


def test_1280_processes_that_each_read_the_records_of_the_next_are_neighbours():
    number = np.arange(1280 * 100)
    reads = ((number + 1) % 1280, 64 * number, 64 * number + 64)
    found = flows(*many(1280, 100, reads))
    blocks = found.blocks
    assert not found.in_doubt
    assert sorted(zip(blocks.writer.tolist(), blocks.reader.tolist(), strict=True)) == [(p, (p + 1) % 1280) for p in range(1280)]


def test_readers_of_data_all_processes_wrote_form_one_block():
    processes, records = 1280, 50
    reads = (np.arange(processes), np.zeros(processes, np.int64), np.full(processes, 64 * processes * records))
    found = flows(*many(processes, records, reads))
    blocks = found.blocks
    assert (len(blocks.file), len(blocks.writer), len(blocks.reader)) == (1, 1280, 1280)
    assert not len(found.unresolved)


def test_file_in_too_many_pieces_is_skipped_and_others_are_examined():
    # Every process reads on from its own first record, so each range is different.
    used = [write(p, p, p + 1, 1, file=0) for p in range(30)] + [read(p, p, 30, 2, file=0) for p in range(30)]
    used += [write(0, 0, 9, 1, file=1), read(1, 3, 5, 2, file=1)]
    with patch.object(module, "_MAX_PIECES", 100):
        found = flows(*one_by_one(used))
    assert found.unresolved.tolist() == [0]
    assert of_blocks(found.blocks) == {(0, 1, 1)}
    with patch.object(module, "_MAX_PIECES", 10):
        assert flows(*one_by_one(used)).unresolved.tolist() == [0]


@given(used=st.lists(calls(), max_size=12), most=st.integers(0, 12))
def test_examined_pieces_are_complete(used, most):
    with patch.object(module, "_MAX_PIECES", most):
        found = flows(*one_by_one(used))
    assert of_blocks(found.blocks) == {(w, r, f) for w, r, f in expected(used) if f not in found.unresolved}
