"""How freed memory is treated: what is kept is not cleared anew by the system, and a worker leaves others as it was."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from vani.engine import Engine

FAULTS = """
import resource
import numpy as np
from vani.allocator import keep_freed_memory, stop_keeping

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(1 << 17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

first = faults()
keep_freed_memory()
faults()
kept = faults()
stop_keeping()
print(first, kept, faults())
"""
KEEPS = "__import__('vani.allocator').allocator._keeps"


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_arrays_reuse_freed_memory_until_it_is_kept_no_longer():
    dask_sets = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    run = subprocess.run([sys.executable, "-c", FAULTS], env=dask_sets, capture_output=True, text=True, check=True)
    first, kept, later = map(int, run.stdout.split())
    # Systems with large pages need few faults for an array, but not none.
    assert first > 50
    assert kept < first / 10
    assert later > first / 2


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_worker_processes_keep_freed_memory_from_their_first_task_on():
    engine = Engine("processes")
    try:
        assert engine.map(eval, [KEEPS] * 4) == [True] * 4
    finally:
        engine.close()
