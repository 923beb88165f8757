"""`vani plan watch`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from vani.centre.plan.cli.job import say, sharing_options
from vani.cli.options import FILE
from vani.errors import InputError


@click.command()
@click.option("--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans.")
@sharing_options
@click.option(
    "--trace", "traces", metavar="PATH", help="Trace of a job, which may still grow; %j is the job's number."
)
@click.option(
    "--interval",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time between checks.",
)
@click.option("--once", is_flag=True, help="Check once and exit.")
@click.option("--apply", "is_applied", is_flag=True, help="Plan again whenever that is suggested.")
@click.option("--log", type=FILE, metavar="FILE", help="Write each line to this file, too.")
def watch(
    state: Path,
    traces: str | None,
    interval: float,
    once: bool,
    is_applied: bool,
    log: Path | None,
    **rules: Any,
) -> None:
    """Compare running jobs with their predictions and with the machine's current state, and suggest actions.

    For each job with a placement database, it counts files that were not predicted: at a tenth, predict again;
    after three times in a row, retrain; at half, start over (Tarazu). For the machine, it reports I/O nodes
    of running jobs that no longer serve, I/O nodes that are free again, and an overloaded metadata server. From a
    trace: jobs whose I/O is slower than their plan expects, and slow OSTs of their files. Only new
    lines are printed. Only `plan again` can be applied: the layout of a file is fixed when it is created.
    """
    before: set[str] = set()
    sources: dict[str, Any] = {"traces": traces, "watched": {}}
    while True:
        try:
            lines = _look(state, rules, sources, partial(say, log=log), is_applied=is_applied)
        except InputError as error:
            if once:
                raise
            lines = {str(error)}
        for line in sorted(lines - before):
            click.echo(line)
        if once:
            return
        before = lines
        time.sleep(interval)


def _look(folder: Path, rules: dict[str, Any], sources: dict[str, Any], say: Any, *, is_applied: bool) -> set[str]:
    """Check once and return the lines; with `is_applied`, also apply the actions that can be applied."""
    from vani.centre.plan.pools import SharingRules  # noqa: PLC0415 - `vani --help` pays for none of it
    from vani.centre.plan.watch import look, plan_again  # noqa: PLC0415
    from vani.centre.prolog.state import State  # noqa: PLC0415

    state, sharing = State(folder), SharingRules(**rules)
    jobs = state.running(now_s=time.time(), expire_s=sharing.expire_s, say=say)
    suggestions = list(look(state, jobs, sharing, **sources))
    lines = {str(suggestion) for suggestion in suggestions}
    if is_applied and any(suggestion.action == "plan again" for suggestion in suggestions):
        lines.add(plan_again(state, sharing, now_s=time.time(), say=say))
    return lines
