"""Options and arguments shared by several commands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from vani.render.formats import Formats

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class _Place(click.Path):
    """A non-empty path: an unset shell variable gives an empty one, which would mean the current folder."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        if not os.fspath(value):
            self.fail("is empty: is a variable not set?", parameter, context)
        return super().convert(value, parameter, context)


FILE: Final = _Place(path_type=Path)

_DIGITS: Final = 18

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No summary and no progress on stderr.")


def source_argument(name: str = "profile", **more: Any) -> Decorator:
    """A run, given as a profile or a trace; see `vani.api.source.is_trace`."""
    return click.argument(name, type=FILE, **{"metavar": "PROFILE|TRACE", **more})


def output_option(help: str = "Write here, not to stdout.", **more: Any) -> Decorator:
    return click.option("-o", "--output", type=FILE, metavar="FILE", help=help, **more)


def system_option(
    help: str = "The machine: a bundled name or a system.yaml; by default from `vani config`.",
    *,
    of_site: bool = True,
) -> Decorator:
    """The machine; with `of_site`, the default is the one configured by the user or the centre."""

    def named(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
        del param
        if value is not None or not of_site or ctx.resilient_parsing:
            return value
        from vani.site import setting  # noqa: PLC0415 - `vani --help` reads no file

        return setting("system").value

    return click.option("--system", metavar="NAME|FILE", help=help, callback=named)


def format_option(
    formats: Formats[str] | Formats[bytes], *, default: str | None, help: str = "Output format."
) -> Decorator:
    """Option for the format of a document; the command receives it as `kind`."""
    return click.option(
        "--format",
        "kind",
        type=click.Choice(list(formats)),
        default=default,
        show_default=default is not None,
        help=help,
    )


def files_option(help: str, *, default: int, least: int = 0) -> Decorator:
    """A number of files, at least `least`, or `all`, which the command receives as None."""

    def number_or_all(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
        del ctx, param
        if value == "all":
            return None
        # No run has more files, and Python refuses to parse a number with thousands of digits.
        if not value.isdecimal() or len(value) > _DIGITS or int(value) < least:
            raise click.BadParameter(f"{value!r} is neither a number of files nor 'all'")
        return int(value)

    return click.option(
        "--files",
        default=str(default),
        show_default=True,
        metavar="N|all",
        callback=number_or_all,
        help=help,
    )
