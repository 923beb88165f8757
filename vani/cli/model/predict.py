"""`vani model predict`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import format_option, output_option
from vani.cli.output import emit
from vani.cli.places import check_places
from vani.render.prediction import FORMATS

__all__ = ["predict"]


@click.command()
@click.option("--system", required=True, metavar="NAME", help="The machine: titan or cetus.")
@click.option("-n", "--nodes", type=int, required=True, metavar="N", help="Compute nodes that write.")
@click.option(
    "-m", "--processes-per-node", type=int, required=True, metavar="M", help="Processes of each that write."
)
@click.option(
    "-K", "--bytes-per-process", required=True, metavar="SIZE", help="What each writes, such as 500MB."
)
@click.option("-W", "--stripe-count", type=int, metavar="W", help="Of each file, where there are stripes.")
@format_option(FORMATS, default=None, help="What is written; by the end of -o's name, else text.")
@output_option()
def predict(
    system: str,
    nodes: int,
    processes_per_node: int,
    bytes_per_process: str,
    stripe_count: int | None,
    kind: str | None,
    output: Path | None,
) -> None:
    """Tell how long a write of a file per process takes on a machine, with every term of the model."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    check_places([output])
    found = api.model_predict(system, nodes, processes_per_node, bytes_per_process, stripe_count=stripe_count)
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit(FORMATS.render(kind, found), output)
