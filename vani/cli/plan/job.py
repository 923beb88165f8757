"""`vani plan job`, which PrologSlurmctld and EpilogSlurmctld run. It always ends with 0."""

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
from vani.errors import one_line

__all__ = ["job"]


class _Harmless(click.Command):
    """A command line that cannot be understood is said, and ends with 0, too: else Slurm would requeue every job."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        is_trial = "--strict" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if is_trial:
                raise
            _say(f"{error.format_message().rstrip('.')}; nothing was planned")
            raise click.exceptions.Exit(0) from None


def _seconds(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A number of seconds, such as `2` or `2s`."""
    del ctx, param
    try:
        seconds = float(value.strip().removesuffix("s"))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= 1e9:
        raise click.BadParameter(f"{value!r} is no number of seconds above 0")
    return seconds


_OPTIONS: Final = (
    click.option("--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans."),
    click.option("--end", "is_end", is_flag=True, help="The job ended: free what it had (for the epilog)."),
    click.option("--known", type=FILE, metavar="DIR", help="Folder of jobs.yaml or profiles, by name of jobs."),
    click.option("--snapshot", type=FILE, metavar="FILE", help="The machine's state: its I/O nodes are the pool."),
    click.option(
        "--hosts-file", type=FILE, metavar="FILE", help="GekkoFS' file of hosts: the pool, and how it is numbered."
    ),
    click.option("--io-nodes", type=int, metavar="N", help="I/O nodes of the pool, or of the snapshot at most."),
    click.option(
        "--policy",
        type=click.Choice(["mckp", "static", "size"]),
        default="mckp",
        show_default=True,
        help="How they are shared: mckp is the optimum.",
    ),
    click.option(
        "--objective",
        type=click.Choice(["sum", "max-min", "proportional"]),
        default="sum",
        show_default=True,
        help="What mckp makes large.",
    ),
    click.option(
        "--floor", type=float, default=0.0, metavar="SHARE", help="Share of its own best that each job gets at least."
    ),
    click.option("--direct/--no-direct", default=True, help="Whether jobs may do without I/O nodes."),
    click.option(
        "--nodes-per-io-node", type=float, metavar="R", help="Compute nodes per I/O node, for jobs of unknown figures."
    ),
    click.option(
        "--estimate",
        type=click.Choice(["near", "nearest", "none"]),
        default="near",
        show_default=True,
        help="Which measured patterns stand for a job without a curve.",
    ),
    click.option(
        "--change-cost",
        "change_cost_s",
        callback=lambda ctx, param, value: 0.0 if value is None else _seconds(ctx, param, value),
        metavar="SECONDS",
        help="I/O time that a running job loses when its number changes.",
    ),
    click.option(
        "--expire",
        "expire_s",
        default=str(7 * 86400),
        callback=_seconds,
        metavar="SECONDS",
        show_default=True,
        help="Forget a job so long after it began, if its end was not reported.",
    ),
    click.option(
        "--budget", "budget_s", default="2s", callback=_seconds, metavar="SECONDS", show_default=True,
        help="End after so long, start-up included, planned or not.",
    ),
    click.option("--log", type=FILE, metavar="FILE", help="Write what was done, or was not, to this file, too."),
    click.option("--strict", is_flag=True, help="End with 2 where there is no plan: to try it out."),
)  # fmt: skip


def _with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(cls=_Harmless)
@_with_options
def job(state: Path, is_end: bool, budget_s: float, log: Path | None, strict: bool, **rules: Any) -> None:
    """Plan for one job that begins, or with --end ends, as PrologSlurmctld and EpilogSlurmctld run it.

    The job is told by the variables that Slurm sets. Its plan, its forwarding map and what its tasks export are files
    NUMBER.yaml, NUMBER.map and NUMBER.env of the state's folder. It ends with 0 within the budget whatever happens, as
    Slurm requeues a job whose prolog fails.
    """
    from vani.prolog.budget import Deadline, within  # noqa: PLC0415 - `vani --help` pays for none of it

    deadline = Deadline(budget_s)
    first = partial(_note, state, is_end=is_end)
    done, said = within(deadline, first, partial(_plan, state, rules, deadline, log, is_end=is_end))
    number = os.environ.get("SLURM_JOB_ID") or "?"
    _say(f"job {number[:40]}: {said}" if done else f"job {number[:40]}: NOT PLANNED: {said}", log)
    if strict and not done:
        click.get_current_context().exit(2)


def _note(state: Path, *, is_end: bool) -> None:
    """Write down that the job runs, or that it ended: that must not be lost, however little time there is."""
    from vani.prolog.job_facts import number_of  # noqa: PLC0415
    from vani.prolog.state import State  # noqa: PLC0415

    if is_end:
        State(state).forget(number_of(os.environ))
    else:
        State(state).register(os.environ)


def _plan(state: Path, rules: dict[str, Any], deadline: Any, log: Path | None, *, is_end: bool) -> str:
    from vani.prolog.job_facts import number_of  # noqa: PLC0415
    from vani.prolog.planning_lock import plan_for_ended, plan_for_new  # noqa: PLC0415
    from vani.prolog.state import State  # noqa: PLC0415

    number = number_of(os.environ)
    now_s = time.time()

    def plan() -> str:
        from vani.api.plan.job import SharingRules, plan_running_jobs  # noqa: PLC0415 - only who plans pays for it

        return plan_running_jobs(
            place,
            SharingRules(**rules),
            None if is_end else number,
            now_s=now_s,
            say=lambda text: _say(text, log),
        )

    place = State(state)
    if is_end:
        return f"ended; {plan_for_ended(place, number, deadline, plan)}"
    return plan_for_new(place, os.environ, deadline, plan)


def _say(text: str, log: Path | None = None) -> None:
    """One line on stderr and in the log, as far as they can be written."""
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
