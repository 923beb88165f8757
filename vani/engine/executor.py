"""One interface for running many small tasks: sequentially, in threads, or on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

from vani.engine.local import Progress, Synchronous, Threads, available_processors
from vani.engine.scheduler import LocalScheduler, SchedulerLike, scheduler_of

__all__ = ["Executor", "Progress", "open_executor"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Executor(Protocol):
    """Runs independent tasks. It is a context manager that ends everything it started."""

    @property
    def workers(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    def shares_memory(self) -> bool:
        """Whether tasks work in this process's memory."""

    @property
    def is_remote(self) -> bool:
        """Whether tasks may run on other machines with other files or versions: call `check_workers` first."""

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

    def reduce(
        self,
        function: Callable[..., Result],
        items: Sequence[Any],
        combine: Callable[[list[Result]], Result],
        *,
        stage: str = "",
        broadcast: Sequence[Any] = (),
    ) -> Result:
        """Call `function(item, *broadcast)` for every item and `combine` the results.

        Parameters
        ----------
        combine
            Merges several results, which may be merged ones themselves, into one. The order must not matter. Dask's
            workers combine results as a tree, so a single result arrives for any number of items.
        """

    def close(self) -> None:
        """End everything that was started: threads, worker processes, the cluster connection, batch jobs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def open_executor(scheduler: SchedulerLike = None, *, progress: Progress | None = None) -> Executor:
    """The executor for the scheduler that a user names.

    Parameters
    ----------
    scheduler
        See `scheduler_of`. With a single processor, tasks run sequentially instead of in threads.
    progress
        Called when a stage begins and after each task.

    Raises
    ------
    InputError
        There is no such scheduler. A cluster is connected only on first use.
    """
    place = scheduler_of(scheduler)
    if not isinstance(place, LocalScheduler) or place.name == "processes":
        from vani.engine.dask_client import DaskClient  # noqa: PLC0415 - distributed is heavy

        return DaskClient(place, progress)
    if place.name == "synchronous" or available_processors() == 1:
        return Synchronous(progress)
    return Threads(progress)
