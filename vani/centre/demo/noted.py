"""Counters of POSIX calls for each file and process, as Darshan records them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

KiB: Final = 1 << 10
MiB: Final = 1 << 20
_BINS: Final = ((10 * KiB, "1K_10K"), (100 * KiB, "10K_100K"), (MiB, "100K_1M"), (4 * MiB, "1M_4M"))
"""Largest request of each size bin of Darshan."""


@dataclass
class FileUse:
    """A process's use of a file: POSIX counters by name. Missing ones are 0."""

    path: str
    rank: int
    counters: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, value: float = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + value


@dataclass
class Notes:
    """Counters of a run, or of one of its processes.

    Attributes
    ----------
    clock
        Returns the current time in seconds. Timestamps are relative to `begin_s`.
    """

    clock: Callable[[], float]
    begin_s: float
    uses: dict[tuple[str, int], FileUse] = field(default_factory=dict)

    def use(self, path: str, rank: int) -> FileUse:
        """The counters of a file and a process, initially empty."""
        return self.uses.setdefault((path, rank), FileUse(path, rank))

    def opened(self, use: FileUse, begin: float) -> None:
        """Record an open that started at `begin` and ends now."""
        use.add("OPENS")
        self._spent(use, "META", "OPEN", begin)

    def closed(self, use: FileUse, begin: float) -> None:
        """Record a close that started at `begin` and ends now."""
        self._spent(use, "META", "CLOSE", begin)

    def moved(self, use: FileUse, kind: str, offset: int, size: int, request: int, begin: float) -> None:
        """Record consecutive requests of equal size, including their flushes. `kind` is READ or WRITE."""
        calls, past = size // request, "WRITTEN" if kind == "WRITE" else "READ"
        before = use.counters.get(f"{kind}S", 0)
        for name, value in (
            (f"{kind}S", calls),
            (f"BYTES_{past}", size),
            (f"SEQ_{kind}S", calls - (0 if before else 1)),
            (f"CONSEC_{kind}S", calls - 1),
            (f"SIZE_{kind}_{_bin(request)}", calls),
        ):
            use.add(name, value)
        use.counters["ACCESS1_ACCESS"] = request
        use.add("ACCESS1_COUNT", calls)
        last = f"MAX_BYTE_{past}"
        use.counters[last] = max(use.counters.get(last, 0), offset + size - 1)
        self._spent(use, kind, kind, begin)

    def _spent(self, use: FileUse, kind: str, what: str, begin: float) -> None:
        now = self.clock()
        use.add(f"F_{kind}_TIME", now - begin)
        use.counters.setdefault(f"F_{what}_START_TIMESTAMP", begin - self.begin_s)
        use.counters[f"F_{what}_END_TIMESTAMP"] = now - self.begin_s


def _bin(request: int) -> str:
    return next(name for most, name in _BINS if request <= most)
