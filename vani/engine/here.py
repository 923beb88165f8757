"""Tasks on this machine: one after the other, in threads, or in processes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, ThreadPoolExecutor, wait
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vani.engine.parcel import call_each_from_file, load, pack
from vani.errors import VaniError

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from vani.engine.forks import Forks
    from vani.engine.process_pool import ProcessPool

__all__ = ["Here", "workers_here"]

_FEWEST_FORKED = 1 << 20
"""Calls; a fork takes some milliseconds."""

Answer = TypeVar("Answer")


def workers_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Here:
    """Runs tasks on this machine.

    Parameters
    ----------
    scheduler
        One of `vani.engine.scheduler.HERE`.
    forks
        Tasks of much work may run in forks of this process.
    """

    def __init__(self, scheduler: str, *, forks: bool = False) -> None:
        self.scheduler, self._may_fork = scheduler, forks and scheduler == "threads"
        self._threads: ThreadPoolExecutor | None = None
        self._pool: ProcessPool | None = None
        self._forks: Forks | None = None
        self._others: set[BaseProcess] = set()
        """Children of this process that are not the pool's."""
        self._folder: Path | None = None
        self._files = 0

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        return 1 if self.scheduler == "synchronous" else workers_here()

    def each(
        self, function: Callable[[Any], Any], items: Sequence[Any], constants: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        """Apply a function to every item; yield (number of the item, result) as they are done.

        Only some items more than there are workers are begun before their results were taken.
        """
        self.end_forks()
        if self.scheduler == "processes":
            yield from self._in_processes(function, items, constants)
        elif len(items) == 1 or self.workers == 1:
            # Threads of its own would cost a single task more than they give.
            yield from enumerate(map(function, items))
        else:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(self.workers, "vani")
            try:
                yield from self._through(self._threads, function, items)
            except BaseException:
                # What was begun ends first: it must not write into a folder that is being removed.
                self.close()
                raise

    def in_forks(
        self,
        work: Callable[[Iterator[int]], Answer],
        items: int,
        constants: Sequence[Any],
        calls: int,
        told: Callable[[int], None],
    ) -> list[Answer] | None:
        """Share the numbers of items among this process and forks of it, see `vani.engine.forks.Forks.share`.

        None where there are too few calls in them, or no fork can be made: threads do it then.
        """
        if items < 2 or calls < _FEWEST_FORKED or not self._may_fork or self.workers < 2:
            return None
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        from vani.engine.forks import Forks, can_fork  # noqa: PLC0415 - for large traces

        if not can_fork():
            return None
        if self._forks is None:
            try:
                self._forks = Forks(self.workers - 1)
            except OSError:
                return None
        return self._forks.share(work, items, told, constants)

    def _through(
        self, pool: Executor, function: Callable[[Any], Any], items: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        todo = iter(enumerate(items))
        running = {pool.submit(function, item): i for i, item in islice(todo, 2 * self.workers)}
        try:
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=running.__getitem__):
                    number = running.pop(future)
                    result = future.result()
                    running |= {pool.submit(function, item): i for i, item in islice(todo, 1)}
                    yield number, result
        finally:
            for future in running:
                future.cancel()

    def _in_processes(
        self, function: Callable[[Any], Any], items: Sequence[Any], constants: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        from multiprocessing import active_children  # noqa: PLC0415 - most commands run in threads

        from vani.engine.process_pool import ProcessPool  # noqa: PLC0415

        if self._pool is None:
            self._others = set(active_children())
            self._folder = Path(tempfile.mkdtemp(prefix="vani-tasks-"))
            self._pool = ProcessPool(self.workers)
        assert self._folder is not None
        self._files += 1
        place = self._folder / f"{self._files}.pickle"
        place.write_bytes(pack(list(constants)))
        parcels = [pack((function, [item]), constants) for item in items]
        try:
            for number, result in self._through(
                self._pool, partial(call_each_from_file, path=place), parcels
            ):
                yield number, load(result)[0]
        except BrokenExecutor as error:
            raise VaniError(
                "a worker process was killed, as happens where memory runs out",
                todo="use --scheduler synchronous, or a machine with more memory",
            ) from error
        except BaseException:
            # Nobody waits for what was begun: parts of a million calls take seconds each.
            children = set(active_children()) - self._others
            # First, or else the pool's own thread may find the children gone and trip over what was cancelled.
            self._pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()
            for child in children:
                child.join()
            self.close()
            raise

    def end_forks(self) -> None:
        """End the forks, if there are any; a pass that needs some makes new ones."""
        if self._forks is not None:
            # None of them is at work: a pass that is not done ends them itself.
            self._forks.end(wait=False)
            self._forks = None

    def close(self) -> None:
        """End the threads or processes, if there are any."""
        self.end_forks()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
            self._threads = None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
