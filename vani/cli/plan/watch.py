"""`vani plan watch`."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from vani.cli.options import FILE
from vani.cli.plan.job import say, sharing_options
from vani.errors import InputError

__all__ = ["watch"]


@click.command()
@click.option("--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans.")
@sharing_options
@click.option(
    "--placed", "logs", metavar="PATH", help="Log of the placement library for a job; %j is the job's number."
)
@click.option(
    "--trace", "traces", metavar="PATH", help="Trace of a job, which may still grow; %j is the job's number."
)
@click.option(
    "--running",
    type=FILE,
    metavar="DIR",
    help="Files that a Darshan with --enable-mmap-logs updates while programs run (DARSHAN_MMAP_LOGPATH).",
)
@click.option(
    "--interval", type=click.FloatRange(1), default=60.0, show_default=True, metavar="SECONDS", help="Between checks."
)
@click.option("--once", is_flag=True, help="Check once.")
@click.option("--apply", "is_applied", is_flag=True, help="Plan again if suggested.")
@click.option("--log", type=FILE, metavar="FILE", help="Write each line to this file, too.")
def watch(
    state: Path,
    logs: str | None,
    traces: str | None,
    running: Path | None,
    interval: float,
    once: bool,
    is_applied: bool,
    log: Path | None,
    **rules: Any,
) -> None:
    """Compare running jobs with their predictions and with the machine's current state, and suggest actions.

    Of each job that has a placement database, files that it creates and nobody foresaw are counted: from a tenth on,
    predict again; after three times in a row, retrain; from half on, start over (Tarazu). Of the machine: I/O nodes of
    running jobs that do not serve any more, those that are free again, and a metadata server that is too busy. From a
    trace or --running: jobs whose I/O is slower than their plan expects, and slow OSTs of their files. A line is
    printed when it is new. Only `plan again` can be applied: the layout of a file is decided when it is made.
    """
    before: set[str] = set()
    sources: dict[str, Any] = {"logs": logs, "traces": traces, "running": running, "watched": {}}
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


def _look(folder: Path, rules: dict[str, Any], sources: dict[str, Any], tell: Any, *, is_applied: bool) -> set[str]:
    """The lines of one look; what can be applied is, if that is wanted."""
    from vani.api.plan.pools import SharingRules  # noqa: PLC0415 - `vani --help` pays for none of it
    from vani.api.plan.watch import look, plan_again  # noqa: PLC0415
    from vani.prolog.state import State  # noqa: PLC0415

    state, sharing = State(folder), SharingRules(**rules)
    jobs = state.running(now_s=time.time(), expire_s=sharing.expire_s, say=tell)
    suggestions = list(look(state, jobs, sharing, **sources))
    lines = {str(suggestion) for suggestion in suggestions}
    if is_applied and any(suggestion.action == "plan again" for suggestion in suggestions):
        lines.add(plan_again(state, sharing, now_s=time.time(), say=tell))
    return lines
