"""How the C library's allocator treats freed memory while a command works through batches."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["allocate_in_one_place", "give_back", "keep_freed_memory"]

# malloc.h of glibc
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
_LARGEST_BATCH_ARRAY = 1 << 25
_KEPT = 1 << 29
_STEP = 1 << 26


def allocate_in_one_place() -> None:
    """Let Arrow allocate where numpy does: what its own allocator keeps comes on top, some 60 MiB.

    This and `keep_freed_memory` set the whole process, so commands call them, not the library, and before numpy is
    loaded: it would start a thread per processor for linear algebra, of which there is none here. Nothing else is done
    where the C library is not glibc.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if _function("mallopt") is None:
        return
    import pyarrow as pa  # noqa: PLC0415 - for commands that read traces

    pa.set_memory_pool(pa.system_memory_pool())


def keep_freed_memory() -> None:
    """Let arrays of one batch, of Arrow and numpy, reuse the memory of the batch before.

    By default glibc gives arrays of some megabytes back to the system, which then clears every page anew: a fifth of
    the processor time of `vani profile`.

    Source: mallopt(3).
    """
    allocate_in_one_place()
    if (mallopt := _function("mallopt")) is None:
        return
    mallopt(_M_MMAP_THRESHOLD, _LARGEST_BATCH_ARRAY)
    mallopt(_M_TRIM_THRESHOLD, _KEPT)
    mallopt(_M_TOP_PAD, _STEP)
    global _keeps  # noqa: PLW0603 - the allocator belongs to the process, too
    _keeps = True


def give_back() -> None:
    """Return to the system what `keep_freed_memory` has kept: the next stage needs other arrays, in other threads.

    Source: malloc_trim(3).
    """
    if _keeps and (malloc_trim := _function("malloc_trim")) is not None:
        malloc_trim(0)


_keeps = False


def _function(name: str) -> Any:
    import ctypes  # noqa: PLC0415 - for commands that read traces

    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
