"""`vani plan job`, which PrologSlurmctld and EpilogSlurmctld run. It always ends with status 0."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from vani.cli.options import FILE
from vani.errors import InputError, one_line


class _Harmless(click.Command):
    """A command that reports a wrong command line but ends with status 0; otherwise Slurm would requeue every job."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        is_trial = "--strict" in args or "--check" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if is_trial:
                raise
            say(f"{error.format_message().rstrip('.')}; nothing was planned")
            raise click.exceptions.Exit(0) from None


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A number of seconds, such as `2` or `2s`."""
    del ctx, param
    try:
        seconds = float(value.strip().removesuffix("s"))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e9:
        raise click.BadParameter(f"{value!r} is not a number of seconds above 0")
    return seconds


_SHARING: Final = (
    click.option(
        "--settings", type=FILE, metavar="FILE", help="A sharing.yaml with pools, reservations and weights by QOS."
    ),
    click.option("--known", type=FILE, metavar="DIR", help="Folder of jobs.yaml files or profiles, by job name."),
    click.option("--snapshot", type=FILE, metavar="FILE", help="The machine's state, whose I/O nodes are the pool."),
    click.option(
        "--hosts-file", type=FILE, metavar="FILE", help="GekkoFS hosts file, which lists and numbers the pool."
    ),
    click.option(
        "--io-nodes", type=int, metavar="N", help="Number of I/O nodes in the pool; at most that of the snapshot."
    ),
    click.option(
        "--place-library",
        metavar="PATH",
        help="The placement library's path on compute nodes: new files get the layout of the plan.",
    ),
    click.option(
        "--policy",
        type=click.Choice(["mckp", "static"]),
        default="mckp",
        show_default=True,
        help="How I/O nodes are shared; mckp is optimal.",
    ),
    click.option(
        "--objective",
        type=click.Choice(["sum", "max-min", "proportional"]),
        default="sum",
        show_default=True,
        help="Objective of mckp, as in `vani plan forward`.",
    ),
    click.option(
        "--floor", type=float, default=0.0, metavar="SHARE", help="Least share of its own best that each job gets."
    ),
    click.option("--direct/--no-direct", default=True, help="Whether jobs may bypass I/O nodes."),
    click.option(
        "--nodes-per-io-node",
        type=float,
        metavar="R",
        help="Compute nodes per I/O node, for jobs without known figures.",
    ),
    click.option(
        "--estimate",
        type=click.Choice(["near", "nearest", "none"]),
        default="near",
        show_default=True,
        help="Measured patterns to use for a job without a curve.",
    ),
    click.option(
        "--expire",
        "expire_s",
        default=str(7 * 86400),
        callback=_seconds,
        metavar="SECONDS",
        show_default=True,
        help="Forget a job this long after its start, if its end was not reported.",
    ),
)
_OPTIONS: Final = (
    click.option("--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans."),
    click.option("--end", "is_end", is_flag=True, help="The job ended: free its I/O nodes (for the epilog)."),
    *_SHARING,
    click.option(
        "--budget", "budget_s", default="2s", callback=_seconds, metavar="SECONDS", show_default=True,
        help="Exit within this time, start-up included, with or without a plan.",
    ),
    click.option("--log", type=FILE, metavar="FILE", help="Also write the result to this file."),
    click.option("--strict", is_flag=True, help="Exit with 2 if there is no plan, for tests."),
    click.option(
        "--check", is_flag=True, help="Plan nothing; check on this node that jobs can be planned. Exit status 0 or 2."
    ),
    click.option(
        "--max-age", "max_age_s", default="300s", callback=_seconds, metavar="SECONDS", show_default=True,
        help="With --check: reject an older snapshot.",
    ),
    click.option(
        "--task-prolog", type=FILE, metavar="FILE", help="With --check: run this script for a job that has a plan."
    ),
)  # fmt: skip


def sharing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for sharing I/O nodes to a command, which receives them as keywords of `SharingRules`."""
    return _with(_SHARING, command)


def _with(options: tuple[Callable[..., Any], ...], command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=_Harmless)
@partial(_with, _OPTIONS)
@click.pass_context
def job(
    ctx: click.Context,
    /,
    state: Path,
    is_end: bool,
    budget_s: float,
    log: Path | None,
    strict: bool,
    check: bool,
    max_age_s: float,
    task_prolog: Path | None,
    **rules: Any,
) -> None:
    """Plan for one job that starts, or with --end ends, as PrologSlurmctld and EpilogSlurmctld run it.

    Variables of the batch system identify the job. The state's folder gets its plan (NUMBER.yaml), its forwarding map
    (NUMBER.map) and the variables for its tasks (NUMBER.env). It always exits with 0 within the
    budget, because Slurm requeues a job whose prolog fails.
    """
    if check:
        ctx.exit(_check(state, rules, max_age_s, task_prolog))
    from vani.centre.prolog.budget import Deadline, within  # noqa: PLC0415 - `vani --help` does not need it

    deadline = Deadline(budget_s)
    first = partial(_note, state, is_end=is_end)
    done, said = within(deadline, first, partial(_plan, state, rules, deadline, log, is_end=is_end))
    say(f"job {_number()}: {said}" if done else f"job {_number()}: NOT PLANNED: {said}", log)
    if strict and not done:
        ctx.exit(2)


def _check(state: Path, rules: dict[str, Any], max_age_s: float, task_prolog: Path | None) -> int:
    """Print a line for each requirement that was checked, and return the exit status."""
    from vani.centre.plan.job_check import check_node  # noqa: PLC0415 - no prolog pays for it
    from vani.centre.plan.pools import SharingRules  # noqa: PLC0415

    checks = check_node(
        state, SharingRules(**rules), environment=os.environ, max_age_s=max_age_s, task_prolog=task_prolog
    )
    words = {True: "ok", False: "FAULT", None: "not tried"}
    for entry in checks:
        click.echo(f"{words[entry.is_sound]:<10} {entry.name}: {one_line(entry.line)}")
    return 2 if any(entry.is_sound is False for entry in checks) else 0


def _number() -> str:
    from vani.centre.prolog.job_facts import number_of  # noqa: PLC0415

    try:
        return number_of(os.environ)
    except InputError:
        return (os.environ.get("SLURM_JOB_ID") or "?")[:40]


def _note(state: Path, *, is_end: bool) -> None:
    """Record that the job is running or ended. This must not be lost, however little time there is."""
    from vani.centre.prolog.job_facts import number_of  # noqa: PLC0415
    from vani.centre.prolog.state import State  # noqa: PLC0415

    if is_end:
        State(state).forget(number_of(os.environ))
    else:
        State(state).register(os.environ)


def _plan(state: Path, rules: dict[str, Any], deadline: Any, log: Path | None, *, is_end: bool) -> str:
    from vani.centre.prolog.job_facts import number_of  # noqa: PLC0415
    from vani.centre.prolog.planning_lock import plan_for_ended, plan_for_new  # noqa: PLC0415
    from vani.centre.prolog.state import State  # noqa: PLC0415

    number = number_of(os.environ)
    now_s = time.time()

    def plan() -> str:
        from vani.centre.plan.pools import SharingRules  # noqa: PLC0415
        from vani.centre.plan.running_jobs import plan_running_jobs  # noqa: PLC0415 - only planning needs it

        return plan_running_jobs(
            place,
            SharingRules(**rules),
            None if is_end else number,
            now_s=now_s,
            say=lambda text: say(text, log),
        )

    place = State(state)
    if is_end:
        return f"ended; {plan_for_ended(place, number, deadline, plan)}"
    return plan_for_new(place, os.environ, deadline, plan)


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
