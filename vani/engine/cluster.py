"""Tasks on the workers of a user's Dask cluster.

Workers read traces and write stores as files; calls never travel between processes. A worker may be lost at any time,
and Dask then runs its tasks elsewhere, so every task must be able to run twice, even at the same time.
"""

import asyncio
import logging
import os
import pickle
import socket
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vani.engine import executor
from vani.errors import InputError, os_errors_as

CONNECT_S = 10.0
"""Time within which a scheduler must answer."""
NO_WORKER_S = 120.0
"""Time after which Vani gives up on a cluster without a worker that accepts tasks.

Adaptive clusters start workers on demand, and workers that paused because their memory is full may resume.
"""
_RETRIES = 2
_FETCH_S = 30.0
"""Time after which a result that does not arrive is considered lost with its worker."""
_LOGGERS = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")


class Cluster(executor.Packing):
    """Runs tasks through a `distributed.Client`, connected on first use."""

    is_remote = True
    _more_memory = "give each worker more memory or fewer threads"

    def __init__(self, scheduler: executor.Scheduler, progress: executor.Progress | None = None) -> None:
        super().__init__(scheduler, progress)
        self._client: Any = None
        self._levels: dict[str, int] = {}
        self._without_worker_since: float | None = None

    @property
    def workers(self) -> int:
        return max(1, int(sum(self.client.ncores().values())))

    @property
    def client(self) -> Any:
        """The `distributed.Client`.

        Raises
        ------
        InputError
            The cluster cannot be reached.
        """
        if self._client is None:
            self._client = self._connected()
        return self._client

    @property
    def _name(self) -> str:
        return self.scheduler.name

    def _connected(self) -> Any:
        try:
            from distributed import Client  # noqa: PLC0415 - an extra
        except ImportError as error:
            what = f"a Dask cluster needs the package distributed ({error})"
            raise self._failure(what, "pip install 'vani-io[cluster]'") from error
        given = self.scheduler.client
        if isinstance(given, Client):
            return given
        # Errors are reported in one line; Dask's log would repeat them in many.
        for name in _LOGGERS:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(logging.CRITICAL + 1)
        try:
            with warnings.catch_warnings():
                # Versions are compared afterwards.
                warnings.simplefilter("ignore")
                return Client(given or self.scheduler.address(), timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError, ImportError) as error:
            self.close()
            todo = "start one (`dask scheduler`), or leave --scheduler out"
            raise self._failure("no Dask scheduler answers", todo) from error

    def close(self) -> None:
        """Leave the cluster."""
        if self._client is not None:
            with suppress(Exception):
                # Others continue to use these workers.
                forget = executor.unpacked.cache_clear
                self._client.sync(self._client.run, forget, on_error="ignore", callback_timeout=5)
            if self._client is not self.scheduler.client:
                with suppress(Exception):
                    self._client.close(timeout=5)
        self._client = None
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._levels = {}

    # ------------------------------------------------------------ before work

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """See `Executor.check_workers`."""
        self._wait_for_a_worker()
        self._check_versions(version)
        with witness(reads, writes) as files:
            answers = self.client.run(check_folders, files, workers=self._one_per_host(), on_error="return")
        for answer in answers.values():
            if isinstance(answer, BaseException):
                what = f"a worker does not follow requests ({type(answer).__name__}: {answer})"
                raise self._failure(what, "install Vani where the workers run")
            if answer is not None:
                raise trouble(*answer)

    def _wait_for_a_worker(self) -> None:
        self._progress("workers", 0, 1)
        # A task makes an adaptive cluster start workers.
        hello = self.client.submit(int, pure=False)
        self._without_worker_since = None
        try:
            while hello.status == "pending" and not self.client.ncores():
                self._see_workers()
                time.sleep(0.05)
        finally:
            hello.release()

    def _see_workers(self) -> None:
        """Give up after some time without a worker that accepts tasks."""
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
                what = f"{who} for {NO_WORKER_S:.0f} s, as happens where memory runs out"
                todo = self._more_memory
            else:
                what = f"no workers for {NO_WORKER_S:.0f} s"
                todo = f"start some (`dask worker {self.client.scheduler.address}`)"
            raise self._failure(what, f"{todo}, and run it again")

    def _check_versions(self, version: str) -> None:
        reported = self.client.get_versions(packages=["vani-io", "vani"])
        ours = {**_compared(reported["client"]), "Vani": version}
        # The scheduler unpacks tasks to plan them, so it needs Vani, too.
        sides = [("the scheduler runs", reported["scheduler"])]
        sides += [("workers run", side) for side in reported["workers"].values()]
        for who, side in sides:
            theirs = _compared(side)
            for package, version_here in ours.items():
                if theirs[package] is None:
                    todo = f"start them in an environment with Vani {version}"
                    raise self._failure(f"{package} is not installed where {who}", todo)
                if theirs[package] != version_here:
                    what = f"{who} {package} {theirs[package]}, this is {package} {version_here}"
                    raise self._failure(what, "use the same environment on both sides")

    def _one_per_host(self) -> list[str]:
        from distributed.comm.addressing import get_address_host  # noqa: PLC0415 - an extra

        return list({get_address_host(a): a for a in sorted(self.client.ncores())}.values())

    # ------------------------------------------------------------------- work

    @contextmanager
    def _sent(self, broadcast: Sequence[Any], run: str) -> Iterator[tuple[executor.Graph, Any]]:
        # Unlike scattered data, a task's result is recreated if the workers that have it are lost.
        packed = (f"broadcast-{run}", 0)
        yield {packed: (bytes, pickle.dumps(tuple(broadcast), 5))}, packed

    def _abandon(self) -> None:
        """The connection stays for other stages."""

    def _run(
        self, graph: executor.Graph, chunks: Sequence[executor.Key], wanted: Sequence[executor.Key], stage: str
    ) -> list[Any]:
        import dask  # noqa: PLC0415 - heavy

        keys = list(dict.fromkeys([*wanted, *chunks]))
        client, futures = self.client, list[Any]()
        try:
            # Only after importing distributed, which sets its own configuration.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
                futures = client.get(graph, keys, sync=False, retries=_RETRIES)
            by_key = dict(zip(keys, futures, strict=True))
            self._wait_for([by_key[task] for task in chunks], set(wanted), stage)
            results = [by_key[task] for task in wanted]
            self._wait_for(results, set(wanted), "")
            return [pickle.loads(result) for result in self._fetched(results)]
        except BaseException as error:
            with suppress(Exception):
                client.cancel([future for future in futures if future.status == "pending"], force=True)
            shown = self._error(error, stage)
            if shown is error:
                raise
            raise shown from error
        finally:
            for future in futures:
                future.release()

    def _wait_for(self, futures: Sequence[Any], wanted: set[executor.Key], stage: str) -> None:
        """Wait for tasks, check for lost workers meanwhile, and forget results that are not wanted."""
        from distributed import as_completed  # noqa: PLC0415 - an extra

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
            # A paused worker still finishes the tasks that it started.
            self._without_worker_since = None
            for future in batch:
                if future.status != "finished":
                    future.result(timeout=CONNECT_S)
                if future.key not in wanted:
                    future.release()
            done += len(batch)
            if stage:
                self._progress(stage, done, len(futures))

    def _fetched(self, futures: list[Any]) -> list[bytes]:
        async def gathered() -> list[Any]:
            return list(await self.client.gather(futures, asynchronous=True))

        while True:
            try:
                # Results that were lost with a worker are recomputed meanwhile, unless no worker is left.
                return list(self.client.sync(gathered, callback_timeout=_FETCH_S))
            except TimeoutError:
                self._see_workers()

    # --------------------------------------------------------------- failures

    def _error(self, error: BaseException, stage: str) -> BaseException:
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415 - an extra

        if isinstance(error, KilledWorker):
            what = f"{error.allowed_failures + 1} workers died of one task while {self._doing(stage)}"
            todo = f"{self._more_memory}, and look into the workers' logs"
            return self._failure(f"{what}, as happens where memory runs out", todo)
        if isinstance(error, (CancelledError, asyncio.CancelledError)):
            return self._lost()
        return super()._error(error, stage)

    def _lost(self) -> InputError:
        return self._failure("the connection to the scheduler was lost, or the tasks were cancelled", "run it again")


def _compared(versions: Any) -> dict[str, str | None]:
    """Versions reported by one side that must match."""
    packages = versions["packages"]
    python = str(versions["host"]["python"]).split(".")
    return {
        "Python": ".".join(python[:2]),
        "Dask": packages.get("dask"),
        "distributed": packages.get("distributed"),
        "Vani": packages.get("vani-io") or packages.get("vani"),
    }


# ------------------------------------------------------------------- shared files


@dataclass(frozen=True)
class Witness:
    """Files that every worker must find."""

    reads: tuple[tuple[str, str, int], ...]
    """For each trace or store: a folder, the name of a file in it, and its size in bytes."""
    token: str
    """Path of a file that was written for this check."""
    content: str
    """Content of that file."""


@contextmanager
def witness(reads: Sequence[Path], writes: Path) -> Iterator[Witness]:
    """Provide a file where workers will write, for as long as they look for it.

    Raises
    ------
    InputError
        This process cannot write there.
    """
    place = writes.absolute()
    while not place.is_dir() and place != place.parent:
        place = place.parent
    with os_errors_as(InputError, "cannot write here", where=place, todo="name a folder that is writable"):
        handle, name = tempfile.mkstemp(prefix=".vani-", suffix=".shared", dir=place)
    content = os.urandom(16).hex()
    try:
        with os.fdopen(handle, "w") as file:
            file.write(content)
        yield Witness(tuple(_sample(path) for path in reads), name, content)
    finally:
        Path(name).unlink(missing_ok=True)


def _sample(folder: Path) -> tuple[str, str, int]:
    """A folder's first file by name, or the file itself, which other machines must find, too."""
    if folder.is_file():
        return str(folder.parent.absolute()), folder.name, folder.stat().st_size
    for entry in sorted(folder.iterdir(), key=lambda e: e.name):
        if entry.is_file():
            return str(folder.absolute()), entry.name, entry.stat().st_size
    return str(folder.absolute()), "", 0


def check_folders(files: Witness) -> tuple[str, str, str] | None:
    """Check on a worker: None, or the host, the fault, and the path.

    The fault is `trace` (missing or different), `store` (missing) or `write` (visible but not writable).
    """
    host = socket.gethostname()
    for folder, name, size in files.reads:
        try:
            path = Path(folder, name)
            same = path.stat().st_size == size if name else path.is_dir()
        except OSError:
            same = False
        if not same:
            return host, "trace", folder
    token = Path(files.token)
    try:
        if token.read_text() != files.content:
            return host, "store", str(token.parent)
    except OSError:
        return host, "store", str(token.parent)
    try:
        handle, name = tempfile.mkstemp(prefix=".vani-", suffix=".shared", dir=token.parent)
        os.close(handle)
        with suppress(OSError):
            Path(name).unlink()
    except OSError:
        return host, "write", str(token.parent)
    return None


_FAULTS = {
    "trace": ("is not what workers see on {}", "put the trace on a file system that all nodes share"),
    "store": ("is not seen by workers on {}", "name a folder that all nodes share (--store DIR; convert: STORE)"),
    "write": ("cannot be written by workers on {}", "name a folder that they can write"),
}


def trouble(host: str, problem: str, path: str) -> InputError:
    """The user's error for a worker's answer."""
    what, todo = _FAULTS[problem]
    return InputError(what.format(host), where=path, todo=todo)


def open_executor(
    scheduler: executor.SchedulerLike = None, *, progress: executor.Progress | None = None
) -> executor.Executor:
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
    place = executor.scheduler_of(scheduler)
    if not place.is_local:
        return Cluster(place, progress)
    return executor.Processes(place, progress) if place.name == "processes" else executor.Executor(place, progress)
