"""`python -m tests.traces.creation_logs FOLDER RUNS`: Darshan logs of a program with two more steps in each run.

In each step, each of its eight processes writes a file, always of the same size, which differs between processes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from tests.traces.darshan_writer import POSIX, Log, Record, log_bytes

__all__ = ["write_creation_logs"]

_NOVEMBER = 1_793_491_200
_DAY = 86_400
_RANKS = 8
_STEPS = 4
_MORE = 2


def write_creation_logs(folder: Path, runs: int) -> None:
    """Write a log per day; the order of processes differs in each step."""
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    for number in range(runs):
        records = []
        for step in range(_STEPS + _MORE * number):
            for place, rank in enumerate(random.permutation(_RANKS).tolist()):
                size = (64 + 8 * rank) << 20
                told = {
                    "OPENS": 1,
                    "WRITES": 1,
                    "BYTES_WRITTEN": size,
                    "MAX_BYTE_WRITTEN": size - 1,
                    "F_OPEN_START_TIMESTAMP": 1.0 + 60 * step + place / 100,
                    "F_WRITE_TIME": 0.5,
                }
                records.append(Record(POSIX, f"/lustre/demo/step{step:04}/cells.{rank:03}", rank, told))
        log = Log(
            exe="/bin/flash", processes=_RANKS, start_s=_NOVEMBER + _DAY * number, runtime_s=3600.0,
            records=records, job_id=number,
        )  # fmt: skip
        name = f"alice_flash_id{number}-{number}_11-1-100-{number}_1.darshan"
        (folder / name).write_bytes(log_bytes(log))


if __name__ == "__main__":
    write_creation_logs(Path(sys.argv[1]), int(sys.argv[2]))
