"""Passes over many parts as Dask graphs: `chunk` tasks and a tree of `combine`, run by Dask's own schedulers.

Work of a single part is called directly: it takes less time than importing Dask.
"""

import json
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from vani.errors import InputError

LOCAL = ("threads", "processes", "synchronous")

_PROTOCOLS = ("tcp", "tls", "ucx", "ucxx", "ws", "wss", "inproc")
_MAX_FILE = 1 << 20
"""Maximum bytes read from a scheduler file: real ones have some hundred, but a device has no end."""


class Client(Protocol):
    """The part of `distributed.Client` and of Dask's clusters, such as dask-jobqueue's, that identifies them."""

    @property
    def scheduler_info(self) -> object: ...


@dataclass(frozen=True, eq=False)
class Scheduler:
    """Dask's scheduler for a run."""

    name: str = LOCAL[0]
    """As the user named it: one of `LOCAL`, an address, a file."""
    file: Path | None = None
    """The file that `dask scheduler --scheduler-file FILE` writes."""
    client: Any = None
    """An open `distributed.Client`, which is left open, or a cluster."""

    @property
    def is_local(self) -> bool:
        """Whether all work is done on this machine."""
        return self.name in LOCAL

    def address(self) -> str:
        """Address of a cluster's scheduler.

        Raises
        ------
        InputError
            The file does not exist, or does not come from a scheduler.
        """
        if self.file is None:
            return self.name
        try:
            with self.file.open("rb") as file:
                content = json.loads(file.read(_MAX_FILE))
        except FileNotFoundError as error:
            raise InputError(
                "no such scheduler file",
                where=self.file,
                todo="start `dask scheduler --scheduler-file FILE` first",
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise self._not_of_a_scheduler("cannot be read as a scheduler file") from error
        address = content.get("address") if isinstance(content, dict) else None
        if not isinstance(address, str) or "://" not in address:
            raise self._not_of_a_scheduler("names no address of a scheduler")
        return address

    def _not_of_a_scheduler(self, what: str) -> InputError:
        return InputError(what, where=self.name, todo="name the file that `dask scheduler` wrote")


SchedulerLike = str | Path | Scheduler | Client | None
"""Arguments of `scheduler_of`; None is the default, threads."""


def scheduler_of(given: SchedulerLike) -> Scheduler:
    """The scheduler that a user names.

    Parameters
    ----------
    given
        `threads` (the default), `processes`, `synchronous`; the address of a Dask scheduler such as `tcp://host:8786`,
        or the path of its scheduler file; a `distributed.Client`, or a cluster, such as dask-jobqueue's.

    Raises
    ------
    InputError
        There is no such scheduler. Whether it answers is known only on first use.
    """
    if given is None:
        return Scheduler()
    if isinstance(given, Scheduler):
        return given
    if isinstance(given, Path):
        return Scheduler(str(given), given)
    if isinstance(given, str):
        return _named(given)
    if not hasattr(given, "scheduler_info"):
        raise InputError(
            f"a {type(given).__name__} is not a scheduler",
            todo="give an address, the path of a scheduler file, a distributed.Client or a Dask cluster",
        )
    return Scheduler("the Dask cluster", client=given)


def _named(text: str) -> Scheduler:
    try:
        parts = urlsplit(text)
        if parts.scheme in _PROTOCOLS and parts.hostname and parts.port != 0:
            if parts.port is None and parts.scheme != "inproc":
                raise InputError(
                    f"scheduler address {text} names no port",
                    todo=f"write it with the port of `dask scheduler`, such as {text.rstrip('/:')}:8786",
                )
            return Scheduler(text)
    except ValueError:
        pass
    if text in LOCAL:
        return Scheduler(text)
    if "://" not in text and ("/" in text or text.endswith(".json") or Path(text).is_file()):
        return Scheduler(text, Path(text))
    raise InputError(
        f"unknown scheduler {text!r}",
        todo=f"known are {', '.join(LOCAL)}, the address of a Dask scheduler (tcp://host:port) and its scheduler file",
    )


FAN_IN = 8
"""Number of results that are combined at a time."""
_FIRST_KEY = 999_999
"""Number of the first task. Dask starts tasks with large numbers first, compared as texts, and items begin with the
longest: one that starts last would keep all other workers waiting."""
Key = tuple[str, int]
Graph = dict[Key, tuple[Any, ...]]
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


class Executor:
    """Runs tasks in this process: in one thread per processor, or sequentially.

    It is a context manager that ends everything it started.
    """

    shares_memory = True
    """Whether tasks work in this process's memory."""
    is_remote = False
    """Whether tasks may run on other machines with other files or versions: call `check_workers` first."""

    def __init__(self, scheduler: Scheduler, progress: Progress | None = None) -> None:
        self.scheduler = scheduler
        self._progress = progress or silent
        self._workers = 1 if scheduler.name == "synchronous" else available_processors()
        self._pool: Any = None

    @property
    def workers(self) -> int:
        """Number of tasks that run at the same time."""
        return self._workers

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """Check before work begins that remote workers can do it; local ones always can.

        Parameters
        ----------
        version
            Version of Vani that workers must have.
        reads
            Folders or files that workers must see like this process.
        writes
            Folder, existing or not, in which workers write files that this process reads.

        Raises
        ------
        InputError
            The cluster does not answer, has no workers or other versions, or shares no files with this machine.
        """

    def map(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> list[Result]:
        """Call `function(item, *broadcast)` for every item.

        Parameters
        ----------
        stage
            Name of the work, for progress and Dask's dashboard.
        broadcast
            Objects that all tasks need. They are sent to each worker once, so items should not contain them.

        Returns
        -------
        list
            Results in the order of the items.
        """
        return self._computed(function, items, None, stage, broadcast)

    def reduce(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        combine: Callable[[list[Result]], Result],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> Result:
        """Call `function(item, *broadcast)` for every item and `combine` the results, as a tree.

        Parameters
        ----------
        combine
            Merges several results, which may be merged ones themselves, into one. The order must not matter.
        """
        return combine(self._computed(function, items, combine, stage, broadcast))

    def close(self) -> None:
        """End everything that was started: threads, worker processes, the cluster connection."""
        if self._pool is not None:
            # Wait for started tasks, which must not write into a folder that the caller removes.
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _computed(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        combine: Callable[[list[Result]], Result] | None,
        stage: str,
        broadcast: Sequence[Any],
    ) -> list[Result]:
        """The results, or the one that `combine` made of them."""
        if items:
            self._progress(stage, 0, len(items))
        if len(items) <= 1 and not self.is_remote:
            results = [function(item, *broadcast) for item in items]
            if items:
                self._progress(stage, 1, 1)
            return results
        run = uuid4().hex
        chunks: list[Key] = [(f"{stage or 'task'}-{run}", _FIRST_KEY - number) for number in range(len(items))]
        with self._sent(broadcast, run) as (graph, shared):
            graph |= {task: self._task(function, item, shared) for task, item in zip(chunks, items, strict=True)}
            wanted = chunks
            while combine and len(wanted) > 1:
                groups = [wanted[at : at + FAN_IN] for at in range(0, len(wanted), FAN_IN)]
                wanted = [(f"combine-{run}", len(graph) + number) for number in range(len(groups))]
                graph |= {task: (self._merging(combine), group) for task, group in zip(wanted, groups, strict=True)}
            try:
                return self._run(graph, chunks, wanted, stage)
            except BaseException:
                self._abandon()
                raise

    @contextmanager
    def _sent(self, broadcast: Sequence[Any], run: str) -> Iterator[tuple[Graph, Any]]:
        """The first tasks of a graph, and what its other tasks need for the broadcast objects."""
        del run
        yield {}, broadcast

    def _task(self, function: Callable[..., Any], item: Any, shared: Any) -> tuple[Any, ...]:
        return (partial(function, item, *shared),)

    def _merging(self, combine: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        return combine

    def _abandon(self) -> None:
        """End the tasks that run after an error."""
        self.close()

    def _run(self, graph: Graph, chunks: Sequence[Key], wanted: Sequence[Key], stage: str) -> list[Any]:
        """Results of the wanted tasks; `chunks` count as progress."""
        if self._workers > 1 and self._pool is None:
            self._pool = _started_threads(self._workers)
            if self._pool is None:
                self._workers = 1
        import dask.threaded  # noqa: PLC0415 - heavy, and not needed for a single part

        with self._counting(chunks, stage):
            if self._pool is None:
                return list(dask.get(graph, list(wanted)))
            return list(dask.threaded.get(graph, list(wanted), pool=self._pool))

    @contextmanager
    def _counting(self, chunks: Sequence[Key], stage: str) -> Iterator[None]:
        """Report the progress of a local graph."""
        from dask.callbacks import Callback  # noqa: PLC0415 - heavy

        done = 0

        def count(task: Key, *_: object) -> None:
            nonlocal done
            if task[0] == chunks[0][0]:
                done += 1
                self._progress(stage, done, len(chunks))

        with Callback(posttask=count):
            yield


def _started_threads(count: int) -> ThreadPoolExecutor | None:
    """A pool of running threads; None if the system refuses to start them."""
    pool, begin = ThreadPoolExecutor(count, "vani"), threading.Event()
    try:
        for _ in range(count):
            pool.submit(begin.wait)
    except RuntimeError:
        begin.set()
        pool.shutdown(cancel_futures=True)
        return None
    begin.set()
    return pool


class Packing(Executor):
    """Runs tasks in other processes.

    Messages are pickled here, because arrays that Dask unpacks may be at odd addresses, which kernels cannot read, and
    because a result that is combined twice after a lost worker must not have been changed by the first combination.
    """

    shares_memory = False

    def _task(self, function: Callable[..., Any], item: Any, shared: Any) -> tuple[Any, ...]:
        return (partial(_called, function, item), shared)

    def _merging(self, combine: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        return partial(_combined, combine)

    def _error(self, error: BaseException, stage: str) -> BaseException:
        """A worker's error, with a hint for the user."""
        if isinstance(error, MemoryError):
            return self._failure(f"a worker ran out of memory while {self._doing(stage)}", self._more_memory)
        return error

    def _failure(self, what: str, todo: str) -> InputError:
        return InputError(what, where=self._name, todo=todo)

    @property
    def _name(self) -> str:
        return f"--scheduler {self.scheduler.name}"

    _more_memory = "use --scheduler synchronous, or a machine with more memory"

    @staticmethod
    def _doing(stage: str) -> str:
        return {"decode": "decoding", "survey": "surveying", "measure": "measuring"}.get(stage, "working")


@lru_cache(maxsize=1)
def unpacked(sent: bytes | Path) -> tuple[Any, ...]:
    """The broadcast objects, which are the same for all tasks of a stage."""
    objects: tuple[Any, ...] = pickle.loads(sent.read_bytes() if isinstance(sent, Path) else sent)
    return objects


def _called(function: Callable[..., Any], item: Any, sent: bytes | Path) -> bytes:
    """Call the function on a worker."""
    return pickle.dumps(function(item, *unpacked(sent)), 5)


def _combined(combine: Callable[[list[Any]], Any], results: list[bytes]) -> bytes:
    """Combine results on a worker."""
    return pickle.dumps(combine([pickle.loads(result) for result in results]), 5)


_MAX_DEATHS = 4
"""Number of times that a pass may lose a process: as many as tasks of a Dask cluster may lose workers by default."""
_WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(1 << 29),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 25),
    "OPENBLAS_NUM_THREADS": "1",
}
"""Lets a batch's arrays reuse the memory of the previous batch, like `vani.cli.work.keep_freed_memory`."""


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
        what = f"a worker process died {_MAX_DEATHS} times while {self._doing(stage)}"
        raise self._failure(f"{what}, as happens where memory runs out", self._more_memory)

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
            what = f"worker processes cannot be started ({error or type(error).__name__})"
            raise self._failure(what, "use --scheduler threads") from error
        finally:
            for name in _WORKER_ENVIRONMENT:
                os.environ.pop(name)
            os.environ |= environment
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            self._children = [child for child in active_children() if child not in others]
