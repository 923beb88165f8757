"""The connection to a Dask cluster: processes on this machine, a user's cluster, or batch jobs."""

from __future__ import annotations

import logging
import signal
import time
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from vani.engine.local import Progress, available_processors, silent
from vani.engine.scheduler import (
    BatchJobs,
    LocalScheduler,
    OpenClient,
    Scheduler,
    SchedulerAddress,
    SchedulerFile,
)
from vani.engine.shared_fs_check import cannot_write, check_folders, nearest_folder, trouble, witness
from vani.errors import InputError

CONNECT_S = 10.0
"""Time within which a scheduler must answer."""
NO_WORKER_S = 120.0
"""Time after which Vani gives up on a cluster without a worker that accepts tasks.

Adaptive clusters start workers on demand, and workers that paused because their memory is full may resume.
"""
_WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 29),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "OPENBLAS_NUM_THREADS": "1",
}
"""Lets a batch's arrays reuse the memory of the previous batch (mallopt(3)), which Dask by default returns."""
_LOGGERS = ("distributed", "distributed.client", "distributed.scheduler", "tornado.application")


class DaskConnection:
    """A `distributed.Client`, connected on first use.

    Parameters
    ----------
    place
        The cluster: `LocalScheduler("processes")` starts worker processes on this machine; an `OpenClient` is left
        open.
    """

    def __init__(self, place: Scheduler, progress: Progress | None = None) -> None:
        self.place = place
        self._progress = progress or silent
        self._client: Any = None
        self._cluster: Any = None
        """Workers that were started for this run: processes or jobs."""
        self._levels: dict[str, int] = {}
        self._without_worker_since: float | None = None
        self._shared_folder = Path()
        """A folder that workers can see, too."""
        self._own_folder: TemporaryDirectory[str] | None = None
        """Scratch space of worker processes, or the keys of jobs."""

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

    # ------------------------------------------------------------- connection

    def _connect(self) -> Any:
        from distributed import Client  # noqa: PLC0415 - heavy, and needed for a cluster only

        if isinstance(self.place, OpenClient):
            return self.place.client
        # Errors are reported in one line; Dask's log would repeat them in many.
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
        """The cluster to connect to, which is started if it belongs to this run."""
        if isinstance(self.place, LocalScheduler):
            self._own_folder = TemporaryDirectory(prefix="vani-workers-", ignore_cleanup_errors=True)
            self._cluster = _started_processes(self._own_folder.name)
            return self._cluster
        if isinstance(self.place, BatchJobs):
            from vani.engine.batch_jobs import open_jobs, speaks_tls  # noqa: PLC0415 - needs an extra

            if speaks_tls(self.place):
                self._own_folder = self._new_folder()
            keys = None if self._own_folder is None else Path(self._own_folder.name)
            self._cluster = open_jobs(self.place, keys=keys)
            return self._cluster
        if isinstance(self.place, SchedulerFile):
            return self.place.address()
        assert isinstance(self.place, SchedulerAddress)
        return self.place.address

    def _new_folder(self) -> TemporaryDirectory[str]:
        """A folder that only the user's own jobs can read."""
        place = nearest_folder(self._shared_folder)
        try:
            return TemporaryDirectory(prefix=".vani-tls-", dir=place)
        except OSError as error:
            raise cannot_write(place, error) from error

    def close(self) -> None:
        """Leave the cluster, and end this run's processes or jobs."""
        if self._client is not None and not isinstance(self.place, OpenClient):
            with suppress(Exception):
                self._client.close(timeout=5)
        self._client = None
        if self._cluster is not None:
            with suppress(Exception):
                self._cluster.close(timeout=10)
            self._cluster = None
        if self._own_folder is not None:
            self._own_folder.cleanup()
            self._own_folder = None
        for name, level in self._levels.items():
            logging.getLogger(name).setLevel(level)
        self._levels = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
                    f"a worker does not follow requests ({type(answer).__name__}: {answer})",
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
                # A job may wait in its queue for hours, as its user knows.
                if not isinstance(self.place, BatchJobs):
                    self.see_workers()
                time.sleep(0.05)
        finally:
            hello.release()

    def see_workers(self) -> None:
        """Give up after some time without a worker that accepts tasks."""
        try:
            workers = len(self.client.ncores())
            running = bool(self.client.sync(self.client.scheduler.ncores_running)) if workers else False
        except (OSError, TimeoutError) as error:
            raise self.lost_error() from error
        now = time.monotonic()
        if running:
            self._without_worker_since = None
        elif self._without_worker_since is None:
            self._without_worker_since = now
        elif now - self._without_worker_since > NO_WORKER_S:
            if workers:
                who = "the worker has paused" if workers == 1 else f"all {workers} workers have paused"
                raise InputError(
                    f"{who} for {NO_WORKER_S:.0f} s, as happens where memory runs out",
                    where=self.name,
                    todo="give each worker more memory or fewer threads, and run it again",
                )
            todo = (
                "request a longer walltime or more memory, and run it again"
                if isinstance(self.place, BatchJobs)
                else f"start some (`dask worker {self.client.scheduler.address}`), and run it again"
            )
            raise InputError(f"no workers for {NO_WORKER_S:.0f} s", where=self.name, todo=todo)

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
                    raise InputError(
                        f"{package} is not installed where {who}",
                        where=self.name,
                        todo=f"start them in an environment with Vani {version}",
                    )
                if theirs[package] != version_here:
                    raise InputError(
                        f"{who} {package} {theirs[package]}, this is {package} {version_here}",
                        where=self.name,
                        todo="use the same environment on both sides",
                    )

    def _one_per_host(self) -> list[str]:
        from distributed.comm.addressing import get_address_host  # noqa: PLC0415

        return list({get_address_host(a): a for a in sorted(self.client.ncores())}.values())

    def lost_error(self) -> InputError:
        return InputError(
            "the connection to the scheduler was lost, or the tasks were cancelled",
            where=self.name,
            todo="run it again",
        )


def _started_processes(scratch: str) -> Any:
    """A `distributed.LocalCluster` with one process per processor, which spill to the folder `scratch`.

    Raises
    ------
    InputError
        The system refuses to start the processes, or the package for encrypting their connections is missing.
    """
    from distributed import LocalCluster  # noqa: PLC0415 - heavy
    from distributed.security import Security  # noqa: PLC0415 - heavy

    try:
        # Without TLS, any user of this machine could reach the scheduler's port.
        security = Security.temporary()
    except ImportError as error:
        raise InputError(
            "worker processes use TLS, which needs the package cryptography",
            where="--scheduler processes",
            todo="pip install cryptography, or use --scheduler threads",
        ) from error
    from dask import config  # noqa: PLC0415 - heavy

    # A terminal interrupt reaches all its processes. Workers inherit this mask and leave interrupts to this process.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with config.set(
            {"distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT, "temporary-directory": scratch}
        ):
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
    """Versions reported by one side that must match."""
    packages = versions["packages"]
    python = str(versions["host"]["python"]).split(".")
    return {
        "Python": ".".join(python[:2]),
        "Dask": packages.get("dask"),
        "distributed": packages.get("distributed"),
        "Vani": packages.get("vani-io") or packages.get("vani"),
    }
