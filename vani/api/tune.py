"""Implements `vani tune`: tries recommended settings by running the program, and keeps the proven ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Literal

import vani
from vani.api.advise import advise
from vani.api.apply import reported_hints
from vani.api.arguments import PathLike, system_of
from vani.api.profile import profile as profile_of_trace
from vani.api.run_io import DarshanLogs, TracedRuns
from vani.api.source import is_trace
from vani.api.subject import Subject, subject_of
from vani.api.trace import trace
from vani.api.tune_candidates import Run, candidates_of, in_order
from vani.api.tune_jobs import Submission, prepare_jobs, submit, write_script
from vani.api.tuned_settings import ScriptedLayouts, kept_settings
from vani.collect.probe import NoAnswer, ask
from vani.collect.scheduler import read_scheduler
from vani.collect.tracing.launchers import mapped
from vani.collect.tracing.recorder_library import find_recorder
from vani.errors import InputError
from vani.schema.advice import Advice
from vani.schema.saved_profile import SavedProfile
from vani.schema.tuned import Setting, Tuned
from vani.tune.session import DOCUMENT, Session, locked
from vani.tune.trial import begin_folder, command_in, empty, environment_of, free_folder, launch

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import System

Tracer = Literal["recorder", "strace", "dftracer"]
IOTime = Literal["auto", "recorder", "dftracer", "strace", "off"]
_TRACE = "trace"


def tune(
    command: Sequence[str],
    data: PathLike,
    *,
    state: PathLike,
    advice: PathLike | Advice | None = None,
    profile: PathLike | None = None,
    tracer: Tracer | None = None,
    system: PathLike | System | None = None,
    prepare: str | None = None,
    verify: str | None = None,
    time: str | None = None,
    clean: bool = False,
    most_runs: int | None = 5,
    most_seconds: float | None = None,
    most_node_hours: float | None = None,
    nodes: int | None = None,
    later_runs: int = 100,
    io_time: IOTime = "auto",
    submission: Submission | None = None,
    db: PathLike | None = None,
    progress: Callable[[Tuned], None] | None = None,
) -> Tuned:
    """Run a program with and without recommended settings, to find out which of them make it faster.

    Parameters
    ----------
    command
        The command's words; `{data}` is replaced by a run's output folder, which the program finds in `$VANI_DATA`.
    data
        Folder for the output, on the file system to tune.
    state
        Folder for the session, which `tune_again` continues; it must not exist.
    advice, profile
        Source of the settings. Without either, the program is traced once before the measured runs.
    tracer
        The tracer for that; None takes Recorder if it is available.
    prepare, verify
        Shell lines that run before and after each run, untimed.
    time
        Shell line that prints the seconds of a finished run; the program's output is in `$VANI_LOG`. None uses the
        wall clock.
    clean
        Runs write to `data` itself, which must be empty and is emptied after each run. Otherwise each run gets a
        new folder in it, which remains.
    most_runs, most_seconds, most_node_hours
        The budget; the first limit reached ends the session.
    nodes
        Nodes of a run, for a budget in node-hours; by default those of the present batch job.
    later_runs
        Number of runs that will use the result: a setting is tried if they are expected to save more than its trial
        costs.
    io_time
        How to measure the I/O time of each run: `auto` from Darshan's log, if there is one; `off` not at all;
        otherwise the name of a tracer, which makes all runs longer.
    submission
        Carry out the session in batch jobs; the result then contains no run yet.
    db
        A history, created if missing. Earlier trials of the application on this machine determine the order of the
        settings, and the measurements of this session are added.
    progress
        Called after each run.

    Raises
    ------
    InputError
        An input cannot be used, scipy is not installed, or a step that each run needs fails.
    """
    if find_spec("scipy") is None:
        raise InputError("scipy is not installed", where="vani tune", todo="pip install 'vani-io[tune]'")
    if not command:
        raise InputError("no command was given", todo="vani tune --data DIR -- COMMAND...")
    place, folder = Path(data).absolute(), Path(state).absolute()
    if not place.is_dir():
        raise InputError(
            "is not a folder", where=data, todo="make it, or name the folder that the program writes to"
        )
    if folder.is_relative_to(place):
        raise InputError("is in the folder of the output", where=state, todo="name another with --state")
    if tracer is None and advice is None and profile is None and find_recorder(None, os.environ) is None:
        raise InputError(
            "the program is unknown, and Recorder's library, which could trace it, was not found",
            where="vani tune",
            todo="give --profile or --advice, or let strace trace a run with --tracer strace",
        )
    if submission is not None and advice is None and profile is None:
        raise InputError(
            "the program is unknown, and the jobs do not trace it",
            where="--submit",
            todo="give --profile or --advice (vani trace in a job makes a trace for --profile)",
        )
    if isinstance(advice, (str, Path)):
        advice = Advice.load(advice)
    elif advice is None and profile is not None:
        advice = advise(profile, system=system)
    if submission is None:
        nodes = _nodes(nodes, most_node_hours)
    if io_time != "auto" and io_time != "off":  # noqa: PLR1714 - mypy narrows by this
        # Checks that the tracer exists and can trace this command.
        trace(command, folder / "run-1.trace", tracer=io_time, dry_run=True)
    if clean:
        begin_folder(place, is_new=False)
    if db is not None:
        from vani.api.measured import open_history  # noqa: PLC0415 - an extra

        # Checked before the program runs for hours, so that its measurements can be stored.
        open_history(db)
    jobs, script = (None, "") if submission is None else prepare_jobs(submission, folder, db)
    try:
        folder.mkdir()
    except FileExistsError:
        raise InputError(
            "already exists", where=state, todo="continue it with --resume, or name another with --state"
        ) from None
    tuned = Tuned(
        version=vani.__version__,
        begun=datetime.now(UTC).isoformat(timespec="seconds"),
        host=gethostname(),
        command=list(command),
        data=str(place),
        fresh="emptied" if clean else "subfolder",
        prepare=prepare,
        verify=verify,
        time=time,
        most_runs=most_runs,
        most_seconds=most_seconds,
        most_node_hours=most_node_hours,
        nodes=nodes,
        later_runs=later_runs,
        io_time=io_time,
        jobs=jobs,
        candidates=[],
    )
    with locked(folder) as lock:
        if advice is None:
            profile = _traced(tuned, folder, tracer or "recorder", lock)
            advice = advise(profile, system=system)
        subject = _subject(advice, profile, system_of(system))
        run = Run(command, tuned.nodes or nodes or subject.nodes, subject.runtime_s)
        candidates, not_tried = candidates_of(advice, place, run)
        if db is not None:
            from vani.api.measured import trials_of  # noqa: PLC0415 - an extra

            candidates, known = in_order(candidates, trials_of(db, subject))
            not_tried = [*known, *not_tried]
        about = {name: getattr(subject, name) for name in ("application", "machine", "processes")}
        about |= {"nodes": tuned.nodes or subject.nodes, "candidates": candidates, "not_tried": not_tried}
        tuned = tuned.model_copy(update=about)
        tuned.save(folder / DOCUMENT)
        if submission is None or jobs is None:
            return _carried_out(tuned, folder, lock, progress, db)
        write_script(script, folder)
    # The job may start at once, and needs the lock.
    if not submission.dry_run:
        submit(jobs, folder)
    return tuned


def tune_again(
    state: PathLike,
    *,
    in_job: bool = False,
    db: PathLike | None = None,
    progress: Callable[[Tuned], None] | None = None,
) -> Tuned:
    """Continue an interrupted session; a finished session runs nothing more.

    Parameters
    ----------
    in_job
        This process is a job of the session, which does its runs and submits the next job. Otherwise a session of
        jobs continues by submitting one.
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
        from vani.api.measured import open_history  # noqa: PLC0415 - an extra

        open_history(db)
    jobs = tuned.jobs
    with locked(folder) as lock:
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
    place = Path(state) / DOCUMENT
    if not place.is_file():
        raise InputError(
            "contains no started session", where=state, todo="remove it, and start a session without --resume"
        )
    return Tuned.load(place)


def _carried_out(
    tuned: Tuned, state: Path, lock: int, progress: Callable[[Tuned], None] | None, db: PathLike | None
) -> Tuned:
    if tuned.most_node_hours is not None and tuned.nodes is None:
        tuned = tuned.model_copy(update={"nodes": _nodes(None, tuned.most_node_hours)})
    layouts = ScriptedLayouts(state / "layouts")
    session = Session(tuned, state, layouts, reported_hints, progress, _io_times(tuned, state), mapped)
    tuned = session.carry_out(lock, None if tuned.jobs is None else tuned.jobs.runs_per_job)
    result = tuned.result
    if result is not None and result.verdict == "proven":
        tuned = tuned.model_copy(update={"settings": kept_settings(tuned, result.candidates)})
        tuned.save(state / DOCUMENT)
    if db is not None:
        from vani.api.measured import keep_session  # noqa: PLC0415 - an extra

        keep_session(db, tuned, state)
    return tuned


def _io_times(tuned: Tuned, state: Path) -> DarshanLogs | TracedRuns | None:
    if tuned.io_time == "off":
        return None
    return DarshanLogs() if tuned.io_time == "auto" else TracedRuns(tuned.io_time, state)


def _nodes(nodes: int | None, most_node_hours: float | None) -> int | None:
    """Nodes of a run, by default those of the batch job of this process.

    Raises
    ------
    InputError
        The budget is in node-hours, and the number of nodes is unknown.
    """
    nodes = nodes or _nodes_here()
    if most_node_hours is not None and nodes is None:
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


def _traced(tuned: Tuned, state: Path, tracer: Tracer, lock: int) -> Path:
    """Run the program once under a tracer and return the profile's path. The time of this run is not used."""
    is_new = tuned.fresh == "subfolder"
    folder = free_folder(Path(tuned.data), 0) if is_new else Path(tuned.data)
    begin_folder(folder, is_new=is_new)
    log, trace = state / "run-0.log", state / "trace"
    environment = environment_of(Setting(), folder, state / "run-0.hints")
    tracing = [sys.executable, "-m", "vani", "trace", "--tracer", tracer, "-o", str(trace), "--"]
    lines = [] if tuned.prepare is None else [["sh", "-c", tuned.prepare]]
    try:
        for words in [*lines, [*tracing, *command_in(tuned.command, folder)]]:
            ended = launch(words, environment, log, lock=lock)
            if ended.status:
                raise InputError(
                    f"{words[-1] if words in lines else 'the traced run'} ended with status {ended.status}",
                    where=log,
                    todo=f"check its output, remove {state} and start again",
                )
    finally:
        if not is_new:
            empty(folder)
    profile = profile_of_trace(trace, job=trace / "job.yaml")
    profile.save(state / "profile.yaml")
    return state / "profile.yaml"
