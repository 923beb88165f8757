"""`vani history targets`."""

from __future__ import annotations

import click

from vani import centre
from vani.centre.history.cli.options import db_option, period_options


@click.command()
@db_option
@period_options
@click.option(
    "--job", metavar="NUMBER", help="Time that this job of the batch system lost, compared with similar runs."
)
@click.option(
    "--limit", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Maximum number of rows."
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def targets(db: str | None, since: str | None, until: str | None, job: str | None, limit: int, kind: str) -> None:
    """Rank Lustre targets (OSTs) by the I/O time lost on them.

    Files on a target are compared with those of similar runs (application, user, processes) on all other targets.
    Darshan logs with the Lustre module, binary or printed, name the targets.
    """
    from vani.centre.history.text.targets import targets_as_json, targets_as_text  # noqa: PLC0415

    rows = centre.history_targets(db=db, since=since, until=until, job=job)
    click.echo(targets_as_json(rows[:limit]) if kind == "json" else targets_as_text(rows, limit), nl=False)
