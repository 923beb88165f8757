"""A folder of unrelated runs is not a workload: the user chooses how to treat it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from traces.darshan_writer import POSIX, Log, Record, log_bytes

import vani
from vani.errors import InputError

DATA = Path(__file__).parents[1] / "data"
START = 1_700_000_000



def add_log(folder: Path, name: str, *, file: str, start: int = START, job: int = 1, user: int = 1000) -> Path:
    values = {"OPENS": 4, "WRITES": 40, "BYTES_WRITTEN": 1 << 22, "F_WRITE_TIME": 8.0, "F_SLOWEST_RANK_TIME": 2.0}
    log = Log(
        exe="/opt/app",
        processes=4,
        start_s=start,
        runtime_s=20.0,
        uid=user,
        job_id=job,
        records=[Record(POSIX, file, -1, values)],
    )
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(log_bytes(log))
    return folder / name


@pytest.fixture
def day(tmp_path) -> Path:
    for number in range(3):
        start = START + 20_000 * number
        add_log(tmp_path / "day", f"{number}.darshan", file=f"/s/{number}", start=start, job=number + 1)
    return tmp_path / "day"


def test_logs_of_several_jobs_without_a_common_file_are_refused_in_one_line(day, run):
    result = run("profile", str(day))
    assert result.status == 2
    assert result.err.count("\n") == 1
    assert "3 traces of 3 jobs are 3 runs that share no file and no job (0.darshan and 1.darshan" in result.err
    assert "--each" in result.err
    assert "--together" in result.err


def test_logs_named_individually_are_refused_likewise(day):
    with pytest.raises(InputError, match="2 traces of 2 jobs are 2 runs"):
        vani.profile(day / "0.darshan", day / "1.darshan")


def test_each_makes_a_profile_per_trace_and_reports_omissions(day, run, tmp_path):
    (day / "broken.darshan").write_bytes(b"")
    result = run("profile", "--each", str(day), "-o", str(tmp_path / "out"))
    assert result.status == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0.yaml", "1.yaml", "2.yaml"]
    assert "broken.darshan: left out: " in result.err
    assert "0.darshan: I/O takes 10 %" in result.err


def test_together_treats_traces_as_one_workload(day, run, tmp_path):
    result = run("profile", "--together", str(day), "-o", str(tmp_path / "p.yaml"))
    assert result.status == 0
    assert vani.profile(day, together=True).workflow.processes == 12


@pytest.mark.parametrize("more", [["--together", "-o", "out"], ["--graph", "g.dot", "-o", "out"], ["--diagnosis", "-o", "out"], []])
def test_each_needs_a_folder_and_no_contradiction(day, run, more):
    result = run("profile", "--each", str(day), *more)
    assert result.status == 2
    assert "--each" in result.err


@pytest.mark.parametrize(
    ("file", "start", "job"),
    [("/s/0", START + 20_000, 2), ("/s/1", START + 20_000, 1)],
    ids=["shares a file", "is of the same job"],
)
def test_run_belonging_to_the_first_joins_its_workload(tmp_path, file, start, job):
    add_log(tmp_path / "day", "0.darshan", file="/s/0")
    add_log(tmp_path / "day", "1.darshan", file=file, start=start, job=job)
    assert vani.profile(tmp_path / "day").workflow.processes == 8


@pytest.mark.parametrize("jobs", [(0, 0), (1, 2)])
def test_runs_of_one_user_belong_together_if_near_in_time(tmp_path, jobs):
    add_log(tmp_path / "near", "0.darshan", file="/s/0", job=jobs[0])
    add_log(tmp_path / "near", "1.darshan", file="/s/1", start=START + 3500, job=jobs[1])
    assert vani.profile(tmp_path / "near").workflow.processes == 8
    add_log(tmp_path / "far", "0.darshan", file="/s/0", job=jobs[0])
    add_log(tmp_path / "far", "1.darshan", file="/s/1", start=START + 3700, job=jobs[1])
    with pytest.raises(InputError, match="are 2 runs that share no file and no job"):
        vani.profile(tmp_path / "far")


def test_runs_of_two_users_at_the_same_time_are_two(tmp_path):
    add_log(tmp_path / "day", "0.darshan", file="/s/0", job=1)
    add_log(tmp_path / "day", "1.darshan", file="/s/1", job=2, user=1001)
    with pytest.raises(InputError, match="are 2 runs that share no file and no job"):
        vani.profile(tmp_path / "day")


def test_traces_without_distant_starts_are_one_workload(tmp_path):
    for name in ("a", "b"):
        shutil.copytree(DATA / "traces" / "v3-posix-mix-4r", tmp_path / name)
    assert vani.profile(tmp_path).workflow.processes == 8
