"""`vani history top`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypedDict, Unpack

import click

from vani import centre
from vani.centre.history.cli.options import db_option, period_options
from vani.centre.history.text import FORMATS
from vani.cli.options import format_option, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


class TopOptions(TypedDict):
    """Options passed on to the library unchanged."""

    db: str | None
    by: Literal["pair", "user", "app", "category", "file-system", "account", "qos"]
    since: str | None
    until: str | None
    limit: int
    settings: bool


@click.command()
@db_option
@click.option(
    "--by",
    type=click.Choice(["pair", "user", "app", "category", "file-system", "account", "qos"]),
    default="pair",
    show_default=True,
    help="Sum by pair (application and user), category (also number of processes), ...; account "
    "and qos need `vani history import sacct.csv`.",
)
@period_options
@click.option("--limit", type=int, default=20, show_default=True, metavar="N", help="Maximum number of rows.")
@click.option("--settings", is_flag=True, help="Rank settings by total saving, with the users who would benefit.")
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def top(kind: str | None, output: Path | None, **options: Unpack[TopOptions]) -> None:  # fmt: skip
    """Rank the largest losses in I/O, with the setting that would save most.

    Costs are core-hours: "in I/O" is the time of all processes in I/O calls, "waiting" is the slowest process's
    I/O time times the number of processes. Possible savings are from advice on runs that `add` judged.
    """
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    check_outputs([output])
    emit(FORMATS.render(kind, centre.history_top(**options)), output)
