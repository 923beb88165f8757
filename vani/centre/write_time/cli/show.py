"""`vani model show`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE


@click.command()
@click.argument("model", type=FILE)
def show(model: Path) -> None:
    """Show the samples of MODEL (from `vani model fit`), and the bandwidth of each stage with its range.

    Stages with little time in every sample cannot be identified.
    """
    from vani.centre.write_time.model_text import model_text  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.centre.write_time.schema import WriteModel  # noqa: PLC0415

    click.echo(model_text(WriteModel.load(model)), nl=False)
