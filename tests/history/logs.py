"""Small logs, and a month of them, for tests of histories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vani
from tests.traces.darshan_writer import POSIX, Log, Record, log_bytes
from vani import centre
from vani.centre.history.add import machine_like
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.story import letter_text as letter

__all__ = ["NOVEMBER", "assert_letters_follow_the_advice", "write_log"]

NOVEMBER = 1_793_491_200
"""The first second of November 2026."""


def write_log(
    folder: Path,
    *,
    user: str = "u1",
    app: str = "solver",
    number: int = 1,
    seconds: float = 10.0,
    processes: int = 4,
    day: int = 0,
    values: dict[str, Any] | None = None,
    **job: Any,
) -> Path:
    """Write the log of a run in which each process writes a file, the last one for `seconds`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{user}_{app}_id{number}-{number}_11-1-100-{number}_1.darshan"
    records = [
        Record(
            POSIX,
            f"/scratch/{user}/{app}/out.{rank}",
            rank,
            {
                "OPENS": 1,
                "WRITES": 10,
                "BYTES_WRITTEN": 1000,
                "F_WRITE_TIME": seconds if rank == processes - 1 else 1.0,
            }
            | (values or {}),
        )
        for rank in range(processes)
    ]
    told = {
        "exe": f"/bin/{app} -n {number}",
        "processes": processes,
        "start_s": NOVEMBER + 86400 * day,
        "runtime_s": 100.0,
    }
    path.write_bytes(log_bytes(Log(**told | {"records": records, "job_id": number} | job)))
    return path


def assert_letters_follow_the_advice(db: Path, system: Path | None = None) -> None:
    """Check that each letter recommends something exactly if `advise` does for one of the logs judged for it."""
    rules: dict[tuple[str, str], set[str]] = {}
    with Store(db).reading() as connection:
        judged = [run for _, run in read.verdicts(connection)]
        paths = read.paths_of(connection, [run.digest for run in judged])
    for run in judged:
        advice = vani.advise(paths[run.digest][0], system=system or machine_like(run.file_system))
        of_pair = rules.setdefault((run.application, run.user), set())
        of_pair.update(entry.rule for entry in advice.recommendations if entry.rule != "MAT001")
    assert rules
    for (application, user), advised in rules.items():
        told = centre.history_show(application, user, db=db)
        text = letter(told)
        # No letter is worth less than a core-hour.
        is_little = told.saved.high_s is not None and told.saved.high_s < 3600
        assert ("nothing needs to be changed" in text) is (is_little or not advised), (application, advised)
        assert (told.saved.high_s or 0.0) <= told.waiting_s * (1 + 1e-9)
        if advised and not is_little:
            assert any(f"vani explain {rule}\n" in text for rule in advised)
