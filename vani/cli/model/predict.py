"""`vani model predict`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from vani import api
from vani.cli.options import FILE, format_option, output_option
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.render.prediction import FORMATS

__all__ = ["predict"]


@click.command()
@click.option("--model", type=FILE, metavar="FILE", help="A model that `vani model fit` wrote.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="The question to the model, a value for each of its columns.",
)
@click.option("--system", metavar="NAME", help="A published model: titan or cetus.")
@click.option("-n", "--nodes", type=int, metavar="N", help="Compute nodes that write.")
@click.option("-m", "--processes-per-node", type=int, metavar="M", help="Processes of each that write.")
@click.option(
    "-K", "--bytes-per-process", metavar="SIZE", help="Bytes that each writes to its file, such as 500MB."
)
@click.option("-W", "--stripe-count", type=int, metavar="W", help="Stripe count of each file, where there are stripes.")
@click.option(
    "--mapping",
    type=FILE,
    metavar="FILE",
    help="Router or I/O node of each node, as CSV: node,router or node,io_node,bridge,link; a range without it.",
)
@click.option(
    "--job-nodes", metavar="LIST", help="Which of the nodes mapped the job has, such as nid[001-128]; all."
)
@format_option(FORMATS, default=None, help="Output format; by the suffix of -o, else text.")
@output_option()
def predict(kind: str | None, output: Path | None, settings: tuple[str, ...], **arguments: Any) -> None:
    """Predict the time of a write.

    By a model that was fitted (--model, --set), or by one that was published for a machine (--system, -n, -m, -K, -W),
    then with every term.
    """
    check_outputs([output], [arguments["model"], arguments["mapping"]])
    prediction = api.model_predict(values=_pairs(settings), **arguments)
    kind = kind or (FORMATS.of_file(output) if output is not None else None) or "text"
    emit(FORMATS.render(kind, prediction), output)


def _pairs(settings: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for setting in settings:
        name, sign, value = setting.partition("=")
        if not sign or name in pairs:
            raise click.UsageError(f"--set {setting!r} is no COLUMN=VALUE, or its column is set twice")
        pairs[name] = value
    return pairs
