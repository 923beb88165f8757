"""`vani history metrics`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.history.cli.options import db_option
from vani.cli.options import output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


@click.command()
@db_option
@click.option(
    "--days",
    type=int,
    default=30,
    show_default=True,
    metavar="N",
    help="Length of the period before the last run, in days.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Maximum number of pairs (application and user) and of targets.",
)
@output_option()
def metrics(db: str | None, days: int, limit: int, output: Path | None) -> None:
    """Write figures for Prometheus (OpenMetrics): sums of all runs; pairs and storage targets of the last days.

    node_exporter reads this file from the folder of its textfile collector.
    """
    check_outputs([output])
    emit(centre.history_metrics(db=db, days=days, limit=limit), output)
