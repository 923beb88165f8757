"""Darshan logs: the check of a whole log, and the meaning of each counter."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from darshan_logs import JOB, NAMES, POSIX, changed
from darshan_records import profiled

import vani
from vani.calls import FileClass, Layer
from vani.counts import UNKNOWN
from vani.errors import InputError, TraceError, UnknownFormatError
from vani.readers.darshan.counters import BINS, counts_of
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.records import MODULES, Module, Records
from vani.readers.open import open_workload

LOGS = Path(__file__).parents[1] / "data" / "darshan"
WITHOUT_DXT = LOGS / "v3-ior-large16m-ssf-2r.darshan"
SHARED_FILE = LOGS / "v3-ior-ssf-posix-8r.darshan"



def module(prefix: str, rows: list[dict[str, float]], ids: list[int] | None = None) -> Module:
    """Records of a module: counters by name without the prefix (F_ marks times), and `rank`."""
    names = {name for row in rows for name in row if name != "rank"}
    integers = {n: np.array([int(r.get(n, 0)) for r in rows]) for n in names if not n.startswith("F_")}
    floats = {n: np.array([float(r.get(n, 0)) for r in rows]) for n in names if n.startswith("F_")}
    return Module(
        np.array(ids or range(1, len(rows) + 1), np.uint64),
        np.array([int(row.get("rank", 0)) for row in rows]),
        {f"{prefix}_{name}": column for name, column in integers.items()},
        {f"{prefix}_{name}": column for name, column in floats.items()},
        prefix,
    )


def log(ranks: int = 4, names: tuple[str, ...] = ("/s/a", "/s/b", "/s/c"), **modules: Module) -> Records:
    return Records(
        version="3.41",
        exe="/bin/app -x",
        ranks=ranks,
        start_s=100.0,
        end_s=110.0,
        mounts=[],
        partial=[],
        ids=np.arange(1, len(names) + 1).astype(np.uint64),
        names=names,
        modules=modules,
    )


# Counters


def test_opens_are_without_those_that_fileno_dup_and_fdopen_add():
    counts, _ = counts_of(
        log(
            POSIX=module("POSIX", [{"OPENS": 5, "FILENOS": 1, "DUPS": 2}]),
            STDIO=module("STDIO", [{"OPENS": 3, "FDOPENS": 1}]),
        )
    )
    assert counts.table["opens"].tolist() == [2, 2]
    assert dict(counts.functions) == {"open": 2, "fopen": 2}


def test_shared_record_of_a_serial_run_belongs_to_its_process():
    several, _ = counts_of(log(4, POSIX=module("POSIX", [{"rank": -1, "READS": 8}])))
    alone, _ = counts_of(log(1, POSIX=module("POSIX", [{"rank": -1, "READS": 8}])))
    assert (several.table["rank"].tolist(), alone.table["rank"].tolist()) == ([-1], [0])


def test_uncounted_figures_are_null():
    counts, problems = counts_of(
        log(
            POSIX=module(
                "POSIX", [{"MMAPS": -1, "READS": -1, "BYTES_READ": 7}, {"READS": 2, "BYTES_READ": 5}]
            )
        )
    )
    assert counts.table["reads"].tolist() == [0, 2]
    assert problems == [
        "POSIX_READS is negative in 1 of 2 records, which were left out of its sums",
        "the POSIX record of /s/a contradicts itself: bytes read by no call, which are unknown and left out",
    ]


def test_sequential_operations_are_those_that_do_not_adjoin():
    row = {"READS": 10, "SEQ_READS": 8, "CONSEC_READS": 6}
    table = counts_of(log(POSIX=module("POSIX", [row])))[0].table
    assert (table["consecutive"].tolist(), table["forward"].tolist()) == ([6], [2])


def test_a_stride_is_from_start_to_start_not_the_hole_between():
    row = {"WRITES": 9, "SEQ_WRITES": 8, "STRIDE1_STRIDE": 3000, "STRIDE1_COUNT": 8}
    row |= {"ACCESS1_ACCESS": 1000, "ACCESS1_COUNT": 9}
    table = counts_of(log(POSIX=module("POSIX", [row])))[0].table
    assert (table["stride"].tolist(), table["strided"].tolist()) == ([4000], [8])


def test_stride_is_unknown_without_a_most_common_size():
    row = {"WRITES": 8, "SEQ_WRITES": 8, "STRIDE1_STRIDE": 3000, "STRIDE1_COUNT": 8}
    row |= {"ACCESS1_ACCESS": 1000, "ACCESS1_COUNT": 4, "ACCESS2_ACCESS": 2000, "ACCESS2_COUNT": 4}
    assert counts_of(log(POSIX=module("POSIX", [row])))[0].table["stride_count"].tolist() == [0]


def sizes(row: dict[str, float]) -> list[tuple[int, int, int]]:
    """Certain (kind, size, count) triples."""
    found = counts_of(log(POSIX=module("POSIX", [row])))[0].sizes
    return list(zip(found.kind.tolist(), found.size.tolist(), found.count.tolist(), strict=True))


def test_sole_size_of_a_bin_belongs_to_its_direction():
    row = {"SIZE_READ_100K_1M": 3, "SIZE_WRITE_100K_1M": 5, "ACCESS1_ACCESS": 1 << 20, "ACCESS1_COUNT": 8}
    assert sizes(row) == [(0, 1 << 20, 3), (1, 1 << 20, 5)]


def test_empty_bin_leaves_the_size_to_the_other_direction():
    row = {
        "SIZE_READ_1K_10K": 9,
        "ACCESS1_ACCESS": 4096,
        "ACCESS1_COUNT": 6,
        "ACCESS2_ACCESS": 2048,
        "ACCESS2_COUNT": 2,
    }
    assert sizes(row) == [(0, 4096, 6), (0, 2048, 2)]


def test_size_is_unassigned_if_bins_do_not_prove_it():
    row = {"SIZE_READ_1K_10K": 5, "SIZE_WRITE_1K_10K": 5, "ACCESS1_ACCESS": 4096, "ACCESS1_COUNT": 8}
    assert sizes(row) == []


def test_one_mebibyte_belongs_to_the_bin_ending_at_it():
    row = {"SIZE_WRITE_100K_1M": 5, "SIZE_WRITE_1M_4M": 1, "ACCESS1_ACCESS": 1 << 20, "ACCESS1_COUNT": 5}
    assert sizes(row) == [(1, 1 << 20, 5)]
    assert BINS[4] == "100K_1M"


def test_furthest_byte_is_an_end_only_if_bytes_were_moved():
    rows = [{"BYTES_WRITTEN": 1, "WRITES": 1}, {"WRITES": 0}, {"BYTES_WRITTEN": 9, "WRITES": 1, "MAX_BYTE_WRITTEN": 8}]
    assert counts_of(log(POSIX=module("POSIX", rows)))[0].table["write_end"].tolist() == [1, 0, 9]


def test_standard_streams_are_not_files():
    counts, _ = counts_of(
        log(names=("<STDOUT>", "/s/b"), STDIO=module("STDIO", [{"WRITES": 1}, {"WRITES": 2}]))
    )
    assert counts.file_class.tolist() == [FileClass.STANDARD_STREAM, FileClass.DATASET]


def test_calls_of_libraries_are_those_of_their_own_counters():
    modules = {
        "POSIX": module("POSIX", [{"WRITES": 4}]),
        "MPI-IO": module("MPIIO", [{"COLL_OPENS": 4, "COLL_WRITES": 8, "INDEP_READS": 2, "VIEWS": 1}]),
    }
    counts, _ = counts_of(log(**modules))
    assert counts.through == {Layer.MPIIO: {0: 15}}
    requests = (counts.requests[name].tolist() for name in ("kind", "calls", "together", "bytes"))
    assert list(zip(*requests, strict=True)) == [(0, 2, 0, -1), (1, 8, 8, -1)]


@pytest.mark.parametrize("dropped", MODULES)
def test_counts_with_dropped_records_are_a_problem(dropped):
    found = log(POSIX=module("POSIX", [{"READS": 1}]))
    partial = Records(**{**found.__dict__, "partial": [dropped, "DXT_MPIIO", "APMPI"]})
    assert counts_of(partial)[1] == [
        f"{dropped}: records were dropped when memory ran out: counts are lower bounds"
    ]


@pytest.mark.parametrize(
    ("dropped", "what"), [("LUSTRE", "layouts"), ("DXT_POSIX", "segments"), ("HEATMAP", "heat")]
)
def test_dropped_dxt_records_leave_counts_complete(dropped, what):
    found = log(POSIX=module("POSIX", [{"READS": 1}]))
    counts, problems = counts_of(Records(**{**found.__dict__, "partial": [dropped]}))
    assert (problems, counts.dropped) == ([], {what})


# The check of a whole log


@pytest.mark.parametrize("tenth", range(1, 10))
def test_truncated_log_is_refused_in_one_line(tmp_path, tenth):
    content = SHARED_FILE.read_bytes()
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(content[: len(content) * tenth // 10])
    with pytest.raises(TraceError, match=r"is a damaged Darshan log: .*; copy it again") as caught:
        vani.profile(cut)
    assert "\n" not in str(caught.value)


def test_an_empty_log_is_refused(tmp_path):
    (tmp_path / "a.darshan").touch()
    with pytest.raises(TraceError, match="is an empty file, not a Darshan log"):
        vani.open_trace(tmp_path / "a.darshan")


def test_a_foreign_file_of_that_name_is_refused(tmp_path):
    (tmp_path / "a.darshan").write_bytes(b"\x00" * 5000)
    with pytest.raises(UnknownFormatError, match="is not a Darshan log; name a log of Darshan 2 or 3"):
        vani.open_trace(tmp_path / "a.darshan")


def test_a_log_of_a_version_to_come_is_refused(tmp_path):
    (tmp_path / "a.darshan").write_bytes(b"3.99\0\0\0\0" + SHARED_FILE.read_bytes()[8:])
    with pytest.raises(UnknownFormatError, match=r"version 3\.99, and 3\.00 to 3\.41 are read; update Vani"):
        vani.open_trace(tmp_path / "a.darshan")


def test_bytes_after_the_last_region_are_damage(tmp_path):
    (tmp_path / "a.darshan").write_bytes(2 * SHARED_FILE.read_bytes())
    with pytest.raises(TraceError, match=r"[0-9,]+ bytes follow its last region"):
        vani.open_trace(tmp_path / "a.darshan")


def test_regions_that_overlap_are_refused(tmp_path):
    content = bytearray(SHARED_FILE.read_bytes())
    (first,) = struct.unpack_from("<Q", content, 32)
    # The region of POSIX, the first non-empty module, begins inside the name table.
    struct.pack_into("<Q", content, 32 + 2 * 16, first + 1)
    (tmp_path / "a.darshan").write_bytes(content)
    with pytest.raises(
        TraceError, match=r"a region begins at byte .*, before .*, where the one before it ends"
    ):
        vani.open_trace(tmp_path / "a.darshan")


def test_region_that_inflates_beyond_the_possible_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("vani.readers.darshan.regions.MAX_KEPT", 1 << 22)
    content = bytearray(SHARED_FILE.read_bytes())
    bomb = zlib.compress(bytes(1 << 23))
    struct.pack_into("<QQ", content, 32, len(content), len(bomb))
    (tmp_path / "a.darshan").write_bytes(bytes(content) + bomb)
    with pytest.raises(TraceError, match="the name table inflates to more than 4 MiB"):
        vani.open_trace(tmp_path / "a.darshan")


def test_a_sound_log_passes():
    assert DarshanReader(SHARED_FILE).format == "3.41"


# Regions that inflate but have impossible contents


def _job(number: int, value: int) -> Callable[[bytearray], bytearray]:
    """Sets one of the job's numbers: of seconds 1 at the start and 3 at the end, 5 of processes."""

    def change(region: bytearray) -> bytearray:
        struct.pack_into("<q", region, 8 * number, value)
        return region

    return change


def _posix(at: int, value: int) -> Callable[[bytearray], bytearray]:
    """Sets a number of the record: 1 the rank, from 2 on its counters."""
    return _job(at, value)


@pytest.mark.parametrize(
    ("region", "change", "said"),
    [
        (JOB, _job(5, 0), "it claims 0 processes"),
        (JOB, _job(5, -5), "it claims -5 processes"),
        (JOB, _job(5, 1 << 40), "it claims 1,099,511,627,776 processes"),
        (JOB, _job(3, 5), "it claims to have run for -"),
        (JOB, _job(3, 1 << 62), "it claims to have run for 4,611"),
        (JOB, lambda region: region[: len(region) // 2], "its job has [0-9,]+ bytes, and 1,080 are its least"),
        (NAMES, lambda region: region[:-5], "the name table ends inside a name"),
        (POSIX, _posix(1, 77), "POSIX has a record of rank 77 of 2"),
        (POSIX, _posix(1, -9), "POSIX has a record of rank -9 of 2"),
        (
            POSIX,
            lambda region: region[:-40],
            r"POSIX has [0-9,]+ bytes, and records of [0-9]+ bytes: one is cut",
        ),
        (POSIX, lambda region: region + region[:40], "POSIX has .*: one is cut"),
    ],
)
def test_impossible_input_is_refused_in_one_line(tmp_path, region, change, said):
    (tmp_path / "a.darshan").write_bytes(changed(WITHOUT_DXT, region, change))
    with pytest.raises(TraceError, match=said) as caught:
        vani.profile(tmp_path / "a.darshan")
    assert "\n" not in str(caught.value)


def test_negative_counter_is_skipped_with_a_note(tmp_path):
    (tmp_path / "a.darshan").write_bytes(changed(WITHOUT_DXT, POSIX, _posix(2 + 4, -7)))
    profile = vani.profile(tmp_path / "a.darshan")
    assert profile.workflow.io.ops.write == 0
    assert profile.traces[0].problems[0].startswith("POSIX_WRITES is negative in 1 of 1 records")


@pytest.mark.parametrize(
    ("name", "read"), [(b"lar\n\x1b[31", "lar\n\x1b[31"), (b"l\xff\xferge.da", "l\\xff\\xferge.da")]
)
def test_name_may_contain_anything(tmp_path, name, read):
    content = changed(WITHOUT_DXT, NAMES, lambda region: region.replace(b"large.dat", name))
    (tmp_path / "a.darshan").write_bytes(content)
    (file,) = vani.profile(tmp_path / "a.darshan").files
    assert file.path == f"/lustre/scratch/proj/ior/{read}"


# One log and several


def test_log_gives_its_program_and_time():
    reader = DarshanReader(SHARED_FILE)
    assert (reader.app, reader.ranks, reader.format) == ("ior", 8, "3.41")
    assert reader.start_unix_s == pytest.approx(1795230273.279059)


def test_folder_of_logs_is_one_workload_without_damaged_logs(tmp_path):
    (tmp_path / "a.darshan").write_bytes(SHARED_FILE.read_bytes())
    (tmp_path / "b.darshan").write_bytes(SHARED_FILE.read_bytes()[:3000])
    workload = open_workload([tmp_path])
    assert [r.path.name for r in workload.readers] == ["a.darshan"]
    assert [path.name for path, _ in workload.refused] == ["b.darshan"]
    profile = vani.profile(tmp_path)
    assert "left out: " in profile.provenance[f"traces[{tmp_path / 'b.darshan'}]"]


def test_commands_that_need_calls_report_that_a_log_has_none(tmp_path):
    with pytest.raises(InputError, match="has no grammar"):
        vani.profile(SHARED_FILE, quick=True)
    with pytest.raises(InputError, match="counts contain no phases"):
        vani.profile(SHARED_FILE, phase_gap=1.0)


def test_a_counter_that_wrapped_is_unknown():
    asked = {"BYTES_WRITTEN": 14 << 30, "SIZE_WRITE_AGG_1G_PLUS": 13, "INDEP_WRITES": 13}
    posix = {"WRITES": 13, "BYTES_WRITTEN": 14 << 30, "SIZE_WRITE_1G_PLUS": 13}
    counts, problems = counts_of(log(POSIX=module("POSIX", [posix]), **{"MPI-IO": module("MPIIO", [asked])}))
    assert problems == []
    wrapped = asked | {"BYTES_WRITTEN": (14 << 30) - 3 * (1 << 32)}
    counts, problems = counts_of(log(POSIX=module("POSIX", [posix]), **{"MPI-IO": module("MPIIO", [wrapped])}))
    assert (counts.requests["bytes"].tolist(), len(problems)) == ([UNKNOWN], 1)
    assert "MPIIO_BYTES_WRITTEN is less than" in problems[0]
    wrapped = posix | {"BYTES_WRITTEN": (14 << 30) - 3 * (1 << 32)}
    counts, problems = counts_of(log(POSIX=module("POSIX", [wrapped])))
    assert counts.unsound == {"/s/a": {("bytes", "written")}} and "wrapped" in problems[0]


def test_mappings_are_unseen():
    counts, _ = counts_of(log(POSIX=module("POSIX", [{"MMAPS": 3, "READS": 1, "BYTES_READ": 7}])))
    assert [(entry.kind, entry.files) for entry in counts.not_counted] == [("memory_mapped", ("/s/a",))]
    assert "mmap (3)" in counts.not_counted[0].cause


@pytest.mark.parametrize(("chunk", "chunked"), [(64, True), (0, False), (-1, None)])
def test_data_sets_of_hdf5_show_their_dimensions_and_whether_they_are_in_chunks(chunk, chunked):
    rows = {"OPENS": 2, "WRITES": 4, "BYTES_WRITTEN": 1000, "DATASPACE_NDIMS": 3, "CHUNK_SIZE_D1": chunk, "rank": -1}
    records = log(
        names=("/s/a.h5",),
        POSIX=module("POSIX", [{"OPENS": 2, "WRITES": 4, "BYTES_WRITTEN": 1000, "rank": -1}]),
        H5F=module("H5F", [{"OPENS": 2, "rank": -1}]),
        H5D=module("H5D", [rows]),
    )
    [shape] = [row.data_representation for row in profiled(records).interfaces if row.layer == "hdf5"]
    assert (shape.dims, shape.chunked) == (3 if chunk >= 0 else None, chunked)
