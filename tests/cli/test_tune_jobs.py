"""`vani tune --submit`, with stand-ins for batch systems that run their jobs immediately."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from vani.cli.tune_jobs import Submission, prepare_jobs
from vani.errors import InputError
from vani.schema.advice import Advice, TunableSetting
from vani.schema.tuned import Tuned

PROGRAM = """
import os, sys, time
hints = open(os.environ["ROMIO_HINTS"]).read() if "ROMIO_HINTS" in os.environ else ""
open(os.path.join(sys.argv[1], "out"), "w").write(os.environ.get("JOB", "no job"))
time.sleep(0.1 if "cb_nodes" in hints else 0.8)
"""
# Words are recorded, an identifier is printed, and the script is run by the interpreter that it names.
STANDIN = """#!/bin/sh
printf '%s\\n' "$*" >>"$NOTED"
number=$(($(wc -l <"$NOTED")))
test -e "$NOTED.refuses" && { echo 'sbatch: error: Invalid account' >&2; exit 1; }
[INPUT]
JOB=$number [VARIABLES] sh "$script" >"$NOTED.$number" 2>&1
[PRINTS]
"""
LAST_WORD = "for script; do :; done"
SYSTEMS = {
    "slurm": ("sbatch", LAST_WORD, "SLURM_JOB_ID=$number SLURM_JOB_NUM_NODES=2", 'echo "$number;cluster"', "#SBATCH -N 2"),
    "pbs": ("qsub", LAST_WORD, "PBS_JOBID=$number PBS_NUM_NODES=2", 'echo "$number.server"', "#PBS -l select=2"),
    "lsf": (
        "bsub", 'script="$NOTED.script"; cat >"$script"', "LSB_JOBID=$number LSB_MCPU_HOSTS='a 4 b 4'",
        'echo "Job <$number> is submitted to default queue <normal>."', "#BSUB -nnodes 2",
    ),
    "flux": ("flux", LAST_WORD, "FLUX_JOB_ID=$number FLUX_JOB_NNODES=2", 'echo "f$number"', "#flux: -N2"),
}  # fmt: skip


@pytest.fixture
def jobs(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desk whose name needs quotes, with a program and advice; returns the file that records each submission."""
    noted, here = desk.parent / "noted", desk / "it's here"
    (here / "scratch").mkdir(parents=True)
    (desk.parent / "programs").mkdir()
    noted.touch()
    monkeypatch.chdir(here)
    monkeypatch.setenv("NOTED", str(noted))
    monkeypatch.setenv("PATH", f"{desk.parent / 'programs'}{os.pathsep}{os.environ['PATH']}")
    Path("program.py").write_text(PROGRAM)
    advice = Advice.load(ROOT / "examples" / "tune" / "advice.yaml")
    item = advice.recommendations[0].model_copy(update={"settings": [TunableSetting(kind="hints", values=[{"cb_nodes": "8"}])]})
    advice.model_copy(update={"recommendations": [item]}).save("advice.yaml")
    return noted


def install(noted: Path, name: str) -> None:
    program, script, variables, prints, _ = SYSTEMS[name]
    path = noted.parent / "programs" / program
    text = STANDIN.replace("[INPUT]", script).replace("[VARIABLES]", variables).replace("[PRINTS]", prints)
    path.write_text(text)
    path.chmod(0o755)


def words(*options: str) -> list[str]:
    program = [sys.executable, "program.py", "{data}"]
    return ["tune", "--data", "scratch", "--advice", "advice.yaml", *options, "--", *program]


def jobs_of_runs() -> list[str]:
    return [Path(known.folder, "out").read_text() for known in Tuned.load("vani-tune-state/tuned.yaml").runs]


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_job_runs_all_settings_of_the_session(run, jobs, name):
    install(jobs, name)
    Path("mine.sh").write_text(f"#!/bin/sh\n{SYSTEMS[name][4]}\nexport LOADED='a module'\n{{vani}}\necho after\n")
    options = ["--keep", "--submit", name, "--job-script", "mine.sh", "--submit-options", "-q 'my queue'", "--budget", "4"]
    done = run(*words(*options))
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(("Job 1", "Job f1"))
    script = Path("vani-tune-state/job.sh").read_text().splitlines()
    assert script[:3] == ["#!/bin/sh", SYSTEMS[name][4], "export LOADED='a module'"]
    assert jobs.with_name("noted.1").read_text() == "after\n"
    assert "-q my queue" in jobs.read_text()
    tuned = Tuned.load("tuned.yaml") if Path("tuned.yaml").exists() else Tuned.load("vani-tune-state/tuned.yaml")
    assert (tuned.nodes, tuned.jobs.scheduler) == (None, name)
    assert jobs_of_runs() == ["1"] * len(tuned.runs)
    shown = run("tune", "--show").out
    assert shown.startswith("Run 1 of 4   as it is ")
    assert "roven: " in shown
    assert Path("vani-tune-state/jobs.log").read_text().splitlines()[-1].startswith("Output ")
    # Nothing is left to do, so no job is submitted.
    assert run("tune", "--resume").status == 0
    assert len(jobs.read_text().splitlines()) == 1


@pytest.mark.slow
def test_jobs_with_few_runs_submit_the_next_job(run, jobs):
    install(jobs, "slurm")
    done = run(*words("--keep", "--submit", "--runs-per-job", "2"))
    assert (done.status, done.err) == (0, "")
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    assert tuned.result is not None
    # The session's folder has a space in its path.
    assert "timer.so: cannot be preloaded" in tuned.runs[0].io_why
    assert jobs_of_runs() == [str(1 + number // 2) for number in range(len(tuned.runs))]
    assert Path("vani-tune-state/jobs.txt").read_text().split() == [str(n + 1) for n in range(len(jobs.read_text().splitlines()))][::-1]


def test_a_dry_run_writes_a_script_that_does_the_same_when_it_is_submitted(run, jobs):
    done = run(*words("--submit", "slurm", "--dry-run", "--budget", "1"))
    assert (done.status, done.err) == (0, "")
    line = done.out.splitlines()[0].removeprefix("Not submitted yet: ")
    assert shlex.split(line) == ["sbatch", "--parsable", str(Path("vani-tune-state/job.sh").absolute())]
    install(jobs, "slurm")
    subprocess.run(["sh", "-c", line], check=True, capture_output=True)
    assert len(Tuned.load("vani-tune-state/tuned.yaml").runs) == 1


@pytest.mark.slow
def test_refused_job_is_submitted_again_by_resume(run, jobs):
    install(jobs, "slurm")
    refuses = jobs.with_name("noted.refuses")
    refuses.touch()
    done = run(*words("--submit", "--budget", "9nh"))
    assert (done.status, done.line) == (
        2, "sbatch: refuses the job: sbatch: error: Invalid account; fix it, then vani tune --resume submits it again",
    )  # fmt: skip
    refuses.unlink()
    assert run("tune", "--resume").out.startswith("Job 2 is submitted")
    tuned = Tuned.load("vani-tune-state/tuned.yaml")
    # Nodes are those of the job.
    assert (tuned.nodes, tuned.result.verdict) == (2, "proven")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--submit"], "no batch system is found here (sbatch, qsub, bsub, flux)"),
        (["--submit", "slurm"], "sbatch: is not installed here"),
        (["--submit", "slurm", "--dry-run", "--job-script", "program.py"], "program.py: needs exactly one line {vani}"),
        (["--submit-options", "-N 2"], "need --submit"),
        (["--submit", "slurm", "--submit-options", "'"], "cannot be split into words"),
    ],
)
def test_bad_input_is_refused_before_a_session_begins(run, jobs, tmp_path, monkeypatch, options, line):
    # A folder without programs, where this machine may have a batch system.
    monkeypatch.setenv("PATH", str(tmp_path))
    done = run(*words(*options))
    assert (done.status, done.out) == (2, "")
    assert line in done.line
    assert not Path("vani-tune-state").exists()


def test_jobs_add_to_the_history_wherever_they_start(run, jobs):
    done = run(*words("--submit", "slurm", "--dry-run", "--history", "my history.sqlite"))
    assert done.status == 0, done.err
    script = Path("vani-tune-state/job.sh").read_text()
    assert f"--history {shlex.quote(str(Path('my history.sqlite').absolute()))}" in script
    place = "postgresql://me:secret@db/vani"
    with pytest.raises(InputError, match="contains a password") as raised:
        prepare_jobs(Submission(Path("o"), "slurm", dry_run=True), Path("state"), place)
    assert "secret" not in str(raised.value)
    _, text = prepare_jobs(Submission(Path("o"), "slurm", dry_run=True), Path("state"), "postgresql://me@db/vani")
    assert "--history postgresql://me@db/vani" in text
