"""How the C library's allocator treats freed memory while a command works through batches."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["allocate_in_one_place", "give_back", "keep_freed_memory", "stop_keeping"]

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -2, -3, -8
_LARGEST_BATCH_ARRAY = 1 << 25
_KEPT = 1 << 29
_STEP = 1 << 26
_DEFAULT = 1 << 17
"""Of both thresholds."""


def allocate_in_one_place() -> None:
    """Let all threads, and Arrow and numpy, allocate in one place: what each kept of its own would come on top.

    That is some 60 MiB for Arrow's own allocator, and 50 MiB for each thread more.

    This and `keep_freed_memory` set the whole process, so commands call them, not the library, and before numpy is
    loaded. It would start a thread per processor for linear algebra, of which there is none here. And it would ask for
    huge pages whenever it makes an array of 4 MiB, which changes how all of the process's memory is mapped: threads
    whose pages are being made wait for that, and all others with them, as it holds Python's lock meanwhile. Two threads
    took a tenth more processor time. The allocator that Arrow brings and does not use here has no thread of its own
    either: a process with one thread can be forked. Nothing else is done where the C library is not glibc.

    Sources: mallopt(3); numpy, "Global state"; jemalloc(3), "background_thread".
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")
    if (mallopt := _function("mallopt")) is None:
        return
    if "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, 1)
    import pyarrow as pa  # noqa: PLC0415 - for commands that read traces

    pa.set_memory_pool(pa.system_memory_pool())


def keep_freed_memory() -> None:
    """Let arrays of one batch, of Arrow and numpy, reuse the memory of the batch before.

    By default glibc gives arrays of some megabytes back to the system, which then clears every page anew: a fifth of
    the processor time of `vani profile`, and half of it in workers of Dask, which lowers the threshold of trimming to
    64 KiB. Where it was called before, nothing is done.

    Source: mallopt(3).
    """
    global _keeps  # noqa: PLW0603 - the allocator belongs to the process, too
    if _keeps:
        return
    allocate_in_one_place()
    if (mallopt := _function("mallopt")) is None:
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_BATCH_ARRAY)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    mallopt(_M_TOP_PAD, _STEP)
    _keeps = True


def give_back() -> None:
    """Return to the system what `keep_freed_memory` has kept, where what follows needs far less.

    Source: malloc_trim(3).
    """
    if _keeps and (malloc_trim := _function("malloc_trim")) is not None:
        malloc_trim(0)


def stop_keeping() -> None:
    """Undo `keep_freed_memory` in a process that others go on to use, such as a worker of their cluster."""
    global _keeps  # noqa: PLW0603 - as above
    if not _keeps or (mallopt := _function("mallopt")) is None:
        return
    give_back()
    mallopt(_M_MMAP_THRESHOLD, _DEFAULT)
    mallopt(_M_TRIM_THRESHOLD, _set_by("MALLOC_TRIM_THRESHOLD_", _DEFAULT))
    mallopt(_M_TOP_PAD, _set_by("MALLOC_TOP_PAD_", _DEFAULT))
    _keeps = False


def _set_by(variable: str, default: int) -> int:
    value = os.environ.get(variable, "")
    return int(value) if value.isdecimal() else default


_keeps = False


def _function(name: str) -> Any:
    import ctypes  # noqa: PLC0415 - for commands that read traces

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
