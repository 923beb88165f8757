"""File throughput by number of Lustre targets, for each pattern: a short test, bounded in bytes and time.

Processes write simultaneously to 1, 2, 4, ... targets according to a pattern; flush time is included:

- shared: one file, with a region for each process;
- collective: one file written like aggregators of collective calls do, in alternating whole stripes. The cost of data
  exchange between processes is not included;
- strided: one file, in alternating pieces of less than a stripe. Only on several nodes, because processes on one share
  locks;
- own: a file for each process.

Files are unlinked before anything is written to them, so that no data remains however the test ends. On several
nodes, an MPI launcher starts the processes, which do not need MPI themselves.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from vani.collect.sweep_writers import Writers, writers
from vani.collect.transfer_test import check_room
from vani.errors import InputError
from vani.schema.system import StripeCurve, StripePoint
from vani.units import KiB, MiB, lfs_size

LIMIT_S: Final = 5.0
"""Seconds after which a file is cut short."""

MAX_TARGETS: Final = 32
"""Maximum number of targets that one node keeps busy (our choice)."""

_ROUNDS: Final = 2
_SETTING_S: Final = 10.0
_PROCESSES: Final = 8
_LEAST_PIECE: Final = 64 * KiB
_STRIPE: Final = MiB
_REMOVING_S: Final = 5.0

SetStripes = Callable[[Path, int], None]
"""Gives an empty folder a default layout with this many stripes of 1 MiB."""


@dataclass(frozen=True)
class Pattern:
    """A way to write: `piece` bytes at a time, to files with stripes of 1 MiB."""

    name: str
    calls: Literal["independent", "collective"] = "independent"
    layout: Literal["shared", "file_per_process"] = "shared"
    order: Literal["contiguous", "strided"] = "contiguous"
    piece: int = 4 * MiB


PATTERNS: Final = (
    Pattern("shared"),
    # ROMIO's aggregators send at most one stripe at a time to a target.
    Pattern("collective", calls="collective", piece=_STRIPE),
    Pattern("strided", order="strided", piece=256 * KiB),
    Pattern("own", layout="file_per_process"),
)


def counts_of(targets: int | None, nodes: int = 1) -> list[int]:
    """Stripe counts that are measured for this number of targets: 1, 2, 4, ..."""
    most = min(targets or MAX_TARGETS * nodes, MAX_TARGETS * nodes)
    return [1 << shift for shift in range(most.bit_length())]


def longest_s(targets: int | None) -> float:
    """Maximum seconds of writing on one node."""
    return len(PATTERNS) * len(counts_of(targets)) * _ROUNDS * LIMIT_S


def sweep(
    folder: Path,
    size: int,
    targets: int | None,
    *,
    launcher: str | None = None,
    set_stripes: SetStripes | None = None,
) -> list[StripeCurve]:
    """Write `size` bytes per pattern below `folder`, spread over counts and rounds; returns a curve for each pattern.

    `launcher` starts the processes on several nodes; without it, they run on this one. `set_stripes` is
    `lfs setstripe` by default.

    Raises
    ------
    InputError
        The folder has no room or is not on Lustre, `lfs` refuses, a file cannot be written, or the launcher fails.
    """
    check_room(folder, size)
    with writers(folder, launcher, _PROCESSES) as begun:
        patterns = [pattern for pattern in PATTERNS if begun.nodes > 1 or pattern.order == "contiguous"]
        return [
            _curve(pattern, folder, size, _filled(pattern, size, targets, begun), begun, set_stripes or _lfs_setstripe)
            for pattern in patterns
        ]


def _filled(pattern: Pattern, size: int, targets: int | None, begun: Writers) -> list[int]:
    """The counts for which each file fills all targets."""
    counts = counts_of(targets, begun.nodes)
    files = len(begun) if pattern.layout == "file_per_process" else 1
    while counts and size // (len(counts) * _ROUNDS) < files * counts[-1] * _STRIPE:
        counts.pop()
    if len(counts) < 2:
        raise InputError(
            f"files of {lfs_size(size)}iB in total fill fewer than two targets each",
            todo="give a larger --size, or leave --sweep out",
        )
    return counts


def _curve(
    pattern: Pattern, folder: Path, size: int, counts: list[int], begun: Writers, set_stripes: SetStripes
) -> StripeCurve:
    rates: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(_ROUNDS):
        for count in counts:
            rate = _rate(pattern, folder, size // (len(counts) * _ROUNDS), count, begun, set_stripes)
            if rate:
                rates[count].append(rate)
    return StripeCurve(
        operation="write",
        calls=pattern.calls,
        layout=pattern.layout,
        order=pattern.order,
        nodes=begun.nodes,
        processes_per_node=max(1, len(begun) // begun.nodes),
        points=[
            StripePoint(stripe_count=count, bandwidth=statistics.fmean(some), deviation=statistics.pstdev(some))
            for count, some in rates.items()
            if some
        ],
    )


def _rate(
    pattern: Pattern, folder: Path, size: int, count: int, begun: Writers, set_stripes: SetStripes
) -> float | None:
    # Other nodes may test the same folder.
    below = folder / f".vani-sweep-{secrets.token_hex(8)}"
    try:
        below.mkdir(mode=0o700)
        set_stripes(below, count)
        return begun.rate(_tasks(pattern, below, size, len(begun)), LIMIT_S, opened=lambda: _without_names(below))
    except OSError as error:
        raise InputError(
            f"the test failed ({error.strerror or error}); its files are removed",
            where=folder,
            todo="name a folder that you may write, with room and quota, or a smaller --size",
        ) from error
    finally:
        _remove(below)


def _tasks(pattern: Pattern, below: Path, size: int, processes: int) -> list[dict[str, Any]]:
    # No process writes more than its part of a small test.
    piece = max(_LEAST_PIECE, min(pattern.piece, size // processes // _LEAST_PIECE * _LEAST_PIECE))
    pieces = max(1, size // processes // piece)
    own = pattern.layout == "file_per_process"
    in_turn = pattern.calls == "collective" or pattern.order == "strided"
    return [
        {
            "path": os.fspath((below / (f"{rank}" if own else "shared")).resolve()),
            "begin": 0 if own else rank * piece * (1 if in_turn else pieces),
            "step": piece * processes if in_turn else piece,
            "piece": piece,
            "pieces": pieces,
        }
        for rank in range(processes)
    ]


def _without_names(below: Path) -> None:
    for path in below.iterdir():
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _remove(below: Path) -> None:
    """Remove a folder, in which some file systems keep hidden unlinked files until they are closed everywhere."""
    until = time.monotonic() + _REMOVING_S
    while below.exists():
        shutil.rmtree(below, ignore_errors=True)
        if time.monotonic() > until:
            break
        time.sleep(0.05)


def _lfs_setstripe(path: Path, count: int) -> None:
    program = shutil.which("lfs")
    if program is None:
        raise InputError(
            "--sweep needs `lfs`, which is not installed here",
            todo="run it where Lustre is mounted, or leave --sweep out",
        )
    line = [program, "setstripe", "-c", str(count), "-S", lfs_size(_STRIPE), os.fspath(path)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_SETTING_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(
            "`lfs setstripe` does not answer", where=path.parent, todo="try again later"
        ) from None
    if done.returncode:
        words = done.stderr.strip().rpartition("\n")[2]
        raise InputError(
            f"`lfs setstripe -c {count}` failed ({words or 'no message'})",
            where=path.parent,
            todo="name a folder on Lustre",
        )
