"""Bytes and rates of a running job, compared with its plan.

A rate is bytes divided by the slowest process's seconds in I/O calls, like the expected I/O time of a plan: a
program that computes is not slow.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.errors import VaniError
from vani.units import counted, format_rate, format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.schema import JobPlan
    from vani.centre.plan.schema.snapshot import Target

_LEAST_S: Final = 5.0
"""Seconds in I/O calls below which a rate says little (our choice)."""
_BUSY: Final = 0.9


@dataclass(frozen=True)
class Moved:
    """Bytes that a job has read and written so far, and its slowest process's seconds in I/O calls."""

    bytes: int
    io_s: float


@dataclass
class Watched:
    """An earlier observation of a job, its time in seconds since 1970, and why the job is slow; None if it is not."""

    moved: Moved
    at_s: float
    cause: str | None = None


def moved_so_far(number: str, traces: str) -> Moved | None:
    """Bytes and seconds of a job so far, from its growing trace; None if unknown."""
    try:
        return _by_trace(number, traces)
    except VaniError:
        return None  # The file is being written at this moment, or the job ended.


def _by_trace(number: str, traces: str) -> Moved | None:
    path = Path(traces.replace("%j", number))
    if not path.exists():
        return None
    from vani.calls import FileClass, Flag, Kind, Layer  # noqa: PLC0415 - loads Arrow
    from vani.readers.open import open_trace  # noqa: PLC0415
    from vani.readers.trace_reader import KeepsCounts, Piece  # noqa: PLC0415

    reader = open_trace(path)
    if isinstance(reader, KeepsCounts):
        return None
    is_data = reader.files()["class"].to_numpy() == FileClass.DATASET
    moved, seconds = 0, np.zeros(reader.ranks)
    for batch in reader.batches(range(reader.ranks), Piece()):
        file = batch.column("file").fill_null(-1).to_numpy()
        own = (batch.column("layer").to_numpy() <= Layer.STDIO) & (file >= 0)
        own &= (batch.column("flags").to_numpy() & Flag.NESTED) == 0
        own[own] = is_data[file[own]]
        np.add.at(seconds, batch.column("rank").to_numpy()[own], batch.column("duration_ns").to_numpy()[own] / 1e9)
        carries = own & (batch.column("kind").to_numpy() <= Kind.WRITE)
        moved += int(batch.column("bytes").fill_null(0).to_numpy()[carries].clip(0).sum())
    return Moved(moved, float(seconds.max(initial=0.0)))


def why_slow(plan: JobPlan, now: Moved, before: Watched, targets: list[Target]) -> str | None:
    """Explain why a job is slower than its plan expects; None if it is not, or the explanation is not new.

    Parameters
    ----------
    before
        An earlier observation, replaced once enough seconds in I/O calls have passed.
    targets
        Present state of the machine's OSTs.
    """
    bytes_, io_s = now.bytes - before.moved.bytes, now.io_s - before.moved.io_s
    expected = plan.io_s
    if expected is None or not expected.bytes or not expected.high or not expected.seconds or io_s < _LEAST_S:
        return None
    rate, least = bytes_ / io_s, expected.bytes / expected.high
    since, before.moved, before.at_s = before.at_s, now, time.time()
    own = set() if plan.layout is None else set(plan.layout.osts)
    slow = [f"OST {target.index} {why}" for target in targets if target.index in own and (why := _trouble(target))]
    cause = ", ".join(slow) or (f"none of its {counted(len(own), 'OST')} is busy" if own else "the cause is not known")
    is_news = rate < least and cause != before.cause
    before.cause = cause if rate < least else None
    if not is_news:
        return None
    return (
        f"{format_rate(rate)} in {format_seconds(io_s)} of I/O since {datetime.fromtimestamp(since, UTC):%H:%M} UTC, "
        f"{format_rate(expected.bytes / expected.seconds)} (at least {format_rate(least)}) expected; {cause}"
    )


def _trouble(target: Target) -> str | None:
    if target.state != "ok":
        return f"is {target.state}"
    return f"is {target.load:.0%} busy".replace("%", " %") if (target.load or 0.0) >= _BUSY else None
