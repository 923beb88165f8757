"""MPI programs under strace with bytes, calls and files fixed by their sources (`../shared/cases/README.md`)."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import vani

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def profile_of(case, folder):
    archive = CASES / f"{case}.tgz"
    if not archive.is_file():
        pytest.skip(f"{archive.name} is not here")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return vani.profile(folder / case, store=folder / "store")


def test_shared_memory_of_mpich_is_no_data(tmp_path):
    profile = profile_of("rank0-strace", tmp_path)
    io = profile.workflow.io
    assert (io.bytes.written, io.ops.write, io.bytes.read) == (100_663_296, 24, 0)
    assert (profile.workflow.files.total, profile.workflow.processes) == (6, 4)
    assert [(phase.kind, phase.processes) for phase in profile.phases] == [("write", 1)]
    # 16.4 MB of UCX segments, and two files of MPICH.
    assert profile.excluded.io.bytes.written > 17_204_670 - 2


def test_start_of_mpi_is_no_phase(tmp_path):
    profile = profile_of("fort-strace", tmp_path)
    io = profile.workflow.io
    assert (io.bytes.written, io.bytes.read) == (16_100_000, 16_016_000)
    assert profile.workflow.files.total == 8
    assert len(profile.phases) == 1
