"""`vani history daily`."""

from __future__ import annotations

import click

from vani import centre
from vani.centre.history.cli.options import db_option


@click.command()
@click.argument("application", metavar="APP")
@click.argument("user", required=False)
@db_option
@click.pass_context
def daily(ctx: click.Context, application: str, user: str | None, db: str | None) -> None:
    """Compare the latest run of a daily benchmark with the median of the seven before it.

    APP runs repeatedly with the same input; runs that move other amounts are a separate series. Times are the
    slowest process's time in I/O calls. The usual range covers nine of ten earlier runs, each relative to the median
    of the seven before it. The expected time of the next run is the median of the last seven. Exit status: 0 no
    series is slower than usual, 1 a series is slower, 2 no series has eight runs, or bad input.
    """
    from vani.centre.history.text.daily import daily_text  # noqa: PLC0415

    series = centre.history_daily(application, user, db=db)
    click.echo(daily_text(application, series), nl=False)
    ctx.exit(1 if any(runs.verdict == "slower" for runs in series) else 0 if series else 2)
