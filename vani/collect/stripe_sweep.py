"""The rate of one shared file by its number of Lustre targets: a short test, bounded in bytes and in time.

The streams of one node write one file, each a region of its own, with 1, 2, 4, ... targets. What is written is flushed
within the time that counts. Every file is removed, however the test ends. Several nodes, and collective calls, need an
MPI program: `docs/models.md` has the lines of IOR, whose figures are entered by hand.
"""

from __future__ import annotations

import os
import secrets
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from vani.collect.transfer_test import check_room, write_shared
from vani.errors import InputError
from vani.schema.system import StripeCurve, StripePoint
from vani.units import lfs_size

__all__ = ["LIMIT_S", "MAX_TARGETS", "counts_of", "sweep"]

LIMIT_S: Final = 10.0
"""Seconds after which a file is cut short."""

MAX_TARGETS: Final = 32
"""One node keeps no more busy (ours)."""

_ROUNDS: Final = 2
_SETTING_S: Final = 10.0
_PROCESSES: Final = 8


def counts_of(targets: int | None) -> list[int]:
    """Stripe counts that are measured where a file system has so many targets: 1, 2, 4, ..."""
    most = min(targets or MAX_TARGETS, MAX_TARGETS)
    return [1 << shift for shift in range(most.bit_length())]


def sweep(
    folder: Path, size: int, targets: int | None, *, set_stripes: Callable[[Path, int], None] | None = None
) -> StripeCurve:
    """Write `size` bytes in all below `folder`, spread over counts and rounds, and measure the rate of each count.

    `set_stripes` makes an empty file on so many targets; by default `lfs setstripe`.

    Raises
    ------
    InputError
        The folder has no room or is not on Lustre, `lfs` refuses, or a file cannot be written.
    """
    check_room(folder, size)
    counts = counts_of(targets)
    each = size // (len(counts) * _ROUNDS)
    rates: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(_ROUNDS):
        for count in counts:
            # Other nodes may test the same folder.
            path = folder / f".vani-sweep-{secrets.token_hex(8)}"
            try:
                (set_stripes or _lfs_setstripe)(path, count)
                rate = write_shared(path, each, _PROCESSES, limit_s=LIMIT_S)
            except OSError as error:
                raise InputError(
                    f"the test failed ({error.strerror or error}); its files are removed",
                    where=folder,
                    todo="name a folder that you may write, with room and quota, or a smaller --size",
                ) from error
            finally:
                path.unlink(missing_ok=True)
            if rate:
                rates[count].append(rate)
    return StripeCurve(
        operation="write",
        calls="independent",
        nodes=1,
        processes_per_node=_PROCESSES,
        points=[
            StripePoint(
                stripe_count=count, bandwidth=statistics.fmean(some), deviation=statistics.pstdev(some)
            )
            for count, some in rates.items()
            if some
        ],
    )


def _lfs_setstripe(path: Path, count: int) -> None:
    program = shutil.which("lfs")
    if program is None:
        raise InputError(
            "--sweep needs `lfs`, which is not here", todo="run it where Lustre is mounted, or leave it out"
        )
    line = [program, "setstripe", "-c", str(count), "-S", lfs_size(1 << 20), os.fspath(path)]
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=_SETTING_S, check=False)
    except subprocess.TimeoutExpired:
        raise InputError(
            "`lfs setstripe` does not answer", where=path.parent, todo="try again later"
        ) from None
    if done.returncode:
        raise InputError(
            f"`lfs setstripe -c {count}` failed ({done.stderr.strip().splitlines()[-1:] or 'no message'})",
            where=path.parent,
            todo="name a folder on Lustre",
        )
