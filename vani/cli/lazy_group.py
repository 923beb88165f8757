"""Command groups that import a command only when it is called, so that `--help` imports none."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from vani.errors import nearest


def commands_from(table: Mapping[str, tuple[str, str]]) -> type[click.Group]:
    """Make a group class.

    Parameters
    ----------
    table
        Maps each command's name to `module:function` and its line of help.
    """

    class Commands(click.Group):
        """A group that imports a command when it is called."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            del ctx
            return list(table)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            del ctx
            if cmd_name not in table:
                return None
            module, _, name = table[cmd_name][0].partition(":")
            command: click.Command = getattr(import_module(module), name)
            return command

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            del ctx
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in table.items()])

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            name = args[0] if args else ""
            if name and not name.startswith("-") and name not in table:
                ctx.fail(f"no command {name!r}; {nearest(name, table, f'`{ctx.command_path} --help` lists them')}")
            return super().resolve_command(ctx, args)

    return Commands
