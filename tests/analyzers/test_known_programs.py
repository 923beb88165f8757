"""Programs whose I/O is known exactly: profiles of their real traces state what the programs did.

The numbers come from the programs' sources and arguments (tests/data/traces/README.md), not from a profile. If the
tracer misses something, a comment names the limit, which docs/formats.md describes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

import vani
from vani.schema.profile import FileEntity, Profile

TRACES = Path(__file__).parents[1] / "data" / "traces"
CLOSE = 0.1
"""Share of patterns that the first operation of each stream may change."""


@dataclass(frozen=True)
class File:
    """What a program did to each file with one name (with `*` for a number)."""

    count: int = 1
    written: tuple[int, int] = (0, 0)
    """Operations, bytes."""
    read: tuple[int, int] = (0, 0)
    readers: int = 0
    writers: int = 0
    role: str | None = "output"
    size: int | None = None
    pattern: str | None = "consecutive"


@dataclass(frozen=True)
class Program:
    trace: str
    processes: int
    files: dict[str, File]
    calls: dict[str, int]
    """Number of calls of each function in the program's source."""
    phases: int
    """Number of phases that a person reading the source would count."""
    edges: int | None = 0
    """Pairs of processes in which one reads the other's output; None: not evident from the source."""
    pattern: str = "none"
    sync: int = 0
    other_files: frozenset[str] = field(default_factory=frozenset)
    """Files of libraries, which the program does not name."""


KiB, MiB = 1 << 10, 1 << 20
MIX = {
    "fpp.*": File(4, (16, 64 * KiB), (16, 64 * KiB), 1, 1, size=64 * KiB),
    # Block i * 4 + rank of 64 KiB.
    "shared.dat": File(written=(32, 2 * MiB), writers=4, size=2 * MiB, pattern="strided"),
    "log.*.txt": File(4, (10, 1000), writers=1, size=1000),
    "mpi.dat": File(written=(20, 4 * 4 * 16 * KiB + 4 * 32 * KiB), writers=4, size=MiB + 4 * 32 * KiB),
}
MIX_CALLS = {"write": 64, "read": 64, "fwrite": 40, "pwrite": 32 + 20, "fopen": 4}

PROGRAMS = [
    Program("n2-mix-4r", 4, MIX, MIX_CALLS, phases=2),
    Program("n2-noipc-mix-4r", 4, MIX, MIX_CALLS, phases=2),
    Program("n2-nosite-mix-4r", 4, MIX, MIX_CALLS, phases=2),
    Program("nm-mix-4r", 4, MIX, MIX_CALLS, phases=2),
    Program(
        "n2-bothpr-phases-4r", 4,
        {
            "a.*": File(4, (32, 2 * MiB), writers=1, size=2 * MiB),
            # Only read, so its size is unknown. Block i * 4 + rank of 4 KiB.
            "input.bin": File(read=(64, 256 * KiB), readers=4, role="input", pattern="strided"),
            "rand.bin": File(written=(128, 128_000), writers=4, size=128_000, pattern="random"),
        },
        {"write": 128, "pread": 64, "pwrite": 128, "fsync": 4},
        phases=3, sync=4,
    ),
    Program(
        "n2-mpitracing-mpiio-4r", 4,
        {
            # A strided view, written and read collectively: one process does the I/O for all.
            "view.out": File(written=(2, 64 * KiB), read=(1, 64 * KiB), readers=1, writers=1, size=64 * KiB),
            "nb.out": File(written=(4, 32 * KiB), writers=4, size=64 * KiB),
            "shp.log": File(written=(16, 1400), writers=4, size=1400, pattern=None),
            "split.out": File(written=(4, 256 * KiB), writers=4, size=256 * KiB),
            # Truncated to 1024 bytes after 2048 were written.
            "self.1": File(written=(1, 2048), read=(1, 2048), readers=1, writers=1, size=1024),
            "self.0": File(written=(1, 2048), read=(1, 2048), readers=1, writers=1, role="temporary", size=1024),
            # Each process reads its own data again; roles are per file, whose readers include others here.
            "indep.out": File(
                written=(16, 64 * KiB), read=(16, 64 * KiB), readers=4, writers=4, role="intermediate", size=64 * KiB
            ),
        },
        {"fsync": 4},
        phases=1, edges=None, sync=4, other_files=frozenset({"self.2", "self.3"}),
    ),
    Program(
        "n2-threads-tid-nonmpi", 1,
        {
            "shared.bin": File(written=(64, 256 * KiB), writers=1, size=256 * KiB, pattern=None),
            "thr.*": File(4, (8, 512 * KiB), writers=1, size=512 * KiB),
        },
        {"pwrite": 64, "write": 32, "fsync": 32},
        phases=1, sync=32,
    ),
    Program(
        "v3-ckpt-then-restart-8r", 8,
        {
            "chk00000/Header": File(written=(1, 4096), writers=1, size=4096),
            "chk00400/Header": File(
                written=(1, 4096), read=(8, 8 * 4096), readers=8, writers=1, role="intermediate", size=4096
            ),
            "chk00200/Level_0/Cell_D_*": File(8, (4, 4 * MiB), writers=1, size=4 * MiB),
            "chk00400/Level_0/Cell_D_*": File(
                8, (4, 4 * MiB), (4, 4 * MiB), readers=1, writers=1, role="intermediate", size=4 * MiB
            ),
        },
        {"write": 160, "read": 32, "fsync": 40, "fwrite": 5, "fread": 8, "mkdir": 10},
        # Five checkpoints, each one phase, and the restart. Rank r reads Cell_D of rank r + 1, all but rank 0
        # the Header of rank 0, and rank 7 also reads Cell_D of rank 0.
        phases=6, edges=8 + 6, pattern="irregular", sync=40,
    ),
    Program(
        "v3-cm1like-16r", 16,
        {
            # Read in pieces of 8 KiB (512 B) to the end: sizes of files that are only read are not in the
            # trace.
            "LANDUSE.TBL": File(read=(16 * 8, 16 * 8 * 8192), readers=16, role="input"),
            "namelist.input": File(read=(16 * 9, 16 * 9 * 512), readers=16, role="input"),
            "cm1out_00000*.dat": File(3, (8 * 20 * 16, 8 * 20 * 16 * 4096), writers=1, size=8 * 20 * 16 * 4096),
            "cm1out_s.ctl": File(written=(120, 9600), writers=1, size=9600),
        },
        {"write": 3 * 8 * 20 * 16, "read": 16 * 8, "fread": 16 * 9, "fwrite": 120},
        # All ranks read; then rank 0 writes three times.
        phases=4,
    ),
    Program(
        "v3-haccio-ssf-8r", 8,
        {
            "ssf-Part*-of-*.data": File(
                written=(73, 55_565_824), read=(73, 55_565_824), readers=8, writers=8, size=None
            ),
        },
        {"write": 73, "read": 73},
        # Every process restarts from its own data; rank 0 writes and reads the header.
        phases=2,
    ),
    Program(
        "v25g-pr-ior-strided-8r", 8,
        {
            "strided.dat": File(
                written=(128, 8 * MiB), read=(128, 8 * MiB), readers=8, writers=8, role="temporary",
                size=8 * MiB, pattern="strided",
            )
        },
        {"write": 128, "read": 128},
        phases=2,
    ),
    Program(
        "v25g-noipc-ior-fpp-4r", 4,
        {
            "fpp4.dat.*": File(
                4, (8, 8 * MiB), (8, 8 * MiB), 1, 1, role="temporary", size=8 * MiB
            )
        },
        {"write": 32, "read": 32, "unlink": 4},
        phases=2,
    ),
    Program(
        "v3-netcdf-pnetcdf-4r", 4,
        {
            # 4 collective writes and one nonblocking one of 256 KiB by each process, and the header.
            "pnc.nc": File(written=(11, 5 * MiB + 228), writers=1, readers=1, read=(6, 4_456_456), pattern=None),
        },
        {"pwrite": 14},
        phases=2, edges=None, sync=8, other_files=frozenset({"*"}),
    ),
]  # fmt: skip


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda p: p.trace)
def known(request):
    return request.param, vani.profile(TRACES / request.param.trace, files=None)


def _matching(profile: Profile, name: str) -> list[FileEntity]:
    return [f for f in profile.files if PurePosixPath(f.path).match(name)]


@pytest.mark.sampled(6)
def test_processes_and_flushes(known):
    program, profile = known
    assert profile.workflow.processes == program.processes
    assert profile.workflow.io.ops.sync == program.sync
    assert profile.traces[0].complete


def test_each_file_is_used_as_the_program_says(known):
    program, profile = known
    for name, want in program.files.items():
        found = _matching(profile, name)
        assert len(found) == want.count, f"{name}: {[f.path for f in found]}"
        for file in found:
            io = file.io
            assert (io.ops.write, io.bytes.written) == want.written, name
            assert (io.ops.read, io.bytes.read) == want.read, name
            assert (file.readers, file.writers) == (want.readers, want.writers), name
            if want.size is not None:
                assert file.size == want.size, name
            if want.role is not None and name != "ssf-Part*-of-*.data":
                assert file.role in (want.role, None), f"{name}: {file.role}"
            if want.pattern is not None:
                assert getattr(io.access_pattern, want.pattern) >= 1 - 2 * CLOSE, (name, io.access_pattern)


def test_no_file_is_invented(known):
    program, profile = known
    if "*" in program.other_files:
        return
    named = {f.path for name in program.files for f in _matching(profile, name)}
    rest = {PurePosixPath(f.path).name for f in profile.files if f.path not in named} - program.other_files
    if program.trace == "v3-ckpt-then-restart-8r":
        rest -= {"Header", *(f"Cell_D_{rank:05d}" for rank in range(8))}
    assert rest == set()


def test_each_call_is_counted_under_its_name_and_all_time_is_in_calls(known):
    program, profile = known
    io = profile.workflow.io
    calls = {call.name.removesuffix("64"): call for call in io.calls if call.name is not None}
    for name, count in program.calls.items():
        assert calls[name].count == count, name
    assert sum(call.count for call in io.calls) == io.ops.all
    spent = sum(call.time_s for call in io.calls)
    assert spent >= io.time_s.total * (1 - 1e-9)
    if not any(trace.startswith(("n2-threads", "v3-posix")) for trace in (program.trace,)):
        # Without threads calls hardly overlap: clock ticks make neighbours touch.
        assert spent == pytest.approx(io.time_s.total, rel=0.02)
    kinds = io.metadata_kinds
    assert sum(getattr(kinds, kind).count for kind in type(kinds).model_fields) == io.ops.metadata


def test_phases_are_those_that_a_reader_of_the_source_would_name(known):
    program, profile = known
    count = sum(phase.repeats.count if phase.repeats else 1 for phase in profile.phases)
    assert abs(count - program.phases) <= 1, [(p.kind, p.start_s, p.repeats) for p in profile.phases]


def test_processes_depend_on_the_writers_of_the_bytes_they_read(known):
    program, profile = known
    if program.edges is None:
        return
    found = profile.apps[0].process_dependencies
    assert (found.edges, found.pattern) == (program.edges, program.pattern)
