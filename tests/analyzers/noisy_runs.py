"""Programs with known phases, run on machines that disturb them: ranks lag, lose their cores, and calls take longer.

A program is a list of steps that its ranks take together, with a barrier after each. The actions of a run are the
same each time; their times are drawn from a seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from call_tables import MILLISECOND, InventedTrace, Row, call, create, read, write

from vani.calls import FileClass, Flag

__all__ = ["BUSY", "CROWDED", "QUIET", "Noise", "Step", "everyone", "noisy", "on_file", "only"]

MIB = 1 << 20
TOUCH = 5_000
"""Duration of an open or a close, in ns."""


@dataclass(frozen=True)
class Step:
    """The actions of each rank before the next barrier: it computes for a while, then makes `calls(rank)`.

    The calls are in order; noise lengthens their `lasts`, and `at` is filled in.
    """

    calls: Callable[[int], list[Row]]
    computes_ms: float = 0.0


@dataclass(frozen=True)
class Noise:
    """Disturbances of a run by a machine; each time is drawn from 0 to the value, in ms."""

    skew: float
    """How much later than others a rank starts a step."""
    slice: float = 0.0
    """How long a rank loses its core before one of twenty calls."""
    straggler: float = 0.0
    """How late one rank is in one of four steps."""
    slow: float = 1.0
    """Maximum factor by which calls last longer."""


QUIET = Noise(skew=0.01)
BUSY = Noise(skew=12.0, slice=12.0, straggler=60.0, slow=3.0)
CROWDED = Noise(skew=30.0, slice=24.0, straggler=120.0, slow=5.0)


def noisy(ranks: int, steps: Sequence[Step], noise: Noise, seed: int) -> InventedTrace:
    """A run of a program."""
    chance = random.Random(seed)
    now = 0.0
    rows: list[list[Row]] = [[] for _ in range(ranks)]
    for step in steps:
        late = chance.randrange(ranks) if chance.random() < 0.25 else -1
        ends = []
        for rank in range(ranks):
            at = now + step.computes_ms + chance.uniform(0, noise.skew)
            at += chance.uniform(0, noise.straggler) if rank == late else 0.0
            for row in step.calls(rank):
                at += chance.uniform(0, noise.slice) if chance.random() < 0.05 else 0.0
                lasts = row["duration_ns"] * chance.uniform(1.0, noise.slow)
                rows[rank].append({**row, "start_ns": round(at * MILLISECOND), "duration_ns": round(lasts)})
                at += lasts / MILLISECOND + 0.001
            ends.append(at)
        now = max(ends)
    flat = [row for mine in rows for row in mine]
    files = 1 + max((row["file"] for row in flat if row["file"] is not None), default=0)
    return InventedTrace(flat, [FileClass.DATASET] * files, ranks=ranks)


def everyone(rank: int) -> bool:
    """All ranks take part."""
    return rank >= 0


def only(*some: int) -> Callable[[int], bool]:
    """These ranks."""
    return lambda rank: rank in some


def on_file(
    way: str,
    file: Callable[[int], int],
    *,
    calls: int,
    size: int,
    lasts_ms: float,
    who: Callable[[int], bool] = everyone,
    opens: bool = True,
    computes_ms: float = 0.0,
) -> Step:
    """Each participating rank opens a file, reads or writes it from the start and closes it."""

    def rows(rank: int) -> list[Row]:
        if not who(rank):
            return []
        code, lasts = file(rank), round(lasts_ms * MILLISECOND)
        if way == "write":
            made = [create(code, rank=rank, lasts=TOUCH)]
            data = [write(code, i * size, size, rank=rank, lasts=lasts) for i in range(calls)]
        else:
            made = [call(file=code, rank=rank, flags=Flag.OPEN, lasts=TOUCH)]
            data = [read(code, i * size, size, rank=rank, lasts=lasts) for i in range(calls)]
        closed = [call(file=code, rank=rank, flags=Flag.CLOSE, lasts=TOUCH)]
        return [*made, *data, *closed] if opens else data

    return Step(rows, computes_ms)
