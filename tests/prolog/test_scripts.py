"""The scripts of `vani/centre/prolog/slurm`, run as Slurm does, without Slurm."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.history.logs import write_log
from vani.centre.plan.outcome import plan_scored
from vani.centre.plan.schema.plans import JobPlan
from vani.centre.prolog.state import State

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "vani" / "centre" / "prolog" / "slurm"
NAMES = ("prolog-slurmctld", "task-prolog", "epilog-slurmctld")

pytestmark = pytest.mark.skipif(shutil.which("flock") is None, reason="flock (util-linux) is not here")


def slurm(number, **more):
    return {
        "SLURM_JOB_ID": str(number), "SLURM_JOB_NAME": "bt", "SLURM_JOB_NODELIST": "n[1-4]", "SLURM_JOB_NUM_NODES": "4",
    } | more  # fmt: skip


@pytest.fixture
def site(tmp_path):
    """The scripts, installed in a folder with a blank in its name."""
    folder = tmp_path / "a site"
    shutil.copytree(SCRIPTS, folder)
    (folder / "vani").write_text(
        f'#!/bin/sh\necho started >>"{folder}/starts"\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m vani "$@"\n'
    )
    (folder / "logger").write_text(f'#!/bin/sh\n{{ echo "$*"; [ $# -gt 2 ] || cat; }} >>"{folder}/system.log"\n')
    for program in ("vani", "logger"):
        (folder / program).chmod(0o755)
    settings(folder)
    return folder


def settings(folder, vani=None, budget=100, options="--io-nodes 64 --no-direct --nodes-per-io-node 16", more=""):
    (folder / "vani.conf").write_text(
        f"VANI='{vani or folder / 'vani'}'\nVANI_STATE='{folder}/state'\nVANI_BUDGET={budget}\nVANI_OPTIONS='{options}'\n"
        f"VANI_LOGGER='{folder}/logger'\n{more}"
    )


def run(site, name, environment):
    return subprocess.run(
        [site / name], env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def log_of(site, expected):
    """The system's log once it contains this line."""
    log, end = site / "system.log", time.monotonic() + 60
    while expected not in (text := log.read_text() if log.exists() else ""):
        assert time.monotonic() < end, text
        time.sleep(0.05)
    return text


@pytest.mark.parametrize("name", NAMES)
def test_shellcheck_finds_nothing(name):
    program = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("shellcheck is not here")
    done = subprocess.run([program, SCRIPTS / name], capture_output=True, text=True, check=False)
    assert done.stdout == ""


def test_a_job_begins_runs_and_ends(site):
    assert (
        run(site, "prolog-slurmctld", slurm(7)).stderr
        == "vani: job 7: gets 1 of 64 I/O nodes, 1 job running\n"
    )
    told = run(site, "task-prolog", slurm(7))
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        f"export VANI_PLAN={site}/state/7.yaml",
        "export VANI_FORWARDING=own",
        "export VANI_IO_NODES=0",
        f"export VANI_FORWARDING_MAP={site}/state/7.map",
        f"export LIBGKFS_FORWARDING_MAP_FILE={site}/state/7.map",
    ]
    assert run(site, "epilog-slurmctld", slurm(7)).returncode == 0
    assert run(site, "task-prolog", slurm(7)).stdout == ""
    assert list((site / "state" / "jobs").iterdir()) == []


def test_epilog_stores_the_time_of_a_job(site, tmp_path):
    logs, history = tmp_path / "logs", tmp_path / "history.sqlite"
    settings(site, more=f"VANI_LOGS='{logs}'\nVANI_HISTORY='{history}'\n")
    run(site, "prolog-slurmctld", slurm(7))
    write_log(logs, number=7, app="bt")
    write_log(logs, number=77, app="other")
    begin = time.monotonic()
    assert run(site, "epilog-slurmctld", slurm(7)).returncode == 0
    assert time.monotonic() - begin < 0.5, "no job waits for the history: Slurm keeps the nodes until the epilog ends"
    assert "job 7 (bt): 10 s in I/O; no expectation" in log_of(site, "job 7 (bt)")
    (score,) = plan_scored(history)
    assert (score.name, score.jobs, score.judged) == ("bt", 1, 0)
    assert list((site / "state" / "ended").iterdir()) == []
    run(site, "prolog-slurmctld", slurm(8))
    run(site, "epilog-slurmctld", slurm(8))
    assert log_of(site, "job 8: no log yet")
    assert (site / "state" / "ended" / "8.yaml").exists(), "it is looked at again"


@pytest.mark.slow
def test_jobs_ending_together_start_one_planner(site):
    for number in (1, 2, 3, 4):
        run(site, "prolog-slurmctld", slurm(number))
    (site / "starts").unlink()
    with (site / "state" / "turn").open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        for number in (1, 2, 3):
            run(site, "epilog-slurmctld", slurm(number))
    assert log_of(site, "ended; 1 job running")
    time.sleep(0.5)
    assert (site / "starts").read_text() == "started\n"


def test_variables_set_by_the_user_are_kept(site):
    (site / "state").mkdir()
    lines = ["export LD_PRELOAD=/lib/place.so", "export ROMIO_HINTS=/state/7.hints", "export VANI_PLACE_DB=/state/7.sqlite"]
    (site / "state" / "7.env").write_text("\n".join(lines) + "\n")
    assert run(site, "task-prolog", slurm(7)).stdout.splitlines() == lines
    own = run(site, "task-prolog", slurm(7, LD_PRELOAD="/mine.so", ROMIO_HINTS="/my.hints"))
    assert own.stdout.splitlines() == ["export LD_PRELOAD=/lib/place.so:/mine.so", lines[2]]


def test_user_names_are_not_commands(site):
    name = "x'; touch hacked; echo \"$(touch hacked)`touch hacked`\nexport PATH=/tmp"
    run(site, "prolog-slurmctld", slurm(7, SLURM_JOB_NAME=name))
    assert JobPlan.load(site / "state" / "7.yaml").job.name == name
    assert all(
        line.startswith(("export VANI_", "export LIBGKFS_"))
        for line in run(site, "task-prolog", slurm(7)).stdout.splitlines()
    )
    assert not list(site.rglob("hacked"))


@pytest.mark.slow
def test_simultaneous_jobs_are_all_registered_and_start_few_planners(site):
    numbers = range(1, 41)
    begun = [
        subprocess.Popen([site / "prolog-slurmctld"], env=slurm(number), stderr=subprocess.DEVNULL)
        for number in numbers
    ]
    assert {one.wait(timeout=120) for one in begun} == {0}
    assert {one.job for one in State(site / "state").running(now_s=0.0, expire_s=1e9, say=print)} == set(
        map(str, numbers)
    )
    held = [JobPlan.load(site / "state" / f"{number}.yaml").io_nodes for number in numbers]
    assert len({name for one in held for name in one}) == len(numbers)
    assert len((site / "starts").read_text().splitlines()) < len(numbers) / 2


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", ["", "x", "../7", "7; touch hacked"])
def test_script_without_a_job_number_changes_nothing(site, name, number):
    done = run(site, name, {"SLURM_JOB_ID": number})
    assert (done.returncode, done.stdout) == (0, "")
    assert not (site / "state").exists()


@pytest.mark.parametrize(
    "broken", ["no vani", "a vani that hangs", "a vani that crashes", "a file for a folder"]
)
def test_job_starts_even_if_anything_is_broken(site, broken):
    if broken == "a file for a folder":
        (site / "state").write_text("")
    elif broken != "no vani":
        (site / "vani").write_text(
            "#!/bin/sh\n" + ("exec sleep 100\n" if "hangs" in broken else "kill -SEGV $$\n")
        )
    settings(site, vani="/no/such" if broken == "no vani" else None, budget=1)
    for name in NAMES:
        assert run(site, name, slurm(7)).returncode == 0
    if broken != "a file for a folder":
        run(site, "prolog-slurmctld", slurm(8))
        assert (site / "state" / "jobs" / "8").exists(), "the next one that works plans for it"


def test_a_missing_plan_or_map_is_a_line_of_the_first_task_in_the_systems_log(site):
    for process in ("1", "0"):
        assert run(site, "task-prolog", slurm(7, SLURM_PROCID=process)).stdout == ""
    run(site, "prolog-slurmctld", slurm(7))
    (site / "state" / "7.map").unlink()
    assert run(site, "task-prolog", slurm(7)).stdout.count("export") == 5
    lines = (site / "system.log").read_text().splitlines()
    assert lines[0].startswith(f"-t vani job 7: {site}/state/7.env is missing: its tasks run without a plan")
    assert set(lines[1:]) == {f"-t vani job 7: {site}/state/7.map is missing: its tasks run without a forwarding map"}


def test_missing_requirements_of_the_prolog_give_one_line_each(site):
    settings(site, vani="/no/such", budget=1)
    (site / "state").write_text("")
    said = run(site, "prolog-slurmctld", slurm(7)).stderr
    assert "vani: job 7: /no/such is missing: nothing is planned\n" in said
    assert f"vani: job 7: {site}/state/jobs cannot be written: the job is not registered\n" in said
    (site / "vani.conf").unlink()
    for name in ("prolog-slurmctld", "epilog-slurmctld"):
        assert f"vani: {site}/vani.conf cannot be read: " in run(site, name, slurm(7)).stderr
