"""`vani plan learn`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import centre
from vani.cli.options import FILE, quiet_option
from vani.errors import one_line
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.plan.learn import Learned, LearnedDocument

_SHOWN = 20


@click.command()
@click.argument("history", metavar="HISTORY")
@click.option(
    "-o",
    "--output",
    "folder",
    type=FILE,
    required=True,
    metavar="DIR",
    help="Folder to write to, for --known of `vani plan job`.",
)
@click.option(
    "--days",
    type=float,
    default=90.0,
    show_default=True,
    metavar="N",
    help="Skip applications without a run in the last N days.",
)
@click.option(
    "--processes-per-node", type=int, metavar="N", help="Processes per node of runs whose number of nodes is unknown."
)
@quiet_option
def learn(history: str, folder: Path, days: float, processes_per_node: int | None, quiet: bool) -> None:
    """Learn from the runs of HISTORY what future jobs need, for `vani plan job --known DIR`.

    Each pair of user and job name gets a document, DIR/USER/NAME.yaml, with a job for each number of nodes: rates,
    bytes, expected files, I/O time and curves. Run it each night. The same history always gives the same files.
    Nothing is removed, and documents that people wrote are not changed.
    """
    learned = centre.plan_learn(history, folder, days=days, processes_per_node=processes_per_node)
    if not quiet:
        _say(learned)


def _say(learned: Learned) -> None:
    for document in learned.documents[:_SHOWN]:
        click.echo(_line(document))
    if len(learned.documents) > _SHOWN:
        click.echo(f"and {counted(len(learned.documents) - _SHOWN, 'document')} more")
    new = sum(document.is_new for document in learned.documents)
    click.echo(f"{counted(len(learned.documents), 'document')}, {new:,} written", err=True)
    for entry in learned.left[:_SHOWN]:
        click.echo(f"vani: {one_line(entry.name)}: {one_line(entry.reason)}", err=True)
    if len(learned.left) > _SHOWN:
        click.echo(f"vani: and {len(learned.left) - _SHOWN:,} more are left out", err=True)


def _line(document: LearnedDocument) -> str:
    jobs = document.jobs.jobs
    unknown = sorted({entry.name for job in jobs for entry in job.unknown})
    lacks = f"; not known: {', '.join(unknown)}" if unknown else ""
    runs = counted(sum(job.runs or 0 for job in jobs), "run")
    return one_line(f"{document.path}: {counted(len(jobs), 'scale')} from {runs}{lacks}")
