"""Tasks on this machine: one after the other, in threads, or in processes."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from vani.engine.parcel import call_each_from_file, load, pack
from vani.errors import VaniError

__all__ = ["HERE", "Here", "workers_here"]

HERE = ("threads", "processes", "synchronous")


def workers_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Here:
    """Runs tasks on this machine.

    Parameters
    ----------
    scheduler
        One of `HERE`.
    """

    def __init__(self, scheduler: str) -> None:
        self.scheduler = scheduler
        self._pool: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()
        """Children of this process that are not the pool's."""
        self._folder: Path | None = None
        self._files = 0

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return 1 if self.scheduler == "synchronous" else workers_here()

    def map(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        constants: Sequence[Any],
        done: Callable[[int], None],
    ) -> list[Any]:
        """Apply a function to every item; `done` is told how many are."""
        if len(items) == 1 and self.scheduler != "processes":
            # A single task needs no scheduler, and not even its import.
            results = [function(items[0])]
            done(1)
            return results
        if self.scheduler == "processes":
            return self._in_processes(function, items, constants, done)
        # Bound to the function, not given as an argument: Dask looks for its own objects in every field of an argument,
        # which takes minutes where one holds the names of a hundred thousand files.
        return self._compute([partial(function, item) for item in items], done)

    def _compute(
        self, calls: Sequence[Callable[[], Any]], done: Callable[[int], None], **more: Any
    ) -> list[Any]:
        import dask  # noqa: PLC0415 - heavy; small traces never need it
        from dask.callbacks import Callback  # noqa: PLC0415

        count = 0

        def finished(*_: object) -> None:
            nonlocal count
            count += 1
            done(min(count, len(calls)))

        tasks = [dask.delayed(call, pure=False, traverse=False)() for call in calls]
        with Callback(posttask=finished):
            return list(
                dask.compute(
                    *tasks,
                    scheduler=self.scheduler,
                    num_workers=workers_here(),
                    optimize_graph=False,
                    **more,
                )
            )

    def _in_processes(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        constants: Sequence[Any],
        done: Callable[[int], None],
    ) -> list[Any]:
        if self._pool is None:
            self._others = set(multiprocessing.active_children())
            self._folder = Path(tempfile.mkdtemp(prefix="vani-tasks-"))
            self._pool = ProcessPoolExecutor(
                workers_here(),
                # A fork of a process with threads may wait forever for what one of them held.
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_leave_interrupts_to_the_parent,
            )
        assert self._folder is not None
        self._files += 1
        place = self._folder / f"{self._files}.pickle"
        place.write_bytes(pack(list(constants)))
        calls = [partial(call_each_from_file, pack((function, [item]), constants), place) for item in items]
        try:
            results = self._compute(calls, done, pool=self._pool, chunksize=1)
        except BrokenProcessPool as error:
            raise VaniError(
                "a worker process was killed, as happens where memory runs out",
                todo="use --scheduler synchronous, or a machine with more memory",
            ) from error
        except BaseException:
            # Nobody waits for what was begun: parts of a million calls take seconds each.
            for child in set(multiprocessing.active_children()) - self._others:
                child.terminate()
            self.close()
            raise
        return [load(r)[0] for r in results]

    def close(self) -> None:
        """End the processes, if there are any."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
