"""OTF2 archives made by OTF2's own writer: the reader returns the written calls."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("otf2")

import _otf2
from otf2_archives import UNDEFINED, archive, enums, opened, operation

import vani
from vani.calls import CALLS, DIRECT, SYNCHRONOUS, Flag, Kind, Layer
from vani.errors import InputError, TraceError, UnknownFormatError
from vani.readers import open_trace
from vani.readers.trace_reader import Piece

LAYERS = {"posix": Layer.POSIX, "stdio": Layer.STDIO, "mpiio": Layer.MPIIO}


def read(path) -> tuple[pa.Table, Piece]:
    reader, piece = open_trace(path), Piece()
    batches = list(reader.batches(range(reader.ranks), piece))
    for batch in batches:
        batch.validate(full=True)
    table = pa.Table.from_batches(batches, CALLS)
    names, paths = reader.functions()["name"].to_pylist(), reader.files()["path"].to_pylist()
    table = table.append_column("name", pa.array([names[code] for code in table["func"].to_pylist()]))
    path = [None if code is None else paths[code] for code in table["file"].to_pylist()]
    return table.append_column("path", pa.array(path, pa.string())), piece


def test_a_run_of_two_ranks_is_profiled(tmp_path):
    with archive(tmp_path / "scorep-solver", hosts=("n1", "n2"), processes=2) as a:
        posix, mpi = a.region("write"), a.region("MPI_File_write_all", paradigm="MPI")
        for rank in range(2):
            location, start = a.locations[rank, 0], 1_000_000_000 + rank * 1000
            shared, own = a.handle("/s/out", "mpiio", f"c{rank}"), a.handle("/s/out", "posix", f"p{rank}")
            main = a.region("main", "FUNCTION", "COMPILER")
            location.program_begin(start, "/opt/bin/solver", ["-v"])
            location.enter(start, main)
            opened(location, start + 10, shared, a.region("MPI_File_open", "FILE_IO_METADATA", "MPI"))
            opened(location, start + 20, own, a.region("open64", "FILE_IO_METADATA"))
            # The collective call makes the one below it.
            location.enter(start + 100, mpi)
            location.io_operation_begin(
                *(start + 100, shared, enums.IoOperationMode.WRITE, enums.IoOperationFlag.COLLECTIVE, 4096, 1),
                attributes={a.offset: rank * 4096},
            )
            operation(location, start + 200, 300, own, "write", [4096], posix, offset={a.offset: rank * 4096})
            location.io_operation_complete(start + 900, shared, 4096, 1)
            location.leave(start + 1000, mpi)
            location.leave(start + 10_000_000_000, main)
    profile = vani.profile(tmp_path / "scorep-solver", store=tmp_path / "store")
    io = profile.workflow.io
    assert (profile.traces[0].tool, profile.traces[0].app, profile.workflow.processes) == ("otf2", "solver", 2)
    assert (io.bytes.written, io.ops.write, io.ops.metadata, io.footprint.written) == (8192, 2, 2, 8192)
    assert profile.workflow.runtime_s == pytest.approx(10.000001)
    assert [(i.layer, i.bytes.written) for i in profile.interfaces if i.layer == "mpiio"] == [("mpiio", 8192)]
    assert [(f.path, f.size, f.processes) for f in profile.files] == [("/s/out", 8192, 2)]
    assert profile.job.nodes == 2
    table, _ = read(tmp_path / "scorep-solver")
    below = table.filter(pa.compute.equal(table["name"], "write"))
    assert set(below["via"].to_pylist()) == {Layer.MPIIO} and set(below["depth"].to_pylist()) == {1}


@pytest.mark.parametrize("size", [1 << 56, 1 << 62, (1 << 63) + 1])
def test_size_and_offset_that_no_call_can_have_are_unknown_with_a_problem(tmp_path, size):
    with archive(tmp_path / "run") as a:
        location, handle = a.locations[0, 0], a.handle("/s/a")
        opened(location, 1, handle)
        operation(location, 10, 5, handle, "write", [size])
        operation(location, 20, 5, handle, "read", [8], offset={a.offset: (1 << 60) + size})
    profile = vani.profile(tmp_path / "run")
    assert (profile.workflow.io.ops.write, profile.workflow.io.bytes.written) == (1, None)
    assert [problem.split(" ")[3] for problem in profile.traces[0].problems] == ["request", "name"]


calls = st.tuples(
    st.sampled_from(["posix", "stdio", "mpiio"]),
    st.sampled_from(["read", "write"]),
    st.lists(st.integers(0, 1 << 40) | st.just(UNDEFINED), min_size=1, max_size=3),
    st.integers(0, 10**6),
    st.booleans(),
)


@given(
    ranks=st.lists(st.lists(calls, max_size=6), min_size=1, max_size=3).filter(any),
    resolution=st.sampled_from([1, 1000, 10**9, 2_399_999_987, 10**12]),
    start=st.integers(0, 1 << 40),
)
def test_totals_are_the_written_bytes(tmp_path_factory, ranks, resolution, start):
    folder = tmp_path_factory.mktemp("otf2")
    moved: Counter[tuple[int, int, str]] = Counter()
    number, time_ns = Counter(), 0
    with archive(folder / "run", resolution=resolution, processes=len(ranks)) as a:
        regions = {key: a.region(f"some_{key}") for key in LAYERS}
        for rank, wanted in enumerate(ranks):
            time = start
            for paradigm, mode, drawn, took, in_region in wanted:
                handle = a.handle(f"/s/{rank}/{paradigm}", paradigm)
                sizes = drawn if in_region else drawn[:1]
                operation(a.locations[rank, 0], time, took, handle, mode, sizes, regions[paradigm] if in_region else None)
                since, until = ((t - start) * 10**9 // resolution for t in (time, time + took))
                time_ns += until - since
                time += took + 1
                layer, is_known = LAYERS[paradigm], UNDEFINED not in sizes
                if layer <= Layer.STDIO and is_known and not sum(sizes):
                    number[rank, Kind.METADATA] += 1
                else:
                    number[rank, Kind.READ if mode == "read" else Kind.WRITE] += 1
                    moved[rank, layer, mode] += sum(sizes) if is_known else 0
    table, piece = read(folder / "run")
    shutil.rmtree(folder)
    got: Counter[tuple[int, int, str]] = Counter()
    rows = table.select(["rank", "layer", "kind", "bytes"]).to_pylist()
    for row in rows:
        if row["kind"] <= Kind.WRITE:
            got[row["rank"], row["layer"], "read" if row["kind"] == Kind.READ else "write"] += row["bytes"] or 0
    assert got == moved
    assert Counter((row["rank"], row["kind"]) for row in rows) == number
    assert (piece.bytes, piece.time_ns, piece.records) == (sum(moved.values()), time_ns, len(rows))


def test_positions_are_followed_and_files_end(tmp_path):
    with archive(tmp_path / "run") as a:
        location, file, folder = a.locations[0, 0], a.handle("/s/x"), a.region("opendir", "FILE_IO_METADATA")
        opened(location, 0, file, a.region("open"))
        operation(location, 10, 1, file, "write", [100], a.region("write"))
        operation(location, 20, 1, file, "write", [30, 20], a.region("writev"))
        location.io_seek(30, file, 5, enums.IoSeekOption.FROM_START, 5)
        operation(location, 40, 1, file, "read", [0], a.region("read"))
        operation(location, 50, 1, file, "flush", [UNDEFINED], a.region("fsync"))
        copy = a.handle("/s/x", name="copy")
        location.io_duplicate_handle(60, file, copy, enums.IoStatusFlag.NONE)
        operation(location, 70, 1, copy, "read", [7], a.region("read"))
        location.io_destroy_handle(80, file)
        location.io_delete_file(90, a.paradigms["posix"], a.file("/s/x"))
        location.enter(95, folder)
        location.leave(96, folder)
    table, _ = read(tmp_path / "run")
    rows = table.select(["name", "kind", "offset", "bytes", "path", "flags"]).to_pylist()
    assert [(row["name"], row["offset"], row["bytes"]) for row in rows] == [
        ("open", None, None),
        ("write", 0, 100),
        ("writev", 100, 50),
        ("lseek", 5, None),
        ("read", None, None),
        ("fsync", None, None),
        ("dup", None, None),
        ("read", 5, 7),
        ("close", None, None),
        ("unlink", None, None),
        ("opendir", None, None),
    ]
    assert [row["kind"] for row in rows][4:6] == [Kind.METADATA, Kind.SYNC]
    assert {row["path"] for row in rows[:-1]} == {"/s/x"} and rows[-1]["path"] is None
    assert [bool(row["flags"] & flag) for row, flag in ((rows[0], Flag.CREATE), (rows[9], Flag.REMOVE))] == [True, True]


def test_nonblocking_call_gets_its_bytes_when_it_ends(tmp_path):
    with archive(tmp_path / "run") as a:
        location, file = a.locations[0, 0], a.handle("/s/x", "mpiio")
        begin, wait = a.region("MPI_File_iwrite", paradigm="MPI"), a.region("MPI_Wait", "POINT2POINT", "MPI")
        for number in (1, 2):
            location.enter(number * 10, begin)
            location.io_operation_begin(
                number * 10, file, enums.IoOperationMode.WRITE, enums.IoOperationFlag.NON_BLOCKING, 64, number
            )
            location.io_operation_issued(number * 10 + 1, file, number)
            location.leave(number * 10 + 2, begin)
        location.enter(50, wait)
        location.io_operation_complete(60, file, 64, 1)
        location.leave(70, wait)
        # The second one is not waited for.
    table, _ = read(tmp_path / "run")
    assert table.select(["name", "bytes", "duration_ns"]).to_pylist() == [
        {"name": "MPI_File_iwrite", "bytes": 64, "duration_ns": 2},
        {"name": "MPI_File_iwrite", "bytes": None, "duration_ns": 2},
    ]


def test_numbers_and_clocks_of_a_location_are_unified(tmp_path):
    with archive(tmp_path / "run", processes=2) as a:
        regions = [a.region("pwrite"), a.region("pread")]
        file = a.handle("/s/x")
        for rank in range(2):
            operation(a.locations[rank, 0], 1000, 10, file, "read", [rank + 1], regions[1 - rank])
        # Rank 1 numbers regions in reverse, and its clock is 100 behind.
        writer = a.locations[1, 0]._def_handle
        numbers = _otf2.IdMap_CreateFromUint64Array([1, 0], False)
        _otf2.DefWriter_WriteMappingTable(writer, _otf2.MAPPING_REGION, numbers)
        for time in (0, 2000):
            _otf2.DefWriter_WriteClockOffset(writer, time, 100, 0.0)
    table, _ = read(tmp_path / "run")
    assert table["name"].to_pylist() == ["pread", "pread"]
    assert table["bytes"].to_pylist() == [1, 2]
    assert table["start_ns"].to_pylist() == [0, 100]
    (tmp_path / "run" / "traces" / "1.def").unlink()
    reader = open_trace(tmp_path / "run")
    assert reader.calls_per_rank().tolist() == [1, 0]
    assert reader.problems == [
        "location Master thread of MPI Rank 1: its definitions are damaged or missing"
    ]


def test_mpi_io_alone_leaves_the_verdict_open(tmp_path):
    with archive(tmp_path / "run", processes=2) as a:
        call, compute = a.region("MPI_File_write_all", paradigm="MPI"), a.region("compute", "FUNCTION", "COMPILER")
        for rank in range(2):
            location, file = a.locations[rank, 0], a.handle("/s/x", "mpiio", f"h{rank}")
            operation(location, 0, 10**9, file, "write", [1 << 20], call)
            location.enter(10**9 + 1, compute)
            location.leave(2 * 10**9, compute)
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    (missing,) = profile.unseen
    assert (missing.kind, missing.count, missing.bytes) == ("calls_below_missing", 2, 2 << 20)
    assert (profile.verdict.matters, profile.workflow.files.total, profile.workflow.files.shared) == ("open", 1, 1)
    assert "made without a recorded call that moved the data" in profile.verdict.sentence
    assert profile.interfaces[0].asked.written == 2 << 20


def test_mpi_io_without_calls_below_it_is_unseen_beside_posix(tmp_path):
    with archive(tmp_path / "run") as a:
        location, shared, own = a.locations[0, 0], a.handle("/s/shared", "mpiio"), a.handle("/s/own")
        operation(location, 0, 10**6, shared, "write", [1 << 20], a.region("MPI_File_write_all", paradigm="MPI"))
        operation(location, 2 * 10**6, 10**6, own, "write", [1 << 10], a.region("write"))
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    (missing,) = profile.unseen
    assert (missing.kind, missing.files, missing.bytes) == ("calls_below_missing", ["/s/shared"], 1 << 20)
    assert (profile.workflow.files.total, profile.workflow.io.bytes.written) == (2, 1 << 10)


def test_mounts_and_stripes_of_files_are_those_that_score_p_stores(tmp_path):
    with archive(tmp_path / "run") as a:
        files = {name: a.handle(f"/lustre/run/{name}") for name in ("plain", "composite", "unknown")}
        for number, (name, counts, sizes, begins) in enumerate(
            [("plain", "4", "1048576", "0"), ("composite", "1, 8, WIDE", "65536, 1048576, DEFAULT", "0, 4096, 1048576")]
        ):
            layout = {"Stripe Count": counts, "Stripe Size": sizes, "Extent Begin": begins}
            for key, value in {"Mount Point": "/lustre", "File system": "lustre", **layout}.items():
                a.trace.definitions.io_file_property(files[name].file, key, enums.Type.STRING, value)
            opened(a.locations[0, 0], 100 * number, files[name], a.region("open"))
            operation(a.locations[0, 0], 100 * number + 10, 50, files[name], "write", [1 << 20], a.region("write"))
        operation(a.locations[0, 0], 500, 50, files["unknown"], "write", [1 << 20], a.region("write"))
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    assert [(mount.dir, mount.type) for mount in profile.storage.mounts] == [("/lustre", "lustre")]
    found = {file.path[12:]: (file.stripe_count, file.stripe_size, file.components) for file in profile.files}
    # The composite file ends at 1 MiB, in its second component.
    assert found == {"plain": (4, 1 << 20, 1), "composite": (8, 1 << 20, 3), "unknown": (None, None, None)}


def test_nonblocking_mpi_io_without_calls_below_it_is_unseen_once(tmp_path):
    with archive(tmp_path / "run") as a:
        call = a.region("MPI_File_iwrite", paradigm="MPI")
        operation(a.locations[0, 0], 0, 10**6, a.handle("/s/x", "mpiio"), "write", [1 << 20], call)
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    assert [(one.kind, one.count, one.bytes) for one in profile.unseen] == [("calls_below_missing", 1, 1 << 20)]


def test_asynchronous_calls_whose_bytes_are_recorded_are_seen(tmp_path):
    with archive(tmp_path / "run") as a:
        operation(a.locations[0, 0], 0, 10**6, a.handle("/s/x"), "write", [1 << 20], a.region("aio_write"))
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    assert (profile.workflow.io.bytes.written, profile.unseen) == (1 << 20, [])


def test_folder_of_a_killed_run_names_score_p(tmp_path):
    (tmp_path / "scorep.cfg").write_text("SCOREP_ENABLE_TRACING=true")
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "0.evt").write_bytes(b"x")
    with pytest.raises(UnknownFormatError, match=r"Score-P without an archive of OTF2 .*SCOREP_ENABLE_TRACING"):
        open_trace(tmp_path)


def test_mpi_and_system_files_are_not_output(tmp_path):
    with archive(tmp_path / "run") as a:
        region = a.region("open")
        handles = [a.handle(name) for name in ("/dev/shm/mpich_shar_tmpV61JxJ", "/etc/hosts", "/s/x")]
        for number, handle in enumerate(handles):
            opened(a.locations[0, 0], 10 * number, handle, region)
        operation(a.locations[0, 0], 90, 5, handles[-1], "write", [100], region)
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    assert [file.path for file in profile.files] == ["/s/x"] and profile.unseen == []


def test_archive_without_calls_on_files_reports_its_contents(tmp_path):
    with archive(tmp_path / "run") as a:
        main = a.region("main", "FUNCTION", "COMPILER")
        a.locations[0, 0].enter(0, main)
        a.locations[0, 0].leave(10, main)
    with pytest.raises(TraceError) as caught:
        vani.profile(tmp_path / "run")
    assert str(caught.value) == (
        f"{tmp_path}/run/traces.otf2: has no call on files: 2 events of 1 location, with 1 region (1 of compiler); trace "
        "again with I/O recording (`scorep --io=runtime:posix` at linking), or trace the run with Recorder"
    )


def written(folder, processes=2):
    with archive(folder, processes=processes) as a:
        for rank in range(processes):
            opened(a.locations[rank, 0], 0, a.handle(f"/s/{rank}"), a.region("open"))
            operation(a.locations[rank, 0], 10, 5, a.handle(f"/s/{rank}"), "write", [100], a.region("write"))
    return folder


def test_status_flags_of_opens_are_read(tmp_path):
    with archive(tmp_path / "run") as a:
        for number, flag in enumerate(("NONE", "APPEND", "SYNC", "DATA_SYNC", "AVOID_CACHING")):
            a.locations[0, 0].io_create_handle(
                *(number, a.handle(f"/s/{number}"), enums.IoAccessMode.WRITE_ONLY, enums.IoCreationFlag.NONE),
                getattr(enums.IoStatusFlag, flag),
            )
    table, _ = read(tmp_path / "run")
    opened_to_write = int(Flag.OPEN | Flag.WRITABLE)
    assert [flags - opened_to_write for flags in table["flags"].to_pylist()] == [
        *(0, Flag.APPEND, SYNCHRONOUS, SYNCHRONOUS, DIRECT)
    ]


def test_truncated_location_is_left_out(tmp_path):
    run = written(tmp_path / "run")
    events = run / "traces" / "1.evt"
    whole = events.read_bytes()
    profile = vani.profile(run, store=tmp_path / "store")
    assert profile.traces[0].complete is True and profile.workflow.io.bytes.written == 200
    # The library reads on past the end, in memory where the events of another location are.
    for size in (2, 27, 28, 40, 66, 67, 90, len(whole) - 2, len(whole) - 1):
        events.write_bytes(whole[:size])
        reader = open_trace(run)
        assert reader.calls_per_rank().tolist() == [2, 0], size
        assert reader.problems == [
            "location Master thread of MPI Rank 1: its events are cut off; 0 events of whole chunks are read"
        ]
    profile = vani.profile(run, store=tmp_path / "store")
    assert profile.traces[0].complete is False and profile.workflow.io.bytes.written == 100


@pytest.mark.slow
def test_whole_chunks_of_a_truncated_location_are_read(tmp_path):
    with archive(tmp_path / "run", chunk_size_events=1 << 18) as a:
        location, handle, write = a.locations[0, 0], a.handle("/s/0"), a.region("write")
        opened(location, 0, handle)
        for number in range(9_000):
            operation(location, 10 + 10 * number, 5, handle, "write", [100], write)
    events = tmp_path / "run" / "traces" / "0.evt"
    whole = events.read_bytes()
    assert len(whole) > 1 << 18
    reader = open_trace(tmp_path / "run")
    assert (reader.calls_per_rank().tolist(), reader.problems) == ([9_001], [])
    calls = []
    for size in (1 << 18, (1 << 18) + 100):
        events.write_bytes(whole[:size])
        reader = open_trace(tmp_path / "run")
        calls.append(int(reader.calls_per_rank().sum()))
        assert re.search(r"its events are cut off; [0-9,]+ events of whole chunks are read$", reader.problems[0])
    assert calls[0] == calls[1]
    assert calls[0] == pytest.approx(9_001 * (1 << 18) / len(whole), rel=0.01)


@pytest.mark.parametrize(("at", "number"), [(10, 1 << 40), (10, 50), (2, 7), (2, 0)])
def test_chunk_with_an_impossible_event_count_is_not_read(tmp_path, at, number):
    run = written(tmp_path / "run")
    events = run / "traces" / "1.evt"
    whole = events.read_bytes()
    events.write_bytes(whole[:at] + number.to_bytes(8, "little") + whole[at + 8 :])
    reader = open_trace(run)
    assert reader.calls_per_rank().tolist() == [2, 0]
    assert reader.problems == [
        "location Master thread of MPI Rank 1: its events are damaged; 0 events of whole chunks are read"
    ]


def test_missing_events_and_definitions_are_reported_in_one_line(tmp_path):
    run = written(tmp_path / "run")
    definitions = run / "traces.def"
    whole = definitions.read_bytes()
    definitions.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match=r"cannot be read as an archive of OTF2 \(traces\.def is cut off\); copy it again"):
        vani.profile(run)
    definitions.write_bytes(whole)
    shutil.rmtree(run / "traces")
    with pytest.raises(TraceError, match=r"has no call on files: location .*; copy it again, with its folder$"):
        vani.profile(run)
    definitions.unlink()
    with pytest.raises(TraceError, match=r"definitions, traces\.def, are missing; copy the archive whole$"):
        vani.profile(run / "traces.otf2")


def test_bad_anchors_are_reported_in_one_line(tmp_path, capfd):
    for name in ("traces.otf2", "traces.def"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(TraceError, match="cannot be read as an archive of OTF2"):
        vani.profile(tmp_path)
    (tmp_path / "other.otf2").write_bytes(b"x")
    with pytest.raises(TraceError, match=r"contains 2 archives of OTF2; name one, such as .*other.otf2"):
        vani.profile(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_event_file_without_its_archive_is_refused(tmp_path):
    run = written(tmp_path / "run", 1)
    with pytest.raises(UnknownFormatError, match=r"0.evt: is one file of an archive of OTF2; name the archive"):
        open_trace(run / "traces" / "0.evt")
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / "traces.otf2")
    with pytest.raises(UnknownFormatError, match=r"is not a trace, but has 1 \.otf2 file"):
        open_trace(tmp_path / "pipe")


def test_missing_extra_is_named(tmp_path, monkeypatch):
    run = written(tmp_path / "run", 1)
    monkeypatch.setitem(sys.modules, "_otf2", None)
    with pytest.raises(InputError, match=r"takes the package otf2 .*; pip install 'vani-io\[otf2\]'$"):
        vani.profile(run)


def test_locks_of_files_are_reported_and_those_of_streams_are_not(tmp_path):
    exclusive = enums.LockType.EXCLUSIVE
    with archive(tmp_path / "run") as a:
        location, file, stream = a.locations[0, 0], a.handle("/s/x"), a.handle("/s/log", "stdio")
        operation(location, 0, 10**6, file, "write", [1 << 20], a.region("write"))
        operation(location, 2 * 10**6, 10**6, stream, "write", [1 << 20], a.region("fwrite"))
        for time, name, of, call in [
            (4, "lockf", file, location.io_acquire_lock),
            (5, "lockf", file, location.io_release_lock),
            (6, "flockfile", stream, location.io_acquire_lock),
        ]:
            region = a.region(name)
            location.enter(time * 10**6, region)
            call(time * 10**6, of, exclusive)
            location.leave(time * 10**6 + 10**5, region)
        # Outside any region.
        location.io_try_lock(8 * 10**6, file, exclusive)
    profile = vani.profile(tmp_path / "run", store=tmp_path / "store")
    assert [(lock.call, lock.calls, lock.failed, lock.files) for lock in profile.locks] == [
        ("lockf", 2, None, ["/s/x"]), ("flock", 1, None, ["/s/x"]),
    ]  # fmt: skip
    assert profile.locks[0].time_s == pytest.approx(2e-4)
