"""Small random runs in every layout: `random_run(seed)` gives the same calls for the same seed.

They contain cases that are rare in real traces, and common habits of programs: threads, rebound handles, duplicated
descriptors, seeks, appends, gaps, overlaps, nested library calls, renames, removals, clocks set back, missing or
impossible sizes and offsets, omitted arguments. Loops and programs shared by all ranks give grammars a shape.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from tests.traces.recorder_writer import Call, Layout, default_functions, encode_call_sites, write_trace

__all__ = ["RandomRun", "random_run"]

_POSIX = (
    *[("write", "path", "%p", "size")] * 5,
    *[("read", "path", "%p", "size")] * 5,
    *[("pwrite", "path", "%p", "size", "offset")] * 4,
    *[("pread64", "path", "%p", "size", "offset")] * 4,
    *[("lseek", "path", "offset", "whence")] * 4,
    *[("open", "path", "open", "420")] * 4,
    ("openat", "AT_FDCWD", "path", "open", "420"),
    ("creat", "path", "420"),
    ("close", "path"),
    ("close", "path"),
    ("writev", "path", "size"),
    ("readv", "path", "size"),
    ("preadv", "path", "size", "2", "offset"),
    ("ftruncate", "path", "offset"),
    ("truncate", "path", "offset"),
    ("fsync", "path"),
    ("sync",),
    ("fcntl", "path", "command", "0"),
    ("dup", "3"),
    ("dup2", "3", "4"),
    ("mmap", "%p", "size", "3", "1", "path", "offset"),
    ("msync", "%p", "size", "4"),
    ("unlink", "path"),
    ("remove", "path"),
    ("rename", "path", "path"),
    ("rename", "path", "path"),
    ("__xstat", "1", "path", "%p"),
    ("access", "path", "0"),
    ("mkdir", "path", "511"),
    ("opendir", "path"),
    ("chdir", "path"),
    ("getcwd", "%p", "4096"),
    ("flock", "path", "2"),
)
_STDIO = (
    *[("fopen", "path", "mode")] * 2,
    *[("fwrite", "%p", "count", "size", "path")] * 2,
    *[("fread", "%p", "count", "size", "path")] * 2,
    ("fseek", "path", "offset", "whence"),
    ("vfprintf", "path", "size"),
    ("fprintf", "path", "%p"),
    ("fgets", "%p", "size", "path"),
    ("rewind", "path"),
    ("fflush", "path"),
    ("fclose", "path"),
)
_MPIIO = (
    *[("MPI_File_open", "comm", "path", "5", "%p", "handle")] * 3,
    *[("MPI_File_write_at", "handle", "offset", "%p", "count", "type", "%p")] * 3,
    *[("MPI_File_read_at_all", "handle", "offset", "%p", "count", "type", "%p")] * 3,
    ("MPI_File_write", "handle", "%p", "count", "type", "%p"),
    ("MPI_File_iread", "handle", "%p", "count", "type", "%p"),
    ("MPI_File_iwrite_at", "handle", "offset", "%p", "count", "type", "%p"),
    ("MPI_File_set_view", "handle", "offset", "MPI_BYTE", "type", "native", "%p"),
    ("MPI_File_set_size", "handle", "offset"),
    ("MPI_File_sync", "handle"),
    ("MPI_File_close", "handle"),
)
_HDF5 = (
    ("H5Fcreate", "path", "2", "0", "0"),
    ("H5Screate_simple", "2", "[10_20]", "%p"),
    ("H5Pset_chunk", "7", "2", "[5_20]"),
    *[("H5Dwrite", "5", "6", "0", "0", "0", "%p")] * 2,
    *[("H5Dread", "5", "6", "0", "0", "0", "%p")] * 2,
    ("H5Fclose", "1"),
)
_NETCDF = (
    ("ncmpi_create", "comm", "path", "0", "%p", "id"),
    ("ncmpi_put_vara_double_all", "id", "0", "%p", "%p", "%p"),
    ("ncmpi_close", "id"),
    ("nc_open", "path", "0", "id"),
    ("nc_get_vara_double", "id", "1", "%p", "%p", "%p"),
    ("nc_close", "id"),
)
_MPI = (("MPI_Barrier", "comm"), ("MPI_Wait", "%p", "%p"), ("MPI_Comm_rank", "comm", "%p"))
_USER = (("user_function", "0x401000", "main"), ("cudaMemcpy", "%p", "%p", "size"))
_WITHIN = {_HDF5: (_MPIIO, _POSIX), _NETCDF: (_MPIIO, _POSIX, _STDIO), _MPIIO: (_POSIX,), _MPI: (_POSIX,)} | {
    _STDIO: (_POSIX,),
    _USER: (_HDF5, _MPIIO, _POSIX),
}
"""The calls inside calls of each kind."""

_CHOICES = {
    "open": ("0", "1", "2", "66", "577", "578", "1025", "1089", "1090", "65536", "%p"),
    "mode": ("r", "w", "a", "r+", "w+", "a+", "rb"),
    "whence": ("0", "1", "2", "2", "7"),
    "command": ("0", "1030", "3"),
    "count": ("1", "1", "8", "100"),
    "type": ("MPI_BYTE", "MPI_BYTE", "MPI_DOUBLE", "MPI_INT", "MPI_TYPE_UNKNOWN"),
    "comm": ("MPI_COMM_WORLD", "MPI_COMM_WORLD", "MPI_COMM_SELF"),
    "id": ("65536", "65537", "131072"),
}
_SIZES = (0, 1, 100, 100, 100, 200, 4096, 4096, 65536)
_FAR_SIZES = (2**31, 2**40, 2**40 + 1, 2**53, 2**56 - 1, 2**56, 10**18, 2**63 - 1, 2**64 - 1, -1)
_FAR_OFFSETS = (2**31, 2**40, 2**40 + 1, 2**59, 2**60 - 1, 2**60, 2**62, 2**63 - 1, -1, -100, -(2**40) - 1)
_PATHS = (
    *("/s/shared", "/s/shared", "/s/other", "/s/input.h5", "relative/file", "/dev/null", "/proc/self/maps"),
    *("/usr/lib/libm.so.6", "stdout", "???", "%p", "/s/\u00fc b", "/s/\udcff"),
)
_RESOLUTIONS = (1e-7, 1e-7, 1e-7, 1e-6, 1e-9, 1.3e-7, 0.75e-9)
_MODULES = (
    "/opt/bin/program",
    "/usr/lib/libmpich.so.12",
    "/usr/lib/libhdf5.so.310",
    "/usr/lib/libpnetcdf.so.4",
)


@dataclass(frozen=True)
class RandomRun:
    """Calls of each rank, and the settings of `write_trace`."""

    ranks: tuple[tuple[Call, ...], ...]
    settings: dict[str, Any]

    def write(self, folder: Path) -> None:
        write_trace(folder, self.ranks, **self.settings)


def random_run(seed: object) -> RandomRun:
    """Up to five ranks of up to some hundred calls each."""
    draw = random.Random(f"run {seed}")
    count = draw.choice((1, 1, 2, 3, 4, 5))
    settings = _settings(draw, count)
    resolution = settings["resolution"]
    habits = _Habits(
        kinds=tuple(draw.sample((_POSIX, _STDIO, _MPIIO, _HDF5, _NETCDF, _MPI, _USER), draw.randint(1, 4)))
        + (_POSIX,) * draw.randint(0, 3),
        files=draw.choice((1, 2, 4, 12)),
        own=draw.choice((0.0, 0.7, 0.95)),
        far=draw.random() < 0.3,
        missing=draw.choice((0.0, 0.0, 0.02)),
        threads=draw.choice((1, 1, 1, 2, 3)),
        back=draw.choice((0.0, 0.0, 0.05)),
        ticks=(0, 1, 40, round(1e-5 / resolution), round(2e-3 / resolution)),
        pause=round(0.2 / resolution),
        handles=draw.choice((1, 3, 20)),
        seed=f"{seed}",
        alike=draw.random() < 0.6,
    )
    ranks = tuple(tuple(_rank(habits, rank)) for rank in range(count))
    if settings["layout"] in ("2.3", "2.4", "2.5p", "2.5g"):
        # Ids of one byte.
        settings["functions"] = sorted({"open", *(call.function for calls in ranks for call in calls)})
    elif draw.random() < 0.3:
        names = default_functions(settings["layout"], {call.function for calls in ranks for call in calls})
        settings["functions"] = names
    return RandomRun(ranks, settings)


def _settings(draw: random.Random, ranks: int) -> dict[str, Any]:
    layout = draw.choice(get_args(Layout))
    raw, sites = layout in ("2.3", "2.4", "2.5p"), layout in ("3.x-dat2", "3.x-mt2")
    together = draw.random() < 0.6 and layout != "2.3"
    found: dict[str, Any] = {
        "layout": layout,
        "interprocess": together,
        "resolution": draw.choice(_RESOLUTIONS),
        "start_unix": 1.7e9 + draw.choice((0, 0.25, 3)),
        "store_thread": draw.random() < 0.7,
        "store_depth": draw.random() < 0.75,
    }
    if not raw:
        found["compress_times"] = draw.random() < 0.8
        found["interprocess_patterns"] = draw.random() < 0.4
        found["intraprocess_patterns"] = draw.random() < 0.4
    if sites and draw.random() < 0.7:
        places = [(module, 0x1000 + 64 * module) for module in range(len(_MODULES))]
        found["call_sites"] = [
            encode_call_sites(_MODULES, draw.sample(places, len(places))) for _ in range(ranks)
        ]
    if "dat" in layout and not together and draw.random() < 0.3:
        found["late"] = [draw.randrange(ranks)]
    return found


@dataclass(frozen=True)
class _Habits:
    """Habits of the ranks in a run."""

    kinds: tuple[tuple[tuple[str, ...], ...], ...]
    files: int
    own: float
    """How often a path is one of the rank's own `files`."""
    far: bool
    """Sizes and offsets may be larger than 32 bits, or impossible for a file."""
    missing: float
    """How often a call lacks its last argument, or has text instead of a number."""
    threads: int
    back: float
    """How often the clock is set back, and a call ends before it began."""
    ticks: tuple[int, ...]
    pause: int
    """Ticks of a phase without I/O."""
    handles: int
    seed: str
    alike: bool
    """All ranks run the same program, each at its own places."""


def _rank(habits: _Habits, rank: int) -> Iterator[Call]:
    """Calls of all threads in recorded order, each thread's in its own order."""
    order = random.Random(f"order {habits.seed} {rank}")
    threads = [_Thread(habits, rank, thread) for thread in range(habits.threads)]
    left = [thread.run() for thread in threads]
    while any(left):
        calls = order.choice([calls for calls in left if calls])
        # Some in a row, since a thread is not stopped after each call.
        for _ in range(min(len(calls), order.choice((1, 1, 5, 40)))):
            yield calls.pop(0)


class _Thread:
    def __init__(self, habits: _Habits, rank: int, thread: int) -> None:
        self.habits, self.rank = habits, rank
        self.thread = thread if thread < 2 else 2**32 + 7
        self.now = 0
        self.calls: list[Call] = []
        self.draw = random.Random(f"{habits.seed} {thread} {-1 if habits.alike else rank}")
        self.pace = random.Random(f"pace {habits.seed} {thread} {rank}")

    def run(self) -> list[Call]:
        """Loops with the same body each time, except for advancing offsets."""
        for _ in range(self.draw.choice((0, 1, 2, 3))):
            times, calls, seed = (
                self.draw.choice((1, 1, 2, 7, 20)),
                self.draw.randint(1, 6),
                self.draw.random(),
            )
            if self.pace.random() < 0.3:
                self.now += self.habits.pause
            for turn in range(times):
                body = random.Random(seed)
                for _ in range(calls):
                    self._call(body.choice(self.habits.kinds), body, turn, 0)
        return self.calls

    def _call(self, kind: tuple[tuple[str, ...], ...], draw: random.Random, turn: int, depth: int) -> None:
        function, *wanted = draw.choice(kind)
        args = [self._argument(what, draw, turn) for what in wanted]
        if draw.random() < self.habits.missing and args:
            args = draw.choice((args[:-1], ["%p" if arg.isdigit() else arg for arg in args]))
        self.now += self.pace.choice(self.habits.ticks)
        if self.pace.random() < self.habits.back:
            self.now = max(0, self.now - self.pace.choice((1, 30, self.habits.ticks[-1])))
        at, start = len(self.calls), self.now
        # It is recorded before the calls it makes, and ends after them.
        self.calls.append(
            Call(function, tuple(args), min(depth, 3), self.thread, start, start, draw.randrange(4))
        )
        for _ in range(draw.choice((0, 1, 1, 2)) if kind in _WITHIN and depth < 4 else 0):
            self._call(draw.choice(_WITHIN[kind]), draw, turn, depth + 1)
        end = self.now + self.pace.choice(self.habits.ticks[:-1])
        if self.pace.random() < self.habits.back:
            end = max(0, start - self.pace.choice((0, 5)))
        self.calls[at] = replace(self.calls[at], end=end)
        self.now = max(self.now, end) if self.pace.random() < 0.9 else self.now

    def _argument(self, what: str, draw: random.Random, turn: int) -> str:
        if what in _CHOICES:
            return draw.choice(_CHOICES[what])
        far = self.habits.far and draw.random() < 0.1
        if what == "size":
            return str(draw.choice(_FAR_SIZES if far else _SIZES))
        if what == "offset":
            if far:
                return str(draw.choice(_FAR_OFFSETS))
            block, step = draw.choice((0, 100, 4096)), draw.choice((0, 0, 100, 100, 200, 8192, -100))
            return str(max(-200, draw.choice((0, 0, 100, 1000)) + block * self.rank + step * turn))
        if what == "handle":
            return f"0-{draw.randrange(self.habits.handles)}"
        if what == "path":
            name = draw.choice(_PATHS)
            own = f"/s/own.{self.rank}.{draw.randrange(self.habits.files)}"
            return own if draw.random() < self.habits.own else name
        return what
