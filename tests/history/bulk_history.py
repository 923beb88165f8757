"""A history of many runs, written directly into its tables, to measure code that reads it rather than logs.

`python -m tests.history.bulk_history FILE RUNS [SEED]` writes one with 100,000 runs per month.
"""

from __future__ import annotations

import hashlib
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from vani.centre.history.runs import tables, write
from vani.centre.history.runs.store import Store

__all__ = ["LARGEST", "bulk_history"]

LARGEST = "app000"
"""The application with the most runs."""
_A_MONTH = 100_000
_END = datetime(2026, 11, 27, tzinfo=UTC).timestamp()
_MONTH_S = 30.4 * 86400
_AT_ONCE = 100_000
_JUDGED = 80


def bulk_history(place: Path, runs: int, seed: int = 1) -> None:
    """Write `runs` runs of 2,000 users and 300 applications, a few of which have most runs, as at a centre."""
    random = np.random.default_rng([seed, runs])
    store = Store(place)
    with store.writing(make=True):
        pass
    pairs = _pairs(random)
    begin = _END - max(1.0, runs / _A_MONTH) * _MONTH_S
    columns = [column.name for column in tables.runs.columns if column.name != "id"]
    with closing(sqlite3.connect(place, isolation_level=None)) as file:
        file.execute("PRAGMA synchronous = OFF")
        file.execute("BEGIN")
        for start in range(0, runs, _AT_ONCE):
            number = min(_AT_ONCE, runs - start)
            rows = _rows(random, pairs, start, number, begin + (_END - begin) * start / runs, (_END - begin) / runs)
            marks = ", ".join("?" * len(columns))
            names = ", ".join(f'"{name}"' for name in columns)
            file.executemany(
                f"INSERT INTO history_runs ({names}) VALUES ({marks})",
                ([row.get(name) for name in columns] for row in rows),
            )
            file.executemany(
                "INSERT INTO history_sources (place, path, size, changed_ns, digest) VALUES (?, ?, ?, ?, ?)",
                (
                    (hashlib.sha256(row["path"].encode()).hexdigest(), row["path"], 4096, 1, row["digest"])
                    for row in rows
                ),
            )
        file.executemany(
            "INSERT INTO history_judged SELECT digest, 'site', slowest_s * 0.3, slowest_s * 0.5, slowest_s * 0.7, 'LUS002', "
            "'lfs setstripe -c 32 -S 1M DIR', 'A file is on too few targets.', '[\"lfs setstripe -c 32 /scratch/x\"]', 0, 2 "
            "FROM history_runs WHERE id = ?",
            [(1 + at * max(1, runs // _JUDGED),) for at in range(min(_JUDGED, runs))],
        )
        file.execute("COMMIT")
    with store.writing() as connection:
        write.remake_sums(connection)


def _pairs(random: np.random.Generator) -> dict[str, np.ndarray]:
    number = 6000
    weights = 1 / (1 + np.arange(number)) ** 1.1
    applications = np.minimum(random.zipf(1.5, number) - 1, 299)
    applications[:3] = (0, 1, 2)
    return {
        "application": applications,
        "user": random.integers(2000, size=number),
        "processes": 2 ** random.integers(5, 12, size=number),
        "seconds": random.lognormal(3, 1.2, number),
        "weight": weights / weights.sum(),
    }


def _rows(
    random: np.random.Generator, pairs: dict[str, np.ndarray], start: int, number: int, begin: float, step: float
) -> list[dict[str, object]]:
    at = random.choice(len(pairs["weight"]), number, p=pairs["weight"])
    processes = (pairs["processes"][at] * 2 ** random.integers(2, size=number)).tolist()
    slowest = (pairs["seconds"][at] * random.lognormal(0, 0.3, number)).tolist()
    application, user = pairs["application"][at].tolist(), pairs["user"][at].tolist()
    submitted = (begin + step * (np.arange(number) + random.random(number))).tolist()
    rows: list[dict[str, object]] = []
    for i in range(number):
        n, seconds, name = processes[i], slowest[i], f"u{20000 + user[i]}"
        app = f"app{application[i]:03}"
        moved = int(n * seconds * 2e6)
        rows.append(
            {
                "digest": hashlib.sha256(f"{start + i}".encode()).hexdigest(),
                "kind": "darshan", "user": name, "uid": 20000 + user[i], "application": app, "processes": n,
                "submitted": submitted[i], "runtime_s": 4 * seconds + 60, "bytes_read": moved // 10,
                "bytes_written": moved, "reads": n * 10, "writes": n * 100, "opens": n, "metadata": 3 * n,
                "collective": 0, "independent": 110 * n, "files": n, "shared_files": 1, "read_s": 0.1 * seconds * n,
                "write_s": 0.6 * seconds * n, "metadata_s": 0.05 * seconds * n, "in_io_s": 0.75 * seconds * n,
                "slowest_s": seconds, "waiting_s": seconds * n, "writers": n, "file_system": "lustre",
                "mount": "/scratch", "stripes": 1, "complete": True, "target_times": None,
                "job": str(4_000_000 + start + i),
                "path": f"/logs/{name}/{name}_{app}_id{4_000_000 + start + i}-1_11-1-{start + i}.darshan",
            }
        )  # fmt: skip
    return rows


if __name__ == "__main__":
    bulk_history(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
