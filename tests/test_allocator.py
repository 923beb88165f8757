"""How freed memory is treated: what is kept is not cleared anew by the system, and a worker leaves others as it was."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from vani.engine.executor import open_executor

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
PLACES = """
import ctypes, os, sys, threading
if "now" in sys.argv:
    from vani.allocator import allocate_in_one_place
    allocate_in_one_place()
kept = [bytearray(5000)]
threads = [threading.Thread(target=lambda: kept.append(bytearray(5000))) for _ in range(4)]
for one in threads: one.start()
for one in threads: one.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
end, begin = os.pipe()
out = ctypes.c_void_p(libc.fdopen(begin, b"w"))
libc.malloc_info(0, out)
libc.fclose(out)
print(os.fdopen(end).read().count("<heap nr="), os.environ.get("NUMPY_MADVISE_HUGEPAGE"))
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


def places(*arguments: str, **given: str) -> list[str]:
    """How many places threads allocate in, and whether numpy asks for huge pages."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "NUMPY_"))}
    command = [sys.executable, "-c", PLACES, *arguments]
    run = subprocess.run(command, env={**others, **given}, capture_output=True, text=True, check=True)
    return run.stdout.split()


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_threads_allocate_in_one_place_and_numpy_asks_for_no_huge_pages():
    by_default, huge = places()
    assert int(by_default) > 1
    assert huge == "None"
    assert places("now") == ["1", "0"]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="the C library is not glibc")
def test_what_the_user_sets_for_the_allocator_stays():
    assert places("now", MALLOC_ARENA_MAX="2", NUMPY_MADVISE_HUGEPAGE="1") == ["2", "1"]


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="the C library is not glibc")
def test_worker_processes_keep_freed_memory_from_their_first_task_on():
    with open_executor("processes") as executor:
        assert executor.map(eval, [KEEPS] * 4) == [True] * 4
