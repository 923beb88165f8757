"""Activity that a trace proves without recording it: which calls are evidence, and what bounds the activity."""

from __future__ import annotations

import pytest

import vani
from tests.traces.recorder_writer import Call, write_trace

READ_ONLY, READ_WRITE, NEW = "0", "2", "578"
"""O_RDONLY, O_RDWR, O_RDWR | O_CREAT | O_TRUNC."""
RUN_S = 100.0
WORK = ("write", ("/s/other", "%p", "1000"))


def calls(*timed):
    """Calls of one rank from (second, function, arguments); each takes a millisecond, and the run 100 s."""
    rows = [(0.0, "open", ("/s/other", NEW, "420")), *timed, (RUN_S - 0.001, *WORK)]
    return [Call(function, args, 0, 0, round(at * 1000), round(at * 1000) + 1) for at, function, args in rows]


def profile_of(folder, *ranks):
    write_trace(folder / "trace", ranks, layout="3.0", resolution=1e-3)
    return vani.profile(folder / "trace", store=folder / "store")


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
