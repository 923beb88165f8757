"""Opens the executor of a scheduler: this process, processes of this machine, or a Dask cluster."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from vani.engine.executor import (
    Executor,
    Graph,
    Key,
    Packing,
    Progress,
    Scheduler,
    SchedulerLike,
    scheduler_of,
)
from vani.errors import InputError

_MAX_DEATHS = 4
"""Number of times that a pass may lose a process: as many as tasks of a Dask cluster may lose workers by default."""
_WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 29),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "OPENBLAS_NUM_THREADS": "1",
}
"""Lets a batch's arrays reuse the memory of the previous batch, like `vani.cli.work.keep_freed_memory`."""


def open_executor(scheduler: SchedulerLike = None, *, progress: Progress | None = None) -> Executor:
    """The executor for the scheduler that a user names.

    Parameters
    ----------
    scheduler
        See `scheduler_of`.
    progress
        Called when a stage begins and after each task.

    Raises
    ------
    InputError
        There is no such scheduler. A cluster is connected only on first use.
    """
    place = scheduler_of(scheduler)
    if not place.is_local:
        from vani.engine.cluster import Cluster  # noqa: PLC0415 - few runs need it

        return Cluster(place, progress)
    return Processes(place, progress) if place.name == "processes" else Executor(place, progress)


class Processes(Packing):
    """Runs tasks in one process per processor of this machine. They talk through pipes: no port is open."""

    def __init__(self, scheduler: Scheduler, progress: Progress | None = None) -> None:
        super().__init__(scheduler, progress)
        self._children: list[BaseProcess] = []

    def _abandon(self) -> None:
        for child in self._children:
            child.kill()
        self.close()

    @contextmanager
    def _sent(self, broadcast: Sequence[Any], run: str) -> Iterator[tuple[Graph, Any]]:
        # Dask sends a task's inputs each time, but names of files may take hundreds of megabytes.
        with TemporaryDirectory(prefix="vani-", ignore_cleanup_errors=True) as folder:
            file = Path(folder, run)
            file.write_bytes(pickle.dumps(tuple(broadcast), 5))
            yield {}, file

    def _run(self, graph: Graph, chunks: Sequence[Key], wanted: Sequence[Key], stage: str) -> list[Any]:
        import dask.multiprocessing  # noqa: PLC0415 - heavy

        for _ in range(_MAX_DEATHS):
            if self._pool is None:
                self._start()
            try:
                with self._counting(chunks, stage):
                    results = dask.multiprocessing.get(
                        graph, list(wanted), pool=self._pool, optimize_graph=False, chunksize=1
                    )
                return [pickle.loads(result) for result in results]
            except BrokenProcessPool:
                # A process was killed: new ones run its tasks.
                self._abandon()
            except dask.multiprocessing.RemoteException as error:
                # Its text includes the worker's traceback.
                raise self._error(error.exception, stage) from error
            except MemoryError as error:
                raise self._error(error, stage) from error
        raise InputError(
            f"a worker process died {_MAX_DEATHS} times while {self._doing(stage)}, as happens where memory runs out",
            where=self._name,
            todo=self._more_memory,
        )

    def _start(self) -> None:
        """Start the processes.

        Raises
        ------
        InputError
            The system refuses to.
        """
        others, environment = set(active_children()), dict(os.environ)
        # A terminal interrupt reaches all processes. Workers inherit this mask and leave interrupts to this process.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.environ |= _WORKER_ENVIRONMENT
        try:
            pool = ProcessPoolExecutor(self._workers, mp_context=get_context("spawn"))
            # Each starts a process, because no other one is idle yet.
            for started in [pool.submit(int) for _ in range(self._workers)]:
                started.result()
            self._pool = pool
        except (OSError, RuntimeError) as error:
            raise InputError(
                f"worker processes cannot be started ({error or type(error).__name__})",
                where=self._name,
                todo="use --scheduler threads",
            ) from error
        finally:
            for name in _WORKER_ENVIRONMENT:
                os.environ.pop(name)
            os.environ |= environment
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._children = [child for child in active_children() if child not in others]
