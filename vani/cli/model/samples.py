"""What every command takes that reads samples of writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import click

from vani.cli.options import FILE

__all__ = ["samples_options"]

_OPTIONS = (
    click.argument("samples", type=FILE),
    click.option(
        "--scale",
        default="nodes",
        show_default=True,
        metavar="COLUMN",
        help="Column by which samples are small or large.",
    ),
    click.option(
        "--system",
        type=click.Choice(["cetus", "titan"]),
        help="Machine whose features of Xie et al. are used, not the loads of the columns.",
    ),
)


def samples_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command SAMPLES, `--scale` and `--system`."""
    return reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
