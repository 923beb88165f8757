"""Kernels compiled with AddressSanitizer and UBSan process damaged and inconsistent traces without a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vani.kernels import build

# Compiling alone takes ten seconds, and code under a sanitizer is five times slower.
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
FLAGS = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TESTS = {
    "kernels": ["tests/kernels", "--ignore=tests/kernels/test_build.py"],
    "damage": ["tests/readers/test_damage.py", "-k", "random_damage and not much"],
    "grammars": ["tests/readers/test_grammar.py", "-k", "not seconds"],
    "times": ["tests/readers/test_timestamps.py"],
    "mutants": ["tests/kernels/test_damaged_inputs.py", "-m", "slow"],
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    compiler = build.compiler()
    if compiler is None:
        pytest.skip("no C compiler is here")
    folder = tmp_path_factory.mktemp("sanitized")
    try:
        build.compile_kernels(folder, more_flags=FLAGS)
    except OSError as error:
        pytest.skip(f"the sanitizers are not here: {error}")
    preloaded = []
    # The sanitizer handles C++ exceptions only if the C++ library is loaded when it starts.
    for name in ("libasan.so", "libstdc++.so.6"):
        asked = [*compiler, f"-print-file-name={name}"]
        preloaded.append(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
        if not Path(preloaded[-1]).is_file():
            pytest.skip(f"{name} is not here")
    return os.environ | {
        "LD_PRELOAD": " ".join(preloaded),
        # Python itself leaks memory; with its own allocator there would be no gaps between objects.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": str(ROOT / "tests"),
        "SANITIZED_KERNELS": str(folder),
    }


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_sanitizer_reports_reads_beyond_an_array(environment):
    """Otherwise the silence of the tests below would mean nothing."""
    code = """
import numpy as np, sanitized_kernels
from vani import kernels
class Small(np.ndarray):
    size = 100
kernels._array = lambda value, parameter: value
deltas = np.zeros(8, np.uint32).view(Small)
kernels.call("times", deltas=deltas, n=50, threshold=1 << 31, ns_per_tick=1, most=1 << 40, state=np.zeros(3, np.int64))
"""
    done = run(environment, "-c", code)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


def assert_silent(environment: dict[str, str], *tests: str) -> None:
    arguments = [
        "-m",
        "pytest",
        "-q",
        "-x",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-p",
        "sanitized_kernels",
        "-s",
    ]
    done = run(environment, *arguments, *tests)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "runtime error" not in done.stderr


@pytest.mark.parametrize("tests", list(TESTS))
def test_no_kernel_leaves_its_arrays(environment, tests):
    assert_silent(environment, *TESTS[tests])
