"""`vani collect`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE, output_option, quiet_option
from vani.cli.output import emit, shows_summary, summary_console
from vani.cli.output_guard import check_outputs


@click.command("collect")
@output_option()
@click.option(
    "--dataset",
    type=FILE,
    metavar="DIR",
    help="Folder of input or of earlier output: formats, sizes, shapes, values and compression are sampled.",
)
@click.option(
    "--sample",
    type=click.IntRange(0, 10_000_000),
    metavar="N",
    help="Number of values (8192) to read from the data set for their distribution; 0: none, and no compression.",
)
@click.option(
    "--dtype",
    metavar="TYPE",
    help="NumPy type of the values in raw files: float32, >f8, int16, ...",
)
@quiet_option
def command(
    output: Path | None, dataset: Path | None, sample: int | None, dtype: str | None, quiet: bool
) -> None:
    """Record what only the running job can see: nodes, cores, limits, mounts, data set.

    Run it inside the job, then give the file to `vani profile --job`.
    """
    check_outputs([output], data=dataset)
    if dataset is None and (sample is not None or dtype is not None):
        raise click.UsageError("--sample and --dtype need --dataset")
    from vani.collect import Bounds  # noqa: PLC0415
    from vani.collect import collect as run  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    bounds = Bounds() if sample is None else Bounds(values=sample, packed=Bounds.packed if sample else 0)
    job = run(dataset=dataset, bounds=bounds, raw_type=dtype)
    emit(dumps(job), output)
    if shows_summary(output, quiet=quiet) and job.unknown:
        summary_console().print(f"{len(job.unknown)} facts are unknown; the document gives the reasons", markup=False)
