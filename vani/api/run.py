"""The state of one library call: its executor, and the stores that it uses until it returns."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import vani
from vani.api.arguments import PathLike
from vani.engine.scheduler import scheduler_of

if TYPE_CHECKING:
    from vani.engine.executor import Executor, Progress
    from vani.engine.scheduler import SchedulerLike
    from vani.schema.profile import Profile
    from vani.store.stores import Stores

class Run:
    """A context manager that connects, submits and locks only on demand, and cleans up at its end.

    Parameters
    ----------
    sources
        Inputs of the run, including traces: no store is put inside a trace.
    store
        The user's folder of stores; None means the cache.
    scheduler, progress
        As in `vani.profile`.

    Raises
    ------
    InputError
        There is no such scheduler.
    """

    def __init__(
        self,
        sources: Iterable[PathLike | Profile],
        *,
        store: PathLike | None,
        scheduler: SchedulerLike,
        progress: Progress | None,
    ) -> None:
        self._sources = [Path(source) for source in sources if isinstance(source, (str, Path))]
        self._store = store
        # Checked before a trace is opened: a typing error should not cost minutes.
        self._scheduler = scheduler_of(scheduler)
        self._progress = progress
        self._until = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._until.__exit__(kind, error, trace)

    @cached_property
    def stores(self) -> Stores:
        """The stores in use, which stay locked against removal."""
        from vani.store.stores import Stores  # noqa: PLC0415 - loads Arrow

        return Stores(self._store, self._until, version=vani.__version__, traces=self._sources)

    @cached_property
    def executor(self) -> Executor:
        """The executor of its tasks."""
        from vani.engine.executor import open_executor  # noqa: PLC0415

        return self._until.enter_context(open_executor(self._scheduler, progress=self._progress))
