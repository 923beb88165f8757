"""Something done now and then while a command works, without a thread: a process that has threads is not forked."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

__all__ = ["ticking", "ticks_come_here"]


def ticks_come_here() -> bool:
    """Whether this is the main thread, of a system that has timers."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def ticking(tick: Callable[[], None], *, after_s: float, every_s: float) -> Iterator[None]:
    """Call `tick` between two steps of what is done inside; not while C code runs. What it cannot write is let go."""
    runs = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal runs
        # One that comes while the last one is at work would write into its lines.
        if runs:
            return
        runs = True
        try:
            with suppress(OSError):
                tick()
        finally:
            runs = False

    before = signal.signal(signal.SIGALRM, handle)
    # Reading and writing go on; not every library tries again.
    signal.siginterrupt(signal.SIGALRM, False)
    signal.setitimer(signal.ITIMER_REAL, after_s, every_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
