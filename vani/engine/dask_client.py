"""Tasks on the workers of a Dask cluster: processes of this machine, a user's cluster, or jobs of a batch system.

Workers read traces and write stores in files; calls never travel between processes. A worker may be lost at any time:
Dask runs its tasks again elsewhere, so every task must be one that can run twice, even at the same time.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import signal
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NoReturn, Self, TypeVar

from vani.allocator import keep_freed_memory, stop_keeping
from vani.engine.local import Progress, available_processors, silent
from vani.engine.scheduler import (
    BatchJobs,
    LocalScheduler,
    OpenClient,
    Scheduler,
    SchedulerAddress,
    SchedulerFile,
)
from vani.engine.shared_fs_check import check_folders, trouble, witness
from vani.errors import InputError

__all__ = ["DaskClient"]

CONNECT_S = 10.0
"""Time in which a scheduler must answer."""
NO_WORKER_S = 120.0
"""Time after which a cluster is given up that has no worker that takes tasks.

Adaptive clusters start workers on demand; those that pause because their memory is full may go on.
"""
FAN_IN = 8
"""Results that a worker combines at a time."""
_RETRIES = 2
_LOGGERS = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")

Result = TypeVar("Result")


class DaskClient:
    """Runs tasks through a `distributed.Client`, which connects at the first use. See `vani.engine.executor.Executor`.

    Parameters
    ----------
    place
        The cluster: `LocalScheduler("processes")` starts worker processes on this machine; an `OpenClient` stays open.
    """

    shares_memory = False

    def __init__(self, place: Scheduler, progress: Progress | None = None) -> None:
        self.place = place
        self._progress = progress or silent
        self._client: Any = None
        self._cluster: Any = None
        """Workers that were started for this run: processes or jobs."""
        self._levels: dict[str, int] = {}
        self._without_worker_since: float | None = None
        self._shared_folder = Path()
        """A folder that workers see, too."""
        self._keys: TemporaryDirectory[str] | None = None
        self._broadcast: dict[int, tuple[Any, Any]] = {}
        """Objects of the last stage by their identity, each with the future that holds it on workers."""

    @property
    def is_remote(self) -> bool:
        return not isinstance(self.place, LocalScheduler)

    @property
    def client(self) -> Any:
        """The `distributed.Client`.

        Raises
        ------
        InputError
            The cluster cannot be reached or started.
        """
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def name(self) -> str:
        """The cluster as the user named it."""
        if isinstance(self.place, LocalScheduler):
            return f"--scheduler {self.place.name}"
        if isinstance(self.place, SchedulerAddress):
            return self.place.address
        if isinstance(self.place, SchedulerFile):
            return str(self.place.path)
        if isinstance(self.place, BatchJobs):
            return f"--cluster {self.place.system}"
        return "the Dask cluster"

    @property
    def workers(self) -> int:
        """Threads of all workers that are there now."""
        return max(1, int(sum(self.client.ncores().values())))

    # ------------------------------------------------------------- connection

    def _connect(self) -> Any:
        from distributed import Client  # noqa: PLC0415 - heavy, and needed for a cluster only

        if isinstance(self.place, OpenClient):
            return self.place.client
        # Errors end in one line; Dask's own log would repeat them in many.
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(logging.CRITICAL + 1)
        try:
            address = self._address()
            try:
                with warnings.catch_warnings():
                    # Versions are compared afterwards.
                    warnings.simplefilter("ignore")
                    return Client(address, timeout=CONNECT_S, set_as_default=False)
            except (OSError, TimeoutError, ValueError, TypeError, RuntimeError, ImportError) as error:
                raise InputError(
                    "no Dask scheduler answers",
                    where=self.name,
                    todo="start one (`dask scheduler`), or leave --scheduler out",
                ) from error
        except BaseException:
            self.close()
            raise

    def _address(self) -> Any:
        """The cluster to connect to, started where it is this run's own."""
        if isinstance(self.place, LocalScheduler):
            self._cluster = _started_processes()
            return self._cluster
        if isinstance(self.place, BatchJobs):
            from vani.engine.batch_jobs import open_jobs, speaks_tls  # noqa: PLC0415 - needs an extra

            if speaks_tls(self.place):
                self._keys = self._new_folder()
            keys = None if self._keys is None else Path(self._keys.name)
            self._cluster = open_jobs(self.place, keys=keys)
            return self._cluster
        if isinstance(self.place, SchedulerFile):
            return self.place.address()
        assert isinstance(self.place, SchedulerAddress)
        return self.place.address

    def _new_folder(self) -> TemporaryDirectory[str]:
        """A folder that the user's own jobs see, and nobody else."""
        place = self._shared_folder.absolute()
        while not place.is_dir() and place != place.parent:
            place = place.parent
        try:
            return TemporaryDirectory(prefix=".vani-tls-", dir=place)
        except OSError as error:
            raise InputError(
                f"cannot write here ({error.strerror})", where=place, todo="name a folder that is writable"
            ) from error

    def close(self) -> None:
        """Leave the cluster; end the processes or jobs that were started for this run."""
        self._broadcast = {}
        if self._client is not None and self._cluster is None:
            with suppress(Exception):
                # Others go on to use these workers.
                self._client.sync(self._client.run, _forget, on_error="ignore", callback_timeout=5)
        if self._client is not None and not isinstance(self.place, OpenClient):
            with suppress(Exception):
                self._client.close(timeout=5)
        self._client = None
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=10)
            self._cluster = None
        if self._keys is not None:
            self._keys.cleanup()
            self._keys = None
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._levels = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # ------------------------------------------------------------ before work

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """See `Executor.check_workers`."""
        if not self.is_remote:
            return
        self._shared_folder = writes
        self._wait_for_a_worker()
        self._check_versions(version)
        with witness(reads, writes) as files:
            answers = self.client.run(check_folders, files, workers=self._one_per_host(), on_error="return")
        for answer in answers.values():
            if isinstance(answer, BaseException):
                raise InputError(
                    f"a worker does not do as it is asked ({type(answer).__name__}: {answer})",
                    where=self.name,
                    todo="install Vani where the workers run",
                )
            if answer is not None:
                raise trouble(*answer)

    def _wait_for_a_worker(self) -> None:
        self._progress("workers", 0, (isinstance(self.place, BatchJobs) and self.place.workers) or 1)
        # A task makes an adaptive cluster start workers.
        hello = self.client.submit(int, pure=False)
        self._without_worker_since = None
        try:
            while hello.status == "pending" and not self.client.ncores():
                # A job may wait in its queue for hours; whoever submitted it knows that.
                if not isinstance(self.place, BatchJobs):
                    self._see_workers()
                time.sleep(0.05)
        finally:
            hello.release()

    def _see_workers(self) -> None:
        """Give up after some time without any worker that takes tasks."""
        try:
            workers = len(self.client.ncores())
            running = bool(self.client.sync(self.client.scheduler.ncores_running)) if workers else False
        except (OSError, TimeoutError) as error:
            raise self._lost() from error
        now = time.monotonic()
        if running:
            self._without_worker_since = None
        elif self._without_worker_since is None:
            self._without_worker_since = now
        elif now - self._without_worker_since > NO_WORKER_S:
            if workers:
                who = "the worker has paused" if workers == 1 else f"all {workers} workers have paused"
                raise InputError(
                    f"{who} for {NO_WORKER_S:.0f} s, as they do where memory runs out",
                    where=self.name,
                    todo="give each worker more memory or fewer threads, and run it again",
                )
            todo = (
                "ask for a longer walltime or more memory, and run it again"
                if isinstance(self.place, BatchJobs)
                else f"start some (`dask worker {self._scheduler_address}`), and run it again"
            )
            raise InputError(f"no workers for {NO_WORKER_S:.0f} s", where=self.name, todo=todo)

    @property
    def _scheduler_address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "ADDRESS"))

    def _check_versions(self, version: str) -> None:
        reported = self.client.get_versions(packages=["vani-io", "vani"])
        ours = {**_compared(reported["client"]), "Vani": version}
        # The scheduler unpacks tasks to plan them, so it needs Vani, too.
        for side in (reported["scheduler"], *reported["workers"].values()):
            theirs = _compared(side)
            is_worker = side is not reported["scheduler"]
            for package, version_here in ours.items():
                if theirs[package] is None:
                    raise InputError(
                        f"{package} is not installed where {'workers run' if is_worker else 'the scheduler runs'}",
                        where=self.name,
                        todo=f"start them in an environment with Vani {version}",
                    )
                if theirs[package] != version_here:
                    raise InputError(
                        f"{'workers run' if is_worker else 'the scheduler runs'} {package} {theirs[package]}, "
                        f"this is {package} {version_here}",
                        where=self.name,
                        todo="use the same environment on both sides",
                    )

    def _one_per_host(self) -> list[str]:
        from distributed.comm.addressing import get_address_host  # noqa: PLC0415

        return list({get_address_host(a): a for a in sorted(self.client.ncores())}.values())

    # ------------------------------------------------------------------- work

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
                # Before tasks that wait: results that are combined no longer take memory.
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
        # Only after distributed has been loaded, which sets its own configuration.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            known, self._broadcast = self._broadcast, {}
            for shared in broadcast:
                self._broadcast[id(shared)] = known.get(id(shared)) or (
                    shared,
                    # A task and not scattered data: if the workers that hold it are lost, the scheduler makes it again.
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
        """Yield the number of each future and its result as they are done; look for lost workers meanwhile."""
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
                    self._see_workers()
                continue
            # A worker that has paused still ends what it has begun.
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
                # Results that were lost with a worker are made again meanwhile, unless no worker is left.
                return list(self.client.sync(gathered, callback_timeout=NO_WORKER_S / 4))
            except TimeoutError:
                self._see_workers()

    # --------------------------------------------------------------- failures

    @contextmanager
    def _running(self, stage: str) -> Iterator[list[Any]]:
        """A list for the futures of a stage: after an error those that wait are cancelled."""
        futures: list[Any] = []
        try:
            yield futures
        except BaseException as error:
            with suppress(Exception):
                self.client.cancel([f for f in futures if f.status == "pending"], force=True)
            self._raise(error, stage)

    def _raise(self, error: BaseException, stage: str) -> NoReturn:
        """Raise an error of a worker in words that tell the user what to do."""
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
            raise self._lost() from error
        raise error

    def _lost(self) -> InputError:
        return InputError(
            "the connection to the scheduler was lost, or somebody cancelled the tasks",
            where=self.name,
            todo="run it again",
        )


# What travels is pickled here: arrays that Dask unpacks may lie at odd addresses, which kernels do not read, and a
# result that is combined twice, because a worker was lost, must not have been changed by the first time.

_unpacked = lru_cache(maxsize=8)(pickle.loads)
"""For all tasks of a stage."""


def _called(item: Any, function: Callable[..., Any], broadcast: Sequence[bytes]) -> bytes:
    """Run by a worker."""
    keep_freed_memory()
    return pickle.dumps(function(item, *map(_unpacked, broadcast)), 5)


def _combined(results: list[bytes], combine: Callable[[list[Any]], Any]) -> bytes:
    """Run by a worker."""
    return pickle.dumps(combine([pickle.loads(result) for result in results]), 5)


def _forget() -> None:
    """Run by a worker when the work is done."""
    _unpacked.cache_clear()
    stop_keeping()


def _started_processes() -> Any:
    """A `distributed.LocalCluster` with a process for each processor.

    Raises
    ------
    InputError
        The system refuses the processes, or there is no package to encrypt what they say.
    """
    from distributed import LocalCluster  # noqa: PLC0415 - heavy
    from distributed.security import Security  # noqa: PLC0415 - heavy

    try:
        # Any user of this machine could reach the port of a scheduler that speaks without.
        security = Security.temporary()
    except ImportError as error:
        raise InputError(
            "worker processes speak TLS, which needs the package cryptography",
            where="--scheduler processes",
            todo="pip install 'vani-io[cluster]', or use --scheduler threads",
        ) from error
    # An interrupt of the terminal reaches all its processes. These leave it to this one: they inherit the mask.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return LocalCluster(
            n_workers=available_processors(),
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            security=security,
            silence_logs=logging.CRITICAL + 1,
        )
    except (OSError, RuntimeError, TimeoutError) as error:
        raise InputError(
            f"worker processes cannot be started ({error or type(error).__name__})",
            where="--scheduler processes",
            todo="use --scheduler threads",
        ) from error
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _compared(versions: Any) -> dict[str, str | None]:
    """Versions that must agree, out of those that one side reports."""
    packages = versions["packages"]
    python = str(versions["host"]["python"]).split(".")
    return {
        "Python": ".".join(python[:2]),
        "Dask": packages.get("dask"),
        "distributed": packages.get("distributed"),
        "Vani": packages.get("vani-io") or packages.get("vani"),
    }
