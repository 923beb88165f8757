"""One interface to run many small tasks: one after the other, in threads, or on the workers of a Dask cluster."""

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
    """Runs tasks that do not depend on each other. A context, which ends all that was started."""

    @property
    def workers(self) -> int:
        """Number of tasks that run at a time."""

    @property
    def shares_memory(self) -> bool:
        """Tasks work in the memory of this process."""

    @property
    def is_remote(self) -> bool:
        """Tasks may run on other machines, which see other files or have other versions: use `check_workers` first."""

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """Find out before work begins whether remote workers can do it; local ones always can.

        Parameters
        ----------
        version
            Version of Vani that workers must have.
        reads
            Folders or files that workers must see as this process does.
        writes
            Folder, existing or not, in which workers write files that this process reads.

        Raises
        ------
        InputError
            The cluster does not answer, has no workers, has other versions, or shares no files with this machine.
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
            Objects that all tasks need. Each worker gets them once, so items should not contain them.

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
            Makes one result of several, which may be combined ones themselves. The order must not matter. Dask's
            workers combine as a tree, so a single result arrives for any number of items.
        """

    def close(self) -> None:
        """End all that was started: threads, worker processes, the connection to a cluster, jobs of a batch system."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def open_executor(scheduler: SchedulerLike = None, *, progress: Progress | None = None) -> Executor:
    """The executor for the place that a user names.

    Parameters
    ----------
    scheduler
        See `scheduler_of`. With one processor, tasks run one after the other in place of threads.
    progress
        Called when a stage begins and after each task.

    Raises
    ------
    InputError
        No such scheduler. A cluster is connected at the first use.
    """
    place = scheduler_of(scheduler)
    if not isinstance(place, LocalScheduler) or place.name == "processes":
        from vani.engine.dask_client import DaskClient  # noqa: PLC0415 - distributed is heavy

        return DaskClient(place, progress)
    if place.name == "synchronous" or available_processors() == 1:
        return Synchronous(progress)
    return Threads(progress)
