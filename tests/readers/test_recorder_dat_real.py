"""Real traces of 2025 and 2026, compared with Recorder's own counts and with their programs' actions.

The README next to the bundled traces describes the programs; every number below follows from it.
"""

import functools
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from reading import Reading, read_trace

import vani
from tests.traces.recorder_oracle import decode_trace
from vani.calls import Flag, Kind, Layer

BUNDLED = Path(__file__).resolve().parents[1] / "data" / "traces"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "traces-new"
TRACES = SHARED if SHARED.is_dir() else BUNDLED
REFERENCE = {
    k: v for k, v in json.loads((TRACES / "reference.json").read_text()).items() if k.startswith("n")
}
NAMES = sorted(REFERENCE)
MIX = [name for name in NAMES if "-mix-" in name]
KIB = 1024


@functools.lru_cache(maxsize=len(NAMES))
def reading_of(name: str) -> Reading:
    return read_trace(TRACES / name)


def stated(name: str) -> dict:
    """The reference; if recorder2text could not read the trace, that of another run of the same program."""
    return REFERENCE[name] if "records" in REFERENCE[name] else REFERENCE["n2-mix-4r"]


def calls_of(name: str, kind: Kind, file: str, *, rank: int | None = None) -> list[tuple[int | None, int]]:
    """(offset, bytes) of the file-system calls of a kind on a file, in recorded order."""
    reading = reading_of(name)
    rows = reading.is_file_system() & (reading.column("kind") == kind) & (reading.column("bytes") >= 0)
    if rank is not None:
        rows &= reading.column("rank") == rank
    paths = reading.paths()
    chosen = [row for row in np.flatnonzero(rows).tolist() if (paths[row] or "").rpartition("/")[2] == file]
    offset, size = reading.calls["offset"].to_pylist(), reading.calls["bytes"].to_pylist()
    return [(offset[row], size[row]) for row in chosen]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_read_and_counts_agree_with_recorder2text(name):
    reading, reference = reading_of(name), stated(name)
    assert reading.problems == []
    assert reading.reader.ranks == reading.piece.ranks_read == reference["ranks"]
    assert reading.calls.num_rows == reference["records"]
    assert reading.piece.functions == reference["functions"]
    size, kind, counted = reading.column("bytes"), reading.column("kind"), reading.is_file_system()
    for word, which in (("read", Kind.READ), ("written", Kind.WRITE)):
        moved = int(size[counted & (kind == which) & (size >= 0)].sum())
        assert moved == reference["bytes_requested"].get(word, 0)


@pytest.mark.parametrize("name", NAMES)
def test_calls_equal_those_of_a_slow_decoder(name):
    reading = reading_of(name)
    oracle = decode_trace(TRACES / name)
    calls = [call for rank in oracle.calls for call in rank]
    tick = oracle.settings["resolution"] * 1e9
    assert reading.names() == [call.function for call in calls]
    assert reading.column("depth").tolist() == [call.depth for call in calls]
    assert reading.column("start_ns").tolist() == pytest.approx([call.start * tick for call in calls], abs=1)
    assert np.bincount(reading.column("rank")).tolist() == [len(rank) for rank in oracle.calls]
    sites = [
        site
        for batch in reading.reader.batches(
            range(reading.reader.ranks), reading.piece.__class__(), call_sites=True
        )
        for site in batch["call_site"].to_pylist()
    ]
    stored = oracle.layout.endswith("2")
    assert sites == [call.site if stored else None for call in calls]


@pytest.mark.parametrize("name", MIX)
def test_mix_moves_its_bytes(name):
    profile = vani.profile(TRACES / name, files=None)
    io = profile.workflow.io
    assert (io.bytes.read, io.bytes.written) == (262_144, 2_756_512)
    assert (io.ops.read, io.ops.write) == (64, 156)
    assert profile.traces[0].records == 287 and profile.traces[0].complete
    used = {f.path.rpartition("/")[2]: f for f in profile.files if f.io.bytes.total}
    assert sorted(used) == [
        "fpp.0",
        "fpp.1",
        "fpp.2",
        "fpp.3",
        *(f"log.{r}.txt" for r in range(4)),
        "mpi.dat",
        "shared.dat",
    ]
    assert sorted(n for n, f in used.items() if f.processes > 1) == ["mpi.dat", "shared.dat"]
    for rank in range(4):
        own = [(i * 4096, 4096) for i in range(16)]
        assert calls_of(name, Kind.WRITE, f"fpp.{rank}") == calls_of(name, Kind.READ, f"fpp.{rank}") == own
        assert [size for _, size in calls_of(name, Kind.WRITE, f"log.{rank}.txt")] == [100] * 10
        assert calls_of(name, Kind.WRITE, "shared.dat", rank=rank) == [
            ((4 * i + rank) * 65_536, 65_536) for i in range(8)
        ]
    blocks = [((4 * rank + i) * 16_384, 16_384) for rank in range(4) for i in range(4)]
    whole = [(1024 * KIB + rank * 32_768, 32_768) for rank in range(4)]
    assert sorted(calls_of(name, Kind.WRITE, "mpi.dat")) == sorted(blocks + whole)


@pytest.mark.parametrize("name", [n for n in NAMES if "phases" in n])
def test_phases_reads_a_stride_and_writes_a_permutation(name):
    for rank in range(4):
        assert calls_of(name, Kind.WRITE, f"a.{rank}") == [(i * 64 * KIB, 64 * KIB) for i in range(32)]
        strided = [((4 * i + rank) * 4 * KIB, 4 * KIB) for i in range(16)]
        assert calls_of(name, Kind.READ, "input.bin", rank=rank) == strided
        permuted = calls_of(name, Kind.WRITE, "rand.bin", rank=rank)
        assert len(set(permuted)) == 32 and permuted != sorted(permuted)
    assert sorted(calls_of(name, Kind.WRITE, "rand.bin")) == [(i * 1000, 1000) for i in range(128)]


@pytest.mark.parametrize("name", [n for n in NAMES if "mpiio" in n])
def test_calls_of_mpi_io_and_mpi_are_distinguished_by_their_caller(name):
    moved = {
        file: (
            sum(n for _, n in calls_of(name, Kind.READ, file)),
            sum(n for _, n in calls_of(name, Kind.WRITE, file)),
        )
        for file in ("indep.out", "shp.log", "split.out", *(f"self.{r}" for r in range(4)))
    }
    assert moved["indep.out"] == (4 * 4 * 4096,) * 2 and moved["split.out"] == (0, 4 * 64 * KIB)
    assert moved["shp.log"] == (0, 1400) and moved["self.2"] == (2048, 2048)
    reading = reading_of(name)
    names, paths = reading.names(), reading.paths()
    via, within, depth = (reading.column(c) for c in ("via", "within", "depth"))
    # Every file-system call of this program is made by the MPI library, inside a call of MPI-IO, inside MPI_Wait
    # (the end of iwrite_at_all), or inside MPI_File_delete, which is in no record.
    rows = np.flatnonzero(reading.is_file_system())
    assert (via[rows] == Layer.MPIIO).all() and (within[rows] & 1 << Layer.MPIIO != 0).all()
    waiting = [paths[row] for row in rows[within[rows] & 1 << Layer.MPI != 0].tolist()]
    assert waiting and all(path.endswith("/nb.out") for path in waiting)
    assert [(names[r], paths[r].rpartition("/")[2]) for r in rows[depth[rows] == 0].tolist()] == [
        ("unlink", "self.0")
    ]


@pytest.mark.parametrize("name", [n for n in NAMES if "hdf5" in n])
def test_hdf5_is_the_outermost_library_with_mpi_io_below(name):
    reading = reading_of(name)
    fs = reading.is_file_system()
    assert (reading.column("via")[fs] == Layer.HDF5).all()
    both = 1 << Layer.HDF5 | 1 << Layer.MPIIO | 1 << Layer.POSIX
    assert (reading.column("within")[fs] == both).all()
    rows = [(o, n) for o, n in calls_of(name, Kind.WRITE, "data.h5") if n == 2048]
    # The dataset of 64 rows of 256 doubles, row by row: each row once.
    assert len(set(rows)) == len(rows) == 64


@pytest.mark.parametrize("name", [n for n in NAMES if "threads" in n])
def test_threads_are_distinguished(name):
    reading = reading_of(name)
    thread, names, paths = reading.column("thread"), reading.names(), reading.paths()
    did = {}
    for row, (number, function) in enumerate(zip(thread.tolist(), names, strict=True)):
        did.setdefault(number, Counter())[function, (paths[row] or "").rpartition("/")[2][:4]] += 1
    workers = [c for c in did.values() if c["fsync", "thr."]]
    assert len(workers) == 4
    for worker in workers:
        assert worker["pwrite", "shar"] == 16 and worker["write", "thr."] == worker["fsync", "thr."] == 8
    assert [n for _, n in calls_of(name, Kind.WRITE, "shared.bin")] == [4096] * 64
    assert [calls_of(name, Kind.WRITE, f"thr.{k}") for k in range(4)] == [
        [(i * 65_536, 65_536) for i in range(8)]
    ] * 4


@pytest.mark.parametrize("name", [n for n in NAMES if "-ior-" in n])
def test_ior_reads_the_next_nodes_blocks(name):
    # -b 256k -t 64k -s 4: rank r has the blocks r, r + 4, r + 8, r + 12 of 256 KiB, in four transfers each.
    for rank in range(4):
        blocks = [(s * 4 + rank) * 256 * KIB + t * 64 * KIB for s in range(4) for t in range(4)]
        assert calls_of(name, Kind.WRITE, "ssf.dat", rank=rank) == [(at, 64 * KIB) for at in blocks]
    assert sorted(calls_of(name, Kind.READ, "ssf.dat")) == [(i * 64 * KIB, 64 * KIB) for i in range(64)]
    reading = reading_of(name)
    assert not (reading.column("flags")[reading.is_file_system()] & Flag.NESTED).any()


@pytest.mark.parametrize("name", NAMES)
def test_app_is_the_executable_named_in_the_trace(name):
    # The programs' names; older layouts and traces without call sites have only the directory's name.
    programs = {"mix": "mix", "phases": "p1", "mpiio": "p7", "hdf5": "p8", "threads": "p9", "ior": "ior"}
    has_sites = name.startswith("n2-") and "nosite" not in name
    program = next(program for part, program in programs.items() if f"-{part}-" in f"{name}-")
    assert reading_of(name).reader.app == (program if has_sites else name)
