"""`vani history evaluate`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.centre.history.cli.options import db_option
from vani.cli.options import FILE


@click.command()
@click.argument("table", type=FILE, required=False, metavar="[FILE.csv]")
@db_option
@click.option(
    "--last",
    type=float,
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Share of the runs to predict.",
)
def evaluate(table: Path | None, db: str | None, last: float) -> None:
    """Test all predictors of behaviour on the latest runs of a history, or of a table of runs.

    Each run is predicted from all earlier runs, and again from only the runs that had ended before it started. FILE
    has a row per run: application, user, processes, start, end, bytes_read, bytes_written, metadata_ops.
    """
    from vani.centre.prediction.text.behaviour_scores import behaviour_scores  # noqa: PLC0415

    click.echo(behaviour_scores(centre.history_evaluate(table, last=last, db=db)), nl=False)
