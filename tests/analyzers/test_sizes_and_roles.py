"""Final sizes of files and their roles in the run, from the actions of programs as the tracer records them.

Expected values are those that the calls leave on a POSIX file system, worked out by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from call_tables import MILLISECOND, InventedTrace, Row, call, create, profile_of, write
from hypothesis import given
from hypothesis import strategies as st
from quick_differences import differences, without_reason

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.calls import FileClass, Flag
from vani.schema.job import Job
from vani.schema.profile import FileEntity, Profile

NEW, UPDATE, TOUCH = "578", "2", "66"
"""O_RDWR | O_CREAT | O_TRUNC, O_RDWR, O_RDWR | O_CREAT."""
A = "/s/a"
SECOND = 10_000_000
"""In ticks of 100 ns."""


def opened(flags: str = NEW, path: str = A) -> tuple[str, ...]:
    return ("open", path, flags, "420")


def wrote(size: int, path: str = A) -> tuple[str, ...]:
    return ("write", path, "%p", str(size))


def wrote_at(offset: int, size: int, path: str = A) -> tuple[str, ...]:
    return ("pwrite", path, "%p", str(size), str(offset))


def cut(length: int, path: str = A) -> tuple[str, ...]:
    return ("ftruncate", path, str(length))


CLOSE = ("close", A)


def run(*calls: tuple[str, ...], begin: int = 0, step: int = 10) -> list[Call]:
    return [
        Call(name, tuple(args), 0, 0, begin + step * i, begin + step * i + step // 2)
        for i, (name, *args) in enumerate(calls)
    ]


def profile(folder: Path, *ranks: list[Call], job: Job | None = None) -> Profile:
    """The full profile, which the quick one does not contradict."""
    write_trace(folder / "t", list(ranks), layout="3.0")
    full = vani.profile(folder / "t", store=folder / "store", files=None, job=job)
    quick = vani.profile(folder / "t", quick=True, files=None, job=job)
    assert differences(quick, full) == []
    assert without_reason(quick, full) == set()
    return full


def file(folder: Path, *calls: tuple[str, ...]) -> FileEntity:
    return profile(folder, run(*calls)).files[0]


LENGTHS = {
    "cut shorter": ([opened(), wrote(1000), cut(10)], 10),
    "cut longer": ([opened(), wrote(1000), cut(5000)], 5000),
    "cut, then written beyond": ([opened(), wrote(1000), cut(10), wrote_at(500, 100)], 600),
    "lengthened, then written within": ([opened(), cut(5000), wrote(1000)], 5000),
    "cut by name after it was closed": ([opened(), wrote(1000), CLOSE, ("truncate", A, "7")], 7),
    "cut to nothing": ([opened(), wrote(1000), cut(0)], 0),
    "written again, shorter": ([opened(), wrote(1000), CLOSE, opened(), wrote(10)], 10),
    "written again without O_TRUNC": ([opened(), wrote(1000), CLOSE, opened(UPDATE), wrote(10)], 1000),
    "removed and made again": ([opened(), wrote(1000), CLOSE, ("unlink", A), opened(TOUCH), wrote(10)], 10),
    "of a file that was there": ([opened(UPDATE), wrote(1000), cut(10)], 10),
    "a write of nothing": ([opened(), wrote(0)], 0),
    "removed in the end": ([opened(), wrote(1000), CLOSE, ("unlink", A)], 1000),
    "emptied in the end, and what filled it then left no record": (
        [opened(), wrote(1000), CLOSE, ("fopen", A, "w"), ("fclose", A)],
        None,
    ),
    "F_DUPFD: what is written through that descriptor leaves no record": (
        [opened(), wrote(6000), ("fcntl", A, "0", "90"), CLOSE],
        None,
    ),
    "F_DUPFD_CLOEXEC": ([opened(), wrote(6000), ("fcntl", A, "1030", "0"), CLOSE], None),
    "a lock (F_SETLK) is no duplicate": ([opened(), wrote(6000), ("fcntl", A, "6", "1"), CLOSE], 6000),
    "dup, whose descriptor the tracer follows": (
        [opened(), ("dup", "3"), ("dup2", "3", "77"), wrote(1000), wrote(2000), wrote(3000), CLOSE, CLOSE, CLOSE],
        6000,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LENGTHS)
@pytest.mark.sampled(8)
def test_the_size_of_a_file_is_that_in_the_end(tmp_path, case):
    calls, size = LENGTHS[case]
    found = profile(tmp_path, run(*calls))
    assert found.files[0].size == found.dataset.size == size
    assert (size is None) == ("files.size" in found.provenance)


UNSEEN = {
    "mmap, as Recorder 3.0 shows it": [opened(), CLOSE],
    "mmap, as 2.5g shows it": [opened(), ("mmap", "%p", "65536", "3", "1", A, "0"), ("msync", "%p", "9", "4"), CLOSE],
    "made without O_TRUNC": [opened(TOUCH), CLOSE],
    "made by creat": [("creat", A, "420"), CLOSE],
    "a stream": [("fopen", A, "w"), ("fclose", A)],
    "filled by sendfile, then read": [opened(), ("read", A, "%p", "100"), ("read", A, "%p", "100"), CLOSE],
}  # fmt: skip


@pytest.mark.parametrize("case", UNSEEN)
def test_created_file_without_a_recorded_write_is_an_output_of_unknown_size(tmp_path, case):
    found = file(tmp_path, *UNSEEN[case])
    assert (found.role, found.size) == ("output", None)


def test_mapped_file_has_the_size_set_by_ftruncate(tmp_path):
    found = file(tmp_path, opened(), cut(65536), ("mmap", "%p", "65536", "3", "1", A, "0"), CLOSE)
    assert (found.role, found.size) == ("output", 65536)


def test_file_opened_with_o_creat_and_only_read_is_an_input(tmp_path):
    # Like Fortran opening its inputs without STATUS; all reads are consecutive, and none is past an end.
    found = file(tmp_path, opened(TOUCH), *[("read", A, "%p", "8192")] * 4, CLOSE)
    assert (found.role, found.size) == ("input", None)
    assert found.io.past_end.read is None
    assert found.io.footprint.read == 4 * 8192


def test_the_size_before_the_run_counts_until_the_file_is_emptied(tmp_path):
    job = Job.model_validate(
        {
            "schema": "vani.job/1",
            "dataset": {"root": "/s", "files": [{"path": A, "size": 5000}, {"path": "/s/b", "size": 5000}]},
        }
    )
    calls = [opened(UPDATE), wrote(10), CLOSE, opened(NEW, "/s/b"), wrote(10, "/s/b")]
    found = profile(tmp_path, run(*calls), job=job)
    assert {f.path: f.size for f in found.files} == {A: 5000, "/s/b": 10}


MPI_OPEN = ("MPI_File_open", "MPI_COMM_WORLD", A, "9", "%p", "0-0")


def test_mpi_file_set_size_sets_the_size_without_a_recorded_ftruncate(tmp_path):
    calls = [MPI_OPEN, opened(TOUCH), wrote_at(0, 65536), ("MPI_File_set_size", "0-0", "1000")]
    assert file(tmp_path, *calls).size == 1000


def test_mpi_file_set_size_cuts_earlier_writes_of_its_rank_despite_clock_skew(tmp_path):
    # Rank 1's clock is 1 s behind, rank 2's is 1 s ahead; only rank 0 calls ftruncate below it.
    ranks = [
        run(
            MPI_OPEN,
            opened(TOUCH),
            wrote_at(100_000 * rank, 65536),
            ("MPI_File_set_size", "0-0", "1000"),
            *([cut(1000)] if rank == 0 else []),
            *([wrote_at(1000, 500)] if rank == 1 else []),
            begin=(30 + skew) * SECOND,
        )
        for rank, skew in enumerate((0, -1, 1))
    ]
    assert profile(tmp_path, *ranks).files[0].size == 1500


def test_truncation_misplaced_by_clocks_after_others_writes_removes_nothing(tmp_path):
    # Rank 0 creates the file, then both write; rank 1's clock is 0.3 s behind.
    ranks = [
        run(opened(), wrote_at(0, 100), begin=SECOND),
        run(opened(UPDATE), wrote_at(100, 100), begin=SECOND * 7 // 10),
    ]
    assert profile(tmp_path, *ranks).files[0].size == 200


def test_shared_file_rewritten_much_later_has_its_new_size(tmp_path):
    ranks = [
        run(*first, begin=SECOND) + run(*second, begin=60 * SECOND)
        for first, second in (
            ([opened(), wrote_at(0, 1000)], [opened(), wrote_at(0, 10)]),
            ([opened(UPDATE), wrote_at(1000, 1000)], [opened(UPDATE), wrote_at(10, 10)]),
        )
    ]
    assert profile(tmp_path, *ranks).files[0].size == 20


def test_order_of_simultaneous_writes_and_truncation_is_unknown(tmp_path):
    ranks = [run(opened(), wrote_at(0, 100), cut(50)), run(opened(UPDATE), wrote_at(1000, 100))]
    found = profile(tmp_path, *ranks)
    assert found.files[0].size is None
    assert "at unrecorded places" in found.provenance["files.size"]


def test_other_writes_within_a_truncated_file_change_nothing(tmp_path):
    ranks = [run(opened(), wrote_at(0, 100), cut(5000)), run(opened(UPDATE), wrote_at(1000, 100))]
    assert profile(tmp_path, *ranks).files[0].size == 5000


def test_data_appended_to_an_existing_file_does_not_reveal_its_size(tmp_path):
    append = [opened("1025"), wrote(128)]
    assert profile(tmp_path, run(*append), run(*append)).files[0].size is None


def simulated(rows: list[Row]) -> int | None:
    """Length of the file after the calls of one process; None if nothing shows it."""
    length, filled = None, True
    for row in rows:
        if row["flags"] & Flag.TRUNCATE:
            length, filled = 0, False
        elif row["flags"] & Flag.RESIZE:
            length, filled = row["offset"], True
        elif row["bytes"] is not None:
            reached = row["offset"] + row["bytes"] if row["bytes"] else 0
            length, filled = max(length or 0, reached), True
    return length if filled else None


STEPS = st.one_of(
    st.builds(create),
    st.builds(lambda n: call(flags=Flag.RESIZE, offset=n), st.integers(0, 300)),
    st.builds(lambda o, n: write(offset=o, size=n), st.integers(0, 200), st.sampled_from([0, 1, 100])),
)


@given(rows=st.lists(STEPS, min_size=1, max_size=12), batch=st.integers(1, 12))
@pytest.mark.slow
def test_private_file_has_the_length_its_calls_leave(tmp_path_factory, rows, batch):
    for i, row in enumerate(rows):
        row["start_ns"] = i * MILLISECOND // 100
    trace = InventedTrace([*rows, call(flags=Flag.OPEN, at=MILLISECOND)], [FileClass.DATASET], rows_per_batch=batch)
    found = profile_of([trace], tmp_path_factory.mktemp("lengths"))
    assert found.files[0].size == simulated(rows)
