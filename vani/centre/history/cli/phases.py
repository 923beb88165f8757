"""`vani history phases`."""

from __future__ import annotations

from pathlib import Path

import click

from vani import centre
from vani.cli.options import FILE


@click.command()
@click.argument("paths", type=FILE, nargs=-1, required=True, metavar="PATH ...")
def phases(paths: tuple[Path, ...]) -> None:
    """Find the phases of runs in their time series, and show which runs have the same phases.

    PATHs are traces, and Darshan logs with DXT or a heat map, of one category: an application of a user with one number
    of processes. It needs `pip install 'vani-io[centre]'`.
    """
    from vani.centre.prediction.text.run_phases import run_phases  # noqa: PLC0415

    click.echo(run_phases(centre.history_phases(*paths)), nl=False)
