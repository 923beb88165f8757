"""`vani history predict`."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict, Unpack

import click

from vani import centre
from vani.centre.history.cli.options import db_option, user_options
from vani.centre.prediction.text import FORMATS
from vani.cli.options import format_option, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


class PredictOptions(TypedDict):
    """Options passed on to the library unchanged."""

    user: str | None
    processes: int | None
    db: str | None


@click.command()
@click.argument("application", metavar="APP")
@user_options("The same as USER; by default the user of the latest run.")
@click.option("--processes", type=int, metavar="N", help="Its number of processes; by default as in the latest run.")
@db_option
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def predict(application: str, kind: str | None, output: Path | None, **options: Unpack[PredictOptions]) -> None:
    """Predict the behaviour of the next run of APP, with probabilities and bytes.

    Runs have the same behaviour where bytes read, bytes written and metadata operations agree within a factor of 1.2.
    """
    check_outputs([output])
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit(FORMATS.render(kind, centre.history_predict(application, **options)), output)
