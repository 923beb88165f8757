"""Independent sources for the numbers of the golden profiles.

- `reference.json` next to the traces: counts by Recorder's own recorder2text, checked by another decoder;
- the programs' parameters (README.md next to the traces: IOR's block, transfer and segments, HACC-IO's particles, the
  loops of the purpose-written programs);
- Darshan's counters of the same programs run again (`docs/accuracy.md`).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from golden_profiles import NAMES, TRACES, golden

from vani.schema.profile import FileEntity, IOStats, Profile

KIB, MIB = 1 << 10, 1 << 20
REFERENCE: dict[str, dict[str, Any]] = json.loads((TRACES / "reference.json").read_text())


def file(profile: Profile, end: str) -> FileEntity:
    (found,) = [f for f in profile.files if f.path.endswith(end)]
    return found


def moved(io: IOStats) -> tuple[int | None, int | None]:
    return io.bytes.read, io.bytes.written


def operations(io: IOStats) -> tuple[int, int]:
    return io.ops.read, io.ops.write


def pattern(io: IOStats) -> dict[str, float]:
    assert io.access_pattern is not None
    return {n: s for n, s in io.access_pattern.model_dump().items() if s}


# recorder2text

PRINTED = {"v2-posix-mix-nonmpi": 10 * 17}
"""Bytes of vfprintf, which the reference leaves out: 10 lines, 170 B (Darshan's comparison)."""


@pytest.mark.parametrize("name", NAMES)
def test_records_functions_and_ranks_agree_with_recorder2text(name):
    (trace,) = golden(name).traces
    stated = REFERENCE[name]
    assert trace.ranks == stated["ranks"] == golden(name).workflow.processes
    assert trace.records == stated["records_total"]
    assert trace.functions == stated["records_per_function"]


@pytest.mark.parametrize("name", NAMES)
def test_bytes_in_all_and_of_each_file_are_those_of_recorder2text(name):
    profile, stated = golden(name), REFERENCE[name]
    totals = [a + b for a, b in zip(moved(profile.workflow.io), moved(profile.excluded.io), strict=True)]
    printed = PRINTED.get(name, 0)
    assert totals == [stated["posix_bytes_read_total"], stated["posix_bytes_written_total"] + printed]
    for path, count in stated["posix_bytes_per_file"].items():
        # posix_mix renames dup.dat, and a file goes by its final name.
        last = path.replace("/dup.dat", "/renamed.dat")
        found = [f for f in profile.files if f.path in (path, last)]
        if found:
            more = printed if path.endswith("stdio.out") else 0
            assert moved(found[0].io) == (count["read"], count["written"] + more), path
    listed = {f.path for f in profile.files if f.io.bytes.total}
    assert {path.replace("/renamed.dat", "/dup.dat") for path in listed} <= set(stated["posix_bytes_per_file"])


@pytest.mark.parametrize("name", NAMES)
def test_the_run_ends_with_its_last_call(name):
    # If starts wrapped, the end read as a signed number is right (README.md next to the traces).
    stated = REFERENCE[name]
    assert golden(name).workflow.runtime_s == pytest.approx(
        stated["last_tend_s_if_deltas_read_as_int32"], abs=1e-7
    )


# Parameters of the programs


class Ior(NamedTuple):
    """Arguments of IOR: bytes of a block and of a transfer, and segments."""

    ranks: int
    block: int
    transfer: int
    segments: int

    @property
    def bytes(self) -> int:
        return self.ranks * self.block * self.segments

    @property
    def transfers(self) -> int:
        return self.bytes // self.transfer


IOR = {
    "v25g-noipc-ior-fpp-4r": Ior(4, 4 * MIB, MIB, 2),
    "v25g-pr-ior-strided-8r": Ior(8, 64 * KIB, 64 * KIB, 16),
    "v3-noipc-rawts-ior-4r": Ior(4, MIB, 256 * KIB, 2),
}


@pytest.mark.parametrize("name", IOR)
def test_ior_writes_and_reads_its_blocks_once(name):
    told, io = IOR[name], golden(name).workflow.io
    assert moved(io) == (told.bytes, told.bytes)
    assert operations(io) == (told.transfers, told.transfers)
    assert (io.footprint.read, io.footprint.written, io.past_end.read) == (told.bytes, told.bytes, 0)
    for sizes in (io.transfer_size.read, io.transfer_size.write):
        assert sizes.common == [(told.transfer, told.transfers)]
        assert sizes.min == sizes.p50 == sizes.p90 == sizes.max == told.transfer


def test_ior_with_a_file_per_process_makes_as_many_and_writes_them_through():
    profile = golden("v25g-noipc-ior-fpp-4r")
    counts = profile.workflow.files
    assert (counts.total, counts.shared, counts.file_per_process) == (4, 0, 4)
    assert {f.size for f in profile.files} == {2 * 4 * MIB}
    assert pattern(profile.workflow.io) == {"consecutive": 1.0}


def test_ior_strided_continues_by_the_blocks_of_all_ranks():
    profile = golden("v25g-pr-ior-strided-8r")
    found = file(profile, "strided.dat")
    assert (found.access, found.processes, found.size) == ("shared", 8, 8 * MIB)
    assert found.stride == 8 * 64 * KIB
    assert pattern(found.io) == {"strided": 1.0}


def test_ior_segmented_jumps_once_from_its_first_block_to_its_second():
    # One of a rank's 8 transfers starts another block; the first has no predecessor to compare with.
    assert pattern(golden("v3-noipc-rawts-ior-4r").workflow.io) == {"consecutive": 7 / 8, "sequential": 1 / 8}


def test_ior_on_hdf5_moves_its_blocks_and_a_little_metadata():
    profile = golden("v3-ior-ssf-hdf5-4r")
    told = Ior(4, 2 * MIB, 512 * KIB, 2)
    io = profile.workflow.io
    assert all(told.bytes <= b < told.bytes + 16 * KIB for b in moved(io))
    assert io.transfer_size.write.common[0] == (told.transfer, told.transfers)
    assert file(profile, "ior.h5").format == "hdf5"
    assert profile.apps[0].interface == "hdf5"


def test_hacc_io_writes_nine_variables_of_38_bytes_a_particle_and_a_header():
    profile = golden("v3-haccio-ssf-8r")
    # 100,000 particles in each of 8 ranks, and 24 MiB of header by rank 0.
    told = 8 * 100_000 * 38 + 24 * MIB
    assert moved(profile.workflow.io) == (told, told)
    assert operations(profile.workflow.io) == (8 * 9 + 1, 8 * 9 + 1)
    assert profile.workflow.io.footprint.written == told == profile.dataset.size
    assert (profile.workflow.files.shared, profile.workflow.files.file_per_process) == (1, 0)


@pytest.mark.parametrize(
    ("name", "ranks", "fields", "levels"),
    [("v2-cm1like-8r", 8, 8, 10), ("v3-cm1like-16r", 16, 8, 20), ("v3-mpitracing-cm1like-4r", 4, 2, 5)],
)
def test_cm1like_reads_two_inputs_by_all_ranks_and_writes_by_rank_0(name, ranks, fields, levels):
    profile = golden(name)
    io, balance = profile.workflow.io, profile.apps[0].balance
    # namelist.input, 3,600 B in 512 B: 8 reads and one that finds the end; LANDUSE.TBL, 50,000 B in 8 KiB: 7
    # and one.
    assert io.bytes.read == ranks * (9 * 512 + 8 * 8192)
    assert io.ops.read == ranks * 17
    # Three outputs of 4 KiB per field, level and rank; the .ctl file: three times 40 lines of 80 B.
    assert io.bytes.written == 3 * fields * levels * ranks * 4096 + 3 * 40 * 80
    assert io.ops.write == 3 * fields * levels * ranks + 3 * 40
    assert (balance.reading_processes, balance.writing_processes, balance.busiest_rank) == (ranks, 1, 0)
    assert (file(profile, "namelist.input").access, file(profile, "LANDUSE.TBL").role) == ("shared", "input")
    assert profile.workflow.files.shared == 2


def test_restart_reads_the_data_of_the_next_rank():
    profile = golden("v3-ckpt-then-restart-8r")
    io = profile.workflow.io
    # Five checkpoints of 4 x 1 MiB per rank and a header of 4 KiB; the last is read, the header by all.
    assert io.bytes.written == 5 * (8 * 4 * MIB + 4096) == io.footprint.written == profile.dataset.size
    assert io.bytes.read == 8 * (4 * MIB + 4096)
    assert io.footprint.read == 8 * 4 * MIB + 4096
    assert operations(io) == (8 * (4 + 1), 5 * (8 * 4 + 1))
    assert profile.workflow.files.total == 5 * (8 + 1)
    # Cells from the next rank, the header from rank 0 to the seven others; rank 0 to rank 7 is both.
    dependencies = profile.apps[0].process_dependencies
    assert (dependencies.edges, dependencies.files) == (8 + 7 - 1, 9)
    assert profile.dataset.roles == {"output": 4 * 9, "intermediate": 9}


def test_posix_mix_moves_the_bytes_in_its_source():
    profile = golden("v3-posix-mix-4r")
    appended = file(profile, "shared.log")
    # 25 appends of 128 B by each of 4 ranks: new bytes at any position.
    assert moved(appended.io) == (0, 4 * 25 * 128)
    assert appended.io.footprint.written == 4 * 25 * 128
    assert (appended.access, appended.processes) == ("shared", 4)
    for rank in range(4):
        vectors = file(profile, f"rank{rank}/vec.dat")
        assert moved(vectors.io) == (20 * 1000, 20 * 1000)
        # 32 x 4096 B, one every 8192; a read of 65,536 B returns 4096, one of 4096 nothing.
        strided = file(profile, f"rank{rank}/lseek.dat")
        assert strided.stride == 8192
        assert strided.io.bytes.written == 32 * 4096
        # Truncated by ftruncate after 31 * 8192 + 4096 B were reached.
        assert strided.size == 100_000
        random = file(profile, f"rank{rank}/prw.dat")
        assert operations(random.io) == (64, 64)
        assert random.io.transfer_size.write.common == [(3000, 64)]


# Darshan


class Twin(NamedTuple):
    """A row of Darshan's comparison: bytes requested according to Recorder, and moved according to Darshan."""

    asked_read: int
    moved_read: int
    asked_written: int
    moved_written: int
    opens: int
    reads: int
    writes: int
    files: int
    explained: str = ""


DARSHAN = {
    "v3-ckpt-then-restart-8r": Twin(33587200, 33587200, 167792640, 167792640, 61, 40, 165, 45),
    "v3-haccio-ssf-8r": Twin(55565824, 55565824, 55565824, 55565824, 18, 73, 73, 1),
    "v3-cm1like-16r": Twin(
        1122304, 857600, 31466880, 31466880, 38, 256, 7800, 6, "16 reads at the end return 0"
    ),
    "v3-mpitracing-cm1like-4r": Twin(
        280576, 214400, 501120, 501120, 14, 64, 240, 6, "4 reads at the end return 0"
    ),
    "v3-ior-ssf-hdf5-4r": Twin(16787464, 16787464, 16778984, 16778984, 18, 56, 40, 1, "2 opens fail"),
    "v3-posix-mix-4r": Twin(
        5720872, 1266384, 2207148, 2223828, 76, 548, 1232, 57, "fprintf and F_DUPFD are not traced"
    ),
}
"""docs/accuracy.md has all 33 runs."""

IDENTICAL = [name for name, twin in DARSHAN.items() if not twin.explained]


@pytest.mark.parametrize("name", IDENTICAL)
def test_opens_operations_bytes_and_files_are_those_that_darshan_counted(name):
    profile, twin = golden(name), DARSHAN[name]
    io = profile.workflow.io
    assert moved(io) == (twin.moved_read, twin.moved_written)
    assert operations(io) == (twin.reads, twin.writes)
    assert sum(f.opens for f in profile.files) == twin.opens
    assert profile.dataset.files == twin.files


@pytest.mark.parametrize("name", DARSHAN)
def test_requested_bytes_agree_with_the_darshan_comparison(name):
    assert moved(golden(name).workflow.io) == (DARSHAN[name].asked_read, DARSHAN[name].asked_written)


@pytest.mark.parametrize(
    "name", ["v3-ckpt-then-restart-8r", "v3-haccio-ssf-8r", "v3-ior-ssf-hdf5-4r", "v3-posix-mix-4r"]
)
def test_requested_bytes_minus_those_past_the_end_are_darshans_moved_bytes(name):
    # The inputs of cm1like existed before the run, so the trace does not show where they end.
    io = golden(name).workflow.io
    assert io.bytes.read - io.past_end.read == DARSHAN[name].moved_read


def test_reads_beyond_the_end_of_inputs_are_not_guessed():
    assert golden("v3-cm1like-16r").workflow.io.past_end.read is None
