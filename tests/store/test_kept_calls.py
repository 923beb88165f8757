"""Calls of small traces stay in memory until they are measured: the very calls that the store's files hold."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import vani
from vani.calls import CALLS
from vani.engine import Engine
from vani.readers.open import open_trace
from vani.store import write
from vani.store.kept import Room
from vani.store.read import calls_of, open_store
from vani.store.write import write_store

TRACES = Path(__file__).parents[1] / "data" / "traces"
COLUMNS = ["rank", "file", "offset", "bytes", "start_ns", "duration_ns"]


def written(trace, place, room=None):
    kept = write_store(open_trace(trace), place, version="0", run=lambda f, tasks: [f(t) for t in tasks], room=room or Room())
    return open_store(place, kept), open_store(place)


@pytest.fixture
def stores(tmp_path, monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.batches.BATCH_ROWS", 70)
    monkeypatch.setattr(write, "ROW_GROUP", 20)
    return written(TRACES / "v3-posix-mix-4r", tmp_path / "s")


def rows(batches, columns=COLUMNS):
    return pa.Table.from_batches([b.select(columns) for b in batches]).combine_chunks()


def test_calls_in_memory_are_those_in_the_files(stores):
    kept, read = stores
    assert kept.kept
    for part in kept.manifest.parts:
        assert len(kept.kept[part.file]) > 2
        assert rows(kept.batches(part, COLUMNS)) == rows(read.batches(part, COLUMNS))
        assert next(iter(kept.batches(part, COLUMNS))).schema == CALLS


def test_row_groups_in_memory_are_those_in_the_files(stores):
    kept, read = stores
    for part in kept.manifest.parts:
        mine, theirs = kept.row_groups(part), read.row_groups(part)
        assert len(mine) == len(theirs) > 8
        assert [(g.rows, g.first_start, g.last_start, g.longest) for g in mine] == [
            (g.rows, g.first_start, g.last_start, g.longest) for g in theirs
        ]
        for first in range(len(mine)):
            for stop in range(first + 1, min(first + 6, len(mine)) + 1):
                some = rows(calls_of(mine[first:stop], COLUMNS))
                assert some == rows(calls_of(theirs[first:stop], COLUMNS))
                assert some.num_rows == sum(g.rows for g in mine[first:stop])


def test_a_profile_is_the_same_from_memory_and_from_files(tmp_path):
    trace = TRACES / "v3-posix-mix-4r"
    first, again = (vani.profile(trace, store=tmp_path) for _ in range(2))
    assert first.to_yaml() == again.to_yaml()


def bytes_of(trace):
    reader = open_trace(trace)
    return int(reader.calls_per_rank().sum()) * 54 + len(reader.files()) * 512


def test_calls_of_a_trace_that_is_too_large_do_not_stay(tmp_path):
    trace = TRACES / "v3-posix-mix-4r"
    assert written(trace, tmp_path / "a", Room(bytes_of(trace) - 1))[0].kept == {}
    assert written(trace, tmp_path / "b", Room(bytes_of(trace)))[0].kept


def test_all_traces_of_a_workload_share_one_room(tmp_path, monkeypatch):
    # Was: each trace had room of its own, and a workflow of twenty took twenty times as much.
    trace = TRACES / "v3-posix-mix-4r"
    room = Room(2 * bytes_of(trace))
    kept = [bool(written(trace, tmp_path / str(i), room)[0].kept) for i in range(3)]
    assert kept == [True, True, False]
    seen = []
    real = write.write_store
    monkeypatch.setattr(write, "write_store", lambda *args, room, **more: seen.append(room) or real(*args, room=room, **more))
    vani.profile(trace, TRACES / "v3-haccio-ssf-8r", store=tmp_path)
    assert len(seen) == 2
    assert seen[0] is seen[1] is not None


def test_calls_stay_only_where_all_work_in_one_memory():
    assert [Engine(s).shares_memory for s in ("threads", "synchronous", "processes")] == [True, True, False]
