"""A month of a centre: logs of many users and applications with known costs.

`python -m tests.traces.darshan_month FOLDER LOGS` writes one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from tests.traces.darshan_writer import MPIIO, POSIX, STDIO, Layout, Log, Record, log_bytes

__all__ = ["KINDS", "Month", "costs", "data_counters", "generate_month", "logs_of", "opened", "shared_file"]

KINDS = ("narrow", "rank-zero", "well-striped", "small", "separate", "serial")
"""Behaviours: a shared file in one stripe; rank 0 writes for all; collective and well striped; many small writes of
each process; a file for each process; one process with a few files."""
_START = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
_DAYS = 30
_MiB = 1 << 20
_LARGE = (
    ("heat3d", "narrow", 3, 0.08),
    ("postproc", "rank-zero", 2, 0.03),
    ("climate", "well-striped", 4, 0.09),
)
"""Application, behaviour, users and share of the runs of the costliest ones."""


@dataclass
class Month:
    """Known facts about the month.

    Attributes
    ----------
    in_io_s, waiting_s, runs
        By application and user; copies count once, damaged logs not at all.
    kinds
        Behaviour by application.
    damaged, copies
        Paths.
    """

    folder: Path
    in_io_s: dict[tuple[str, str], float] = field(default_factory=dict)
    waiting_s: dict[tuple[str, str], float] = field(default_factory=dict)
    runs: dict[tuple[str, str], int] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    damaged: list[Path] = field(default_factory=list)
    copies: list[Path] = field(default_factory=list)
    files: int = 0


def generate_month(
    folder: Path,
    logs: int,
    *,
    seed: int = 1,
    damaged: float = 0.01,
    copied: float = 0.005,
    runs: Callable[[int, int], Iterator[tuple[str, str, str, Log, float, float]]] | None = None,
) -> Month:
    """Write logs to a folder per day, like Darshan; some are truncated, some copied under another name.

    `runs` draws a number of runs with a seed; by default `logs_of`.
    """
    random = np.random.default_rng(seed)
    month = Month(folder)
    for number, (user, app, kind, log, in_io, waiting) in enumerate((runs or logs_of)(logs, seed)):
        began = datetime.fromtimestamp(log.start_s, UTC)
        day = folder / f"{began.year}" / f"{began.month}" / f"{began.day}"
        day.mkdir(parents=True, exist_ok=True)
        name = f"{user}_{app}_id{log.job_id}-{number}_{began.month}-{began.day}-{log.start_s % 86400}-{number * 7919}_1.darshan"
        content = log_bytes(log)
        month.files += 1
        month.kinds[app] = kind
        if random.random() < damaged:
            content = content[: int(random.integers(1, len(content) - 1))]
            month.damaged.append(day / name)
        else:
            pair = (app, user)
            month.in_io_s[pair] = month.in_io_s.get(pair, 0.0) + in_io
            month.waiting_s[pair] = month.waiting_s.get(pair, 0.0) + waiting
            month.runs[pair] = month.runs.get(pair, 0) + 1
            if random.random() < copied:
                month.copies.append(day / f"copy-{name}")
                month.copies[-1].write_bytes(content)
                month.files += 1
        (day / name).write_bytes(content)
    return month


def logs_of(number: int, seed: int) -> Iterator[tuple[str, str, str, Log, float, float]]:
    """User, application, behaviour, log, and both costs in seconds."""
    random = np.random.default_rng([seed, 1])
    pairs = [
        (app, kind, f"u{20000 + 100 * at + one}")
        for at, (app, kind, users, _) in enumerate(_LARGE)
        for one in range(users)
    ]
    shares = [share / users for _, _, users, share in _LARGE for _ in range(users)]
    others = [(f"app{at % 37:02}", KINDS[at % 37 % len(KINDS)], f"u{21000 + at % 160}") for at in range(179)]
    weights = np.concatenate([shares, np.full(len(others), (1 - sum(shares)) / len(others))])
    pairs += others
    for at in range(number):
        app, kind, user = pairs[int(random.choice(len(pairs), p=weights))]
        large = app in {name for name, *_ in _LARGE}
        start = int(_START + random.random() * (_DAYS * 86400 - 1))
        log, in_io, waiting = _log(random, user, app, kind, large=large, start=start, number=at)
        yield user, app, kind, log, in_io, waiting


def _log(
    random: np.random.Generator, user: str, app: str, kind: str, *, large: bool, start: int, number: int
) -> tuple[Log, float, float]:
    out = f"/scratch/{user}/{app}/run{number}"
    slow = float(random.uniform(0.7, 1.3)) * (1.0 if large else 0.02)
    records, layouts, processes, runtime = [], [], 1, 900.0 * (1.0 if large else 0.2)
    if kind == "narrow":
        processes = 256 if large else 32
        records, layouts = shared_file(f"{out}/field.h5", processes, 120 * slow, 1 * _MiB, 512, stripes=1)
    elif kind == "rank-zero":
        processes = 256 if large else 64
        seconds, writes = 150 * slow, 20000
        records = [
            Record(
                POSIX,
                f"{out}/all.dat",
                0,
                data_counters(writes, 1 * _MiB, seconds * 0.99) | opened(1, seconds * 0.01),
            )
        ]
        layouts = [Layout(f"{out}/all.dat", 1, _MiB)]
    elif kind == "well-striped":
        processes = 512 if large else 64
        records, layouts = shared_file(
            f"{out}/state.nc", processes, 100 * slow, 4 * _MiB, 256, stripes=64, collective=True
        )
    elif kind == "small":
        processes = 16
        seconds = 60 * slow
        records = [
            Record(
                POSIX,
                f"{out}/part.{rank}",
                rank,
                data_counters(50000, 64, seconds * (1 - rank / 64)) | opened(1, 0.001),
            )
            for rank in range(processes)
        ]
    elif kind == "separate":
        processes = 32
        records = [
            Record(
                POSIX,
                f"{out}/rank{rank:05}.bin",
                rank,
                data_counters(64, 4 * _MiB, 40 * slow + 0.01 * rank) | opened(1, 0.002),
            )
            for rank in range(processes)
        ]
    else:
        records = [
            Record(STDIO, f"{out}/log.txt", 0, {"OPENS": 1, "WRITES": 200, "BYTES_WRITTEN": 20000, "F_WRITE_TIME": 0.2 * slow, "F_META_TIME": 0.001}),
            Record(POSIX, f"{out}/in.dat", 0, {"OPENS": 1, "READS": 40, "BYTES_READ": 40 * _MiB, "F_READ_TIME": 4 * slow, "F_META_TIME": 0.002, "MAX_BYTE_READ": 40 * _MiB - 1, "SIZE_READ_100K_1M": 40, "ACCESS1_ACCESS": _MiB, "ACCESS1_COUNT": 40, "CONSEC_READS": 39, "SEQ_READS": 39}),
        ]  # fmt: skip
    in_io, slowest = costs(records)
    log = Log(
        f"/home/{user}/bin/{app} -i input.nml", processes, start, max(runtime, 2 * slowest), uid=int(user[1:]),
        job_id=4_000_000 + number, records=records, layouts=layouts,
    )  # fmt: skip
    return log, in_io, slowest * processes


def costs(records: Sequence[Record]) -> tuple[float, float]:
    """Seconds of all processes in I/O calls, and of the slowest one."""
    spent: dict[int, float] = {}
    for one in records:
        if one.module is not MPIIO:
            spent[one.rank] = spent.get(one.rank, 0.0) + _seconds(one)
    shared = [one for one in records if one.rank == -1 and one.module is not MPIIO]
    slowest = sum(one.values["F_SLOWEST_RANK_TIME"] for one in shared) if shared else max(spent.values())
    return sum(spent.values()), slowest


def _seconds(one: Record) -> float:
    return sum(one.values.get(f"F_{what}_TIME", 0.0) for what in ("READ", "WRITE", "META"))


def opened(times: int, seconds: float) -> dict[str, float]:
    return {
        "OPENS": times,
        "F_META_TIME": seconds,
        "F_OPEN_START_TIMESTAMP": 1.0,
        "F_OPEN_END_TIMESTAMP": 1.1,
    }


def data_counters(writes: int, size: int, seconds: float) -> dict[str, float]:
    """Writes of one size, one after the other."""
    ends = ((100, "0_100"), (1000, "100_1K"), (10_000, "1K_10K"), (_MiB, "100K_1M"), (4 * _MiB, "1M_4M"))
    name = next((name for end, name in ends if size <= end), "10M_100M")
    return {
        "WRITES": writes, "BYTES_WRITTEN": writes * size, "MAX_BYTE_WRITTEN": writes * size - 1,
        "CONSEC_WRITES": writes - 1, "SEQ_WRITES": writes - 1, f"SIZE_WRITE_{name}": writes, "ACCESS1_ACCESS": size,
        "ACCESS1_COUNT": writes, "F_WRITE_TIME": seconds, "F_WRITE_START_TIMESTAMP": 1.2,
        "F_WRITE_END_TIMESTAMP": 1.2 + seconds, "F_CLOSE_START_TIMESTAMP": 1.2 + seconds, "F_CLOSE_END_TIMESTAMP": 1.3 + seconds,
    }  # fmt: skip


def shared_file(
    path: str, processes: int, slowest: float, size: int, each: int, *, stripes: int, stripe_size: int = 4 * _MiB,
    collective: bool = False,
) -> tuple[list[Record], list[Layout]]:
    """A file that all processes write in turn, in `each` pieces of `size` bytes; `slowest` is in seconds."""
    writes, mean = processes * each, 0.95 * slowest
    values = data_counters(writes, size, 0.99 * mean * processes) | {
        "OPENS": processes, "F_META_TIME": 0.01 * mean * processes, "CONSEC_WRITES": 0, "SEQ_WRITES": writes - processes,
        "STRIDE1_STRIDE": (processes - 1) * size, "STRIDE1_COUNT": writes - processes, "SLOWEST_RANK": processes - 1,
        "SLOWEST_RANK_BYTES": each * size, "FASTEST_RANK_BYTES": each * size, "F_SLOWEST_RANK_TIME": slowest,
        "F_FASTEST_RANK_TIME": 0.9 * slowest, "F_WRITE_END_TIMESTAMP": 1.2 + slowest, "F_CLOSE_END_TIMESTAMP": 1.3 + slowest,
        "F_OPEN_START_TIMESTAMP": 1.0, "F_OPEN_END_TIMESTAMP": 1.1, "F_CLOSE_START_TIMESTAMP": 1.2 + slowest,
    }  # fmt: skip
    records = [Record(POSIX, path, -1, values)]
    if collective:
        records.append(
            Record(
                MPIIO,
                path,
                -1,
                {"COLL_OPENS": processes, "COLL_WRITES": writes, "BYTES_WRITTEN": writes * size},
            )
        )
    return records, [Layout(path, stripes, stripe_size)]


if __name__ == "__main__":
    generate_month(Path(sys.argv[1]), int(sys.argv[2]))
