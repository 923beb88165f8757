"""Options shared by commands of `vani history`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

db_option = click.option(
    "--database",
    "db",
    metavar="FILE|URL",
    help="The history: a file or postgresql://...; by default VANI_HISTORY, else a file in your home.",
)


def period_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--since` and `--until` to a command."""
    since = click.option(
        "--since", metavar="DAY", help="First day of the runs: YYYY-MM-DD or YYYY-MM, in UTC."
    )
    until = click.option("--until", metavar="DAY", help="Last day or month of the runs.")
    decorated: Callable[..., Any] = since(until(command))
    return decorated


def user_options(help: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the user who runs the job, given as USER or as `--user NAME`, to a command as the parameter `user`."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_user(*args: Any, user: str | None, named: str | None, **others: Any) -> Any:
            if user is not None and named is not None and user != named:
                raise click.UsageError(f"USER is {user!r} and --user is {named!r}: give one of them")
            return command(*args, user=user if user is not None else named, **others)

        option = click.option("--user", "named", metavar="NAME", help=help)
        wrapped: Callable[..., Any] = click.argument("user", required=False)(option(with_user))
        return wrapped

    return decorated
