"""Tasks on the workers of a Dask cluster.

Workers read traces and write stores as files; calls never travel between processes. A worker may be lost at any time,
and Dask then runs its tasks elsewhere, so every task must be able to run twice, even at the same time.
"""

from __future__ import annotations

import asyncio
import pickle
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from vani.engine.dask_connection import CONNECT_S, DaskConnection
from vani.engine.local import Progress
from vani.engine.scheduler import LocalScheduler, Scheduler
from vani.errors import InputError

FAN_IN = 8
"""Number of results that a worker combines at a time."""
_RETRIES = 2
_FETCH_S = 30.0
"""Time after which a result that does not arrive is considered lost with its worker."""

Result = TypeVar("Result")


class DaskClient(DaskConnection):
    """Runs tasks through a `distributed.Client`. See `vani.engine.executor.Executor`."""

    shares_memory = False

    def __init__(self, place: Scheduler, progress: Progress | None = None) -> None:
        super().__init__(place, progress)
        self._broadcast: dict[int, tuple[Any, Any]] = {}
        """Objects of the last stage by identity, each with its future on the workers."""

    @property
    def workers(self) -> int:
        return max(1, int(sum(self.client.ncores().values())))

    def close(self) -> None:
        self._broadcast = {}
        if self._client is not None and self._cluster is None:
            with suppress(Exception):
                # Others continue to use these workers.
                self._client.sync(
                    self._client.run, _unpacked.cache_clear, on_error="ignore", callback_timeout=5
                )
        super().close()

    def map(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> list[Result]:
        """See `Executor.map`."""
        if not items:
            return []
        with self._running(stage) as futures:
            futures.extend(self._begin(function, items, stage, broadcast))
            results: list[Any] = [None] * len(items)
            for number, result in self._completed(futures, stage):
                results[number] = result
            return results

    def reduce(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        combine: Callable[[list[Result]], Result],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> Result:
        """See `Executor.reduce`: Dask's chunk, combine and aggregate."""
        if not items:
            return combine([])
        with self._running(stage) as futures:
            futures.extend(self._begin(function, items, stage, broadcast))
            level = list(futures)
            run = uuid.uuid4().hex
            while len(level) > 1:
                groups = [level[at : at + FAN_IN] for at in range(0, len(level), FAN_IN)]
                # Before waiting tasks, because combined results no longer take memory.
                level = self.client.map(
                    _combined,
                    groups,
                    key=[(f"combine-{run}", len(level), number) for number in range(len(groups))],
                    combine=combine,
                    pure=False,
                    retries=_RETRIES,
                    priority=10,
                )
                futures[len(items) :] = level
            if len(items) > 1:
                for _ in self._completed(futures[: len(items)], stage, fetch=False):
                    pass
            [(_, result)] = self._completed(level, "")
            return combine([result])

    def _begin(
        self, function: Callable[..., Any], items: Sequence[Any], stage: str, broadcast: Sequence[Any]
    ) -> list[Any]:
        """Submit the tasks of a stage; returns their futures."""
        import dask  # noqa: PLC0415 - heavy

        self._progress(stage, 0, len(items))
        client, run = self.client, uuid.uuid4().hex
        # Only after importing distributed, which sets its own configuration.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            known, self._broadcast = self._broadcast, {}
            for shared in broadcast:
                self._broadcast[id(shared)] = known.get(id(shared)) or (
                    shared,
                    # Unlike scattered data, a task's result is recreated if the workers that have it are lost.
                    client.submit(bytes, pickle.dumps(shared, 5), pure=False, retries=_RETRIES, priority=10),
                )
            return list(
                client.map(
                    _called,
                    items,
                    key=[(f"{stage or 'task'}-{run}", number) for number in range(len(items))],
                    function=function,
                    broadcast=[self._broadcast[id(shared)][1] for shared in broadcast],
                    pure=False,
                    retries=_RETRIES,
                )
            )

    def _completed(self, futures: list[Any], stage: str, *, fetch: bool = True) -> Iterator[tuple[int, Any]]:
        """Yield the index of each future and its result as they complete; check for lost workers meanwhile."""
        from distributed import as_completed  # noqa: PLC0415 - heavy

        numbers = {future.key: number for number, future in enumerate(futures)}
        waiting = as_completed(futures, loop=self.client.loop)
        done, looked = 0, time.monotonic()
        self._without_worker_since = None
        while not waiting.is_empty():
            batch = list(waiting.next_batch(block=False))
            if not batch:
                time.sleep(0.005)
                if time.monotonic() - looked > 1.0:
                    looked = time.monotonic()
                    self.see_workers()
                continue
            # A paused worker still finishes the tasks that it started.
            self._without_worker_since = None
            if fetch:
                results = [pickle.loads(result) for result in self._fetched(batch)]
            else:
                results = [
                    future.result(timeout=CONNECT_S) if future.status != "finished" else None
                    for future in batch
                ]
            for future, result in zip(batch, results, strict=True):
                yield numbers[future.key], result
                future.release()
            done += len(batch)
            if stage:
                self._progress(stage, done, len(futures))

    def _fetched(self, batch: list[Any]) -> list[Any]:
        async def gathered() -> list[Any]:
            return list(await self.client.gather(batch, asynchronous=True))

        while True:
            try:
                # Results that were lost with a worker are recomputed meanwhile, unless no worker is left.
                return list(self.client.sync(gathered, callback_timeout=_FETCH_S))
            except TimeoutError:
                self.see_workers()

    # --------------------------------------------------------------- failures

    @contextmanager
    def _running(self, stage: str) -> Iterator[list[Any]]:
        """Yield a list for the futures of a stage; after an error, those that wait are cancelled."""
        futures: list[Any] = []
        try:
            yield futures
        except BaseException as error:
            with suppress(Exception):
                self.client.cancel([f for f in futures if f.status == "pending"], force=True)
            self._raise(error, stage)

    def _raise(self, error: BaseException, stage: str) -> NoReturn:
        """Raise a worker's error with a hint for the user."""
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - heavy

        doing = {"decode": "decoding", "survey": "surveying", "measure": "measuring"}.get(stage, "working")
        more_memory = "give each worker more memory or fewer threads"
        if isinstance(self.place, LocalScheduler):
            more_memory = "use --scheduler synchronous, or a machine with more memory"
        if isinstance(error, KilledWorker):
            raise InputError(
                f"{error.allowed_failures + 1} workers died of one task while {doing}, "
                "as happens where memory runs out",
                where=self.name,
                todo=more_memory + ("" if not self.is_remote else ", and look into the workers' logs"),
            ) from error
        if isinstance(error, MemoryError):
            raise InputError(
                f"a worker ran out of memory while {doing}", where=self.name, todo=more_memory
            ) from error
        if isinstance(error, (CancelledError, asyncio.CancelledError)):
            raise self.lost_error() from error
        raise error


# Messages are pickled here, because arrays that Dask unpacks may be at odd addresses, which kernels cannot read, and
# because a result that is combined twice after a lost worker must not have been changed by the first combination.

_unpacked = lru_cache(maxsize=8)(pickle.loads)
"""The same for all tasks of a stage."""


def _called(item: Any, function: Callable[..., Any], broadcast: Sequence[bytes]) -> bytes:
    """Call the function on a worker."""
    return pickle.dumps(function(item, *map(_unpacked, broadcast)), 5)


def _combined(results: list[bytes], combine: Callable[[list[Any]], Any]) -> bytes:
    """Combine results on a worker."""
    return pickle.dumps(combine([pickle.loads(result) for result in results]), 5)
