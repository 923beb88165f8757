"""`vani collect`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.output import check_output, emit, eyes, quiet_option, watched

__all__ = ["collect"]


@click.command()
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not to stdout."
)
@click.option(
    "--dataset",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of the input: formats, sizes and dims are sampled.",
)
@quiet_option
def collect(output: Path | None, dataset: Path | None, quiet: bool) -> None:
    """Write down what only the running job knows: nodes, cores, limits, mounts, data set.

    Run it inside the job, then give the file to `vani profile --job`.
    """
    check_output(output)
    from vani.collect import collect as run  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    job = run(dataset=dataset)
    emit(dumps(job), output)
    if watched(quiet=quiet) and job.unknown:
        eyes().print(f"{len(job.unknown)} facts are unknown; the document says why", markup=False)
