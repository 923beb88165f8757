"""Invented Darshan records, and their profile."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from vani.cli.counted import profile_of_counts
from vani.readers.darshan.reader import DarshanReader
from vani.readers.darshan.records import Module, Records
from vani.schema.profile import Profile
from vani.units import MiB


def posix(**counters: float) -> Module:
    """One record of all ranks."""
    named = {f"POSIX_{name}": np.array([value]) for name, value in counters.items()}
    return Module(
        np.array([1], np.uint64),
        np.array([-1]),
        {n: v.astype(np.int64) for n, v in named.items() if "_F_" not in n},
        {n: v.astype(np.float64) for n, v in named.items() if "_F_" in n},
        "POSIX",
    )


def log(path: str = "/lustre/run/out", ranks: int = 2, **changes: object) -> Records:
    return Records(
        **{
            "version": "3.41",
            "exe": "/bin/app",
            "ranks": ranks,
            "start_s": 100.0,
            "end_s": 110.0,
            "mounts": [],
            "partial": [],
            "ids": np.array([1, 2], np.uint64),
            "names": [path, "heatmap:POSIX"],
            "modules": {
                "POSIX": posix(
                    WRITES=4, BYTES_WRITTEN=4 * MiB, MAX_BYTE_WRITTEN=4 * MiB - 1, F_WRITE_TIME=2.0
                )
            },
        }
        | changes
    )


def profiled(*logs: Records) -> Profile:
    """The profile of logs with these records, as one workload."""
    readers = [_reader(records, number) for number, records in enumerate(logs)]
    return profile_of_counts(readers, None, None, None, [])[0]


def _reader(records: Records, number: int) -> DarshanReader:
    reader = DarshanReader.__new__(DarshanReader)
    reader.path, reader.format, reader.layout = Path(f"{number}.darshan"), records.version, records.version
    reader.__dict__["_records"] = records
    reader._identity, reader._content = SimpleNamespace(digest=lambda: ""), str(number)
    reader.changed = lambda: False
    return reader


def components(*rows: tuple[int, int, int, int]) -> dict[str, np.ndarray]:
    """Stripe count, stripe size, begin and end of each component of the file's layout."""
    names = ("STRIPE_COUNT", "STRIPE_SIZE", "EXT_START", "EXT_END")
    table = np.array(rows, np.int64).reshape(-1, 4)
    found = {f"LUSTRE_COMP_{name}": table[:, i] for i, name in enumerate(names)}
    return found | {"id": np.ones(len(table), np.uint64)}


def calls(*rows: tuple[int, int, float, float], length: int = MiB) -> dict[str, np.ndarray]:
    """Writes (rank, offset in MiB, start and end in seconds), with a record for each."""
    table = np.array(rows)
    return {
        "id": np.ones(len(rows), np.uint64),
        "rank": table[:, 0].astype(np.int64),
        "writes": np.ones(len(rows), np.int64),
        "reads": np.zeros(len(rows), np.int64),
        "offset": (table[:, 1] * MiB).astype(np.int64),
        "length": np.full(len(rows), length),
        "start": table[:, 2],
        "end": table[:, 3],
    }
