"""Figures of `../shared/cases` that follow by arithmetic from the programs, as its README derives them."""

from __future__ import annotations

from pathlib import Path

import pytest
from shared_cases import unpacked

import vani

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

# Case: part of a path, and of the files with it: number, opens, bytes read, bytes written, writers.
PATTERNS = {
    "pfw-hash16.tgz": ("/out_", 4, 4, 0, 4 * 200 * 1_000_000, 4),
    "pfw-headers.tgz": ("/img_", 40, 200, 200 * (60_000_000 + 2_512), 0, 0),
    "trunc-strace.tgz": ("/state.", 4, 804, 0, 4 * 400 * 20_000, 4),
    "mpcheckpoint-strace.tgz": ("/ckpt_", 20, 20, 0, 266_815_764, 1),
    "mpcheckpoint-after-strace.tgz": ("/ckpt_", 80, 80, 0, 200_010_240, 4),
    "chunkfill-strace.tgz": ("/steps.h5", 1, 1, 0, 399_512_184, 1),
    "tiff-stack-strace.tgz": ("/stack_bad.tif", 1, 299, 150 * 149 // 2 * 4096, 1_257_908, 1),
    "dataloader-strace.tgz": (".jpg", 2000, 6000, 3 * 80_000_000, 0, 0),
    "ds_ckpt-strace": ("/layer_", 72, 72, 0, 288_000_000, 1),
    "loader-strace.tgz": ("/ckpt.", 2, 2, 0, 40_000_256, 1),
    "mspass-strace.tgz": ("/rf_", 2500, 2500, 30_000_000, 0, 0),
    "pickles-strace.tgz": ("/features/", 4000, 4000, 0, 2_715_744, 1),
    "pickles-again-strace.tgz": ("/features/", 4000, 4000, 0, 2_715_744, 1),
    "zarr-strace.tgz": ("/a.zarr/c/", 1024, 2048, 1024 * 16_384, 1024 * 16_384, 1),
    "aggr-recorder": ("", 20, 20, 0, 10 * 8 * 1_048_576, 2),
    "mdtest-recorder": ("", 2000, 4000, 7_802_000, 7_802_000, 4),
}

# Case: part of a path, and of this file: reads, writes, flushes, opens.
OPERATIONS = {
    "h5reopen-strace.tgz": ("/records.h5", 13_498, 4_505, 0, 1_501),
    "lmdb-samples-strace.tgz": ("/data.mdb", 0, 14_835, 3_000, 2),
    "lmdb-samples-after-strace.tgz": ("/data.mdb", 0, 63, 6, 2),
    "npz-key-strace.tgz": ("/train.npz", 25_604, 0, 0, 1),
    "npz-key-again-strace.tgz": ("/train.npz", 25_604, 0, 0, 1),
    "chunk-beyond-cache-strace.tgz": ("/data.h5", 6_009, 7, 0, 2),
    "hdf5-flush-strace.tgz": ("/particles.h5part", 0, 733, 3 * 14 * 6, 4),
    "h5gzip-after-recorder": ("/table.h5", 13, 7, 0, 3),
    "mpiind-all-recorder": ("/field.bin", 0, 4_000, 4, 5),
}

FLUSHES = {
    "sq-recorder": 1_204, "sq-strace.tgz": 1_204, "sqlite-commits-strace.tgz": 501 * 4,
    "sqlite-commits-after-strace.tgz": 2 * 4,
}  # fmt: skip
"""Flushes of all files and folders."""

# What the diagnosis says, and what it does not: a rule and its pattern agree.
DIAGNOSES = {
    "pfw-headers.tgz": ({"reread"}, {"small_requests", "random_access"}),
    "hdf5-flush-strace.tgz": ({"flush_bound"}, set()),
    "h5sub-recorder": (set(), {"independent_io"}),
    "h5align-recorder": ({"misaligned"}, set()),
    "h5align-after-recorder": (set(), {"misaligned"}),
    "trunc-strace.tgz": ({"metadata_bound"}, {"random_access", "small_requests"}),
    "mpcheckpoint-strace.tgz": ({"one_process_moves_all"}, set()),
    "mpcheckpoint-after-strace.tgz": (set(), {"one_process_moves_all"}),
    "chunkfill-strace.tgz": ({"rewritten"}, set()),
    "h5reopen-strace.tgz": ({"repeated_open"}, set()),
    "lmdb-samples-strace.tgz": ({"flush_bound"}, set()),
    "lmdb-samples-after-strace.tgz": (set(), {"flush_bound", "synchronous_writes"}),
    "zarr-steps-strace.tgz": ({"rewritten", "reread"}, set()),
    "zarr-steps-after-strace.tgz": (set(), {"rewritten", "reread"}),
    "sqlite-commits-after-strace.tgz": (set(), {"flush_bound"}),
    "library-search-strace.tgz": ({"library_search"}, set()),
    "newest-checkpoint-strace.tgz": ({"newest_file_search"}, set()),
    "mapped-weights-strace.tgz": ({"memory_mapped"}, {"repeated_open"}),
    "aggr-recorder": ({"one_process_moves_all"}, set()),
    "iwa-recorder": (set(), {"one_process_moves_all"}),
    "wa-recorder": (set(), {"one_process_moves_all"}),
}

SAME_PROGRAM = [("pickles-strace.tgz", "pickles-again-strace.tgz"), ("npz-key-strace.tgz", "npz-key-again-strace.tgz")]


@pytest.fixture
def profile_of(tmp_path):
    return lambda name: vani.profile(unpacked(CASES / name, tmp_path), store=tmp_path / f"{name} store")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", PATTERNS)
def test_files_have_the_bytes_of_the_program(name, profile_of):
    part, *expected = PATTERNS[name]
    rows = [row for row in profile_of(name).patterns if part in row.pattern]
    sums = [sum(getattr(row, key) for row in rows) for key in ("files", "opens")]
    moved = [sum(getattr(row.bytes, key) for row in rows) for key in ("read", "written")]
    assert [*sums, *moved, max(row.writers for row in rows)] == expected


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_file_has_the_operations_of_the_program(name, profile_of):
    part, *expected = OPERATIONS[name]
    (file,) = (file for file in profile_of(name).files if part in file.path)
    assert [file.io.ops.read, file.io.ops.write, file.io.ops.sync, file.opens] == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FLUSHES)
def test_flushes_of_folders_count_too(name, profile_of):
    assert profile_of(name).workflow.io.ops.sync == FLUSHES[name]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", DIAGNOSES)
def test_the_diagnosis_names_what_the_program_does(name, profile_of):
    seen = {one.pattern for one in vani.advise(profile_of(name), system="generic-lustre").diagnosis}
    has, lacks = DIAGNOSES[name]
    assert has <= seen and not lacks & seen


@pytest.mark.parametrize("names", SAME_PROGRAM)
def test_two_traces_of_a_program_get_the_same_advice(names, profile_of):
    """Their times differ by a factor of two."""
    advices = [vani.advise(profile_of(name), system="generic-lustre") for name in names]
    first, second = ([(one.rule, one.severity) for one in advice.recommendations] for advice in advices)
    assert first == second and first[0][0] == "MAT001"
