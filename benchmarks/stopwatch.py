"""How long a run spends in each of its stages: time of its own, without that of stages inside it.

Functions, methods and generators are wrapped for the length of a run. The times of all stages add up to the time
of the outermost one, so shares are shares of the whole.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Spent", "Stopwatch"]


@dataclass
class Spent:
    """Time of one stage; processor time is that of all threads of this process."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    times: int = 0


@dataclass
class Stopwatch:
    """Adds up time by stage, for one thread."""

    spent: dict[str, Spent] = field(default_factory=dict)
    _running: list[str] = field(default_factory=list)
    _since: tuple[float, float] = (0.0, 0.0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time of the block belongs to `name`, but for stages that begin in it."""
        self._charge()
        self._running.append(name)
        self.spent.setdefault(name, Spent()).times += 1
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    def _charge(self) -> None:
        now = time.perf_counter(), time.process_time()
        if self._running:
            spent = self.spent[self._running[-1]]
            spent.seconds += now[0] - self._since[0]
            spent.cpu_s += now[1] - self._since[1]
        self._since = now

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, with its time charged to `name`."""

        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> Any:
            with self.stage(name):
                return function(*args, **options)

        return wrapped

    def timed_generator(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, which returns an iterator: the time of each step is charged to `name`."""

        @functools.wraps(function)
        def wrapped(*args: Any, **options: Any) -> Iterator[Any]:
            with self.stage(name):
                steps = iter(function(*args, **options))
            end = object()
            while True:
                with self.stage(name):
                    step = next(steps, end)
                if step is end:
                    return
                yield step

        return wrapped
