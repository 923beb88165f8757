"""Damaged inputs give the same profile or the same line with kernels and without.

`test_sanitized.py` also runs these under AddressSanitizer and UBSan.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from pathlib import Path

import pytest
from invented import NIGHTLY_SEED
from switched import needs_kernels, numpy_alone

sys.path.append(str(Path(__file__).resolve().parents[1] / "fuzz"))
from mutations import damaged
from seeds import Seed, seeds

import vani
from vani.errors import VaniError

pytestmark = needs_kernels
TESTS = Path(__file__).resolve().parents[1]
KINDS = ("recorder", "recorder", "recorder", "parquet", "store")
FEW, MANY, AT_ONCE = 30, 2000, 250
SANITIZED = "SANITIZED_KERNELS" in os.environ
"""Watch only the kernels; other runs compare with numpy."""
KEPT = sorted(
    path
    for folder in (TESTS / "data" / "broken", TESTS.parents[1] / "shared" / "traces-broken")
    for path in folder.glob("*")
    if path.is_dir()
)
KEPT += [TESTS / "data" / "traces" / name for name in ("v3-killed-2r", "v3-truncated-s3dio-8r")]
KEPT += sorted((TESTS / "fuzz" / "corpus").glob("*/input"))


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> list[Seed]:
    return [one for one in seeds(tmp_path_factory.mktemp("seeds")) if one.kind in KINDS]


def outcome(trace: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The output of `vani profile`, or its line of error."""
    monkeypatch.setenv("VANI_CACHE", str(cache))
    try:
        return vani.profile(trace, files=None, scheduler="synchronous").to_yaml()
    except VaniError as error:
        return f"{type(error).__name__}: {error}"


def assert_same(trace: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Check that kernels and numpy give the same result, and return it."""
    compiled = outcome(trace, work / "by-kernels", monkeypatch)
    if SANITIZED:
        return compiled
    with numpy_alone():
        assert outcome(trace, work / "by-numpy", monkeypatch) == compiled
    return compiled


@pytest.mark.parametrize("kept", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
@pytest.mark.sampled(6)
def test_saved_damaged_trace_gives_the_same_result_without_kernels(kept, tmp_path, monkeypatch):
    assert_same(kept, tmp_path, monkeypatch)


def compare_mutants(numbers: range, sound: list[Seed], folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compare mutants of the fuzzer, identified by number; return how many were profiled."""
    profiled = 0
    for number in numbers:
        draw = random.Random(f"kernels:{number}")
        kind = draw.choice(KINDS)
        seed = draw.choice([one for one in sound if one.kind == kind])
        mutant = folder / f"mutant {number}"
        mutant.mkdir()
        Seed(kind, seed.name, damaged(kind, seed.files, draw)).write(mutant)
        profiled += not assert_same(mutant, folder, monkeypatch).startswith("TraceError")
        for made in folder.iterdir():
            shutil.rmtree(made)
    return profiled


@pytest.mark.slow
def test_some_mutants_give_the_same_result_without_kernels(sound, tmp_path, monkeypatch):
    assert compare_mutants(range(MANY, MANY + FEW), sound, tmp_path, monkeypatch) > FEW // 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, MANY, AT_ONCE))
def test_many_mutants_give_the_same_result_without_kernels(first, sound, tmp_path, monkeypatch):
    first += NIGHTLY_SEED * MANY
    numbers = range(first, first + AT_ONCE)
    assert compare_mutants(numbers, sound, tmp_path, monkeypatch) > AT_ONCE // 3
