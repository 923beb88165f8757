"""Classes of data operations computed by hand, independent of where batches end."""

from __future__ import annotations

from pathlib import Path

import pytest
from call_tables import InventedTrace, call, create, profile_of, read, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.calls import FileClass, Flag
from vani.schema.profile import AccessPattern, Profile

STEP = 1000


def profile(folder: Path, rows: list, *, rows_per_batch: int = 1000, files: int = 1) -> Profile:
    for i, row in enumerate(rows):
        row["start_ns"] = i * STEP
    return profile_of(
        [InventedTrace(rows, [FileClass.DATASET] * files, rows_per_batch=rows_per_batch)], folder
    )


def shares(pattern: AccessPattern | None) -> dict[str, float]:
    assert pattern is not None
    return {n: s for n, s in pattern.model_dump().items() if s}


PATTERNS = {
    "one after the other": ([0, 100, 200, 300], {"consecutive": 1.0}),
    "further on each time, at other distances": ([0, 300, 450, 1000], {"sequential": 1.0}),
    "three at one distance": ([0, 500, 1000, 1500], {"strided": 1.0}),
    "backwards at one distance": ([1500, 1000, 500, 0], {"strided": 1.0}),
    "two at one distance are no stride": ([0, 500, 1000, 1100], {"strided": 0.75, "consecutive": 0.25}),
    "to and fro": ([0, 5000, 300, 9000, 700], {"random": 1.0}),
    "one alone": ([700], {"consecutive": 1.0}),
    "the same place again and again": ([0, 0, 0, 0], {"random": 1.0}),
}


@pytest.mark.parametrize("rows_per_batch", [1, 2, 3, 1000])
@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.sampled(12)
def test_operations_are_of_the_class_that_their_offsets_say(tmp_path, name, rows_per_batch):
    offsets, wanted = PATTERNS[name]
    found = profile(tmp_path, [read(offset=o) for o in offsets], rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == wanted


def test_the_stride_of_a_file_is_the_distance_of_its_strided_operations(tmp_path):
    rows = [write(offset=(i * 8 + r) * 4096, size=4096, rank=r) for r in range(8) for i in range(16)]
    found = profile(tmp_path, rows, rows_per_batch=5)
    assert found.files[0].stride == 8 * 4096
    assert shares(found.workflow.io.access_pattern) == {"strided": 1.0}


def test_equally_common_strides_give_the_shortest(tmp_path):
    rows = [read(offset=i * 700, size=10, file=0, rank=0) for i in range(8)]
    rows += [read(offset=i * 300, size=10, file=0, rank=1) for i in range(8)]
    rows += [read(offset=i * 900, size=10, file=1, rank=0) for i in range(9)]
    rows += [read(offset=i * 100, size=10, file=1, rank=1) for i in range(5)]
    found = profile(tmp_path, rows, files=2)
    assert sorted(file.stride for file in found.files) == [300, 900]


def test_a_shared_file_written_in_blocks_by_each_process_is_not_random(tmp_path):
    # 8 ranks, a block of 16 x 64 KiB each, all at the same time.
    rows = [write(offset=r * (1 << 20) + i * 65536, size=65536, rank=r) for i in range(16) for r in range(8)]
    found = profile(tmp_path, rows, rows_per_batch=3)
    assert shares(found.files[0].io.access_pattern) == {"consecutive": 1.0}


def test_reads_and_writes_of_a_file_are_two_streams(tmp_path):
    rows = [f(offset=o) for o in (0, 100, 200, 300) for f in (read, write)]
    assert shares(profile(tmp_path, rows).workflow.io.access_pattern) == {"consecutive": 1.0}


def test_reopened_file_is_read_from_its_start(tmp_path):
    rows = [row for _ in range(5) for row in (call(flags=Flag.OPEN), read(offset=0), read(offset=100))]
    assert shares(profile(tmp_path, rows, rows_per_batch=2).workflow.io.access_pattern) == {
        "consecutive": 1.0
    }


def test_appended_data_is_consecutive(tmp_path):
    rows = [write(offset=None, flags=Flag.APPEND, rank=r) for r in range(4) for _ in range(5)]
    assert shares(profile(tmp_path, rows).workflow.io.access_pattern) == {"consecutive": 1.0}


def test_an_operation_after_a_seek_to_an_unknown_place_is_sequential(tmp_path):
    rows = [
        read(offset=0),
        call(flags=Flag.SEEK),
        read(offset=None),
        call(flags=Flag.SEEK),
        read(offset=None),
    ]
    assert shares(profile(tmp_path, rows, rows_per_batch=1).workflow.io.access_pattern) == {"sequential": 1.0}


def test_files_of_one_process_do_not_disturb_each_other(tmp_path):
    rows = [create(0), create(1)] + [write(f, offset=100 * i) for i in range(6) for f in (0, 1)]
    assert shares(profile(tmp_path, rows, files=2).workflow.io.access_pattern) == {"consecutive": 1.0}


MIB = 1 << 20
ANY_CUT = pytest.mark.parametrize("rows_per_batch", [1, 2, 3, 1000])


def followed(*offsets: int, size: int = MIB) -> list:
    """Reads from the file position that request more than there is."""
    return [read(offset=o, size=size, follows=True) for o in offsets]


@ANY_CUT
def test_reads_to_the_end_of_a_file_of_4096_bytes_through_a_large_buffer_are_consecutive(
    tmp_path, rows_per_batch
):
    rows = [create(), write(size=4096), call(flags=Flag.OPEN), *followed(0, 4096, 4096, 4096)]
    found = profile(tmp_path, rows, rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == {"consecutive": 1.0}


@ANY_CUT
def test_a_file_that_grows_between_reads_of_its_end_is_read_consecutively(tmp_path, rows_per_batch):
    # tail -f: 100 bytes each time, requested as 1 MiB, then nothing.
    rows = [create()]
    for i in range(5):
        rows += [write(offset=100 * i), *followed(100 * i, 100 * (i + 1))]
    found = profile(tmp_path, rows, rows_per_batch=rows_per_batch)
    assert shares(found.files[0].io.access_pattern) == {"consecutive": 1.0}


@ANY_CUT
def test_preads_at_a_known_end_are_consecutive(tmp_path, rows_per_batch):
    # pread(0, 1 MiB) returns 4096, so the next one starts there and returns nothing.
    ends = [read(offset=o, size=MIB) for o in (0, 4096, 4096)]
    rows = [create(), write(size=4096), *ends]
    found = profile(tmp_path, rows, rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == {"consecutive": 1.0}


def test_overlapping_preads_are_random_unless_the_end_explains_them(tmp_path):
    rows = [read(offset=o, size=MIB) for o in (0, 4096, 4096)]
    assert shares(profile(tmp_path, rows).workflow.io.access_pattern) == {"random": 1.0}


@ANY_CUT
def test_read_after_a_seek_back_is_not_a_continuation(tmp_path, rows_per_batch):
    rows = followed(0)
    for offset in (70_000, 500, 90_000):
        rows += [call(flags=Flag.SEEK, offset=offset), *followed(offset)]
    found = profile(tmp_path, rows, rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == {"random": 1.0}


def test_seek_on_another_file_changes_nothing(tmp_path):
    rows = [*followed(0), call(file=1, flags=Flag.SEEK, offset=9), *followed(4096)]
    found = profile(tmp_path, rows, files=2, rows_per_batch=1)
    assert shares(found.workflow.io.access_pattern) == {"consecutive": 1.0}


CHUNKS = st.lists(st.integers(1, 9000), min_size=1, max_size=6)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    size=st.integers(0, 9000),
    chunks=CHUNKS,
    at_end=st.integers(1, 3),
    written=st.booleans(),
    ranks=st.integers(1, 2),
)
def test_file_read_to_its_end_is_consecutive_whether_or_not_the_end_is_known(
    tmp_path_factory, size, chunks, at_end, written, ranks
):
    folder = tmp_path_factory.mktemp("whole")
    calls = []
    if written:
        calls += [("open", "/s/x", "577", "420"), ("write", "/s/x", "%p", str(size)), ("close", "/s/x")]
    reads, left, number = [], size, 0
    while left > 0 or at_end > 0:
        chunk = chunks[number % len(chunks)]
        number, at_end, left = number + 1, at_end - (left <= 0), left - chunk
        reads.append(("read", "/s/x", "%p", str(chunk)))
    calls += [("open", "/s/x", "0"), *reads, ("close", "/s/x")]
    run = [Call(name, tuple(args), 0, 0, 10 * i, 10 * i + 5) for i, (name, *args) in enumerate(calls)]
    write_trace(folder / "t", [run] * ranks, layout="3.0")
    found = vani.profile(folder / "t", store=folder / "store").files[0]
    assert shares(found.io.access_pattern) == {"consecutive": 1.0}


@ANY_CUT
def test_first_operation_is_strided_if_empty_reads_start_a_stride(tmp_path, rows_per_batch):
    # The second continues the first and starts a stride that only the fourth reveals.
    rows = [read(offset=offset, size=0) for offset in (0, 0, 2, 4)]
    rows.insert(2, write(offset=0, size=0))
    found = profile(tmp_path, rows, rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == {"strided": 0.8, "consecutive": 0.2}
