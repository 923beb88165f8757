"""Logs of Darshan 2, and logs of either version that were compressed as a whole."""

from __future__ import annotations

import bz2
import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import vani
from vani.errors import InputError, TraceError, UnknownFormatError
from vani.readers.darshan.log import open_log
from vani.readers.darshan.records import read_records
from vani.readers.darshan.totals import read_totals

DATA = Path(__file__).parents[1] / "data" / "darshan"
COUNTERS, TIMES = 144, 18
AT = {
    "INDEP_OPENS": 0, "COLL_WRITES": 5, "POSIX_READS": 11, "POSIX_WRITES": 12, "POSIX_OPENS": 13, "POSIX_SEEKS": 14,
    "POSIX_FREADS": 17, "POSIX_FWRITES": 18, "POSIX_FOPENS": 19, "POSIX_FSYNCS": 21, "HDF5_OPENS": 25, "BYTES_READ": 47,
    "BYTES_WRITTEN": 48, "MAX_BYTE_WRITTEN": 50, "SIZE_READ_0_100": 62, "DEVICE": 138, "SLOWEST_RANK": 142,
}  # fmt: skip
"""Positions of some counters in `darshan-log-format.h` of Darshan 2.3.1."""
READ_TIME, WRITE_TIME, META_TIME, MPI_WRITE_TIME = 6, 7, 8, 11


def record(order: str, id_: int, rank: int, suffix: bytes, times: dict[int, float] | None = None, **counters: int) -> bytes:
    values, seconds = [0] * COUNTERS, [0.0] * TIMES
    for name, value in counters.items():
        values[AT[name]] = value
    for at, value in (times or {}).items():
        seconds[at] = value
    return struct.pack(f"{order}Qq16s{COUNTERS}q{TIMES}d", id_, rank, suffix, *values, *seconds)


def log(order: str, *records: bytes, version: bytes = b"2.06") -> bytes:
    size, notes = (1024, 64) if version < b"2.04" else (4096, 1024)
    job = struct.pack(f"{order}8sqqqqqq", version, 6567223, 1000, 1_400_000_000, 1_400_000_009, 4, 77)
    job += b"lib_ver=2.3.1\nh=cb_nodes=4\n".ljust(notes, b"\0")
    return (job + b"/bin/app -x\n77\tlustre\t/scratch\n-5\tnfs\t/\0").ljust(size, b"\0") + b"".join(records)


def shared(order: str) -> bytes:
    return log(
        order,
        record(order, 1, -1, b"s/run/field.dat", {READ_TIME: 1.5, WRITE_TIME: 2.5, META_TIME: 0.5, MPI_WRITE_TIME: 9.0},
               POSIX_OPENS=4, POSIX_FOPENS=1, POSIX_READS=8, POSIX_FREADS=2, POSIX_WRITES=3, POSIX_SEEKS=5,
               BYTES_READ=800, BYTES_WRITTEN=300, MAX_BYTE_WRITTEN=299, SIZE_READ_0_100=10, COLL_WRITES=6, HDF5_OPENS=4,
               DEVICE=77, SLOWEST_RANK=2),
        record(order, 2, 3, b"run.log", {WRITE_TIME: 0.25}, POSIX_FOPENS=1, POSIX_FWRITES=20, BYTES_WRITTEN=999),
    )  # fmt: skip


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lambda content: gzip.compress(content[:5000]) + gzip.compress(content[5000:])])
def test_counters_of_all_interfaces_become_records_of_each(tmp_path, order, pack):
    path = tmp_path / "a.darshan.gz"
    path.write_bytes(pack(shared(order)))
    read = read_records(open_log(path))
    assert (read.version, read.exe, read.ranks, read.user, read.job_id) == ("2.06", "/bin/app -x", 4, 1000, 77)
    assert (read.start_s, read.end_s) == (1_400_000_000, 1_400_000_010)
    assert (read.mounts, read.metadata["h"]) == ((("/scratch", "lustre"), ("/", "nfs")), "cb_nodes=4")
    assert read.names == ["/scratch/...s/run/field.dat", "run.log"]
    posix, stdio = read.modules["POSIX"], read.modules["STDIO"]
    assert (posix.id.tolist(), posix.rank.tolist()) == ([1], [-1])
    assert (stdio.id.tolist(), stdio.rank.tolist()) == ([2], [3])
    counters = {name: int(values[0]) for name, values in posix.counters.items()}
    wanted = {"OPENS": 5, "READS": 10, "WRITES": 3, "SEEKS": 5, "BYTES_READ": 800, "BYTES_WRITTEN": 300,
              "MAX_BYTE_WRITTEN": 299, "SIZE_READ_0_100": 10, "SLOWEST_RANK": 2, "DUPS": -1, "RENAMED_FROM": 0}  # fmt: skip
    assert {name: counters[f"POSIX_{name}"] for name in wanted} == wanted
    assert [float(posix.times[f"POSIX_F_{name}_TIME"][0]) for name in ("READ", "WRITE", "META")] == [1.5, 2.5, 0.5]
    assert (stdio.counters["STDIO_WRITES"].tolist(), stdio.counters["STDIO_FLUSHES"].tolist()) == ([20], [-1])
    mpi = read.modules["MPI-IO"]
    assert (mpi.counters["MPIIO_COLL_WRITES"].tolist(), mpi.times["MPIIO_F_WRITE_TIME"].tolist()) == ([6], [9.0])
    assert mpi.counters["MPIIO_BYTES_WRITTEN"].tolist() == [-1], "bytes are those of POSIX"
    assert read.modules["H5F"].counters["H5F_OPENS"].tolist() == [4]
    totals = read_totals(path)
    assert (totals.opens, totals.reads, totals.writes, totals.bytes_written, totals.files) == (6, 10, 23, 1299, 2)
    assert (totals.mount, totals.collective, totals.read_s) == ("/scratch", 6, 1.5)


def test_equal_path_suffixes_are_two_files(tmp_path):
    path = tmp_path / "a.darshan"
    path.write_bytes(log("<", *(record("<", id_, 0, b"s/run/field.dat", POSIX_OPENS=1) for id_ in (1, 2))))
    assert read_records(open_log(path)).names == ["...s/run/field.dat", "...s/run/field.dat (0000000000000002)"]
    assert read_totals(path).files == 2


@pytest.mark.parametrize(
    ("name", "opens", "metadata_s", "moved"),
    [
        ("mpi-io-test-ppc64-2.2.9.darshan.gz", 4096, 2878.976956, 17179869184),
        ("mpi-io-test-x86_64-2.3.1.darshan.gz", 4, 0.000101, 16777216),
    ],
)
def test_sums_agree_with_darshan_parser_of_that_release(name, opens, metadata_s, moved):
    totals = read_totals(DATA / "old" / name)
    assert (totals.opens, totals.bytes_read, totals.bytes_written) == (opens, moved, moved)
    assert totals.metadata_s == pytest.approx(metadata_s, abs=1e-6)
    profile = vani.profile(DATA / "old" / name)
    assert (profile.workflow.io.bytes.written, profile.files[0].opens) == (moved, opens)
    assert {entry.layer for entry in profile.interfaces} >= {"posix", "mpiio"}


@pytest.mark.parametrize("version", [b"2.00", b"2.02"])
def test_late_moments_leave_sums_alone(tmp_path, version):
    path = tmp_path / "a.darshan"
    content = log("<", record("<", 1, 0, b"/short", POSIX_OPENS=1, POSIX_WRITES=2, BYTES_WRITTEN=9), version=version)
    # Version 2.00 has no notes in its job.
    path.write_bytes(content if version != b"2.00" else content[:56] + content[120:1024] + bytes(64) + content[1024:])
    assert (read_totals(path).writes, read_totals(path).exe) == (2, "/bin/app -x")
    with pytest.raises(UnknownFormatError, match="times of calls do not begin with the run; take its sums with"):
        vani.profile(path)


def test_a_log_of_darshan_1_is_refused(tmp_path):
    (tmp_path / "a.darshan").write_bytes(b"1.24\0\0\0\0" + bytes(5000))
    with pytest.raises(UnknownFormatError, match=r"is a Darshan log of version 1\.24, and 2\.00 to 2\.06 are read of those before 3"):
        open_log(tmp_path / "a.darshan")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_new_log_may_be_compressed_as_a_whole(tmp_path, pack):
    plain = DATA / "v3-ior-ssf-posix-8r.darshan"
    (tmp_path / "a.darshan.bz2").write_bytes(pack(plain.read_bytes()))
    assert vani.profile(tmp_path / "a.darshan.bz2").workflow.io == vani.profile(plain).workflow.io


@pytest.mark.parametrize(("content", "said"), [
    (shared("<")[:-8], "each has 1,328: one is cut"),
    (shared("<")[:2000], "its job alone 4,096"),
    (gzip.compress(shared("<"))[:-20], "ends inside its compressed data"),
    (b"2.06\0\0\0\0" + bytes(9000), "it lacks the number of logs"),
    (log("<", record("<", 1, 9, b"x", POSIX_OPENS=1)), "POSIX has a record of rank 9 of 4 processes"),
])  # fmt: skip
def test_damage_is_named_in_one_line(tmp_path, content, said):
    (tmp_path / "a.darshan").write_bytes(content)
    with pytest.raises(TraceError, match=said) as caught:
        read_totals(tmp_path / "a.darshan")
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_random_bytes_never_raise_another_exception(tmp_path):
    random = np.random.default_rng(7)
    for number in range(300):
        content = bytearray(shared("<>"[number % 2]))
        for at in random.integers(0, len(content), 1 + number % 30).tolist():
            content[at] = int(random.integers(256))
        (tmp_path / "a.darshan").write_bytes(content[: int(random.integers(len(content)))] if number % 5 == 0 else content)
        try:
            read_totals(tmp_path / "a.darshan")
            read_records(open_log(tmp_path / "a.darshan"))
        except InputError as error:
            assert "\n" not in str(error)
