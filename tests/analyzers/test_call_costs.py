"""Calls by name, metadata operations by kind, flushing, folders, and time in libraries: counted by hand."""

from __future__ import annotations

import pytest
from call_tables import InventedTrace, call, create, profile_of, read, write

from vani.analyzers.entities.io_stats import METADATA_KINDS, metadata_kind
from vani.calls import FileClass, Flag, Kind, Layer


def test_flush_is_named_as_the_largest_cost_of_a_checkpoint(tmp_path):
    rows = [
        create(at=0, lasts=5),
        write(at=10, lasts=20, size=100),
        write(at=30, lasts=20, offset=100, size=100),
        call(Kind.SYNC, 0, at=40, lasts=60),
        call(flags=Flag.CLOSE, at=100, lasts=1),
    ]
    io = profile_of([InventedTrace(rows)], tmp_path).workflow.io
    assert [(c.name, c.count, c.time_s, c.bytes) for c in io.calls] == [
        ("fsync", 1, pytest.approx(60e-9), None),
        ("pwrite", 2, pytest.approx(40e-9), 200),
        ("open", 1, pytest.approx(5e-9), None),
        ("f", 1, pytest.approx(1e-9), None),
    ]
    assert (io.ops.metadata, io.ops.sync, io.ops.all) == (2, 1, 5)
    # Writes end at 50, the flush at 100, and both begin at 10.
    assert io.bandwidth.write == pytest.approx(200 / 40e-9)
    assert io.bandwidth.write_synced == pytest.approx(200 / 90e-9)
    assert io.time_share.sync == pytest.approx(60 / 106)


def test_without_a_flush_no_rate_of_safe_data_is_given(tmp_path):
    io = profile_of([InventedTrace([create(), write(at=20)])], tmp_path).workflow.io
    assert io.ops.sync == 0 and io.bandwidth.write_synced is None


def test_more_than_twenty_functions_are_summed_in_a_last_row(tmp_path, monkeypatch):
    monkeypatch.setattr("vani.analyzers.entities.io_stats._MAX_CALLS", 2)
    rows = [
        create(lasts=1),
        write(at=10, lasts=50),
        read(at=70, lasts=30),
        call(Kind.SYNC, 0, at=100, lasts=2),
    ]
    calls = profile_of([InventedTrace(rows)], tmp_path).workflow.io.calls
    assert [(c.name, c.count, c.bytes) for c in calls] == [
        ("pwrite", 1, 100),
        ("pread", 1, 100),
        (None, 2, None),
    ]
    assert calls[-1].time_s == pytest.approx(3e-9)


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("open64", "open"), ("creat", "open"), ("fopen64", "open"), ("close", "close"), ("__fxstat64", "stat"),
        ("access", "stat"), ("newfstatat", "stat"), ("lseek64", "seek"), ("ftello", "seek"), ("opendir", "directory"),
        ("readdir", "directory"), ("mkdir", "directory"), ("unlink", "remove"), ("rename", "remove"),
        ("ftruncate", "other"), ("fcntl", "other"), ("getc_unlocked", "other"), ("", "other"),
    ],
)  # fmt: skip
def test_metadata_operations_are_sorted_by_the_name_of_their_function(function, kind):
    assert METADATA_KINDS[metadata_kind(function)] == kind


def test_calls_outside_the_data_set_are_listed_only_there(tmp_path):
    rows = [write(file=0, lasts=7), write(file=1, at=10, lasts=9)]
    trace = InventedTrace(rows, [FileClass.DATASET, FileClass.STANDARD_STREAM])
    profile = profile_of([trace], tmp_path)
    assert [(c.name, c.count) for c in profile.workflow.io.calls] == [("pwrite", 1)]
    assert profile.excluded.io.calls[0].time_s == pytest.approx(9e-9)


def test_folders_count_all_files_and_not_only_listed_ones(tmp_path):
    names = ["/d/a/1", "/d/a/2", "/d/a/3", "/d/b/1", "/d/x"]
    rows = [create(file=i, at=10 * i, lasts=3) for i in range(3)] + [
        read(file=3, at=50, size=10), call(file=3, flags=Flag.OPEN, at=40, lasts=2), create(file=4, at=70, lasts=1),
    ]  # fmt: skip
    profile = profile_of([InventedTrace(rows, [FileClass.DATASET] * 5, names)], tmp_path, files=1)
    assert len(profile.files) == 1
    found = {
        f.path: (f.files, f.creates, f.entries, f.bytes.read, f.metadata_time_s) for f in profile.folders
    }
    assert found == {
        "/d/a": (3, 3, 3, 0, pytest.approx(9e-9)),
        "/d/b": (1, 0, 1, 10, pytest.approx(2e-9)),
        "/d": (1, 1, 3, 0, pytest.approx(1e-9)),
    }


def test_folders_give_sizes_opens_removals_and_creators(tmp_path):
    names = ["/d/a/1", "/d/a/2", "/d/a/3", "/d/in/1"]
    rows = [
        *(create(file=i, at=10 * i, lasts=3, rank=i % 2) for i in range(3)),
        *(write(file=i, at=10 * i + 5, size=100 * (i + 1), lasts=2, rank=i % 2) for i in range(3)),
        call(file=2, flags=Flag.REMOVE, at=90, lasts=4, rank=0),
        *(call(file=3, flags=Flag.OPEN, at=40 + rank, lasts=2, rank=rank) for rank in range(2)),
    ]
    profile = profile_of([InventedTrace(rows, [FileClass.DATASET] * 4, names)], tmp_path, files=1)
    found = {f.path: f for f in profile.folders}
    made, read_only = found["/d/a"], found["/d/in"]
    assert (made.opens, made.removes, made.makers) == (3, 1, 2)
    assert (made.sizes.known, made.sizes.p50, made.sizes.max) == (3, 200, 300)
    assert made.time_s == pytest.approx(19e-9)
    assert made.metadata_time_s == pytest.approx(13e-9)
    assert (read_only.opens, read_only.makers, read_only.sizes.known) == (2, 0, 0)


def library(layer, *, at, lasts, depth=0, rank=0, thread=0):
    return call(Kind.WRITE, None, layer=layer, at=at, lasts=lasts, depth=depth, rank=rank, thread=thread)


def test_time_in_a_library_excludes_its_file_system_calls(tmp_path):
    rows = [
        library(Layer.MPIIO, at=0, lasts=100),
        write(at=10, lasts=20, via=Layer.MPIIO, depth=1),
        library(Layer.MPIIO, at=200, lasts=100, rank=1),
        write(at=400, lasts=5, rank=1),
    ]
    profile = profile_of([InventedTrace(rows)], tmp_path)
    time = profile.workflow.library_time_s["mpiio"]
    assert (time.total, time.outside_file_system, time.slowest) == pytest.approx((200e-9, 180e-9, 100e-9))
    assert profile.apps[0].library_time_s == profile.workflow.library_time_s
    balance = profile.apps[0].balance
    # Rank 1 writes once more outside the library.
    assert (balance.slowest_call_rank, balance.slowest_call_time_s) == (1, pytest.approx(105e-9))
    assert (balance.slowest_rank, balance.slowest_io_time_s) == (0, pytest.approx(20e-9))


def test_calls_of_a_library_within_others_of_its_own_count_once(tmp_path):
    rows = [
        library(Layer.HDF5, at=0, lasts=100),
        library(Layer.HDF5, at=10, lasts=50, depth=1),
        write(at=300),
    ]
    profile = profile_of([InventedTrace(rows)], tmp_path)
    assert profile.workflow.library_time_s["hdf5"].total == pytest.approx(100e-9)


def test_functions_of_a_library_are_listed_with_their_time_those_of_libraries_below_in_both(tmp_path):
    rows = [
        library(Layer.HDF5, at=0, lasts=100),
        library(Layer.MPIIO, at=10, lasts=50, depth=1),
        library(Layer.MPIIO, at=70, lasts=20, depth=1),
        library(Layer.HDF5, at=200, lasts=30, rank=1),
        write(at=300),
    ]
    time = profile_of([InventedTrace(rows)], tmp_path).workflow.library_time_s
    assert [(call.count, call.time_s) for call in time["hdf5"].calls] == [(2, pytest.approx(130e-9))]
    assert [(call.count, call.time_s) for call in time["mpiio"].calls] == [(2, pytest.approx(70e-9))]


def test_concurrent_threads_count_once_per_interface(tmp_path):
    rows = [write(at=0, lasts=100, thread=1), write(at=10, lasts=100, offset=500, thread=2)]
    rows += [
        library(Layer.MPIIO, at=200, lasts=80, thread=1),
        library(Layer.MPIIO, at=220, lasts=80, thread=2),
    ]
    profile = profile_of([InventedTrace(rows)], tmp_path)
    time = {row.layer: row.time_s for row in profile.interfaces}
    assert time == {"posix": pytest.approx(110e-9), "mpiio": pytest.approx(100e-9)}
    assert profile.workflow.io.calls[0].time_s == pytest.approx(200e-9), (
        "of functions the length of all calls"
    )


@pytest.mark.parametrize("rows_per_batch", [1, 2, 1000])
@pytest.mark.parametrize("held", [0, 1 << 18])
def test_time_in_libraries_does_not_depend_on_batches(tmp_path, monkeypatch, rows_per_batch, held):
    monkeypatch.setattr("vani.analyzers.intervals._MAX_HELD", held)
    rows = []
    for rank in range(2):
        for i in range(4):
            rows.append(library(Layer.HDF5, at=100 * i, lasts=90, rank=rank))
            rows.append(library(Layer.MPIIO, at=100 * i + 10, lasts=60, depth=1, rank=rank))
            rows.append(write(at=100 * i + 20, lasts=30, depth=2, via=Layer.HDF5, offset=100 * i, rank=rank))
    trace = InventedTrace(rows, rows_per_batch=rows_per_batch)
    time = profile_of([trace], tmp_path).workflow.library_time_s
    assert time["hdf5"].total == pytest.approx(720e-9)
    assert time["hdf5"].outside_file_system == pytest.approx(480e-9)
    assert time["mpiio"].total == pytest.approx(480e-9)
