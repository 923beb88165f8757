"""A second month of a centre, with other families of runs whose possible savings are known.

It knows no rule of Vani: each family is a way to use a machine of 40 targets of 550 MB/s each, and the unnecessary
share of its waiting follows from that machine. `python -m tests.traces.darshan_families FOLDER LOGS [SEED]` writes
one, and FOLDER.yaml, which describes the machine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tests.traces.darshan_month import costs, data_counters, generate_month, opened, shared_file
from tests.traces.darshan_writer import POSIX, Layout, Log, Record

__all__ = ["FAMILIES", "MACHINE", "SLOW_TARGET", "Family", "family_logs"]

SLOW_TARGET = 7
"""The target on which files take 25 times as long, in all runs of one family."""
_TARGETS = 40
_RATE = 550e6
MACHINE = f"""\
schema: vani.system/2
name: forty-targets
file_systems:
  - name: scratch
    type: lustre
    mounts: [/scratch]
    targets: {_TARGETS}
    bandwidth_per_target: {{read: {_RATE:.1e}, write: {_RATE:.1e}}}
    max_bandwidth: {{read: {_TARGETS * _RATE:.1e}, write: {_TARGETS * _RATE:.1e}}}
    stripe_count: 1
    stripe_size: 1048576
"""
_MiB = 1 << 20
_START = datetime(2026, 12, 1, tzinfo=UTC).timestamp()
_DAYS = 30


@dataclass(frozen=True)
class Family:
    """A kind of run.

    Attributes
    ----------
    gain
        Share of the waiting that the right change saves on that machine; 0 if none does.
    weight
        Its share of the runs.
    """

    app: str
    gain: float
    weight: float
    processes: int
    write: Callable[[str, int, float], tuple[list[Record], list[Layout]]]


def _striped(path: str, count: int, first: int = 0) -> Layout:
    return Layout(path, count, 4 * _MiB, first)


def _checkpoints(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """Six checkpoints, each one file on two targets, in pieces of 16 MiB."""
    each = max(1, round(4 * scale))
    seconds = processes * each * 16 * _MiB / (2 * _RATE)
    parts = [
        shared_file(f"{out}/ckpt.{step}", processes, seconds, 16 * _MiB, each, stripes=2) for step in range(6)
    ]
    return [record for records, _ in parts for record in records], [layout for _, some in parts for layout in some]


def _same_input(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """All processes read a 1 GiB file from one target, although one could read it and send it to the others."""
    path, reads = f"{out}/table.bin", max(1, round(256 * scale))
    seconds = processes * reads * 4 * _MiB / (8 * _RATE)
    values = {
        "OPENS": processes, "READS": processes * reads, "BYTES_READ": processes * reads * 4 * _MiB,
        "MAX_BYTE_READ": reads * 4 * _MiB - 1, "CONSEC_READS": processes * (reads - 1),
        "SEQ_READS": processes * (reads - 1), "SIZE_READ_1M_4M": processes * reads, "ACCESS1_ACCESS": 4 * _MiB,
        "ACCESS1_COUNT": processes * reads, "SLOWEST_RANK_BYTES": reads * 4 * _MiB, "FASTEST_RANK_BYTES": reads * 4 * _MiB,
        "F_READ_TIME": 0.97 * seconds * processes, "F_SLOWEST_RANK_TIME": seconds, "F_FASTEST_RANK_TIME": 0.9 * seconds,
        "F_OPEN_START_TIMESTAMP": 1.0, "F_OPEN_END_TIMESTAMP": 1.1, "F_READ_START_TIMESTAMP": 1.2,
        "F_READ_END_TIMESTAMP": 1.2 + seconds, "F_CLOSE_START_TIMESTAMP": 1.2 + seconds, "F_CLOSE_END_TIMESTAMP": 1.3 + seconds,
    }  # fmt: skip
    return [Record(POSIX, path, -1, values)], [_striped(path, 1)]


def _appends(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """Each process appends lines of 120 bytes to its own file, without a buffer."""
    paths = [f"{out}/trace.{rank}" for rank in range(processes)]
    lines = round(300_000 * scale)
    records = [
        Record(POSIX, path, rank, data_counters(lines, 120, 80e-6 * lines * (1 - rank / 1000)) | opened(1, 0.001))
        for rank, path in enumerate(paths)
    ]
    return records, [_striped(path, 1, 20 + rank % 20) for rank, path in enumerate(paths)]


def _opens(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """Each process opens, writes a few kilobytes and closes, thousands of times."""
    paths, times = [f"{out}/state.{rank}" for rank in range(processes)], round(6000 * scale)
    records = [
        Record(
            POSIX, path, rank, data_counters(times, 8192, 20e-6 * times) | opened(times, 5e-3 * times)
        )
        for rank, path in enumerate(paths)
    ]
    return records, [_striped(path, 1, 20 + rank % 20) for rank, path in enumerate(paths)]


def _slow_target(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """A file for each process, over 20 targets, one of which is broken."""
    paths, writes = [f"{out}/part.{rank}" for rank in range(processes)], round(256 * scale)
    seconds = writes * 4 * _MiB / (_RATE / (processes / 20))
    records = [
        Record(
            POSIX,
            path,
            rank,
            data_counters(writes, 4 * _MiB, seconds * (25 if rank % 20 == SLOW_TARGET else 1 + rank / 1000))
            | opened(1, 0.001),
        )
        for rank, path in enumerate(paths)
    ]
    return records, [_striped(path, 1, rank % 20) for rank, path in enumerate(paths)]


def _chunked(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """One HDF5 file of whole chunks, in collective calls of 16 MiB on all targets at their full rate."""
    each = max(1, round(384 * scale))
    seconds = processes * each * 16 * _MiB / (_TARGETS * _RATE)
    return shared_file(
        f"{out}/fields.h5", processes, seconds, 16 * _MiB, each, stripes=_TARGETS, stripe_size=16 * _MiB, collective=True
    )


def _full_rate(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """One file with large blocks of each process, on all targets at their full rate."""
    each = max(1, round(384 * scale))
    seconds = processes * each * 16 * _MiB / (_TARGETS * _RATE)
    return shared_file(
        f"{out}/lattice.dat", processes, seconds, 16 * _MiB, each, stripes=_TARGETS, stripe_size=16 * _MiB
    )


def _separate(out: str, processes: int, scale: float) -> tuple[list[Record], list[Layout]]:
    """A file for each process in large writes, evenly over all targets at their full rate."""
    paths, writes = [f"{out}/rank.{rank}" for rank in range(processes)], max(1, round(4096 * scale))
    seconds = processes * writes * 4 * _MiB / (_TARGETS * _RATE)
    records = [
        Record(POSIX, path, rank, data_counters(writes, 4 * _MiB, seconds * (1 - rank / 4000)) | opened(1, 0.001))
        for rank, path in enumerate(paths)
    ]
    return records, [_striped(path, 1, 20 + rank % 20) for rank, path in enumerate(paths)]


FAMILIES = (
    Family("checkpointer", 0.95, 0.10, 384, _checkpoints),
    Family("lookup", 0.97, 0.08, 256, _same_input),
    Family("tracker", 0.99, 0.10, 64, _appends),
    Family("stepper", 0.99, 0.10, 96, _opens),
    Family("scatter", 0.96, 0.06, 80, _slow_target),
    Family("chunked", 0.0, 0.20, 512, _chunked),
    Family("lattice", 0.0, 0.20, 512, _full_rate),
    Family("separate", 0.0, 0.16, 160, _separate),
)
"""Families with a gain and those without; the latter cost most."""


def family_logs(number: int, seed: int) -> Iterator[tuple[str, str, str, Log, float, float]]:
    """User, application, application, log, and both costs in seconds, as `logs_of` of the other month."""
    random = np.random.default_rng([seed, 2])
    # Different seeds give different mixes.
    weights = np.array([family.weight for family in FAMILIES]) * random.uniform(0.6, 1.6, len(FAMILIES))
    for at in range(number):
        family = FAMILIES[int(random.choice(len(FAMILIES), p=weights / weights.sum()))]
        user = f"u{30000 + int(random.integers(2)) + 10 * FAMILIES.index(family)}"
        start = int(_START + random.random() * (_DAYS * 86400 - 1))
        records, layouts = family.write(
            f"/scratch/{user}/{family.app}/{at}", family.processes, float(random.uniform(0.6, 1.4))
        )
        in_io, slowest = costs(records)
        # At most half of the run is computing.
        log = Log(
            f"/home/{user}/bin/{family.app} -i input.nml", family.processes, start, 3 + slowest * float(random.uniform(1.5, 4)),
            uid=int(user[1:]), job_id=5_000_000 + at, records=records, layouts=layouts,
        )  # fmt: skip
        yield user, family.app, family.app, log, in_io, slowest * family.processes


if __name__ == "__main__":
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    Path(f"{sys.argv[1]}.yaml").write_text(MACHINE)
    generate_month(Path(sys.argv[1]), int(sys.argv[2]), seed=seed, runs=family_logs)
