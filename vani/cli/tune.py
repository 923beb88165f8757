"""`vani tune`: tries recommended settings by running the program, and keeps the proven ones."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, Final, Literal

import click
from pydantic import BeforeValidator, Field

import vani
from vani.atomic import write_together
from vani.cli import tune_trials
from vani.cli.advise import advise
from vani.cli.apply import reported_hints
from vani.cli.options import settings_options
from vani.cli.output import check_outputs
from vani.cli.profile import profile as profile_of_trace
from vani.cli.sources import Machine, OptionalFile, Subject, is_trace, subject_of
from vani.cli.tune_jobs import Submission, last_job, prepare_jobs, submit, submit_line, write_script
from vani.collect.layouts import layouts_of
from vani.collect.node import NoAnswer, ask
from vani.collect.scheduler import read_scheduler
from vani.collect.system import detect
from vani.collect.tracing.launchers import mapped
from vani.collect.tracing.trace import trace
from vani.collect.tracing.tracers import find_recorder
from vani.errors import InputError
from vani.plug_ins import centre
from vani.render.script import tuned_script
from vani.render.tuned import cost_line, plan_text, result_text, run_line
from vani.schema.advice import Advice
from vani.schema.profile import Profile
from vani.schema.saved_profile import SavedProfile
from vani.schema.settings import Option, PathLike, Settings
from vani.schema.system import System
from vani.schema.tuned import Tuned, TunedRun
from vani.systems import system_of
from vani.tune import session
from vani.tune.search import extended, number_of_runs
from vani.units import counted, format_bytes

_STATE: Final = Path("vani-tune-state")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


def _budget(text: Any) -> dict[str, Any]:
    """Parse a number of runs, a time such as 90s, 30m or 2h, or node-hours such as 4nh."""
    if isinstance(text, dict):
        return text
    match = re.fullmatch(r"([1-9][0-9]{0,5})([smh]|nh)?", str(text))
    if match is None:
        raise ValueError("is neither a number of runs, nor a time such as 30m, nor node-hours such as 4nh")
    number, unit = int(match[1]), match[2]
    if unit is None:
        return {"most_runs": number}
    return {"most_node_hours": number} if unit == "nh" else {"most_seconds": number * _UNITS[unit]}


class TuneSettings(Settings):
    """Source of the settings to try, and how runs are carried out and measured."""

    profile: OptionalFile = Field(default=None, description="A profile or a trace of the program, for advice.")
    advice: Annotated[Path | Any, Option(metavar="FILE")] = Field(
        default=None, description="Advice to try, in place of --profile."
    )
    tracer: Literal["recorder", "strace", "dftracer"] | None = Field(
        default=None,
        description="Without either: first trace one more run with this tracer. [default: recorder, else strace, "
        "where it is found]",
    )
    system: Machine = None
    budget: Annotated[Any, BeforeValidator(_budget), Option(metavar="RUNS|TIME|NODE-HOURS")] = Field(
        default="5",
        description="Number of runs, their total time (90s, 30m, 2h), or node-hours (4nh).",
        validate_default=True,
    )
    nodes: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Nodes of a run, for a budget in node-hours. [default: the nodes of this batch job]"
    )
    io_time: Literal["auto", "recorder", "dftracer", "strace", "off"] = Field(
        default="auto",
        description="Measure the I/O time of each run: from its Darshan log or by a preloaded timer, or with a tracer, "
        "which slows all runs down.",
    )
    prepare: Annotated[str | None, Option(metavar="CMD")] = Field(
        default=None, description="Run this in a shell before each run; its time does not count."
    )
    verify: Annotated[str | None, Option(metavar="CMD")] = Field(
        default=None, description="Run this after each run: if it fails, the setting is dropped."
    )
    time: Annotated[str | None, Option(metavar="CMD")] = Field(
        default=None,
        description="Run this after each run: it prints the seconds to compare, for example from $VANI_LOG.",
    )
    clean: bool = Field(
        default=False, description="Write into DIR itself, which must be empty; it is emptied after each run."
    )
    keep: bool = Field(default=False, description="Keep the output of each run.")
    state: Annotated[Path, Option(metavar="FOLDER")] = Field(
        default=_STATE, description="Folder for the state of the session and what each run prints."
    )
    db: Annotated[str | Path | None, Option(("--history",), "FILE|URL")] = Field(
        default=None,
        description="Start with settings proven before, skip those that did not help, and add the result to this "
        "history.",
    )


class _Options(TuneSettings):
    """Options of the command that have no meaning for a Python caller."""

    data: Annotated[Path | None, Option(metavar="DIR")] = Field(
        default=None,
        description="Folder on the file system to tune, for the output of runs. [default: a copy of this folder for "
        "each run, after you confirm it]",
    )
    job_script: OptionalFile = Field(
        default=None,
        description="Your job script, in which a line {vani} marks the place of the session. [default: that line "
        "alone]",
    )
    submit_options: Annotated[str, Option(metavar="WORDS")] = Field(
        default="", description="Options for sbatch, qsub, bsub or flux batch."
    )
    runs_per_job: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Runs per job; each job submits the next one. [default: one job for all]"
    )
    dry_run: bool = Field(default=False, description="With --submit: write the script, and submit nothing.")
    resume: bool = Field(default=False, description="Continue the session in --state.")
    more: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="With --resume: add N runs to the budget, also of a session that has ended."
    )
    show: bool = Field(default=False, description="Show the session in --state, and run nothing.")
    output: Annotated[Path, Option(("-o", "--output"), "FILE")] = Field(
        default=Path("tuned.yaml"), description="The result; a script next to it applies the kept settings."
    )


def tune(
    command: Sequence[str],
    data: PathLike,
    settings: TuneSettings | None = None,
    *,
    submission: Submission | None = None,
    progress: Callable[[Tuned], None] | None = None,
    confirm: Callable[[str], bool] | None = None,
    **fields: Any,
) -> Tuned:
    """Run a program with and without recommended settings, to find out which of them make it faster.

    Parameters
    ----------
    command
        The command's words; `{data}` is replaced by a run's output folder, which the program finds in `$VANI_DATA`.
    data
        Folder for the output, on the file system to tune. If the command names it, or it is the present one, each
        run gets a copy of it.
    settings, fields
        The settings, or single fields of `TuneSettings`; `advice` and `system` may also be models. The folder `state`,
        which `tune_again` continues, must not exist. The shell lines `prepare`, `verify` and `time` are untimed;
        without `time`, the wall clock counts. A history `db` is created if missing.
    submission
        Carry out the session in batch jobs; the result then contains no run yet.
    progress
        Called when the settings to try are known, and after each run.
    confirm
        Called with a question about the traced run; False ends the session.

    Raises
    ------
    InputError
        An input cannot be used, scipy is not installed, or a step that each run needs fails.
    """
    settings = TuneSettings.of(settings, **fields)
    advice, profile, system, db = settings.advice, settings.profile, settings.system, settings.db
    place, folder = Path(data).absolute(), settings.state.absolute()
    _refuse_unusable(command, place, settings, submission)
    fresh = "emptied" if settings.clean else session.fresh_folder(command, place)
    if advice is not None:
        advice = Advice.of(advice)
    elif profile is not None:
        advice = advise(profile, system=system)
    nodes = _nodes(settings.nodes, settings.budget) if submission is None else settings.nodes
    if settings.io_time not in ("auto", "off"):
        # Checks that the tracer exists and can trace this command.
        trace(command, output=folder / "run-1.trace", tracer=settings.io_time, dry_run=True)
    if settings.clean:
        session.begin_folder(place, is_new=False)
    if db is not None:
        # Checked before the program runs for hours, so that its measurements can be stored.
        centre().open_history(db)
    jobs, script = (None, "") if submission is None else prepare_jobs(submission, folder, db)
    try:
        folder.mkdir()
    except FileExistsError:
        raise InputError(
            "already exists", where=settings.state, todo="continue it with --resume, or name another with --state"
        ) from None
    tuned = Tuned(
        version=vani.__version__,
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        host=gethostname(),
        command=list(command),
        data=str(place),
        fresh=fresh,
        **settings.budget,
        **settings.model_dump(include={"prepare", "verify", "time", "io_time", "keep"}),
        nodes=nodes,
        jobs=jobs,
        candidates=[],
    )
    with session.locked(folder) as lock:
        tracer = settings.tracer or _tracer_here()
        if advice is None and tracer is not None:
            profile = _traced(tuned, folder, tracer, lock)
        if system is None:
            system, _ = detect(data=place)
        if advice is None and profile is not None:
            advice = advise(profile, system=system)
        if confirm is not None:
            _confirm(tuned, profile, folder, confirm)
        subject = Subject() if advice is None else _subject(advice, profile, system_of(system))
        program = tune_trials.Program(command, tuned.nodes or nodes or subject.nodes, subject.runtime_s)
        candidates, not_tried = ([], []) if advice is None else tune_trials.candidates_of(advice, place, program)
        candidates = tune_trials.with_trials(candidates, layouts_of(place), command)
        if db is not None:
            candidates, known = tune_trials.in_order(candidates, centre().trials_of(db, subject))
            not_tried = [*known, *not_tried]
        about = {name: getattr(subject, name) for name in ("application", "machine", "processes")}
        about |= {"nodes": tuned.nodes or subject.nodes, "candidates": candidates, "not_tried": not_tried}
        tuned = tuned.model_copy(update=about)
        tuned.save(folder / session.DOCUMENT)
        if submission is None or jobs is None:
            if progress is not None:
                progress(tuned)
            return _carried_out(tuned, folder, lock, progress, db)
        write_script(script, folder)
    # The job may start at once, and needs the lock.
    if not submission.dry_run:
        submit(jobs, folder)
    return tuned


def _refuse_unusable(
    command: Sequence[str], data: Path, settings: TuneSettings, submission: Submission | None
) -> None:
    """Raise InputError if a session cannot be started like this."""
    if find_spec("scipy") is None:
        raise InputError("scipy is not installed", where="vani tune", todo="pip install 'vani-io[tune]'")
    if not command:
        raise InputError("no command was given", todo="vani tune --data DIR -- COMMAND...")
    if not data.is_dir():
        raise InputError(
            "is not a folder", where=data, todo="make it, or name the folder that the program writes to"
        )
    if settings.state.absolute().is_relative_to(data) and data != Path.cwd():
        raise InputError("is in the folder of the output", where=settings.state, todo="name another with --state")
    if settings.advice is not None or settings.profile is not None:
        return
    if submission is not None:
        raise InputError(
            "the program is unknown, and the jobs do not trace it",
            where="--submit",
            todo="give --profile or --advice (vani trace in a job makes a trace for --profile)",
        )


def _tracer_here() -> Literal["recorder", "strace"] | None:
    if find_recorder(None, os.environ) is not None:
        return "recorder"
    return None if shutil.which("strace") is None else "strace"


def _confirm(tuned: Tuned, profile: PathLike | Profile | None, state: Path, confirm: Callable[[str], bool]) -> None:
    """Let a person confirm that the program runs in copies of its working folder.

    Raises
    ------
    InputError
        It is not confirmed, or the traced run left files elsewhere, which further runs would overwrite. The session's
        folder is removed.
    """
    copy, written = str(session.folder_of_run(tuned, 0)), 0
    question = "No tracer is here, so it is unknown where the program writes. "
    folders: set[str] = set()
    if isinstance(profile, Path):
        paths = [file.path for file in Profile.load(profile).files if file.io.bytes.written]
        written = sum(path.startswith(copy) for path in paths)
        # Temporary files are gone, devices keep nothing, and the session has the output of shell commands.
        others = (path for path in paths if not path.startswith((copy, f"{state}/", "/dev/", "/proc/")))
        left = [Path(path) for path in others if Path(path).is_file()]
        folders = {str(path.parent) for path in left}
        question = f"The program writes {counted(written, 'file')} below its working folder. "
    size = format_bytes(session.size_below(Path(tuned.data)))
    question += f"Run it again, each time in a new copy of {tuned.data} ({size}) next to it?"
    if not folders and confirm(question):
        return
    shutil.rmtree(state)
    if folders:
        raise InputError(
            f"the program writes to {', '.join(sorted(folders)[:3])}, where further runs would overwrite its files",
            where="vani tune",
            todo="name the folder with --data, and put {data} into the command in its place",
        )
    raise InputError("no run was confirmed", where="vani tune", todo="name the output folder with --data")


def tune_again(
    state: PathLike,
    *,
    in_job: bool = False,
    more: int | None = None,
    db: PathLike | None = None,
    progress: Callable[[Tuned], None] | None = None,
) -> Tuned:
    """Continue an interrupted session; a finished session runs nothing more.

    Parameters
    ----------
    in_job
        This process is a job of the session, which does its runs and submits the next job. Otherwise a session of
        jobs continues by submitting one.
    more
        Number of runs to add to the budget; a session that has ended continues.
    db
        A history to which the measurements are added at the end of the session.

    Raises
    ------
    InputError
        There is no such session, or one of its runs is still under way; otherwise as in `tune`.
    """
    tuned = tuned_state(state)
    folder = Path(state).absolute()
    if db is not None:
        centre().open_history(db)
    jobs = tuned.jobs
    with session.locked(folder) as lock:
        if more is not None:
            tuned = extended(tuned_state(state), more)
            tuned.save(folder / session.DOCUMENT)
        if jobs is None or in_job or tuned.result is not None:
            # Read again, because data read before the lock may be outdated.
            tuned = _carried_out(tuned_state(state), folder, lock, progress, db)
    if jobs is not None and tuned.result is None:
        submit(jobs, folder)
    return tuned


def tuned_state(state: PathLike) -> Tuned:
    """The current document of a session.

    Raises
    ------
    InputError
        There is no such session.
    """
    place = Path(state) / session.DOCUMENT
    if not place.is_file():
        raise InputError(
            "contains no started session", where=state, todo="remove it, and start a session without --resume"
        )
    return Tuned.load(place)


def _carried_out(
    tuned: Tuned, state: Path, lock: int, progress: Callable[[Tuned], None] | None, db: PathLike | None
) -> Tuned:
    if tuned.most_node_hours is not None and tuned.nodes is None:
        tuned = tuned.model_copy(update={"nodes": _nodes(None, {"most_node_hours": tuned.most_node_hours})})
    layouts = tune_trials.ScriptedLayouts(state / "layouts")
    tuning = session.Session(tuned, state, layouts, reported_hints, progress, _io_times(tuned, state), mapped)
    tuned = tuning.carry_out(lock, None if tuned.jobs is None else tuned.jobs.runs_per_job)
    result = tuned.result
    if result is not None and result.verdict == "proven":
        tuned = tuned.model_copy(update={"settings": tune_trials.kept_settings(tuned, result.candidates)})
        tuned.save(state / session.DOCUMENT)
    if db is not None:
        centre().keep_session(db, tuned, state)
    return tuned


def _io_times(tuned: Tuned, state: Path) -> tune_trials.TimedRuns | tune_trials.TracedRuns | None:
    if tuned.io_time == "off":
        return None
    return tune_trials.TimedRuns(state) if tuned.io_time == "auto" else tune_trials.TracedRuns(tuned.io_time, state)


def _nodes(nodes: int | None, budget: dict[str, Any]) -> int | None:
    """Nodes of a run, by default those of the batch job of this process.

    Raises
    ------
    InputError
        The budget is in node-hours, and the number of nodes is unknown.
    """
    nodes = nodes or _nodes_here()
    if "most_node_hours" in budget and nodes is None:
        raise InputError(
            "the number of nodes of a run is not known: no batch system of this job states it",
            where="--budget in node-hours",
            todo="give --nodes",
        )
    return nodes


def _nodes_here() -> int | None:
    allocation = read_scheduler(os.environ)
    if allocation.nodes is None and allocation.scheduler == "flux":
        try:
            return int(ask(["flux", "getattr", "size"]))
        except (NoAnswer, ValueError):
            return None
    return allocation.nodes


def _subject(advice: Advice, profile: PathLike | Profile | None, machine: System | None) -> Subject:
    """The run that the advice is about, from its profile or, if that is gone, from the path in the advice."""
    if profile is None and advice.profile.path is not None and Path(advice.profile.path).is_file():
        saved = SavedProfile.read(advice.profile.path)
        profile = saved.most_important(1).profile if saved.sha256 == advice.profile.sha256 else None
    elif isinstance(profile, (str, Path)):
        profile = None if is_trace(profile) else SavedProfile.read(profile).most_important(1).profile
    subject = Subject() if profile is None else subject_of(profile, machine)
    apps = {item.target.app for item in advice.recommendations if item.target.app}
    name = advice.system.name
    return replace(
        subject,
        application=subject.application or (apps.pop() if len(apps) == 1 else None),
        machine=subject.machine or (None if name is None or name.startswith("generic-") else name),
    )


def _traced(tuned: Tuned, state: Path, tracer: str, lock: int) -> Path:
    """Run the program once under a tracer and return the profile's path. The time of this run is not used."""
    trace = state / "trace"
    begin = [sys.executable, "-m", "vani", "trace", "-q", "--tracer", tracer, "-o", str(trace), "--"]
    session.run_before(tuned, state, begin, lock)
    profile = profile_of_trace(trace)
    profile.save(state / "profile.yaml")
    return state / "profile.yaml"


@click.command("tune", context_settings={"allow_interspersed_args": False})
@settings_options(_Options)
@click.option(
    "--submit",
    is_flag=False,
    flag_value="auto",
    metavar="[slurm|pbs|lsf|flux]",
    type=click.Choice(["auto", "slurm", "pbs", "lsf", "flux"]),
    help="Run the session in a batch job, which is written to --state and submitted.",
)
# For the scripts that --submit writes.
@click.option("--in-job", is_flag=True, hidden=True)
@click.argument("command", nargs=-1, metavar="-- COMMAND...")
@click.pass_context
def command(
    ctx: click.Context, settings: _Options, submit: str | None, in_job: bool, command: tuple[str, ...]
) -> None:
    """Run COMMAND with and without recommended settings, and keep those that measurably speed it up.

    {data} in COMMAND, or $VANI_DATA in its programs, is the output folder: a new folder below DIR for each
    run. Only settings outside the program are tried: the layout of that folder, MPI-IO hints, and environment
    variables. The exit status is 1 if the program fails without any setting.
    """
    if settings.more is not None and not settings.resume:
        raise click.UsageError("--more needs --resume")
    submission = _submission(settings, submit)
    if settings.resume or settings.show:
        tuned = _known_session(command, settings, in_job=in_job)
    else:
        tuned = _new_session(command, settings, submission)
    saved = settings.output if tuned.settings and not settings.show else None
    if saved is not None:
        _save(tuned, saved)
    is_submitted = not settings.show and not (submission is not None and submission.dry_run)
    click.echo(result_text(tuned, saved, _continuation(tuned, settings.state, is_submitted=is_submitted)), nl=False)
    if settings.db is not None and not settings.show and tuned.result and any(run.candidates for run in tuned.runs):
        click.echo("History      contains the measurements: vani advise PROFILE --history shows them")
    ctx.exit(1 if tuned.result is not None and tuned.result.verdict == "unfinished" else 0)


def _submission(settings: _Options, system: Any) -> Submission | None:
    script, words = settings.job_script, settings.submit_options
    if system is None:
        if script or words or settings.runs_per_job or settings.dry_run:
            raise click.UsageError("--job-script, --submit-options, --runs-per-job and --dry-run need --submit")
        return None
    try:
        split = shlex.split(words)
    except ValueError as error:
        raise click.BadParameter(f"{words!r} cannot be split into words ({error})") from None
    scheduler = None if system == "auto" else system
    return Submission(settings.output, scheduler, script, split, settings.runs_per_job, settings.dry_run)


def _known_session(command: tuple[str, ...], settings: _Options, *, in_job: bool) -> Tuned:
    if "budget" in settings.model_fields_set:
        raise click.UsageError("a session has its budget already: --more N adds runs to it")
    if command or settings.data:
        raise click.UsageError("a session has its command and folder already: give --resume or --show only --state")
    tuned = tuned_state(settings.state)
    # The log of the earlier jobs already lists their runs.
    for run in [] if in_job else tuned.runs:
        ended = tuned.jobs is None and settings.resume and run.outcome == "running"
        # The session may have been killed; one that still runs is an error below.
        changes = {"outcome": "interrupted", "remark": "the session was killed"} if ended else {}
        _show_run(tuned, run.model_copy(update=changes))
    if not settings.resume:
        return tuned
    return tune_again(settings.state, in_job=in_job, more=settings.more, db=settings.db, progress=_show_last)


def _new_session(command: tuple[str, ...], settings: _Options, submission: Submission | None) -> Tuned:
    if settings.data is None and not sys.stdin.isatty():
        raise click.UsageError("Missing option '--data': without it, a terminal is needed to confirm the folder")
    outputs = [settings.output, settings.output.with_suffix(".sh")]
    for path in outputs:
        if path.exists():
            raise InputError("already exists", where=path, todo="name another with -o")
    check_outputs(outputs, [settings.profile, settings.advice])
    if settings.profile is None and settings.advice is None and submission is None and _tracer_here() is not None:
        click.echo("Traces       one run first, which is not measured")
    confirm = (lambda question: click.confirm(question, err=True)) if settings.data is None else None
    data = settings.data or Path.cwd()
    return tune(command, data, settings, submission=submission, progress=_show_last, confirm=confirm)


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
    if not tuned.runs:
        click.echo(plan_text(tuned), nl=False)
    else:
        _show_run(tuned, tuned.runs[-1])
        if len(tuned.runs) == 1:
            click.echo(cost_line(tuned, number_of_runs(tuned)), nl=False)


def _show_run(tuned: Tuned, run: TunedRun) -> None:
    click.echo(run_line(tuned, run, number_of_runs(tuned)))
