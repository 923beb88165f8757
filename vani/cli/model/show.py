"""`vani model show`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE

__all__ = ["show"]


@click.command()
@click.argument("model", type=FILE)
def show(model: Path) -> None:
    """Show the samples of MODEL, which `vani model fit` wrote, and the bandwidth of each stage with its range.

    A stage that makes up little of the time of every sample is not identified.
    """
    from vani.render.write_model import model_text  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.schema.write_model import WriteModel  # noqa: PLC0415

    click.echo(model_text(WriteModel.load(model)), nl=False)
