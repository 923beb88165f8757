"""`vani centre demo --slurm`: a short day under a real Slurm, with real I/O calls and the placement library."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from vani.centre.demo.centre import jobs_of_day
from vani.centre.demo.command import centre_as_text
from vani.centre.demo.programs import PROGRAMS
from vani.centre.demo.slurm import impossible_days, run_slurm_days
from vani.centre.history.rows import PlannedRun
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.readers.darshan.totals import read_totals

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(impossible_days()), reason=f"no Slurm with a stand-in here: {impossible_days()}"),
]


@pytest.fixture
def short_path():
    """A short path, since Slurm's sockets are below it."""
    with tempfile.TemporaryDirectory(prefix="vani-", dir="/tmp") as name:
        yield Path(name)


def left_behind(folder):
    """Remaining processes and mounts of a folder."""
    lines = [place.read_bytes().replace(b"\0", b" ").decode() for place in running()]
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in [*lines, *mounts] if f"{folder}/" in line and "pytest" not in line.split(" ")[0]]


def running():
    own = {str(os.getpid()), str(os.getppid())}
    return [place / "cmdline" for place in Path("/proc").glob("[0-9]*") if place.name not in own and place.is_dir()]


def test_plans_reach_the_files_and_outcomes_the_history(short_path):
    jobs = jobs_of_day(0, 3, [program for program in PROGRAMS if program.name in ("checkpoint", "samples")])
    report = run_slurm_days(short_path, jobs=jobs, pace=0.25)
    assert not left_behind(short_path)
    without, _, unknown, learned = report.days
    assert (unknown.expected, unknown.changed, learned.expected) == (0, 0, 6)
    assert learned.changed >= 3
    with Store(short_path / "history.sqlite").reading() as connection:
        rows = {int(row.job): row for row in read.rows(connection, PlannedRun)}
    assert sorted(rows) == [1000 * day + 100 + number for day in (3, 4) for number in range(1, 7)]
    wide = 0
    for number, row in rows.items():
        (log,) = (short_path / "logs").glob(f"*_id{number}-*")
        totals = read_totals(log)
        assert row.measured == pytest.approx(totals.slowest_s)
        # Darshan's record contains the layout that the file system gave the file.
        assert totals.stripes == (row.stripe_count or 1)
        wide += totals.stripes > 1
    assert wide >= 2
    for day in range(1, 5):
        records = (short_path / f"day{day}" / "jobs.txt").read_text().splitlines()
        assert sum("Restarts=0 " in record and "JobState=COMPLETED" in record for record in records) == 6
    assert " placed 1 " in (short_path / "placed.log").read_text()
    checkpoints = {day.name: day.programs[0].io_s for day in report.days}
    assert checkpoints[learned.name] < checkpoints[without.name] / 1.5
    assert "Real: Slurm" in centre_as_text(report)


def test_ctrl_c_leaves_no_files(short_path):
    with subprocess.Popen(
        [sys.executable, "-m", "vani", "centre", "demo", "--slurm"],
        env=os.environ | {"TMPDIR": str(short_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        end = time.monotonic() + 60
        while not [*short_path.glob("*/day1/*.ranks")]:
            assert time.monotonic() < end
            assert demo.poll() is None
            time.sleep(0.1)
        demo.send_signal(signal.SIGINT)
        _, errors = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert "Traceback" not in errors
    assert not left_behind(short_path)
    assert [*short_path.iterdir()] == []
