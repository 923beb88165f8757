"""`vani history show` and `vani history letter`."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import click

from vani import centre
from vani.centre.history.cli.options import db_option, period_options, user_options
from vani.cli.options import output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


class ShowOptions(TypedDict):
    """Options passed on to the library unchanged."""

    db: str | None
    since: str | None
    until: str | None


@click.command()
@click.argument("application", metavar="APP")
@user_options("The same as USER.")
@db_option
@period_options
@output_option()
def show(application: str, user: str | None, output: Path | None, **options: Unpack[ShowOptions]) -> None:
    """Show the runs of APP, by USER or by all users.

    Trend by month, spread within each category, changes of behaviour, and the worst run with its advice.
    """
    from vani.centre.history.text.story import story  # noqa: PLC0415

    check_outputs([output])
    emit(story(centre.history_show(application, user, **options)), output)


@click.command()
@click.argument("application", metavar="APP")
@click.argument("user")
@db_option
@period_options
@click.option(
    "--sent", metavar="DAY", help="Record that it was sent on this day, YYYY-MM-DD, for `vani history outcome`."
)
@output_option()
def letter(
    application: str, user: str, sent: str | None, output: Path | None, **options: Unpack[ShowOptions]
) -> None:
    """Write a letter to USER about APP, with the lines to paste, or state that nothing can be saved."""
    from vani.centre.history.text.story import letter as written  # noqa: PLC0415

    check_outputs([output])
    _record(application, user, options["db"], sent)
    emit(written(centre.history_show(application, user, **options)), output)


def _record(application: str, user: str, db: str | None, sent: str | None) -> None:
    if sent is not None:
        centre.history_record_letter(application, user, db=db, sent=sent)
