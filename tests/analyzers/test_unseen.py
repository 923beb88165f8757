"""Activity that a trace proves without recording it: which calls are evidence, and what bounds the activity."""

from __future__ import annotations

import pytest

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.schema.job import FileAfter, Job

READ_ONLY, READ_WRITE, NEW = "0", "2", "578"
"""O_RDONLY, O_RDWR, O_RDWR | O_CREAT | O_TRUNC."""
RUN_S = 100.0
WORK = ("write", ("/s/other", "%p", "1000"))


def calls(*timed):
    """Calls of one rank from (second, function, arguments); each takes a millisecond, and the run 100 s."""
    rows = [(0.0, "open", ("/s/other", NEW, "420")), *timed, (RUN_S - 0.001, *WORK)]
    return [Call(function, args, 0, 0, round(at * 1000), round(at * 1000) + 1) for at, function, args in rows]


def profile_of(folder, *ranks, job=None):
    write_trace(folder / "trace", ranks, layout="3.0", resolution=1e-3)
    return vani.profile(folder / "trace", store=folder / "store", job=job)


def opened(path, flags, begin, end, *inside):
    return [(begin, "open", (path, flags, "420")), *inside, (end, "close", (path,))]


def stream(path, mode, begin, end):
    return [(begin, "fopen64", (path, mode)), (end, "fclose", (path,))]


@pytest.mark.parametrize(
    ("timed", "kind", "most_s"),
    [
        (opened("/s/new", NEW, 10, 30), "written_without_writes", 20),
        (stream("/s/log", "w", 10, 30), "stream_buffered", 20),
        (stream("/s/in", "r", 10, 30), "read_without_reads", 20),
        # A file that existed before the run may be mapped, and a mapping outlives its descriptor.
        (opened("/s/old", READ_ONLY, 10, 10.002), "read_without_reads", None),
        (opened("/s/old", READ_WRITE, 10, 10.002), "written_without_writes", None),
        # So may a new file with a set length.
        (opened("/s/map", NEW, 10, 10.01, (10.005, "ftruncate", ("/s/map", "8192"))), "written_without_writes", None),
        (
            opened("/s/npy", NEW, 10, 30, (11, "write", ("/s/npy", "%p", "128")), (20, "lseek", ("/s/npy", "9000", "0"))),
            "written_without_writes",
            20,
        ),
    ],
)
def test_a_file_that_lacks_its_data_calls_leaves_the_verdict_open(tmp_path, timed, kind, most_s):
    profile = profile_of(tmp_path, calls(*timed))
    (entry,) = profile.unseen
    assert (entry.kind, entry.count, entry.files) == (kind, 1, [timed[0][2][0]])
    assert entry.most_s == (None if most_s is None else pytest.approx(most_s, abs=0.01))
    assert (profile.verdict.matters, profile.verdict.share) == ("open", None)


@pytest.mark.parametrize(
    "timed",
    [
        opened("/s/empty", NEW, 10, 10.01),
        stream("/s/empty", "w", 10, 10.01),
        opened("/s/data", NEW, 10, 30, (11, "write", ("/s/data", "%p", "128"))),
        opened("/s/data", READ_ONLY, 10, 30, (11, "read", ("/s/data", "%p", "128"))),
        # A file for writing that is only read.
        opened("/s/h5", READ_WRITE, 10, 30, (11, "read", ("/s/h5", "%p", "128"))),
        # A folder is opened to flush it.
        opened("/s", READ_ONLY, 10, 30, (11, "fsync", ("/s",))),
        # Beyond the written data, and then written there.
        opened(
            "/s/sparse", NEW, 10, 30, (11, "lseek", ("/s/sparse", "9000", "0")), (12, "write", ("/s/sparse", "%p", "1"))
        ),
    ],
)
def test_calls_that_hide_no_writes_are_no_evidence(tmp_path, timed):
    profile = profile_of(tmp_path, calls(*timed))
    assert profile.unseen == []
    assert profile.verdict.matters == "no"


def test_times_of_files_a_process_opens_in_sequence_add_up(tmp_path):
    files = [call for n in range(5) for call in opened(f"/s/f{n}", NEW, 10 * n + 1, 10 * n + 3)]
    (entry,) = profile_of(tmp_path, calls(*files)).unseen
    assert (entry.count, entry.most_s) == (5, pytest.approx(10, abs=0.02))


def test_closed_file_hides_no_writes(tmp_path):
    twice = [*opened("/s/f", NEW, 10, 12), *opened("/s/f", NEW, 80, 82)]
    (entry,) = profile_of(tmp_path, calls(*twice)).unseen
    assert entry.most_s == pytest.approx(4, abs=0.01)


def test_shared_file_counts_the_process_that_keeps_it_open_longest(tmp_path):
    # Formerly the mean over all processes, which is less than the first one can have taken.
    longest, short = opened("/s/shared", NEW, 10, 30), opened("/s/shared", NEW, 11, 11.01)
    (entry,) = profile_of(tmp_path, calls(*longest), *[calls(*short)] * 3).unseen
    assert entry.most_s == pytest.approx(20, abs=0.1)


def test_traced_mappings_make_guessing_unnecessary(tmp_path):
    mapped = [(5, "mmap", ("%p", "4096", "1", "1", "/s/mapped", "0"))]
    timed = [*opened("/s/old", READ_ONLY, 10, 10.002), *opened("/s/mapped", READ_ONLY, 4, 6, *mapped)]
    (entry,) = profile_of(tmp_path, calls(*sorted(timed))).unseen
    assert (entry.kind, entry.files) == ("memory_mapped", ["/s/mapped"])


@pytest.mark.parametrize(("length", "most_s"), [("1", 0.01), ("4096", 0.01), ("4097", 0.02), ("65536", 0.16), ("65537", None)])
def test_a_few_mapped_pages_wait_no_longer_than_the_disk_for_each(tmp_path, length, most_s):
    mapped = [(5, "mmap", ("%p", length, "1", "1", "/s/mapped", "0"))]
    (entry,) = profile_of(tmp_path, calls(*opened("/s/mapped", READ_ONLY, 4, 6, *mapped))).unseen
    assert entry.most_s == (most_s if most_s is None else pytest.approx(most_s))


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("io_uring_setup", "asynchronous"),
        ("aio_write", "asynchronous"),
        ("copy_file_range", "copied_in_kernel"),
        ("dfs_write", "other_api"),
        ("fork", "forked_processes"),
    ],
)
def test_functions_moving_data_invisibly_are_reported_as_unseen(tmp_path, function, kind):
    profile = profile_of(tmp_path, calls((5, function, ())))
    (entry,) = profile.unseen
    assert (entry.kind, entry.count, entry.most_s) == (kind, 1, None)
    assert function in entry.cause
    assert profile.verdict.matters == "open"


WRITTEN = (11, "write", ("/s/f", "%p", "5000"))


@pytest.mark.parametrize(
    ("again", "unread"),
    [
        (opened("/s/f", READ_ONLY, 40, 50), True),
        (opened("/s/f", READ_ONLY, 40, 50, (41, "read", ("/s/f", "%p", "5000"))), False),
        # The inner one has no read, and both are closed.
        (opened("/s/f", READ_ONLY, 40, 50, (41, "read", ("/s/f", "%p", "9")), *opened("/s/f", READ_ONLY, 42, 43)), True),
        # A read after the close: it is through the outer one, or through a duplicated descriptor.
        (opened("/s/f", READ_ONLY, 40, 50, *opened("/s/f", READ_ONLY, 41, 42), (43, "read", ("/s/f", "%p", "9"))), False),
        (opened("/s/f", READ_ONLY, 40, 50, (41, "fsync", ("/s/f",))), False),
    ],
)
def test_each_opening_for_reading_must_read(tmp_path, again, unread):
    profile = profile_of(tmp_path, calls(*opened("/s/f", NEW, 10, 30, WRITTEN), *again))
    assert [(entry.kind, entry.files, entry.most_s) for entry in profile.unseen] == (
        [("read_without_reads", ["/s/f"], None)] if unread else []
    )


@pytest.mark.parametrize(
    ("again", "kind"),
    [
        (opened("/s/f", READ_WRITE, 40, 50), "written_without_writes"),
        (stream("/s/f", "a", 40, 50), "stream_buffered"),
        (opened("/s/f", READ_WRITE, 40, 50, (41, "write", ("/s/f", "%p", "9"))), None),
        (opened("/s/f", READ_WRITE, 40, 50, (41, "read", ("/s/f", "%p", "9"))), None),
        (opened("/s/f", READ_WRITE, 40, 50, (41, "ftruncate", ("/s/f", "9"))), None),
        # A short look, and one before the file is opened to be truncated, as HDF5 does.
        (opened("/s/f", READ_WRITE, 40, 40.01), None),
        ([*opened("/s/f", READ_WRITE, 40, 50), *opened("/s/f", NEW, 51, 60, (55, "write", ("/s/f", "%p", "9")))], None),
    ],
)
def test_each_opening_for_writing_must_write_or_be_short(tmp_path, again, kind):
    profile = profile_of(tmp_path, calls(*opened("/s/f", NEW, 10, 30, WRITTEN), *again))
    assert [(entry.kind, entry.files, entry.most_s) for entry in profile.unseen] == (
        [] if kind is None else [(kind, ["/s/f"], pytest.approx(10, abs=0.01))]
    )


def test_file_that_all_processes_open_and_one_writes_is_seen(tmp_path):
    writes, opens = opened("/s/f", NEW, 10, 30, WRITTEN), opened("/s/f", READ_WRITE, 10, 30)
    assert profile_of(tmp_path, calls(*writes), *[calls(*opens)] * 3).unseen == []


def mpi_io(function, *below, flags=NEW):
    """A call of MPI-IO for 1,000 bytes of a file that the file system's calls open, and the calls that it makes."""
    asks = Call(function, ("h", "0", "%p", "1000", "MPI_BYTE", "[0_0]"), 0, 0, 20_000, 30_000)
    opens = Call("MPI_File_open", ("MPI_COMM_WORLD", "/s/f", "9", "%p", "h"), 0, 0, 10_000, 11_000)
    inside = [Call("open", ("/s/f", flags, "420"), 1, 0, 10_200, 10_300), *below]
    return sorted([*calls((40, "close", ("/s/f",))), opens, asks, *inside], key=lambda call: call.start)


def test_data_that_nothing_below_mpi_io_moved_is_unseen_with_its_bytes(tmp_path):
    (entry,) = profile_of(tmp_path, mpi_io("MPI_File_write_at")).unseen
    assert (entry.kind, entry.files, entry.count, entry.bytes) == ("calls_below_missing", ["/s/f"], 1, 1000)
    assert entry.most_s == pytest.approx(29.7, abs=0.1)


def test_data_that_another_process_moved_is_seen(tmp_path):
    # Collective buffering: the other rank's data is in this rank's call.
    moved = Call("pwrite", ("/s/f", "%p", "2000", "0"), 1, 0, 21_000, 22_000)
    assert profile_of(tmp_path, mpi_io("MPI_File_write_at_all", moved), mpi_io("MPI_File_write_at_all")).unseen == []


def test_a_process_that_others_read_for_has_read(tmp_path):
    moved, name = Call("pread", ("/s/f", "%p", "2000", "0"), 1, 0, 21_000, 22_000), "MPI_File_read_at_all"
    ranks = mpi_io(name, moved, flags=READ_ONLY), mpi_io(name, flags=READ_ONLY)
    assert profile_of(tmp_path, *ranks).unseen == []


def after(size, *, allocated=None, before=0):
    allocated = size if allocated is None else allocated
    return Job(files_after=[FileAfter(path="/s/f", size=size, allocated=allocated, allocated_before=before)])


@pytest.mark.parametrize(
    ("job", "missing"),
    [
        (after(1_000_000), 995_000),
        # Holes, blocks that are written in part, and space that a library reserved are no data.
        (after(1_000_000, allocated=8192), None),
        (after(9_000), None),
        # The file had an unknown size before the run, or none of it is left.
        (after(1_000_000, before=None), None),
        (after(0), None),
    ],
)
def test_growth_that_no_write_explains_is_unseen(tmp_path, job, missing):
    profile = profile_of(tmp_path, calls(*opened("/s/f", NEW, 10, 30, WRITTEN)), job=job)
    found = [(entry.kind, entry.files, entry.bytes) for entry in profile.unseen]
    assert found == ([("written_without_writes", ["/s/f"], missing)] if missing else [])


def test_file_that_did_not_grow_was_not_written(tmp_path):
    timed = calls(*opened("/s/f", NEW, 10, 30))
    assert [entry.kind for entry in profile_of(tmp_path / "1", timed).unseen] == ["written_without_writes"]
    assert profile_of(tmp_path / "2", timed, job=after(0)).unseen == []


def test_upper_bounds_name_the_time_of_what_was_not_recorded(tmp_path):
    profile = profile_of(tmp_path, calls(*opened("/s/new", NEW, 10, 11.001)))
    assert (len(profile.unseen), profile.verdict.matters) == (1, "no")
    (found,) = [one for one in vani.advise(profile).recommendations if one.rule == "MAT001"]
    assert "could be saved; what was not recorded took at most 1 s." in found.reason
