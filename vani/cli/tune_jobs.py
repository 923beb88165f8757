"""Batch jobs of `vani tune --submit`: a script that continues a session, and the command that submits it."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from vani.atomic import write_text
from vani.collect.scheduler import read_scheduler
from vani.errors import InputError, os_errors_as
from vani.schema.document import read_text
from vani.schema.settings import PathLike
from vani.schema.tuned import Jobs

Scheduler = Literal["slurm", "pbs", "lsf", "flux"]

_COMMANDS: Final[Mapping[Scheduler, tuple[str, ...]]] = {
    "slurm": ("sbatch", "--parsable"),
    # PBS is the only system that does not pass variables on by default.
    "pbs": ("qsub", "-V"),
    "lsf": ("bsub",),
    "flux": ("flux", "batch"),
}
_SCRIPT: Final = "job.sh"
"""Name of the script in the state folder."""
_JOBS: Final = "jobs.txt"
"""List of the session's jobs in the state folder, one per line."""
_LOG: Final = "jobs.log"
_PLACE: Final = "{vani}"
_PATIENCE_S: Final = 300.0


@dataclass(frozen=True)
class Submission:
    """How the jobs of a session are submitted.

    Parameters
    ----------
    output
        Path of the document that the last job writes.
    scheduler
        The batch system; None takes the one that runs this process, or the one whose command is installed.
    script
        The user's job script; its line `{vani}` is replaced by the command that continues the session.
    options
        Additional words for the submit command.
    runs_per_job
        Number of runs per job, which then submits the next; None does all runs in one job.
    dry_run
        Write the script without submitting it.
    """

    output: Path
    scheduler: Literal["slurm", "pbs", "lsf", "flux"] | None = None
    script: Path | None = None
    options: Sequence[str] = ()
    runs_per_job: int | None = None
    dry_run: bool = False


def prepare_jobs(submission: Submission, state: Path, db: PathLike | None = None) -> tuple[Jobs, str]:
    """Make the jobs of a session and the text of their script; the last job adds to the history `db`.

    Raises
    ------
    InputError
        There is no batch system, or the user's script cannot be used.
    """
    scheduler = submission.scheduler or _scheduler_here()
    if shutil.which(_COMMANDS[scheduler][0]) is None and not submission.dry_run:
        raise InputError(
            "is not installed here", where=_COMMANDS[scheduler][0], todo="submit from a login node, or with --dry-run"
        )
    words = [*_COMMANDS[scheduler], *submission.options]
    if scheduler != "lsf":
        # bsub reads the script, including its #BSUB lines, from standard input.
        words.append(str(state / _SCRIPT))
    go_on = [sys.executable, "-m", "vani", "tune", "--resume", "--in-job", "--state", str(state)]
    go_on += ["-o", str(submission.output.absolute())]
    if db is not None:
        go_on += ["--history", _history(str(db))]
    line = f"cd {shlex.quote(str(Path.cwd()))} && {shlex.join(go_on)} >>{shlex.quote(str(state / _LOG))} 2>&1"
    jobs = Jobs(scheduler=scheduler, words=words, runs_per_job=submission.runs_per_job)
    return jobs, _script(submission.script, line)


def submit(jobs: Jobs, state: Path) -> str:
    """Submit the script in `state` once, and return the batch system's name of the job.

    Raises
    ------
    InputError
        The batch system rejects the job.
    """
    refused = os_errors_as(InputError, "cannot be started", where=jobs.words[0])
    with (state / _SCRIPT).open("rb") as script, refused:
        try:
            done = subprocess.run(
                jobs.words, stdin=script, capture_output=True, text=True, errors="backslashreplace", check=False,
                timeout=_PATIENCE_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise InputError(f"did not answer within {_PATIENCE_S:.0f} s", where=jobs.words[0]) from None
    printed = done.stdout.strip().splitlines()
    if done.returncode or not printed:
        said = done.stderr.strip().splitlines() or printed or [f"status {done.returncode}"]
        raise InputError(
            f"refuses the job: {said[-1]}",
            where=jobs.words[0],
            todo="fix it, then vani tune --resume submits it again",
        )
    named = re.search(r"Job <(\w+)>", done.stdout)
    job = named[1] if named else printed[-1].partition(";")[0]
    with (state / _JOBS).open("a", encoding="utf-8") as file:
        file.write(f"{job}\n")
    return job


def submit_line(jobs: Jobs, state: Path) -> str:
    """The submit command, quoted for a shell."""
    given = f" <{shlex.quote(str(state / _SCRIPT))}" if jobs.scheduler == "lsf" else ""
    return shlex.join(jobs.words) + given


def write_script(text: str, state: Path) -> None:
    """Write the script to submit."""
    write_text(state / _SCRIPT, text)


def last_job(state: Path) -> str | None:
    """The batch system's name of the last submitted job; None before the first."""
    try:
        return (state / _JOBS).read_text(encoding="utf-8").splitlines()[-1]
    except (OSError, IndexError):
        return None


def _history(place: str) -> str:
    """A history's location, independent of the folder in which a job starts.

    Raises
    ------
    InputError
        The URL contains a password, which would remain in the script.
    """
    if "://" not in place:
        return str(Path(place).absolute())
    if re.match(r"\w[\w+]*://[^/@]*:[^/@]*@", place):
        raise InputError(
            "contains a password, which the job script would show",
            where="--history",
            todo="leave it out of the URL: PostgreSQL takes it from PGPASSFILE or ~/.pgpass",
        )
    return place


def _scheduler_here() -> Scheduler:
    name = read_scheduler(os.environ).scheduler
    for scheduler, (command, *_) in _COMMANDS.items():
        if scheduler == name or (name is None and shutil.which(command)):
            return scheduler
    raise InputError(
        "no batch system is found here (sbatch, qsub, bsub, flux)", where="--submit", todo="name one, with --dry-run"
    )


def _script(template: Path | None, line: str) -> str:
    if template is None:
        return f"#!/bin/sh\n{line}\n"
    lines = read_text(template).splitlines()
    if [known.strip() for known in lines].count(_PLACE) != 1:
        raise InputError(
            f"needs exactly one line {_PLACE}, where the session continues",
            where=template,
            todo=f"put {_PLACE} alone on the line that now starts the program",
        )
    return "".join(f"{line if known.strip() == _PLACE else known}\n" for known in lines)
