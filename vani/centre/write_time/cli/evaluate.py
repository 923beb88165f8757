"""`vani model evaluate`."""

from __future__ import annotations

from typing import Unpack

import click

from vani import centre
from vani.centre.write_time.cli.samples import SampleOptions, samples_options


@click.command()
@samples_options
@click.option(
    "--up-to", type=str, required=True, metavar="VALUE", help="The largest scale to fit."
)
def evaluate(up_to: str, **options: Unpack[SampleOptions]) -> None:
    """Compare all methods on the larger scales of SAMPLES.

    Methods are fitted to scales up to --up-to and judged on the larger scales.
    """
    from vani.centre.write_time.evaluation_text import evaluation_text  # noqa: PLC0415

    click.echo(evaluation_text(centre.model_evaluate(up_to=up_to, **options)), nl=False)
