"""Calls that do not fit into memory are decoded again in each pass, if that is faster than reading a store."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from switched import needs_kernels, numpy_alone

import vani
from tests.traces.random_runs import random_run
from tests.traces.trace_generator import Workload, generate_trace
from vani.analyzers.measures import busy_time
from vani.analyzers.passes import measure_workload
from vani.cli.main import main
from vani.errors import TraceError, VaniError
from vani.readers.open import open_trace
from vani.readers.recorder import batches, reader
from vani.readers.recorder.reader import RecorderReader
from vani.readers.trace_reader import Piece
from vani.store import stores, write
from vani.store.stores import MemoryBudget

sys.path.append(str(Path(__file__).resolve().parents[1] / "fuzz"))
from mutations import damaged

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
ALL = sorted(path for path in TRACES.iterdir() if path.is_dir())
TRACE = TRACES / "v3-posix-mix-4r"
CHANGED = "changed while it was read; run this again when nothing writes to the trace any more"


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("VANI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def no_room(cache, monkeypatch) -> None:
    """No calls and no call times stay in memory."""
    monkeypatch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(0))
    monkeypatch.setattr(RecorderReader, "decodes_quickly", True)
    monkeypatch.setattr(measure_workload, "_MAX_IN_MEMORY", 0)
    monkeypatch.setattr(busy_time, "_FEW_ROWS", 20)


def noted(trace: Path) -> dict[str, object]:
    piece, opened = Piece(), open_trace(trace)
    for _ in opened.batches(range(opened.ranks), piece):
        pass
    return dataclasses.asdict(piece)


def told(trace: Path) -> dict[str, object]:
    opened = open_trace(trace)
    assert isinstance(opened, RecorderReader)
    return dataclasses.asdict(opened.tell(range(opened.ranks)))


@pytest.mark.parametrize("trace", [t for t in ALL if "killed" not in t.name and "truncated" not in t.name])
@pytest.mark.sampled(10)
def test_facts_about_calls_agree_with_decoding(trace):
    assert told(trace) == noted(trace)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sampled(4)
def test_random_and_damaged_runs_agree(tmp_path, monkeypatch, seed):
    draw = random.Random(f"told {seed}")
    random_run(f"told {seed}").write(tmp_path / "sound")
    files = {path.name: path.read_bytes() for path in (tmp_path / "sound").iterdir()}
    for number in range(4):
        broken = tmp_path / str(number)
        broken.mkdir()
        for name, content in damaged("recorder", files, draw).items():
            (broken / name).write_bytes(content)
    monkeypatch.setattr(batches, "BATCH_ROWS", draw.choice((7, 100, 1 << 18)))
    compared = 0
    for trace in sorted(tmp_path.iterdir()):
        try:
            expected = noted(trace)
        except VaniError:
            continue
        assert told(trace) == expected
        compared += 1
    assert compared


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
@pytest.mark.parametrize("trace", [t for t in ALL if "killed" not in t.name and "truncated" not in t.name])
@pytest.mark.slow
def test_a_profile_is_the_same(trace, tmp_path, monkeypatch, scheduler, request):
    expected = vani.profile(trace, scheduler=scheduler).to_yaml()
    request.getfixturevalue("no_room")
    assert vani.profile(trace, scheduler=scheduler).to_yaml() == expected


def test_a_profile_of_several_traces_is_the_same(monkeypatch, request):
    some = [TRACES / name for name in ("v3-posix-mix-4r", "v2-cm1like-8r", "v3-ckpt-then-restart-8r")]
    expected = vani.profile(*some).to_yaml()
    request.getfixturevalue("no_room")
    assert vani.profile(*some).to_yaml() == expected


def test_one_trace_may_have_room_and_another_be_decoded_again(cache, monkeypatch):
    some = [TRACES / name for name in ("v3-haccio-ssf-8r", "v3-ckpt-then-restart-8r")]
    expected = vani.profile(*some).to_yaml()
    first = open_trace(some[0])
    room = int(first.calls_per_rank().sum()) * 54 + len(first.files()) * 512
    monkeypatch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(room))
    monkeypatch.setattr(RecorderReader, "decodes_quickly", True)
    passes: list[Path] = []
    real = RecorderReader.batches

    def counted(self, ranks, piece, **rest):
        passes.append(self.path)
        return real(self, ranks, piece, **rest)

    monkeypatch.setattr(RecorderReader, "batches", counted)
    assert vani.profile(*some, scheduler="synchronous").to_yaml() == expected
    assert (passes.count(some[0]), passes.count(some[1])) == (1, 2)


def test_traces_may_have_a_store_or_not(cache, monkeypatch):
    some = [TRACES / name for name in ("v3-haccio-ssf-8r", "v3-ckpt-then-restart-8r")]
    expected = vani.profile(*some).to_yaml()
    with monkeypatch.context() as patch:
        patch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(0))
        patch.setattr(RecorderReader, "decodes_quickly", False)
        vani.profile(some[0])
    assert len(list((cache / "stores").iterdir())) == 1
    done: list[Path] = []
    real = write.decode_part
    monkeypatch.setattr(write, "decode_part", lambda task, reader: done.append(reader.path) or real(task, reader))
    assert vani.profile(*some).to_yaml() == expected
    assert done == [some[1]]


def test_nothing_is_written_but_a_file_without_a_name(no_room, cache, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(write, "write_store", None)
    vani.profile(TRACE)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@needs_kernels
@pytest.mark.parametrize(
    ("layout", "fewest"),
    [("3.0", "_FEWEST_FRAMED"), ("2.5g", "_FEWEST_FRAMED"), ("2.5p", "_FEWEST_IN_FILES")],
)
def test_few_calls_per_rank_are_written_to_files(cache, tmp_path, monkeypatch, layout, fewest):
    # Formerly, with 10,000 ranks of 1,000 calls each in separate files, a profile took a third longer.
    monkeypatch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(0))
    generate_trace(tmp_path / "T", Workload(calls=2000, ranks=4, files=4, layout=layout))
    calls = int(open_trace(tmp_path / "T").calls_per_rank().mean())
    for most in (calls, calls + 1):
        monkeypatch.setattr(reader, fewest, most)
        vani.profile(tmp_path / "T")
        assert len(list((cache / "stores").iterdir())) == (most > calls)


def test_times_are_put_into_files_only_if_there_are_many(no_room, cache, monkeypatch):
    folders: list[Path | None] = []
    real = measure_workload.NoteTimes

    def note(listed: Any, rows: int, folder: Path | None) -> Any:
        folders.append(None if folder is None else folder.parent)
        return real(listed, rows, folder)

    monkeypatch.setattr(measure_workload, "NoteTimes", note)
    calls = int(open_trace(TRACE).calls_per_rank().sum())
    found = []
    for most, expected in ((calls, [None]), (calls - 1, [cache / "stores"])):
        monkeypatch.setattr(measure_workload, "_MAX_IN_MEMORY", most)
        found.append(vani.profile(TRACE).to_yaml())
        assert folders == expected
        folders.clear()
    assert found[0] == found[1]
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_files_are_written_if_numpy_decodes(cache, monkeypatch):
    monkeypatch.setattr(stores, "MemoryBudget", lambda: MemoryBudget(0))
    monkeypatch.setattr(reader, "_FEWEST_FRAMED", 0)
    with numpy_alone():
        vani.profile(TRACE)
    assert len(list((cache / "stores").iterdir())) == 1


@pytest.mark.slow
def test_files_are_written_for_processes_that_share_no_memory(no_room, cache):
    vani.profile(TRACE, scheduler="processes")
    assert len(list((cache / "stores").iterdir())) == 1


def test_files_are_written_to_the_requested_paths(no_room, tmp_path):
    vani.profile(TRACE, store=tmp_path / "here")
    assert len(list((tmp_path / "here").iterdir())) == 1


@pytest.mark.slow
def test_a_page_decodes_again_as_well(no_room, cache):
    assert "<svg" in vani.report(TRACE)
    assert [path for path in cache.rglob("*") if path.is_file()] == []


@pytest.fixture
def trace(tmp_path) -> Path:
    return shutil.copytree(TRACE, tmp_path / "T")


def between_passes(monkeypatch, change) -> None:
    """Change the trace after the first pass over its calls."""
    real = write.decode_on_demand

    def changed(*args, **rest):
        store = real(*args, **rest)
        change()
        return store

    monkeypatch.setattr(write, "decode_on_demand", changed)


def test_trace_truncated_between_passes_is_refused(no_room, trace, monkeypatch, capfd, tmp_path):
    times = trace / "recorder.ts"
    between_passes(monkeypatch, lambda: os.truncate(times, times.stat().st_size // 2))
    with pytest.raises(SystemExit) as leaving:
        main(["profile", str(trace), "-o", str(tmp_path / "profile.yaml")])
    assert leaving.value.code == 2
    assert capfd.readouterr().err.strip() == f"vani: {trace}: {CHANGED}"
    assert not (tmp_path / "profile.yaml").exists()


def test_trace_unreadable_in_a_second_pass_is_refused(no_room, monkeypatch):
    # As if a file system failed, which leaves the files unchanged.
    real = RecorderReader.batches

    def fewer(self, ranks, piece, **rest):
        yield from list(real(self, ranks, piece, **rest))[:-1]
        piece.records -= 1

    between_passes(monkeypatch, lambda: monkeypatch.setattr(RecorderReader, "batches", fewer))
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(TRACE)


def test_trace_removed_between_passes_is_refused(no_room, trace, monkeypatch):
    between_passes(monkeypatch, lambda: shutil.rmtree(trace))
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace)


def test_trace_that_changes_between_passes_is_refused(no_room, trace, monkeypatch):
    times = trace / "recorder.mt"
    between_passes(monkeypatch, lambda: times.write_bytes(times.read_bytes()))
    with pytest.raises(TraceError, match=CHANGED):
        vani.profile(trace)
