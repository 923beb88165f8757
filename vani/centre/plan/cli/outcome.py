"""`vani plan outcome`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import centre
from vani.cli.options import FILE, quiet_option
from vani.errors import one_line
from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.centre.plan.outcome import JobOutcome

@click.command()
@click.argument("history", metavar="HISTORY")
@click.option("--state", type=FILE, required=True, metavar="DIR", help="Folder of the running jobs and plans.")
@click.option("--logs", type=FILE, required=True, metavar="DIR", help="Folder of Darshan's logs, or of traces.")
@click.option("--job", metavar="NUMBER", help="The job; by default all finished jobs.")
@quiet_option
def outcome(history: str, state: Path, logs: Path, job: str | None, quiet: bool) -> None:
    """Add the logs of finished jobs to HISTORY, and store their measured I/O times with those that their plans
    expected.

    The epilog runs it for its job. After its first run, plans of finished jobs wait for it in the state's folder
    `ended`. Run it for all jobs each night, for logs that arrive late.
    """
    outcomes = centre.plan_outcome(history, state, logs, job=job)
    if not quiet:
        for entry in outcomes:
            click.echo(one_line(_line(entry)))


def _line(outcome: JobOutcome) -> str:
    """One line with a job's expected and measured I/O time."""
    row = outcome.row
    if row is None:
        return f"job {outcome.job}: no log yet"
    if row.measured is None:
        return f"job {row.job}: {row.reason}"
    took = f"job {row.job} ({row.name}): {format_seconds(row.measured)} in I/O"
    if row.expected is None or row.low is None or row.high is None:
        return f"{took}; {row.reason}"
    ends = f"{format_seconds(row.low)} to {format_seconds(row.high)}"
    return f"{took}, {format_seconds(row.expected)} ({ends}) expected"
