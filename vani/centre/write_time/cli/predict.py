"""`vani model predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vani import centre
from vani.centre.prediction.text import FORMATS
from vani.cli.options import FILE, format_option, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs


@click.command()
@click.option("--model", type=FILE, metavar="FILE", help="A model that `vani model fit` wrote.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="A value for each column of the model.",
)
@click.option("--system", metavar="NAME", help="A published model: titan or cetus.")
@click.option("-n", "--nodes", type=int, metavar="N", help="Writing compute nodes.")
@click.option("-m", "--processes-per-node", type=int, metavar="M", help="Writing processes per node.")
@click.option(
    "-K", "--bytes-per-process", metavar="SIZE", help="Bytes per process and file, such as 500MB."
)
@click.option(
    "-W", "--stripe-count", type=int, metavar="W", help="Stripe count of each file, if the machine has stripes."
)
@click.option(
    "--mapping",
    type=FILE,
    metavar="FILE",
    help="CSV with the router or I/O node of each node: node,router or node,io_node,bridge,link. Without it, a "
    "range is predicted.",
)
@click.option(
    "--job-nodes", metavar="LIST", help="The job's nodes among the mapped ones, such as nid[001-128]; by default all."
)
@format_option(FORMATS, default=None, help="Output format; by default from the suffix of -o, else text.")
@output_option()
def predict(kind: str | None, output: Path | None, settings: tuple[str, ...], **arguments: Any) -> None:
    """Predict the time of a write.

    Use a fitted model (--model, --set) or a published model of a machine (--system, -n, -m, -K, -W), which
    also shows its terms.
    """
    check_outputs([output], [arguments["model"], arguments["mapping"]])
    prediction = centre.model_predict(values=_pairs(settings), **arguments)
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit(FORMATS.render(kind, prediction), output)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or name in pairs:
            raise click.UsageError(f"--set {setting!r} is not COLUMN=VALUE, or sets its column twice")
        pairs[name] = value
    return pairs
