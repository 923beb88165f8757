"""How the memory of the process is managed while a command works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from vani.garbage import collection_paused

__all__ = ["memory_for"]


@contextmanager
def memory_for(work: Literal["documents", "counting", "calls"]) -> Iterator[None]:
    """Set garbage collector and allocator for `work`; to be entered before anything loads numpy.

    documents: nothing that is made becomes garbage before the answer is there. counting: Arrow allocates where numpy
    does. calls: arrays of one batch reuse the memory of the batch before. The allocator stays as it is set, since
    freed memory cannot change its owner.
    """
    if work == "documents":
        with collection_paused():
            yield
        return
    from vani import allocator  # noqa: PLC0415 - `vani --help` pays for no library

    if work == "calls":
        allocator.keep_freed_memory()
    else:
        allocator.allocate_in_one_place()
    yield
