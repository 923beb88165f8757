"""Tasks in this process's memory: sequential, or in threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

_WAITING = 2
"""Maximum number of results per worker that wait to be combined."""

Result = TypeVar("Result")


class Progress(Protocol):
    """Receives the number of completed tasks of a stage."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


def silent(stage: str, done: int, total: int) -> None:
    """Progress that is not shown."""
    del stage, done, total


def available_processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Synchronous:
    """Runs tasks sequentially. See `vani.engine.executor.Executor`."""

    shares_memory = True
    is_remote = False

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress or silent

    @property
    def workers(self) -> int:
        return 1

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        del version, reads, writes

    def map(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> list[Result]:
        results = dict(self._with_progress(function, items, stage, broadcast))
        return [results[number] for number in range(len(items))]

    def reduce(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        combine: Callable[[list[Result]], Result],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> Result:
        waiting: list[Result] = []
        for _, result in self._with_progress(function, items, stage, broadcast):
            waiting.append(result)
            # Keep only a few results of thousands of parts in memory.
            if len(waiting) > _WAITING * self.workers:
                waiting = [combine(waiting)]
        return combine(waiting)

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _with_progress(
        self, function: Callable[..., Result], items: Sequence[Any], stage: str, broadcast: Sequence[Any]
    ) -> Iterator[tuple[int, Result]]:
        if items:
            self._progress(stage, 0, len(items))
        for done, numbered in enumerate(self._each(lambda item: function(item, *broadcast), items), 1):
            yield numbered
            self._progress(stage, done, len(items))

    def _each(self, function: Callable[[Any], Result], items: Sequence[Any]) -> Iterator[tuple[int, Result]]:
        """Yield the index of each item and its result, in any order."""
        return enumerate(map(function, items))


class Threads(Synchronous):
    """Runs tasks in one thread per processor, or in the calling thread if the system refuses to start threads."""

    def __init__(self, progress: Progress | None = None) -> None:
        super().__init__(progress)
        self._workers = available_processors()
        self._pool: ThreadPoolExecutor | None = None

    @property
    def workers(self) -> int:
        return self._workers

    def _each(self, function: Callable[[Any], Result], items: Sequence[Any]) -> Iterator[tuple[int, Result]]:
        if len(items) == 1 or self._workers == 1:
            yield from super()._each(function, items)
            return
        self._pool = self._pool or ThreadPoolExecutor(self._workers, "vani")
        waiting = list(range(len(items)))[::-1]
        running: dict[Future[Result], int] = {}
        try:
            while waiting or running:
                # Start few tasks ahead, so that results do not pile up before they are combined.
                while self._pool is not None and waiting and len(running) < 2 * self._workers:
                    try:
                        running[self._pool.submit(function, items[waiting[-1]])] = waiting[-1]
                        waiting.pop()
                    except RuntimeError:
                        # The system refuses another thread: running ones finish their tasks, this one does the rest.
                        self.close()
                        self._workers = 1
                        waiting += [n for future, n in running.items() if future.cancelled()]
                        running = {future: n for future, n in running.items() if not future.cancelled()}
                if self._pool is None and waiting:
                    number = waiting.pop()
                    yield number, function(items[number])
                    continue
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in sorted(done, key=running.__getitem__):
                    yield running.pop(future), future.result()
        finally:
            # Wait for started tasks, which must not write into a folder that the caller removes.
            if running:
                self.close()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
