"""Options that commands of `vani history` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["db_option", "period_options"]

db_option = click.option(
    "--database",
    "db",
    metavar="FILE|URL",
    help="The history: a file, or postgresql://...; by default what VANI_HISTORY names, else a file of yours.",
)


def period_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--since` and `--until`."""
    since = click.option(
        "--since", metavar="DAY", help="First day of the runs: YYYY-MM-DD or YYYY-MM, in UTC."
    )
    until = click.option("--until", metavar="DAY", help="Last day of the runs, or last month.")
    decorated: Callable[..., Any] = since(until(command))
    return decorated
