"""How many of the usable processors other programs kept busy while something ran, from /proc/stat of Linux."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Run

__all__ = ["Others", "others_meanwhile"]

_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of user, nice, system, interrupts, soft interrupts, and what the host gave to other machines; proc(5)."""


@dataclass
class Others:
    """What other programs took while a block of code ran, known once it has ended."""

    busy_s: float | None = None
    """Processor time of all programs; null without /proc/stat."""

    def processors(self, done: Run) -> float | None:
        """How many processors others used, on average, beside a run that took the whole of the block."""
        return None if self.busy_s is None else max(0.0, (self.busy_s - done.cpu_s) / done.seconds)


@contextmanager
def others_meanwhile() -> Iterator[Others]:
    """Watch the processors that this process may use while the block runs."""
    before, found = _busy_s(), Others()
    yield found
    after = _busy_s()
    if before is not None and after is not None:
        found.busy_s = after - before


def _busy_s() -> float | None:
    try:
        lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
        usable = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        rows = [fields[1:] for line in lines if (fields := line.split())[0] in usable]
        return sum(int(row[column]) for row in rows for column in _BUSY) / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError, IndexError):
        return None
