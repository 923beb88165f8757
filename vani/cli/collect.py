"""`vani collect`: records what only the running job can see."""

from pathlib import Path
from typing import Annotated

import click
from pydantic import Field

from vani.cli.options import output_option, quiet_option, settings_options
from vani.cli.output import check_outputs, emit, say, shows_summary
from vani.collect import Bounds, collect
from vani.schema.document import dumps
from vani.schema.settings import Option, Settings


class CollectSettings(Settings):
    """The data set to describe."""

    dataset: Annotated[Path | None, Option(metavar="DIR")] = Field(
        default=None,
        description="Folder of input or of earlier output: formats, sizes, shapes, values and compression are sampled.",
    )
    sample: Annotated[int, Field(ge=0, le=10_000_000)] | None = Field(
        default=None,
        description="Number of values (8192) to read from the data set for their distribution; 0: none, and no "
        "compression.",
    )
    dtype: Annotated[str | None, Option(metavar="TYPE")] = Field(
        default=None, description="NumPy type of the values in raw files: float32, >f8, int16, ..."
    )


@click.command("collect")
@output_option()
@settings_options(CollectSettings)
@quiet_option
def command(output: Path | None, settings: CollectSettings, quiet: bool) -> None:
    """Record what only the running job can see: nodes, cores, limits, mounts, data set.

    Run it inside the job, then give the file to `vani profile --job`.
    """
    dataset, sample = settings.dataset, settings.sample
    check_outputs([output], data=dataset)
    if dataset is None and (sample is not None or settings.dtype is not None):
        raise click.UsageError("--sample and --dtype need --dataset")
    bounds = Bounds() if sample is None else Bounds(values=sample, packed=Bounds.packed if sample else 0)
    job = collect(dataset=dataset, bounds=bounds, raw_type=settings.dtype)
    emit(dumps(job), output)
    if shows_summary(output, quiet=quiet) and job.unknown:
        say(f"{len(job.unknown)} facts are unknown; the document gives the reasons")
