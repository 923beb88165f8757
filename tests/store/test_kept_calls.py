"""Calls of small traces stay in memory until they are measured, and equal those in the store's files."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import vani
from vani.calls import CALLS
from vani.engine.cluster import open_executor
from vani.readers.open import open_trace
from vani.readers.recorder.reader import RecorderReader
from vani.store import read, write
from vani.store.read import open_store
from vani.store.stores import MemoryBudget
from vani.store.write import decode_into_memory, write_store

TRACES = Path(__file__).parents[1] / "data" / "traces"
TRACE = TRACES / "v3-posix-mix-4r"
COLUMNS = ["rank", "file", "offset", "bytes", "start_ns", "duration_ns"]


def written(trace, place):
    kept = write_store(open_trace(trace), place, version="0", executor=open_executor("synchronous"), keep=True)
    return open_store(place, kept), open_store(place)


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.batches.BATCH_ROWS", 70)
    monkeypatch.setattr(read, "ROW_GROUP", 20)


@pytest.fixture(params=["in memory", "beside the files"])
def stores(request, tmp_path, small_groups):
    beside, files = written(TRACE, tmp_path / "s")
    if request.param == "in memory":
        return decode_into_memory(open_trace(TRACE), version="0", executor=open_executor("synchronous")), files
    return beside, files


def rows(batches, columns=COLUMNS):
    return pa.Table.from_batches([b.select(columns) for b in batches]).combine_chunks()


def test_calls_in_memory_are_those_in_the_files(stores):
    kept, read = stores
    assert kept.in_memory
    for part in kept.manifest.parts:
        assert len(kept.in_memory[part.file]) > 2
        assert rows(kept.batches(part, COLUMNS)) == rows(read.batches(part, COLUMNS))
        assert next(iter(kept.batches(part, COLUMNS))).schema == CALLS


def test_store_in_memory_equals_the_store_in_a_folder(tmp_path):
    made, files = decode_into_memory(open_trace(TRACE), version="0", executor=open_executor("synchronous")), written(TRACE, tmp_path / "s")[1]
    assert files.has_files
    assert not made.has_files
    for name in ("files", "function_names", "renames"):
        assert getattr(made, name) == getattr(files, name)
    sized = [replace(part, size=0) for part in files.manifest.parts]
    assert made.manifest == replace(files.manifest, parts=sized)


def test_a_profile_is_the_same_from_memory_and_from_files(tmp_path):
    trace = TRACES / "v3-posix-mix-4r"
    found = [vani.profile(trace, store=place) for place in (tmp_path, tmp_path, None)]
    assert len({one.to_yaml() for one in found}) == 1


def bytes_of(trace):
    reader = open_trace(trace)
    return int(reader.calls_per_rank().sum()) * 54 + len(reader.files()) * 512


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def stores_of(cache):
    return sorted(path.name.partition("-v3-")[0] for path in (cache / "stores").glob("*"))


def with_room(monkeypatch, room):
    """Calls without room go into files, since decoding them takes long."""
    monkeypatch.setattr("vani.store.stores.MemoryBudget", lambda: MemoryBudget(room))
    monkeypatch.setattr(RecorderReader, "decodes_quickly", False)


def test_profile_leaves_no_files_if_calls_fit_in_memory(cache):
    vani.profile(TRACE)
    assert not cache.exists()


def test_large_trace_keeps_its_calls_in_the_cache(cache, monkeypatch):
    with_room(monkeypatch, bytes_of(TRACE))
    vani.profile(TRACE)
    assert not cache.exists()
    with_room(monkeypatch, bytes_of(TRACE) - 1)
    vani.profile(TRACE)
    assert len(stores_of(cache)) == 1


def test_store_is_written_to_the_requested_folder(cache, tmp_path):
    vani.profile(TRACE, store=tmp_path / "here")
    assert len(list((tmp_path / "here").iterdir())) == 1
    assert not cache.exists()


def test_a_store_in_the_cache_is_used(cache, monkeypatch):
    with_room(monkeypatch, 0)
    found = vani.profile(TRACE).to_yaml()
    monkeypatch.setattr(write, "decode_part", None)
    assert vani.profile(TRACE).to_yaml() == found


def test_traces_of_a_run_share_one_memory_budget(cache, tmp_path, monkeypatch):
    # Formerly each trace had its own budget, and a workflow of twenty used twenty times as much.
    twins = [tmp_path / str(number) for number in range(3)]
    for twin in twins:
        shutil.copytree(TRACE, twin)
    with_room(monkeypatch, 2 * bytes_of(TRACE))
    vani.profile(*twins)
    assert len(stores_of(cache)) == 1


@pytest.mark.slow
def test_a_page_decodes_a_trace_once(monkeypatch):
    done = []
    real = write.decode_part
    monkeypatch.setattr(write, "decode_part", lambda task, reader: done.append(task.ranks) or real(task, reader))
    assert "<svg" in vani.report(TRACE)
    assert len(done) == len(set(done))


def test_calls_are_kept_only_in_shared_memory():
    assert [open_executor(s).shares_memory for s in ("threads", "synchronous", "processes")] == [True, True, False]
