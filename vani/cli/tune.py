"""`vani tune`: tries settings by running a program."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vani import api
from vani.api.tune_jobs import Submission, last_job, submit_line
from vani.atomic import write_together
from vani.cli.options import FILE, system_option
from vani.cli.output_guard import check_outputs
from vani.errors import InputError
from vani.render.script import tuned_script
from vani.render.tuned import result_text, run_line
from vani.tune.search import number_of_runs

if TYPE_CHECKING:
    from vani.schema.tuned import Tuned, TunedRun

_STATE = Path("vani-tune-state")
_UNITS = {"s": 1, "m": 60, "h": 3600}


def _budget(ctx: click.Context, param: click.Parameter, value: str) -> dict[str, Any]:
    """Parse a number of runs, a time such as 90s, 30m or 2h, or node-hours such as 4nh."""
    del ctx, param
    match = re.fullmatch(r"([1-9][0-9]{0,5})([smh]|nh)?", value)
    if match is None:
        raise click.BadParameter(
            f"{value!r} is neither a number of runs, nor a time such as 30m, nor node-hours such as 4nh"
        )
    number, unit = int(match[1]), match[2]
    if unit is None:
        return {"most_runs": number}
    if unit == "nh":
        return {"most_node_hours": number, "most_runs": None}
    return {"most_seconds": number * _UNITS[unit], "most_runs": None}


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--data", type=FILE, metavar="DIR", help="Folder on the file system to tune, for the output of runs."
)
@click.option(
    "--profile", type=FILE, metavar="FILE", help="A profile or a trace of the program, for advice."
)
@click.option("--advice", type=FILE, metavar="FILE", help="Advice to try, in place of --profile.")
@click.option(
    "--tracer",
    type=click.Choice(["recorder", "strace", "dftracer"]),
    help="Without either: first trace one more run with this tracer. [default: recorder, where it is found]",
)
@system_option()
@click.option(
    "--budget",
    default="5",
    show_default=True,
    metavar="RUNS|TIME|NODE-HOURS",
    callback=_budget,
    help="Number of runs, their total time (90s, 30m, 2h), or node-hours (4nh).",
)
@click.option(
    "--nodes",
    type=click.IntRange(min=1),
    help="Nodes of a run, for a budget in node-hours. [default: the nodes of this batch job]",
)
@click.option(
    "--later-runs",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Try a setting if it is expected to save more in N later runs than its own run costs.",
)
@click.option(
    "--io-time",
    type=click.Choice(["auto", "recorder", "dftracer", "strace", "off"]),
    default="auto",
    show_default=True,
    help="Measure the I/O time of each run: from its Darshan log, or with a tracer, which slows all runs down.",
)
@click.option(
    "--prepare", metavar="CMD", help="Run this in a shell before each run; its time does not count."
)
@click.option(
    "--verify", metavar="CMD", help="Run this after each run: if it fails, the setting is dropped."
)
@click.option(
    "--time",
    metavar="CMD",
    help="Run this after each run: it prints the seconds to compare, for example from $VANI_LOG.",
)
@click.option(
    "--clean", is_flag=True, help="Write into DIR itself, which must be empty; it is emptied after each run."
)
@click.option(
    "--state",
    type=FILE,
    metavar="FOLDER",
    default=_STATE,
    show_default=True,
    help="Folder for the state of the session and the output of each run.",
)
@click.option(
    "--submit",
    is_flag=False,
    flag_value="auto",
    metavar="[slurm|pbs|lsf|flux]",
    type=click.Choice(["auto", "slurm", "pbs", "lsf", "flux"]),
    help="Run the session in a batch job, which is written to --state and submitted.",
)
@click.option(
    "--job-script",
    type=FILE,
    metavar="FILE",
    help="Your job script, in which a line {vani} marks the place of the session. [default: that line alone]",
)
@click.option("--submit-options", metavar="WORDS", default="", help="Options for sbatch, qsub, bsub or flux batch.")
@click.option(
    "--runs-per-job",
    type=click.IntRange(min=1),
    metavar="N",
    help="Runs per job; each job submits the next one. [default: one job for all]",
)
@click.option("--dry-run", is_flag=True, help="With --submit: write the script, and submit nothing.")
# For the scripts that --submit writes.
@click.option("--in-job", is_flag=True, hidden=True)
@click.option(
    "--history",
    "db",
    metavar="FILE|URL",
    help="Start with settings proven before, skip those that did not help, and add the result to this history.",
)
@click.option("--resume", is_flag=True, help="Continue the session in --state.")
@click.option("--show", is_flag=True, help="Show the session in --state, and run nothing.")
@click.option(
    "-o", "--output", type=FILE, metavar="FILE", default="tuned.yaml", show_default=True,
    help="The result; a script next to it applies the kept settings.",
)  # fmt: skip
@click.argument("command", nargs=-1, metavar="-- COMMAND...")
@click.pass_context
def tune(
    ctx: click.Context, /, data: Path | None, state: Path, resume: bool, show: bool, in_job: bool, output: Path,
    budget: dict[str, Any], command: tuple[str, ...], **options: Any,
) -> None:  # fmt: skip
    """Run COMMAND with and without recommended settings, and keep those that measurably speed it up.

    {data} in COMMAND, or $VANI_DATA in its programs, is the output folder: a new folder below DIR for each
    run. Only settings outside the program are tried: the layout of that folder, MPI-IO hints, and environment
    variables. The exit status is 1 if the program fails without any setting.
    """
    options["submission"] = submission = _submission(options, output)
    if resume or show:
        tuned = _known_session(command, data, state, is_resumed=resume, in_job=in_job, db=options["db"])
    else:
        tuned = _new_session(command, data, state, output, **budget, **options)
    saved = output if tuned.settings and not show else None
    if saved is not None:
        _save(tuned, saved)
    is_submitted = not show and not (submission is not None and submission.dry_run)
    click.echo(result_text(tuned, saved, _continuation(tuned, state, is_submitted=is_submitted)), nl=False)
    is_over = tuned.result is not None and any(run.candidates for run in tuned.runs)
    if options["db"] is not None and not show and is_over:
        click.echo("History      contains the measurements: vani advise PROFILE --history shows them")
    ctx.exit(1 if tuned.result is not None and tuned.result.verdict == "unfinished" else 0)


def _submission(options: dict[str, Any], output: Path) -> Submission | None:
    names = ("job_script", "submit_options", "runs_per_job", "dry_run")
    script, words, runs_per_job, dry_run = (options.pop(name) for name in names)
    scheduler = options.pop("submit")
    if scheduler is None:
        if script or words or runs_per_job or dry_run:
            raise click.UsageError(
                "--job-script, --submit-options, --runs-per-job and --dry-run need --submit"
            )
        return None
    try:
        split = shlex.split(words)
    except ValueError as error:
        raise click.BadParameter(f"{words!r} cannot be split into words ({error})") from None
    return Submission(output, None if scheduler == "auto" else scheduler, script, split, runs_per_job, dry_run)


def _known_session(
    command: tuple[str, ...], data: Path | None, state: Path, *, is_resumed: bool, in_job: bool, db: str | None
) -> Tuned:
    if command or data:
        raise click.UsageError(
            "a session has its command and folder already: give --resume or --show only --state"
        )
    tuned = api.tuned_state(state)
    # The log of the earlier jobs already lists their runs.
    for run in [] if in_job else tuned.runs:
        ended = tuned.jobs is None and is_resumed and run.outcome == "running"
        # The session may have been killed; one that still runs is an error below.
        changes = {"outcome": "interrupted", "remark": "the session was killed"} if ended else {}
        _show_run(tuned, run.model_copy(update=changes))
    return api.tune_again(state, in_job=in_job, db=db, progress=_show_last) if is_resumed else tuned


def _new_session(
    command: tuple[str, ...], data: Path | None, state: Path, output: Path, **options: Any
) -> Tuned:
    if data is None:
        raise click.UsageError("Missing option '--data'")
    for path in (output, output.with_suffix(".sh")):
        if path.exists():
            raise InputError("already exists", where=path, todo="name another with -o")
    check_outputs([output, output.with_suffix(".sh")], [options["profile"], options["advice"]])
    return api.tune(command, data, state=state, progress=_show_last, **options)


def _continuation(tuned: Tuned, state: Path, *, is_submitted: bool) -> str:
    """How a session of batch jobs continues; empty for a session without jobs."""
    if tuned.jobs is None:
        return ""
    again = "vani tune --resume" + ("" if state == _STATE else f" --state {shlex.quote(str(state))}")
    job = last_job(state)
    if job is None or (not is_submitted and tuned.runs == []):
        return f"Not submitted yet: {submit_line(tuned.jobs, state.absolute())}"
    show = again.replace("--resume", "--show")
    doing = "is submitted" if is_submitted else "continues"
    return (
        f"Job {job} {doing}, and writes to {state / 'jobs.log'}\n"
        f"So far {show}    if it ended too early: {again}"
    )


def _save(tuned: Tuned, output: Path) -> None:
    texts = {output: tuned.to_yaml().encode(), output.with_suffix(".sh"): tuned_script(tuned).encode()}
    for path, text in texts.items():
        if path.exists() and path.read_bytes() != text:
            raise InputError("already exists and belongs to something else", where=path, todo="name another with -o")
    write_together(texts)


def _show_last(tuned: Tuned) -> None:
    _show_run(tuned, tuned.runs[-1])


def _show_run(tuned: Tuned, run: TunedRun) -> None:
    click.echo(run_line(tuned, run, number_of_runs(tuned)))
