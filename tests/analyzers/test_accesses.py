"""The table of accesses by layer, against calls counted one by one, and on traces whose bytes are known."""

from __future__ import annotations

import tarfile
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vani
from tests.analyzers.test_asked import H5WRITE, OPEN, case, data_call, made
from tests.golden.golden_profiles import NAMES, TRACES, profile_of
from tests.readers.test_darshan import log, module
from vani.analyzers.counts.profile import CountedRun, counted_profile
from vani.analyzers.measurements import TraceFacts
from vani.calls import FILES
from vani.columns import small_table
from vani.readers.darshan.counters import counts_of
from vani.schema.profile import Access, Profile

KiB, MiB = 1 << 10, 1 << 20


def rows_of(profile: Profile, file: str | None = None) -> dict[tuple[str, str], Access]:
    return {(row.layer, row.direction): row for row in profile.accesses or () if row.file == file}


def size_class(size: int) -> str:
    return "0-1K" if size < KiB else "1K-4K" if size < 4 * KiB else "4K-16K"


BLOCKS = st.lists(
    st.tuples(
        st.sampled_from(["plain", "independent", "collective", "hdf5", "hdf5 collective", "hdf5 alone"]),
        st.integers(1, 10_000),
        st.integers(0, 40).map(lambda place: 512 * place),
    ),
    min_size=1,
    max_size=10,
)


def calls_of(block: str, size: int, offset: int):
    """(function, arguments, depth) of one block."""
    depth, calls = 0, []
    if block.startswith("hdf5"):
        calls.append(H5WRITE)
        depth = 1
    if block == "hdf5 alone":
        return calls
    if block != "plain":
        name = "MPI_File_write_at_all" if "collective" in block else "MPI_File_write_at"
        calls.append(data_call(name, size, depth=depth))
        depth += 1
    return [*calls, ("pwrite", ("/p/out", "%p", str(size), str(offset)), depth)]


@given(blocks=BLOCKS, ranks=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_each_layer_counts_its_own_calls_and_what_they_ask_for(tmp_path_factory, blocks, ranks):
    folder = tmp_path_factory.mktemp("accesses") / "t"
    full, quick = made(folder, *OPEN, *(call for block in blocks for call in calls_of(*block)), ranks=ranks)
    wanted: dict[str, Counter[str]] = {layer: Counter() for layer in ("hdf5", "mpiio", "posix")}
    for block, size, offset in blocks:
        layers = ["hdf5"] * block.startswith("hdf5")
        layers += ["mpiio"] * (block not in ("plain", "hdf5 alone")) + ["posix"] * (block != "hdf5 alone")
        for layer in layers:
            moved = size if block != "hdf5 alone" else 0
            wanted[layer] += Counter(calls=1, bytes=moved, **{size_class(size): moved})
            wanted[layer]["collective"] += moved * ("collective" in block)
        wanted["posix"]["misaligned"] += size * (block != "hdf5 alone" and offset % 4096 > 0)
    found = rows_of(full)
    assert {layer for layer, _ in found} == {layer for layer in wanted if wanted[layer]["calls"]}
    for (layer, direction), row in found.items():
        of = wanted[layer]
        assert (direction, row.calls, row.processes) == ("write", ranks * of["calls"], ranks)
        # Without a call of MPI-IO below, the bytes of H5Dwrite are unknown.
        known = layer != "hdf5" or of["bytes"] > 0
        assert row.bytes == (ranks * of["bytes"] if known else None)
        assert row.bytes_collective == (ranks * of["collective"] if known else 0)
        if known:
            classes = {name: ranks * of[name] for name in ("0-1K", "1K-4K", "4K-16K") if of[name]}
            assert row.bytes_by_size == classes
        assert row.bytes_misaligned == (ranks * of["misaligned"] if layer == "posix" else None)
        if layer == "posix":
            assert sum(row.time_by_size.values()) == pytest.approx(row.time_s)
    assert {key: row.calls for key, row in rows_of(quick).items()} == {key: row.calls for key, row in found.items()}
    if "posix" in dict(found):
        assert rows_of(full, "/p/out")["posix", "write"].bytes == found["posix", "write"].bytes


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_all_files_add_up_to_the_bytes_of_the_run(name):
    profile = profile_of(name)
    moved = Counter[str]()
    for (layer, direction), row in rows_of(profile).items():
        assert row.calls > 0
        if layer in ("posix", "stdio"):
            moved[direction] += row.bytes or 0
            assert (row.bytes_sequential or 0) <= (row.bytes or 0)
    io = profile.workflow.io.bytes
    assert (moved["read"], moved["write"]) == (io.read or 0, io.written or 0)
    assert all(row.file is None or row.file in {file.path for file in profile.files} for row in profile.accesses)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_grows_by_at_most_half(name):
    text = vani.profile(TRACES / name).to_yaml()
    rows = [line for line in text.splitlines() if line.startswith("- {file: ")]
    assert rows
    assert sum(map(len, rows)) <= 0.5 * (len(text) - sum(map(len, rows)))


def test_threads_give_the_same_table():
    trace = TRACES / "v3-netcdf-pnetcdf-4r"
    tables = [vani.profile(trace, scheduler=scheduler).accesses for scheduler in ("synchronous", "threads")]
    assert tables[0] == tables[1]


def test_small_headers_do_not_make_collective_writes_independent():
    profile = vani.profile(case("h5sub-recorder"))
    mpiio, posix, hdf5 = (rows_of(profile)[layer, "write"] for layer in ("mpiio", "posix", "hdf5"))
    assert (mpiio.calls, mpiio.bytes, mpiio.bytes_collective) == (72, 67_120_832, 67_108_864)
    assert mpiio.bytes_by_size == {"0-1K": 11_968, "4M-16M": 67_108_864}
    assert (hdf5.calls, hdf5.bytes, hdf5.bytes_collective) == (16, 67_108_864, 67_108_864)
    assert (posix.bytes, posix.bytes_collective, posix.processes) == (67_120_832, 67_108_864, 2)
    assert profile.interfaces[1].collective_share == pytest.approx(67_108_864 / 67_120_832)


def test_data_behind_headers_is_neither_small_nor_out_of_order(tmp_path):
    with tarfile.open(case("pfw-headers.tgz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (row,) = rows_of(vani.profile(tmp_path / "pfw-headers")).values()
    assert (row.calls, row.bytes) == (1800, 12_000_502_400)
    assert row.bytes_by_size["16M-64M"] == 12_000_000_000
    assert row.bytes_sequential >= 12_000_000_000


def test_blocks_of_a_file_that_begins_with_a_header_are_misaligned():
    before, after = (
        rows_of(vani.profile(case(f"{name}-recorder")))["posix", "write"] for name in ("h5align", "h5align-after")
    )
    assert before.bytes_misaligned >= 240 * MiB
    assert after.bytes_misaligned <= 0.01 * after.bytes


def counted(**modules) -> dict[tuple[str, str], Access]:
    counts, _ = counts_of(log(ranks=4, names=("/s/a",), **modules))
    facts = TraceFacts("/t", "darshan", "3.41", "", 4, 100, {}, 0.0, 0, 10**10, None, True, [], [], [])
    files = small_table([np.arange(1), list(counts.paths), counts.file_class], FILES)
    return rows_of(counted_profile([CountedRun(facts, files, counts)], ["a"], version="0")[0])


def test_counts_give_bytes_by_size_where_one_bin_alone_is_open():
    row = {
        **{"rank": -1, "WRITES": 9, "BYTES_WRITTEN": 8 * 4096 + 5 * MiB, "SIZE_WRITE_1K_10K": 8, "SIZE_WRITE_4M_10M": 1},
        **{"ACCESS1_ACCESS": 4096, "ACCESS1_COUNT": 8, "F_WRITE_TIME": 2.0, "FILE_ALIGNMENT": 4096},
    }
    posix = counted(POSIX=module("POSIX", [row]))["posix", "write"]
    assert posix.bytes_by_size == {"1K_10K": 8 * 4096, "4M_10M": 5 * MiB}
    assert (posix.calls, posix.time_s, posix.bytes_misaligned) == (9, 2.0, 0)
    row |= {"WRITES": 10, "SIZE_WRITE_0_100": 1, "FILE_NOT_ALIGNED": 3}
    posix = counted(POSIX=module("POSIX", [row]))["posix", "write"]
    assert (posix.bytes_by_size, posix.bytes_misaligned) == (None, None)


@pytest.mark.parametrize(("off", "wanted"), [(0, 0), (3, 3 * MiB), (8, 8 * MiB), (9, None), (-1, None)])
def test_the_number_of_misaligned_calls_gives_their_bytes_if_all_have_one_size(off, wanted):
    row = {
        **{"rank": -1, "WRITES": 8, "BYTES_WRITTEN": 8 * MiB, "SIZE_WRITE_100K_1M": 8, "F_WRITE_TIME": 2.0},
        **{"ACCESS1_ACCESS": MiB, "ACCESS1_COUNT": 8, "FILE_ALIGNMENT": 4096, "FILE_NOT_ALIGNED": off},
    }
    assert counted(POSIX=module("POSIX", [row]))["posix", "write"].bytes_misaligned == wanted
    # Reads may be the misaligned ones.
    row |= {"READS": 1, "BYTES_READ": 10}
    if 0 < off < 9:
        assert counted(POSIX=module("POSIX", [row]))["posix", "write"].bytes_misaligned is None


@pytest.mark.parametrize(("independent", "collective", "wanted"), [(0, 8, 80), (8, 0, 0), (4, 4, None)])
def test_counts_divide_bytes_between_collective_and_other_calls_only_where_one_has_all(independent, collective, wanted):
    calls = {"COLL_WRITES": collective, "INDEP_WRITES": independent}
    modules = {
        "POSIX": module("POSIX", [{"rank": -1, "WRITES": 4, "BYTES_WRITTEN": 80}]),
        "MPI-IO": module("MPIIO", [calls | {"rank": -1, "BYTES_WRITTEN": 80, "BYTES_READ": 0}]),
    }
    assert counted(**modules)["mpiio", "write"].bytes_collective == wanted
