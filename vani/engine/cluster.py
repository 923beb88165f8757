"""Tasks on the workers of a Dask cluster: an existing one, or one that is made of batch jobs.

Workers read traces and stores from the file system that they share with this machine. What travels is counted in
`Cluster.traffic`: tasks of some hundred bytes, what tasks have in common once to each worker, and partial results,
which workers combine among themselves. A worker may be lost at any time: Dask runs its tasks again elsewhere, so
every task must be one that can run twice, even at the same time.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn

from vani.allocator import stop_keeping
from vani.engine.bundles import bundled, in_order
from vani.engine.parcel import FAN_IN, call_each, fold_each, fold_results, load, pack
from vani.engine.scheduler import BatchJobs, Elsewhere, OpenClient, SchedulerAddress, SchedulerFile
from vani.engine.sharing import ask, question, trouble
from vani.errors import InputError, VaniError

if TYPE_CHECKING:
    from vani.engine.run import Progress

__all__ = ["Cluster", "Traffic"]

CONNECT_S = 10.0
"""How long a scheduler may take to answer."""
NO_WORKER_S = 120.0
"""How long an existing cluster may be without any worker that takes tasks, at first or later.

Adaptive clusters start workers on demand; those that pause because their memory is full may go on.
"""
_TASKS_PER_THREAD = 16
"""Where there are more items, a task takes several: schedulers manage about a thousand tasks per second."""
_RETRIES = 2
_QUIETED = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")


@dataclass
class Traffic:
    """What a stage sent and got, in bytes."""

    tasks: int = 0
    sent: int = 0
    """All tasks together."""
    constants: int = 0
    """What they have in common; each worker process gets it once."""
    received: int = 0
    """What arrived here."""


class Cluster:
    """Runs tasks on a cluster, which is connected to (or submitted) at the first use.

    Parameters
    ----------
    place
        The cluster, as the user names it; an `OpenClient` stays open.
    """

    def __init__(self, place: Elsewhere, progress: Progress) -> None:
        self.place = place
        self.traffic: dict[str, Traffic] = {}
        self._progress = progress
        self._client: Any = None
        self._jobs: Any = None
        self._levels: dict[str, int] = {}
        self._threads = 0
        self._alone_since: float | None = None
        self._shared = Path()
        """A folder that workers see, too."""
        self._keys: TemporaryDirectory[str] | None = None

    @property
    def client(self) -> Any:
        """The connection.

        Raises
        ------
        InputError
            There is none to be had.
        """
        if self._client is None:
            self._client = self._connect()
        return self._client

    @property
    def name(self) -> str:
        """What the user calls the cluster."""
        if isinstance(self.place, SchedulerAddress):
            return self.place.address
        if isinstance(self.place, SchedulerFile):
            return str(self.place.path)
        if isinstance(self.place, BatchJobs):
            return f"--cluster {self.place.system}"
        return "the Dask cluster"

    @property
    def threads(self) -> int:
        """Tasks that run at a time on the workers that are there now."""
        self._threads = max(1, sum(self.client.ncores().values()))
        return self._threads

    # ------------------------------------------------------------- connection

    def _connect(self) -> Any:
        from distributed import Client  # noqa: PLC0415 - heavy, and needed for a cluster only

        if isinstance(self.place, OpenClient):
            return self.place.client
        # What goes wrong is told in one line; Dask's own log would tell it again in many.
        for name in _QUIETED:
            logger = logging.getLogger(name)
            self._levels[name] = logger.level
            logger.setLevel(logging.CRITICAL + 1)
        try:
            return self._open(Client)
        except BaseException:
            self.close()
            raise

    def _open(self, client: Any) -> Any:
        if isinstance(self.place, BatchJobs):
            from vani.engine.batch import open_jobs, speaks_tls  # noqa: PLC0415

            if speaks_tls(self.place):
                self._keys = self._new_folder()
            keys = None if self._keys is None else Path(self._keys.name)
            self._jobs = open_jobs(self.place, keys=keys)
            address = self._jobs
        elif isinstance(self.place, SchedulerFile):
            address = self.place.address()
        else:
            assert isinstance(self.place, SchedulerAddress)
            address = self.place.address
        try:
            with warnings.catch_warnings():
                # Versions that differ are looked at afterwards, and told in one line.
                warnings.simplefilter("ignore")
                return client(address, timeout=CONNECT_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError, TypeError, RuntimeError, ImportError) as error:
            raise InputError(
                "no Dask scheduler answers",
                where=self.name,
                todo="start one (`dask scheduler`), or leave --scheduler out",
            ) from error

    def _new_folder(self) -> TemporaryDirectory[str]:
        """A folder that the user's own jobs see, and nobody else."""
        place = self._shared.absolute()
        while not place.is_dir() and place != place.parent:
            place = place.parent
        try:
            return TemporaryDirectory(prefix=".vani-tls-", dir=place)
        except OSError as error:
            raise InputError(
                f"cannot write here ({error.strerror})", where=place, todo="name a folder that is writable"
            ) from error

    def close(self) -> None:
        """Leave the cluster; cancel the jobs that were submitted for it."""
        if self._client is not None and self._jobs is None:
            with suppress(Exception):
                # Workers that others go on to use keep no freed memory.
                self._client.sync(self._client.run, stop_keeping, on_error="ignore", callback_timeout=5)
        if self._client is not None and not isinstance(self.place, OpenClient):
            with suppress(Exception):
                self._client.close(timeout=5)
        self._client = None
        if self._jobs is not None:
            with suppress(Exception):
                self._jobs.close(timeout=10)
            self._jobs = None
        if self._keys is not None:
            self._keys.cleanup()
            self._keys = None
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._levels = {}

    # ------------------------------------------------------------ before work

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """See `Engine.check_workers`."""
        self._shared = writes
        self._wait_for_a_worker()
        self._check_versions(version)
        with question(reads, writes) as asked:
            answers = self.client.run(ask, asked, workers=self._one_per_host(), on_error="return")
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
        wanted = 1
        if isinstance(self.place, BatchJobs):
            wanted = self.place.workers or 1
        self._progress("workers", 0, wanted)
        # A task makes an adaptive cluster start workers.
        hello = self.client.submit(int, pure=False)
        self._alone_since = None
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
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = now
        elif now - self._alone_since > NO_WORKER_S:
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
                else f"start some (`dask worker {self._address}`), and run it again"
            )
            raise InputError(f"no workers for {NO_WORKER_S:.0f} s", where=self.name, todo=todo)

    @property
    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "ADDRESS"))

    def _check_versions(self, version: str) -> None:
        found = self.client.get_versions(packages=["vani-io", "vani"])
        ours = _told(found["client"])
        ours["Vani"] = version
        for one in (found["scheduler"], *found["workers"].values()):
            theirs = _told(one)
            worker = one is not found["scheduler"]
            who = "workers run" if worker else "the scheduler runs"
            # The scheduler only passes on what workers send: it needs no Vani.
            for package in ("Python", "Dask", "distributed") + (("Vani",) if worker else ()):
                if theirs[package] is None:
                    raise InputError(
                        f"{package} is not installed where {'workers' if worker else 'the scheduler'} run"
                        + ("" if worker else "s"),
                        where=self.name,
                        todo=f"start them in an environment with Vani {version}",
                    )
                if theirs[package] != ours[package]:
                    raise InputError(
                        f"{who} {package} {theirs[package]}, this is {package} {ours[package]}",
                        where=self.name,
                        todo="use the same environment on both sides",
                    )

    def _one_per_host(self) -> list[str]:
        from distributed.comm.addressing import get_address_host  # noqa: PLC0415

        return list({get_address_host(a): a for a in sorted(self.client.ncores())}.values())

    # ------------------------------------------------------------------- work

    def map(
        self, function: Callable[[Any], Any], items: Sequence[Any], constants: Sequence[Any], stage: str
    ) -> list[Any]:
        """Apply a function to every item; results arrive here, in order."""
        bundles = self._bundled(items)
        futures: list[Any] = []
        try:
            common, traffic = self._send_constants(constants, stage)
            futures = self._submit(
                call_each, [pack((function, c), constants) for c in bundles], common, stage, traffic
            )
            results: list[list[Any]] = [[] for _ in bundles]

            def arrived(number: int, parcel: bytes) -> int:
                traffic.received += len(parcel)
                results[number] = load(parcel)
                return len(bundles[number])

            self._collect(futures, stage, len(items), arrived)
        except BaseException as error:
            self._give_up(futures, error, stage)
        return in_order(results)

    def reduce(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        combine: Callable[[list[Any]], Any],
        constants: Sequence[Any],
        stage: str,
    ) -> Any:
        """Apply a function to every item and combine the results on the workers, `FAN_IN` at a time."""
        bundles = self._bundled(items)
        futures: list[Any] = []
        try:
            common, traffic = self._send_constants(constants, stage)
            parcels = [pack((function, c, combine), constants) for c in bundles]
            leaves = self._submit(fold_each, parcels, common, stage, traffic)
            nodes = list(leaves)
            futures = list(leaves)
            folding = pack(combine, constants)
            while len(nodes) > 1:
                groups = [nodes[i : i + FAN_IN] for i in range(0, len(nodes), FAN_IN)]
                traffic.tasks += len(groups)
                # Sooner than leaves that wait: what is combined no longer takes memory.
                nodes = self.client.map(
                    fold_results,
                    groups,
                    key=[f"vani-{stage}-combine-{uuid.uuid4().hex}-{i}" for i in range(len(groups))],
                    combine=folding,
                    constants=common,
                    pure=False,
                    retries=_RETRIES,
                    priority=10,
                )
                futures.extend(nodes)
            del futures[len(leaves) : -1]
            root = futures[-1]
            if len(leaves) > 1:
                self._collect(
                    futures[:-1], stage, len(items), lambda number, _: len(bundles[number]), fetch=False
                )
            parcel = b""

            def arrived(_: int, arrival: bytes) -> int:
                nonlocal parcel
                parcel = arrival
                return len(items)

            self._collect([root], stage, len(items), arrived)
            traffic.received += len(parcel)
        except BaseException as error:
            self._give_up(futures, error, stage)
        return load(parcel)

    def _bundled(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        threads = self.threads
        if isinstance(self.place, BatchJobs):
            # More may still be waiting in the queue.
            threads = max(threads, self.place.workers or 1)
        return bundled(items, threads * _TASKS_PER_THREAD)

    def _send_constants(self, constants: Sequence[Any], stage: str) -> tuple[Any, Traffic]:
        import dask  # noqa: PLC0415

        parcel = pack(list(constants))
        traffic = self.traffic.setdefault(stage, Traffic())
        traffic.constants += len(parcel)
        # A task, not scattered data: if the workers that hold it are lost, the scheduler can make it again.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            common = self.client.submit(
                load, parcel, key=f"vani-common-{uuid.uuid4().hex}", pure=False, retries=_RETRIES
            )
        return common, traffic

    def _submit(
        self, task: Callable[..., bytes], parcels: list[bytes], common: Any, stage: str, traffic: Traffic
    ) -> list[Any]:
        import dask  # noqa: PLC0415

        traffic.tasks += len(parcels)
        traffic.sent += sum(map(len, parcels))
        run = uuid.uuid4().hex
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return list(
                self.client.map(
                    task,
                    parcels,
                    key=[f"vani-{stage}-{run}-{i}" for i in range(len(parcels))],
                    constants=common,
                    pure=False,
                    retries=_RETRIES,
                )
            )

    def _collect(
        self,
        futures: list[Any],
        stage: str,
        total: int,
        arrived: Callable[[int, Any], int],
        *,
        fetch: bool = True,
    ) -> None:
        """Wait for all futures, look for lost workers meanwhile, and let go of each as it is done."""
        from distributed import as_completed  # noqa: PLC0415

        number = {future.key: i for i, future in enumerate(futures)}
        waiting = as_completed(futures, loop=self.client.loop)
        done, looked = 0, time.monotonic()
        self._alone_since = None
        while not waiting.is_empty():
            batch = list(waiting.next_batch(block=False))
            if not batch:
                time.sleep(0.005)
                if time.monotonic() - looked > 1.0:
                    looked = time.monotonic()
                    self._see_workers()
                continue
            # A worker that has paused still ends what it has begun.
            self._alone_since = None
            if fetch:
                values = self._fetch(batch)
            else:
                values = [
                    future.result(timeout=CONNECT_S) if future.status != "finished" else None
                    for future in batch
                ]
            for future, value in zip(batch, values, strict=True):
                done += arrived(number[future.key], value)
                future.release()
            self._progress(stage, min(done, total), total)

    def _fetch(self, batch: list[Any]) -> list[Any]:
        async def fetched() -> list[Any]:
            return list(await self.client.gather(batch, asynchronous=True))

        while True:
            try:
                # What was lost with a worker is made again meanwhile; not, where no worker is left.
                return list(self.client.sync(fetched, callback_timeout=NO_WORKER_S / 4))
            except TimeoutError:
                self._see_workers()

    # --------------------------------------------------------------- failures

    def _give_up(self, futures: list[Any], error: BaseException, stage: str) -> NoReturn:
        """Cancel what still runs or waits, and say what went wrong."""
        with suppress(Exception):
            self.client.cancel([f for f in futures if f.status == "pending"], force=True)
        from distributed import CancelledError, KilledWorker  # noqa: PLC0415

        if isinstance(error, KilledWorker):
            attempts = error.allowed_failures + 1
            raise VaniError(
                f"{attempts} workers died of one task while {_doing(stage)}, as happens where memory runs out",
                where=self.name,
                todo="give each worker more memory or fewer threads, and look into the workers' logs",
            ) from error
        if isinstance(error, MemoryError):
            raise VaniError(
                f"a worker ran out of memory while {_doing(stage)}",
                where=self.name,
                todo="give each worker more memory or fewer threads",
            ) from error
        if isinstance(error, (CancelledError, asyncio.CancelledError)):
            raise self._lost() from error
        raise error

    def _lost(self) -> VaniError:
        return VaniError(
            "the connection to the scheduler was lost, or somebody cancelled the tasks",
            where=self.name,
            todo="run it again",
        )


def _doing(stage: str) -> str:
    return {"decode": "decoding", "survey": "surveying", "measure": "measuring"}.get(stage, "working")


def _told(versions: Any) -> dict[str, str | None]:
    """Versions that must agree, out of what one side tells."""
    packages = versions["packages"]
    python = str(versions["host"]["python"]).split(".")
    return {
        "Python": ".".join(python[:2]),
        "Dask": packages.get("dask"),
        "distributed": packages.get("distributed"),
        "Vani": packages.get("vani-io") or packages.get("vani"),
    }
