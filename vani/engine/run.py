"""Running many small tasks on Dask, wherever the user wants them to run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from vani.errors import InputError

__all__ = ["Engine", "Progress", "workers_here"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Progress(Protocol):
    """Told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


def workers_here() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


class Engine:
    """Runs tasks that do not depend on each other and returns their results in order.

    Parameters
    ----------
    scheduler
        `threads` (the default), `processes`, `synchronous`, or the address of a Dask scheduler such as
        `tcp://host:8786`.
    """

    def __init__(self, scheduler: str | None = None, *, progress: Progress | None = None) -> None:
        self.scheduler = scheduler or "threads"
        self._progress = progress or _silent
        self._client: Any = None
        if self.scheduler not in ("threads", "processes", "synchronous") and "://" not in self.scheduler:
            raise InputError(
                f"unknown scheduler {self.scheduler!r}",
                todo="known are threads, processes, synchronous and the address of a Dask scheduler (tcp://host:port)",
            )

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        if self.scheduler == "synchronous":
            return 1
        if "://" in self.scheduler:
            return max(1, len(self._connect().ncores()))
        return workers_here()

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], *, stage: str = ""
    ) -> list[Result]:
        """Apply `function` to every item."""
        if not items:
            return []
        self._progress(stage, 0, len(items))
        if len(items) == 1 and self.scheduler in ("threads", "synchronous"):
            # A single task needs no scheduler, and not even its import.
            result = function(items[0])
            self._progress(stage, 1, 1)
            return [result]
        if "://" in self.scheduler:
            return self._on_cluster(function, items, stage)
        return self._here(function, items, stage)

    def _here(self, function: Callable[[Item], Result], items: Sequence[Item], stage: str) -> list[Result]:
        import dask  # noqa: PLC0415 - heavy; small traces never need it
        from dask.callbacks import Callback  # noqa: PLC0415

        total, done = len(items), 0

        def finished(*_: object) -> None:
            nonlocal done
            done += 1
            self._progress(stage, min(done, total), total)

        # Bound to the function, not given as an argument: Dask looks for its own objects in every field of an argument,
        # which takes minutes where one holds the names of a hundred thousand files.
        tasks = [dask.delayed(partial(function, item), pure=False, traverse=False)() for item in items]
        with Callback(posttask=finished):
            return list(
                dask.compute(
                    *tasks, scheduler=self.scheduler, num_workers=workers_here(), optimize_graph=False
                )
            )

    def _connect(self) -> Any:
        if self._client is None:
            try:
                from distributed import Client  # noqa: PLC0415 - an extra
            except ImportError as error:
                raise InputError(
                    "a Dask cluster needs dask.distributed", todo="pip install 'vani-io[cluster]'"
                ) from error
            try:
                self._client = Client(self.scheduler, timeout="10s", set_as_default=False)
            except (OSError, TimeoutError, ValueError) as error:
                raise InputError(
                    "no Dask scheduler answers",
                    where=self.scheduler,
                    todo="start one, or leave --scheduler out",
                ) from error
        return self._client

    def _on_cluster(
        self, function: Callable[[Item], Result], items: Sequence[Item], stage: str
    ) -> list[Result]:
        client = self._connect()
        from distributed import as_completed  # noqa: PLC0415

        futures = client.map(function, list(items), pure=False, retries=3)
        for count, _ in enumerate(as_completed(futures), 1):
            self._progress(stage, count, len(items))
        return list(client.gather(futures))

    def close(self) -> None:
        """Leave the cluster, if there is one."""
        if self._client is not None:
            self._client.close()
            self._client = None
