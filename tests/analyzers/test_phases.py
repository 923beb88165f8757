"""Phases reflect what a program does, not how a machine delays it."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from call_tables import MILLISECOND, InventedTrace, call, create, profile_of, read, write
from noisy_runs import BUSY, CROWDED, MIB, QUIET, Step, noisy, on_file, only

from vani.analyzers.activity import Cells
from vani.analyzers.phase_starts import _between_roles
from vani.calls import Flag
from vani.schema.profile import Profile

TRACES = Path(__file__).resolve().parents[1] / "data" / "traces"
SHARED = Path(__file__).resolve().parents[3] / "shared"


def found(trace: InventedTrace | list[InventedTrace], **more) -> Profile:
    with tempfile.TemporaryDirectory() as folder:
        return profile_of(trace if isinstance(trace, list) else [trace], Path(folder), **more)


def told(profile: Profile) -> list[tuple[str, int]]:
    """Kind and number of repetitions of each row."""
    return [(phase.kind, phase.count) for phase in profile.phases]


# Programs with known phases


def ior(repetitions=1):
    """Writes a shared file and reads it back."""
    pair = [
        on_file("write", lambda _: 0, calls=8, size=MIB, lasts_ms=6.0),
        on_file("read", lambda _: 0, calls=8, size=MIB, lasts_ms=4.0),
    ]
    return pair * repetitions


def checkpoints(ranks, number, computes_ms):
    """Each state has a header by rank 0 and a file per process; the last one is read at the end."""
    steps = []
    for state in range(number):
        first = 1 + state * ranks
        steps += [
            on_file("write", lambda _: 0, calls=1, size=4096, lasts_ms=0.1, who=only(0)),
            on_file("write", lambda r, first=first: first + r, calls=4, size=MIB, lasts_ms=5.0, computes_ms=computes_ms),
        ]
    last = 1 + (number - 1) * ranks
    return [*steps, on_file("read", lambda r: last + r, calls=4, size=MIB, lasts_ms=8.0)]


def checkpoints_apart():
    """Three states, a long pause, and three more: both halves are divided."""
    steps = checkpoints(4, 6, 100)[:-1]
    steps[6] = replace(steps[6], computes_ms=5000)
    return steps


def hdf5():
    """A shared file; between the data, rank 0 writes the library's metadata, and all ranks seek."""
    beside = Step(lambda r: [write(0, 0, 96, rank=0, lasts=10_000)] if r == 0 else [], computes_ms=8.0)
    seeks = Step(lambda r: [call(file=0, rank=r, flags=Flag.SEEK, lasts=2_000)], computes_ms=4.0)
    data = [on_file(way, lambda _: 0, calls=4, size=MIB // 2, lasts_ms=6.0, opens=way == "write") for way in ("write", "read")]
    return [beside, data[0], beside, seeks, beside, seeks, data[1], seeks]


def outputs_of_rank_0(number):
    """All ranks read the input, then rank 0 writes a small file every 1.7 s."""
    steps = [on_file("read", lambda _: 0, calls=3, size=16 * MIB, lasts_ms=2.0)]
    for step in range(number):
        one = on_file("write", lambda _, s=step: 1 + s, calls=4, size=200_000, lasts_ms=2.0, who=only(0), computes_ms=1700)
        steps.append(one)
    return steps


def appended_levels(number):
    """Rank 0 writes a level every 16 ms into a file that stays open: one phase."""
    opened = Step(lambda r: [create(0, rank=0, lasts=10_000)] if r == 0 else [])
    level = on_file("write", lambda _: 0, calls=1, size=32_768, lasts_ms=0.4, who=only(0), opens=False, computes_ms=16)
    return [opened, *[level] * number]


def three_apart():
    """From `traces-new`: files per process, a strided read, small writes; 1.5 s apart."""
    return [
        on_file("write", lambda r: r, calls=32, size=65_536, lasts_ms=0.5),
        on_file("read", lambda _: 8, calls=16, size=4096, lasts_ms=0.5, computes_ms=1500),
        on_file("write", lambda _: 9, calls=32, size=1000, lasts_ms=0.5, computes_ms=1500),
    ]


PROGRAMS = {
    "ior": (8, ior(), [("write", 1), ("read", 1)]),
    "ior three times": (8, ior(3), [("write", 3), ("read", 3)]),
    "checkpoints": (8, checkpoints(8, 5, 100), [("write", 5), ("read", 1)]),
    "checkpoints close to each other": (4, checkpoints(4, 4, 40), [("write", 4), ("read", 1)]),
    "checkpoints before and after a pause": (4, checkpoints_apart(), [("write", 6)]),
    "hdf5": (4, hdf5(), [("write", 1), ("read", 1)]),
    "outputs of rank 0": (16, outputs_of_rank_0(20), [("read", 1), ("write", 20)]),
    "levels appended": (4, appended_levels(60), [("write", 1)]),
    "three apart": (4, three_apart(), [("write", 1), ("read", 1), ("write", 1)]),
}


@pytest.mark.parametrize("noise", [QUIET, BUSY, CROWDED], ids=["quiet", "busy", "crowded"])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.slow
def test_delays_neither_create_nor_hide_phases(program, noise):
    ranks, steps, truth = PROGRAMS[program]
    for seed in range(3):
        assert told(found(noisy(ranks, steps, noise, seed))) == truth, seed


@pytest.mark.parametrize("reader", [0, 1])
def test_simultaneous_calls_are_never_split_in_any_order_of_processes(reader):
    # One rank reads while the other writes; the division must not depend on which of them is rank 0.
    rows = []
    for step in range(6):
        at = step * 20 * MILLISECOND
        rows += [
            read(rank=reader, offset=step * 100, at=at, lasts=MILLISECOND, size=100 if step < 3 else 1),
            write(rank=1 - reader, offset=step * 100, at=at, lasts=MILLISECOND, size=1 if step < 3 else 100),
        ]
    phases = found(InventedTrace(sorted(rows, key=lambda row: row["rank"]), ranks=2)).phases
    assert [(p.start_s, p.io.bytes.read, p.io.bytes.written) for p in phases] == [
        (0.0, 300, 3),
        (0.06, 3, 300),
    ]


def test_a_single_moment_of_reads_and_writes_is_one_phase():
    columns = ([0, 1], [5, 5], [6, 6], [100, 0], [0, 100], [1, 1], [0, 0], [1, 1])
    cells = Cells(*(np.array(column) for column in columns))
    assert _between_roles(cells, 0, 10) is None
