"""Classes of data operations by hand, and independence of where batches end."""

from __future__ import annotations

from pathlib import Path

import pytest
from call_tables import InventedTrace, call, create, profile_of, read, write

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
def test_operations_are_of_the_class_that_their_offsets_say(tmp_path, name, rows_per_batch):
    offsets, wanted = PATTERNS[name]
    found = profile(tmp_path, [read(offset=o) for o in offsets], rows_per_batch=rows_per_batch)
    assert shares(found.workflow.io.access_pattern) == wanted


def test_the_stride_of_a_file_is_the_distance_of_its_strided_operations(tmp_path):
    rows = [write(offset=(i * 8 + r) * 4096, size=4096, rank=r) for r in range(8) for i in range(16)]
    found = profile(tmp_path, rows, rows_per_batch=5)
    assert found.files[0].stride == 8 * 4096
    assert shares(found.workflow.io.access_pattern) == {"strided": 1.0}


def test_a_shared_file_written_in_blocks_by_each_process_is_not_random(tmp_path):
    # 8 ranks, a block of 16 x 64 KiB each, all at the same time.
    rows = [write(offset=r * (1 << 20) + i * 65536, size=65536, rank=r) for i in range(16) for r in range(8)]
    found = profile(tmp_path, rows, rows_per_batch=3)
    assert shares(found.files[0].io.access_pattern) == {"consecutive": 1.0}


def test_reads_and_writes_of_a_file_are_two_streams(tmp_path):
    rows = [f(offset=o) for o in (0, 100, 200, 300) for f in (read, write)]
    assert shares(profile(tmp_path, rows).workflow.io.access_pattern) == {"consecutive": 1.0}


def test_a_file_that_is_opened_again_is_read_anew(tmp_path):
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
