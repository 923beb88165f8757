"""`vani plan job`, which PrologSlurmctld and EpilogSlurmctld run. It always ends with status 0."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from vani.centre.plan.job_settings import JobSettings
from vani.centre.prolog.budget import Deadline, plan_for_ended, plan_for_new, within
from vani.centre.prolog.state import State, number_of
from vani.cli.options import settings_options
from vani.errors import InputError, one_line


class _Harmless(click.Command):
    """A command that reports a wrong command line but ends with status 0; otherwise Slurm would requeue every job."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        is_trial = "--strict" in args or "--check" in args
        try:
            context = super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if is_trial:
                raise
            say(f"{error.format_message().rstrip('.')}; nothing was planned")
            raise click.exceptions.Exit(0) from None
        context.meta["is_trial"] = is_trial
        return context

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except InputError as error:
            if ctx.meta["is_trial"]:
                raise
            say(f"{error}; nothing was planned", ctx.params.get("log"))


@click.command(cls=_Harmless)
@settings_options(JobSettings)
@click.pass_context
def job(ctx: click.Context, settings: JobSettings) -> None:
    """Plan for one job that starts, or with --end ends, as PrologSlurmctld and EpilogSlurmctld run it.

    Variables of the batch system identify the job. The state's folder gets its plan (NUMBER.yaml), its forwarding map
    (NUMBER.map) and the variables for its tasks (NUMBER.env). It always exits with 0 within the
    budget, because Slurm requeues a job whose prolog fails.
    """
    if settings.check:
        ctx.exit(_check(settings))
    deadline = Deadline(settings.budget_s)
    done, said = within(deadline, partial(_note, settings), partial(_plan, settings, deadline))
    say(f"job {_number()}: {said}" if done else f"job {_number()}: NOT PLANNED: {said}", settings.log)
    if settings.strict and not done:
        ctx.exit(2)


def _check(settings: JobSettings) -> int:
    """Print a line for each requirement that was checked, and return the exit status."""
    from vani.centre.plan.job_check import check_node  # noqa: PLC0415 - no prolog pays for it

    checks = check_node(
        settings.state,
        settings,
        environment=os.environ,
        max_age_s=settings.max_age_s,
        task_prolog=settings.task_prolog,
    )
    words = {True: "ok", False: "FAULT", None: "not tried"}
    for entry in checks:
        click.echo(f"{words[entry.is_sound]:<10} {entry.name}: {one_line(entry.line)}")
    return 2 if any(entry.is_sound is False for entry in checks) else 0


def _number() -> str:
    try:
        return number_of(os.environ)
    except InputError:
        return (os.environ.get("SLURM_JOB_ID") or "?")[:40]


def _note(settings: JobSettings) -> None:
    """Record that the job is running or ended. This must not be lost, however little time there is."""
    if settings.end:
        State(settings.state).forget(number_of(os.environ))
    else:
        State(settings.state).register(os.environ)


def _plan(settings: JobSettings, deadline: Deadline) -> str:
    number, state, now_s = number_of(os.environ), State(settings.state), time.time()

    def plan() -> str:
        from vani.centre.plan.running_jobs import plan_running_jobs  # noqa: PLC0415 - only planning needs it

        return plan_running_jobs(
            state, settings, None if settings.end else number, now_s=now_s, say=partial(say, log=settings.log)
        )

    if settings.end:
        return f"ended; {plan_for_ended(state, number, deadline, plan)}"
    return plan_for_new(state, os.environ, deadline, plan)


def say(text: str, log: Path | None = None) -> None:
    """Write a line to stderr and to the log, if they can be written."""
    line = one_line(text)
    with suppress(OSError, ValueError):
        print(f"vani: {line}", file=sys.stderr, flush=True)  # noqa: T201
    if log is None:
        return
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with suppress(OSError):
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        try:
            os.write(handle, f"{when} {line}\n".encode(errors="backslashreplace"))
        finally:
            os.close(handle)
