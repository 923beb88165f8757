"""Options of the commands that read samples of writes."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Literal, TypedDict

import click

from vani.centre.history.settings import db_option
from vani.cli.options import FILE


class SampleOptions(TypedDict):
    """Options passed on to the library unchanged."""

    samples: tuple[Path, ...]
    scale: str | None
    system: Literal["cetus", "titan"] | None
    confidence: float
    application: str | None
    user: str | None
    db: str | None


_OPTIONS = (
    click.argument("samples", type=FILE, nargs=-1),
    click.option(
        "--scale",
        metavar="COLUMN",
        help="Column of the scale; by default nodes, else processes, else bytes.",
    ),
    click.option(
        "--system",
        type=click.Choice(["cetus", "titan"]),
        help="Machine whose features (Xie et al.) are used instead of the loads of columns.",
    ),
    click.option(
        "--confidence",
        type=float,
        default=0.9,
        show_default=True,
        metavar="P",
        help="Required confidence that the mean of repetitions is within a tenth of the true mean; other "
        "samples are set aside.",
    ),
    click.option("--application", metavar="APP", help="Also use the writing runs of APP in a history."),
    click.option("--user", metavar="USER", help="Only runs of this user."),
    db_option,
)


def samples_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add SAMPLES, and the options that select among them, to a command."""
    return reduce(lambda so_far, option: option(so_far), reversed(_OPTIONS), command)
