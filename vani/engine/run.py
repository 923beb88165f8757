"""Running many small tasks wherever the user wants them to run: here, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from vani.engine.here import Here, workers_here
from vani.engine.scheduler import LocalScheduler, Scheduler, SchedulerLike, scheduler_of

if TYPE_CHECKING:
    from vani.engine.cluster import Cluster

__all__ = ["Engine", "Progress", "workers_here"]

_HELD = 2
"""Results per worker that wait to be combined."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class Progress(Protocol):
    """Told how far a stage is."""

    def __call__(self, stage: str, done: int, total: int) -> None: ...


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


class Engine:
    """Runs tasks that do not depend on each other.

    Parameters
    ----------
    scheduler
        What `scheduler_of` takes; a `distributed.Client` stays open.

    Raises
    ------
    InputError
        No such scheduler. Whether it answers shows at the first use.
    """

    def __init__(self, scheduler: SchedulerLike = None, *, progress: Progress | None = None) -> None:
        self.scheduler: Scheduler = scheduler_of(scheduler)
        self._progress = progress or _silent
        self._here: Here | None = None
        self._cluster: Cluster | None = None
        if isinstance(self.scheduler, LocalScheduler):
            self._here = Here(self.scheduler.name, forks=self.scheduler.forks)
            return
        from vani.engine.cluster import Cluster  # noqa: PLC0415 - only a cluster pays for it

        self._cluster = Cluster(self.scheduler, self._progress)

    @property
    def workers(self) -> int:
        """How many tasks run at a time."""
        if self._here is not None:
            return self._here.workers
        assert self._cluster is not None
        return self._cluster.threads

    @property
    def shares_memory(self) -> bool:
        """Tasks work in the memory of this process."""
        return self._here is not None and self._here.scheduler != "processes"

    @property
    def is_elsewhere(self) -> bool:
        """Tasks run on workers that may see other files and other versions: ask them first, with `check_workers`."""
        return self._cluster is not None

    def check_workers(self, *, version: str, reads: Sequence[Path], writes: Path) -> None:
        """Find out before work begins whether workers elsewhere can do it; nothing to do for work here.

        Parameters
        ----------
        version
            Version of Vani that workers must have.
        reads
            Folders that workers must see as they are here.
        writes
            Folder, existing or not, in which workers write files that are read here.

        Raises
        ------
        InputError
            The cluster does not answer, has no workers, has other versions, or shares no files with this machine.
        """
        if self._cluster is not None:
            self._cluster.check_workers(version=version, reads=reads, writes=writes)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        *,
        stage: str = "",
        constants: Sequence[Any] = (),
        calls: int = 0,
    ) -> list[Result]:
        """Apply `function` to every item.

        Parameters
        ----------
        constants
            Objects that the function or many items refer to: sent to each worker once, and not with every item.
        calls
            How many calls the tasks go through together, if they may do so in forks of this process: what they change
            there is lost, but for files, and results can be pickled. 0: they may not.

        Returns
        -------
        list
            Results in the order of the items.
        """
        if not items:
            return []
        self._progress(stage, 0, len(items))
        if self._here is not None:
            results: list[Any] = [None] * len(items)

            shared = self._here.in_forks(
                partial(_each, function, items),
                len(items),
                constants,
                calls,
                partial(self._tell, stage, len(items)),
            )
            if shared is not None:
                for number, result in chain.from_iterable(shared):
                    results[number] = result
                return results
            for done, (number, result) in enumerate(self._here.each(function, items, constants), 1):
                results[number] = result
                self._progress(stage, done, len(items))
            return results
        assert self._cluster is not None
        return self._cluster.map(function, items, constants, stage)

    def reduce(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        combine: Callable[[list[Result]], Result],
        *,
        stage: str = "",
        constants: Sequence[Any] = (),
        calls: int = 0,
    ) -> Result:
        """Apply `function` to every item and `combine` the results.

        Parameters
        ----------
        combine
            Puts results together, or what it put together before; associative, and free of order. On a cluster
            workers combine as a tree, so that one result arrives here, however many items there are.
        calls
            As for `map`.
        """
        if not items:
            return combine([])
        self._progress(stage, 0, len(items))
        if self._cluster is not None:
            found: Result = self._cluster.reduce(function, items, combine, constants, stage)
            return found
        assert self._here is not None
        # Of thousands of parts, only the results of some are held at a time.
        most = _HELD * self._here.workers

        shared = self._here.in_forks(
            partial(_folded, function, items, combine),
            len(items),
            constants,
            calls,
            partial(self._tell, stage, len(items)),
        )
        if shared is not None:
            return combine([*chain.from_iterable(shared)])
        held: list[Result] = []
        for done, (_, result) in enumerate(self._here.each(function, items, constants), 1):
            held.append(result)
            self._progress(stage, done, len(items))
            if len(held) > most:
                held = [combine(held)]
        return combine(held)

    def _tell(self, stage: str, total: int, done: int) -> None:
        self._progress(stage, done, total)

    def rest(self) -> None:
        """Give back the memory of what works here: what follows needs it no more, or begins it anew."""
        if self._here is not None:
            self._here.end_forks()

    def close(self) -> None:
        """End what was started: processes, the connection to a cluster, jobs of a batch system."""
        if self._here is not None:
            self._here.close()
        if self._cluster is not None:
            self._cluster.close()


def _each(
    function: Callable[[Item], Result], items: Sequence[Item], numbers: Iterator[int]
) -> list[tuple[int, Result]]:
    """Results of the items of these numbers, each beside its number."""
    return [(number, function(items[number])) for number in numbers]


def _folded(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    combine: Callable[[list[Result]], Result],
    numbers: Iterator[int],
) -> list[Result]:
    """Results of the items of these numbers, combined: one, or none."""
    held: list[Result] = []
    for number in numbers:
        held.append(function(items[number]))
        if len(held) > _HELD:
            held = [combine(held)]
    return [combine(held)] if held else []
