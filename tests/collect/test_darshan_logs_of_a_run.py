"""Which Darshan logs belong to a run: by folder, day, user, time and job."""

from __future__ import annotations

import os
import time
from datetime import datetime
from getpass import getuser
from pathlib import Path

import pytest

from vani.collect.tracing.tracers import logs_since


def log(folder: Path, name: str = "solver_id4242-77_3-3-1-1", user: str = getuser(), age_s: float = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{user}_{name}.darshan"
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)
    return path


@pytest.mark.parametrize("variable", ["DARSHAN_LOGPATH", "DARSHAN_LOG_DIR_PATH"])
def test_logs_of_a_run_are_in_the_folder_of_the_day_or_above(tmp_path, variable):
    today = datetime.now()
    logs = [log(tmp_path), log(tmp_path / str(today.year) / str(today.month) / str(today.day))]
    log(tmp_path / "2019" / "1" / "1")
    (tmp_path / f"{getuser()}_half_id1-1_3-3-1-1.darshan_partial").touch()
    assert logs_since(time.time() - 60, {variable: str(tmp_path)}) == sorted(logs)


def test_earlier_and_foreign_logs_are_ignored(tmp_path):
    log(tmp_path, age_s=120)
    log(tmp_path, user="somebody")
    why = logs_since(time.time() - 60, {"DARSHAN_LOGPATH": str(tmp_path)})
    assert why == f"Darshan wrote no log of the run in {tmp_path}"


def test_only_the_present_job_of_a_user_counts(tmp_path):
    own = log(tmp_path)
    log(tmp_path, "solver_id4243-78_3-3-1-1")
    # If Darshan was not told the name of the job's variable, it uses the process id.
    unnamed = log(tmp_path, "solver_id77-77_3-3-1-2")
    place = {"DARSHAN_LOGPATH": str(tmp_path)}
    assert logs_since(time.time() - 60, place | {"SLURM_JOB_ID": "4242"}) == sorted([own, unnamed])
    assert logs_since(time.time() - 60, place | {"PBS_JOBID": "4242.server"}) == sorted([own, unnamed])
    assert len(logs_since(time.time() - 60, place)) == 3


def test_log_with_a_unique_name_belongs_to_the_run(tmp_path, monkeypatch):
    path = log(tmp_path)
    assert logs_since(time.time() - 60, {"DARSHAN_LOGFILE": str(path)}) == [path]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no DARSHAN_LOGPATH, no darshan-config" in logs_since(time.time() - 60, {})
