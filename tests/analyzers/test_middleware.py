"""Table VII: requests of the libraries between the program and the file system."""

from __future__ import annotations

from pathlib import Path

import pytest

import vani
from tests.traces.recorder_writer import Call, write_trace

TRACES = Path(__file__).resolve().parents[1] / "data/traces"


def made(tmp_path, *calls):
    """Full and quick profiles of one rank that makes these (function, arguments, depth) calls in turn."""
    ticks, rows = 0, []
    for function, args, depth in calls:
        # A call is within the preceding one of lower depth.
        rows.append(Call(function, args, depth, 0, ticks + depth, ticks + 9 - depth))
        deeper = len(rows) < len(calls) and calls[len(rows)][2] > depth
        ticks += 0 if deeper else 10
    write_trace(tmp_path / "t", [rows], layout="3.0")
    return [vani.profile(tmp_path / "t", quick=quick) for quick in (False, True)]


def pwrite(size, offset, depth):
    return ("pwrite", ("/p/out", "%p", str(size), str(offset)), depth)


def write_at(offset):
    return ("MPI_File_write_at", ("0-0", str(offset), "%p", "1", "MPI_BYTE", "[0_0]"), 0)


OPEN = [
    ("MPI_File_open", ("MPI_COMM_WORLD", "/p/out", "5", "%p", "0-0"), 0),
    ("open", ("/p/out", "66", "420"), 1),
]


def test_a_call_through_two_libraries_counts_once(tmp_path):
    h5 = ("H5Dwrite", ("1", "2", "3", "4", "5", "%p"), 0)
    mpi = ("MPI_File_write_at", ("0-0", "0", "%p", "1", "MPI_BYTE", "[0_0]"), 1)
    # 300 bytes through both libraries, 500 through one: if the 300 counted in each, 100 would move the most.
    through_both = [call for i in range(3) for call in (h5, mpi, pwrite(100, 100 * i, 2))]
    full, quick = made(tmp_path, *OPEN, *through_both, write_at(300), pwrite(500, 300, 1))
    assert full.middleware.libraries == ["mpiio", "hdf5"]
    assert full.middleware.granularity.data == 500
    assert full.middleware.access_pattern == "consecutive"
    assert quick.middleware.granularity == full.middleware.granularity
    assert quick.middleware.access_pattern is None
    assert "order" in quick.provenance["middleware.access_pattern"]


def test_calls_that_no_library_makes_are_not_the_middlewares(tmp_path):
    own = [pwrite(4000, 10_000 + 9_000 * (i % 7), 0) for i in range(9)]
    full, quick = made(tmp_path, *OPEN, write_at(0), pwrite(64, 0, 1), write_at(64), pwrite(64, 64, 1), *own)
    for profile in (full, quick):
        assert profile.middleware.libraries == ["mpiio"]
        assert profile.middleware.granularity.data == 64
        posix = next(row for row in profile.interfaces if row.layer == "posix")
        assert posix.granularity.data == 4000
        assert profile.provenance["middleware.granularity"] == "of the file-system calls made within calls of mpiio"
    assert full.middleware.access_pattern == "consecutive"


def test_without_a_library_there_is_no_middleware(tmp_path):
    for profile in made(tmp_path, ("open", ("/p/out", "66", "420"), 0), pwrite(64, 0, 0)):
        found = profile.middleware
        assert (found.libraries, found.granularity, found.access_pattern) == ([], None, None)
        for name in ("granularity", "access_pattern"):
            assert profile.provenance[f"middleware.{name}"].startswith("no library above the file-system calls")


def test_library_moving_no_data_is_described_as_such(tmp_path):
    for profile in made(tmp_path, *OPEN):
        found = profile.middleware
        assert (found.libraries, found.granularity) == (["mpiio"], None)
        assert profile.provenance["middleware.granularity"].startswith("no traced file-system call moves data")


@pytest.mark.parametrize(
    ("name", "libraries", "data", "pattern"),
    [
        # IOR: transfers of 512 KiB, in order (MANIFEST of the traces).
        ("v3-ior-ssf-hdf5-4r", ["mpiio", "hdf5"], 512 << 10, "consecutive"),
        ("v3-netcdf-pnetcdf-4r", ["mpiio", "hdf5", "pnetcdf", "netcdf", "ompio"], 1 << 20, "random"),
        ("v3-posix-mix-4r", [], None, None),
    ],
)
def test_middleware_of_real_traces(name, libraries, data, pattern):
    found = vani.profile(TRACES / name).middleware
    assert found.libraries == libraries
    assert (found.granularity and found.granularity.data, found.access_pattern) == (data, pattern)


def test_quick_profile_does_not_guess_a_caller_known_only_by_times():
    quick = vani.profile(TRACES / "v3-nodepth-us-mpiio-mix-2r", quick=True)
    assert (quick.middleware.libraries, quick.middleware.granularity) == (["mpiio"], None)
    assert "which call made which" in quick.provenance["middleware.granularity"]
