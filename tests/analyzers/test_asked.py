"""Bytes requested from I/O libraries, against programs whose sources fix them, and against random calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.readers.functions import datatype_bytes
from vani.render.screen import profile_screen

DATA = Path(__file__).resolve().parents[1] / "data/cases"
SHARED = Path(__file__).resolve().parents[3] / "shared/cases"
H5WRITE = ("H5Dwrite", ("1", "2", "3", "4", "5", "%p"), 0)


def case(name):
    for folder in (DATA, SHARED):
        if (folder / name).exists():
            return folder / name
    pytest.skip(f"{name} is not here")


def row(profile, layer="mpiio"):
    return next(row for row in profile.interfaces if row.layer == layer)


def made(folder, *calls, ranks=1):
    """Profiles, full and quick, of ranks that make these (function, arguments, depth) calls one after the other."""
    ticks, rows = 0, []
    for place, (function, args, depth) in enumerate(calls):
        rows.append(Call(function, args, depth, 0, ticks + depth, ticks + 90 - depth))
        deeper = place + 1 < len(calls) and calls[place + 1][2] > depth
        ticks += 0 if deeper else 100
    write_trace(folder, [rows] * ranks, layout="3.0")
    return [vani.profile(folder, quick=quick) for quick in (False, True)]


def data_call(name, count, datatype="MPI_BYTE", depth=0):
    offset = ("0",) if "_at" in name else ()
    return (name, ("0-0", *offset, "%p", str(count), datatype, "[0_0]"), depth)


def pwrite(size, depth=0):
    return ("pwrite", ("/p/out", "%p", str(size), "0"), depth)


OPEN = [
    ("MPI_File_open", ("MPI_COMM_WORLD", "/p/out", "5", "%p", "0-0"), 0),
    ("open", ("/p/out", "66", "420"), 1),
]


@pytest.mark.parametrize(
    ("name", "read", "written", "share"),
    [
        ("iwa-recorder", 16_777_216, 16_777_216, 0.5),
        ("wa-recorder", 16_777_216, 16_777_216, 0.5),
        ("indep-recorder", 0, 5_120_000, 0.0),
    ],
)
def test_views_do_not_change_the_requested_bytes(name, read, written, share):
    for quick in (False, True):
        mpiio = row(vani.profile(case(name), quick=quick))
        assert (mpiio.asked.read, mpiio.asked.written) == (read, written)
        assert mpiio.collective_share == share


def test_data_sieving_shows_as_amplification():
    mpiio = row(vani.profile(case("indep-recorder")))
    assert (mpiio.bytes.written, mpiio.bytes.read) == (20_240_000, 20_243_000)
    assert mpiio.amplification.written == pytest.approx(20_240_000 / 5_120_000)
    assert mpiio.amplification.total == pytest.approx((20_240_000 + 20_243_000) / 5_120_000)
    assert mpiio.amplification.read is None


def test_calls_that_return_before_their_data_moves_have_no_amplification():
    profile = vani.profile(case("iwa-recorder"))
    assert row(profile).amplification.total is None
    assert profile.provenance["interfaces.amplification"].startswith("calls return before their data moves")


@pytest.mark.parametrize("name", ["h5many-recorder", "daos-3.0-recorder"])
def test_hdf5_requests_are_the_bytes_its_data_calls_pass_down(name):
    profile = vani.profile(case(name))
    hdf5, mpiio = row(profile, "hdf5"), row(profile)
    assert hdf5.asked.written == 1_600_000
    # Headers also go through MPI-IO.
    assert mpiio.asked.written == 1_600_000 + 75_184
    assert hdf5.amplification.written == pytest.approx(1_675_184 / 1_600_000)


def test_darshan_counts_the_requested_bytes():
    mpiio = row(vani.profile(case("ior-noncontig.txt")))
    assert (mpiio.asked.written, mpiio.bytes.written, mpiio.bytes.read) == (
        1_920_000_000,
        100_564_552_704,
        100_040_688_992,
    )
    assert mpiio.amplification.written == pytest.approx(52.38, abs=0.01)


@pytest.mark.parametrize("name", ["MPI_File_write_at_all", "MPI_File_iwrite_all", "MPI_File_write_all_begin"])
def test_one_datatype_of_unknown_size_leaves_all_unknown(tmp_path, name):
    calls = [data_call(name, 8), data_call(name, 4, "MPI_TYPE_UNKNOWN")]
    for profile in made(tmp_path / "t", *OPEN, *calls):
        mpiio = row(profile)
        assert (mpiio.asked.written, mpiio.asked.total, mpiio.asked.read) == (None, None, 0)
        assert mpiio.amplification.total is None
        assert "MPI_TYPE_UNKNOWN" in profile.provenance["interfaces.asked"]


def test_zero_elements_of_an_unknown_datatype_are_zero_bytes(tmp_path):
    calls = [data_call("MPI_File_write_all", 0, "MPI_TYPE_UNKNOWN"), data_call("MPI_File_write_all", 3, "MPI_INT")]
    for profile in made(tmp_path / "t", *OPEN, *calls):
        assert row(profile).asked.written == 12


@pytest.mark.parametrize(
    ("text", "size"),
    [("1275068685", 1), ("0x4c00080b", 8), ("MPI_2INTEGER", 8), ("MPI_TYPE_UNKNOWN", None), ("-5", None), ("7", None)],
)
def test_datatypes_are_known_by_name_or_handle(text, size):
    assert datatype_bytes(text) == size


NAMES = [
    f"MPI_File_{kind}{rest}{c}"
    for kind, rests in (
        ("write", ["", "_all", "_at", "_at_all", "_shared", "_ordered", "_all_begin", "_at_all_begin"]),
        ("iwrite", ["", "_all", "_at", "_at_all", "_shared"]),
        ("read", ["", "_all", "_at", "_at_all", "_shared", "_ordered", "_ordered_begin"]),
        ("iread", ["", "_all", "_at", "_at_all", "_shared"]),
    )
    for rest in rests
    for c in ("", "_c")
]
TYPES = {"MPI_BYTE": 1, "MPI_INT": 4, "MPI_DOUBLE": 8, "1275070475": 8, "MPI_C_DOUBLE_COMPLEX": 16}
CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 1 << 31), st.sampled_from(sorted(TYPES))), min_size=1, max_size=12
)


@given(calls=CALLS, ranks=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_any_calls_ask_for_count_times_datatype(tmp_path_factory, calls, ranks):
    folder = tmp_path_factory.mktemp("asked") / "t"
    view = ("MPI_File_set_view", ("0-0", "4096", "MPI_INT", "MPI_TYPE_UNKNOWN", "%p", "%p"), 0)
    asked = {"read": 0, "write": 0}
    collective = [0, 0]
    for name, count, datatype in calls:
        size = ranks * count * TYPES[datatype]
        asked["read" if "read" in name else "write"] += size
        if "_all" in name or "_ordered" in name:
            collective = [collective[0] + size, collective[1] + 1]
    # Calls decide only where none moves a byte.
    share = collective[0] / sum(asked.values()) if any(asked.values()) else collective[1] / len(calls)
    for profile in made(folder, *OPEN, view, *(data_call(*call) for call in calls), ranks=ranks):
        mpiio = row(profile)
        assert (mpiio.asked.read, mpiio.asked.written) == (asked["read"], asked["write"])
        assert mpiio.collective_share == pytest.approx(share)
        rows = {r.direction: r for r in profile.accesses if r.layer == "mpiio" and r.file is None}
        assert sum(r.bytes_collective for r in rows.values()) == collective[0]


def test_only_calls_inside_hdf5_data_calls_are_its_data(tmp_path):
    header = data_call("MPI_File_write_at", 96)
    data = [H5WRITE, data_call("MPI_File_write_at", 100, "MPI_DOUBLE", 1), pwrite(800, 2)]
    close = ("H5Fclose", ("1",), 0)
    full, quick = made(
        tmp_path / "t", *OPEN, *data, header, pwrite(96, 1), close, data_call("MPI_File_write_at", 50, depth=1), *data
    )
    assert row(full, "hdf5").asked.written == 1600
    assert row(full).asked.written == 1600 + 96 + 50
    assert row(quick, "hdf5").asked.total is None
    assert "hdf5" in quick.provenance["interfaces.asked"]


@pytest.mark.parametrize("extra", [[("H5Pset_chunk", ("1", "2", "%p"), 0)], []])
def test_chunk_writes_do_not_count_as_requested_bytes(tmp_path, extra):
    data = [H5WRITE, data_call("MPI_File_write_at", 100, "MPI_DOUBLE", 1), pwrite(800, 2)]
    full, _ = made(tmp_path / "t", *OPEN, *extra, *data)
    assert (row(full, "hdf5").asked is None) == bool(extra)


def test_hdf5_without_mpi_io_leaves_requested_bytes_unknown(tmp_path):
    full, _ = made(tmp_path / "t", ("open", ("/p/out", "66", "420"), 0), H5WRITE, pwrite(800, 1))
    assert row(full, "hdf5").asked.total is None
    assert full.provenance["interfaces.asked"].startswith("hdf5: selections")


def test_writes_in_no_record_give_no_factor(tmp_path):
    full, _ = made(tmp_path / "t", *OPEN, data_call("MPI_File_write_at", 1000), pwrite(400, 1))
    assert row(full).asked.written == 1000
    assert row(full).amplification.written is None


def test_reads_of_a_program_with_sieved_writes_have_no_separate_factor(tmp_path):
    sieved = [data_call("MPI_File_write", 100), ("pread", ("/p/out", "%p", "400", "0"), 1), pwrite(400, 1)]
    own = [data_call("MPI_File_read_at", 400), ("pread", ("/p/out", "%p", "400", "0"), 1)]
    full, _ = made(tmp_path / "t", *OPEN, *sieved, *own)
    factors = row(full).amplification
    assert (factors.read, factors.written, factors.total) == (None, 4.0, 1200 / 500)


@pytest.mark.parametrize(("modes", "transfer"), [("1", "collective"), ("0", "independent"), ("01", "mixed"), ("", None)])
def test_netcdf_transfers_as_its_variables_are_accessed(tmp_path, modes, transfer):
    access = [("nc_var_par_access", ("65536", str(i), mode), 0) for i, mode in enumerate(modes)]
    put = ("nc_put_vara_double", ("65536", "0", "0", "8", "1.000"), 0)
    full, _ = made(tmp_path / "t", ("open", ("/p/out", "66", "420"), 0), *access, put, pwrite(64, 1))
    assert row(full, "netcdf").transfer == transfer
    assert full.provenance["interfaces.asked"].startswith("netcdf: ")


def test_screen_shows_requested_bytes_if_they_differ_from_moved_bytes(tmp_path):
    def line(profile):
        return next((text for text in profile_screen(profile).splitlines() if text.startswith("Asked")), None)

    assert line(vani.profile(case("indep-recorder"))) == "Asked  MPI-IO to write 5.12 MB; 7.9 times as much was transferred"
    unseen = vani.profile(case("iwa-recorder"))
    assert line(unseen) == "Asked  MPI-IO to write 16.8 MB and read 16.8 MB"
    full, _ = made(tmp_path / "t", *OPEN, data_call("MPI_File_write_at", 1000), pwrite(1000, 1))
    assert line(full) is None


def test_aggregator_is_not_a_separate_writer(tmp_path):
    assert "1 file, shared by 4 processes: " in profile_screen(vani.profile(case("iwa-recorder")))
