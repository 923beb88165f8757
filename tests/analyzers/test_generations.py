"""Files that follow each other under one name: checkpoints that are renamed into place, and scratch files."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

import vani
from tests.readers.strace_logs import written

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
SIZE = 1 << 21


def one(name: str, *, replaces: str = "", removes: bool = False, reads: bool = False) -> list[str]:
    """Calls that write a file of 2 MiB, and then rename it, read it or remove it."""
    calls = [
        f'openat(AT_FDCWD</data>, "{name}", O_RDWR|O_CREAT, 0644) = 3<{name}> <0.000010>',
        *[f'write(3<{name}>, ""..., {SIZE // 4}) = {SIZE // 4} <0.010000>'] * 4,
        *([f'pread64(3<{name}>, ""..., {SIZE}, 0) = {SIZE} <0.001000>'] if reads else []),
        f"close(3<{name}>) = 0 <0.000010>",
    ]
    calls += [f'rename("{name}", "{replaces}") = 0 <0.000010>'] if replaces else []
    return calls + ([f'unlink("{name}") = 0 <0.000010>'] if removes else [])


def profile_of(folder: Path, calls: list[str]) -> vani.Profile:
    return vani.profile(written(folder, *(f"7 {call}" for call in calls)))


def patterns(profile: vani.Profile) -> set[str]:
    return {entry.pattern for entry in vani.diagnosis(profile)}


def test_a_checkpoint_that_is_renamed_into_place_is_written_once_per_generation(tmp_path):
    profile = profile_of(tmp_path, 20 * one("/data/ck.tmp", replaces="/data/ck"))
    (file,) = profile.files
    assert (file.path, file.generations, file.io.bytes.written) == ("/data/ck", 20, 20 * SIZE)
    assert "rewritten" not in patterns(profile)
    rules = {entry.rule for entry in vani.advise(profile, system="generic-lustre").recommendations}
    assert not rules & {"POS003", "POS011"}


def test_a_file_that_is_overwritten_in_place_is_rewritten(tmp_path):
    profile = profile_of(tmp_path, 20 * one("/data/ck"))
    (file,) = profile.files
    assert (file.generations, file.io.bytes.written) == (None, 20 * SIZE)
    assert "rewritten" in patterns(profile)


def test_a_scratch_file_has_a_generation_for_each_creation(tmp_path):
    profile = profile_of(tmp_path, 12 * one("/data/scratch", reads=True, removes=True))
    (file,) = profile.files
    assert (file.role, file.generations) == ("temporary", 12)
    reasons = [entry.reason for entry in vani.advise(profile, system="generic-lustre").recommendations]
    assert not [reason for reason in reasons if "a library copies data" in reason]
    (once,) = profile_of(tmp_path, one("/data/scratch", removes=True)).files
    assert (once.role, once.generations) == ("temporary", None)


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
def test_chunks_of_zarr_that_each_step_replaces(tmp_path):
    with tarfile.open(CASES / "zarr-steps-strace.tgz") as archive:
        archive.extractall(tmp_path, filter="data")
    profile = vani.profile(tmp_path / "zarr-steps-strace")
    assert [file.generations for file in profile.files if "/c/0/" in file.path] == [60] * 4
    advice = vani.advise(profile, system="generic-lustre")
    first = next(entry for entry in advice.recommendations if entry.rule != "MAT001")
    assert first.rule == "POS011" and "keep it in memory" not in str(first.apply)
    assert "POS003" not in {entry.rule for entry in advice.recommendations}
