"""`vani model fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from vani import centre
from vani.centre.write_time.cli.samples import SampleOptions, samples_options
from vani.cli.options import output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


@click.command()
@samples_options
@click.option("--method", metavar="NAME", help="Use this method instead of the best one.")
@output_option("Write the model here, not to stdout.")
def fit(method: str | None, output: Path | None, **options: Unpack[SampleOptions]) -> None:
    """Fit a model of write times to SAMPLES: CSV files, or IOR output as text or JSON.

    Each method is fitted without the largest scale and judged on it; the best one is fitted to all. A model that would
    be off by more than a factor of 3 for one write in ten is not written.
    """
    check_outputs([output], options["samples"])
    emit(centre.model_fit(method=method, **options).to_yaml(), output)
