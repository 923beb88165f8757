"""Worker processes on this machine, loaded where they are asked for: `multiprocessing` is much for a small trace."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import connection
from typing import Any

from vani.allocator import keep_freed_memory

__all__ = ["ProcessPool"]


class ProcessPool(ProcessPoolExecutor):
    """Processes that leave interrupts to the one that started them, from their first moment on."""

    def __init__(self, workers: int) -> None:
        # A fork of a process with threads may wait forever for what one of them held.
        super().__init__(workers, multiprocessing.get_context("spawn"), _begin_worker)

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # Here it starts processes. They inherit the mask; what comes meanwhile is delivered afterwards.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return super().submit(function, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_worker() -> None:
    """Run by a worker process first.

    It keeps the memory of one batch for the next, as commands do, and ends when the process that started it has ended,
    by whatever signal.
    """
    keep_freed_memory()
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_wait_and_end, args=(parent.sentinel,), name="parent", daemon=True).start()


def _wait_and_end(sentinel: int) -> None:
    # A worker that waits for tasks never sees the end of the pipe that they come through: others hold it, too.
    connection.wait([sentinel])
    os._exit(1)
