"""Command groups that import a command only when it is called, so that `--help` imports none."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module

import click

from vani.errors import InputError, nearest
from vani.plug_ins import plug_ins


@dataclass(frozen=True)
class _Entry:
    """A command as `module:function`, and its line of help; without one, that of the command, once imported."""

    origin: str
    help: str = ""

    def command(self) -> click.Command:
        module, _, name = self.origin.partition(":")
        try:
            command: click.Command = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            package = str(error.name).partition(".")[0]
            if package == "vani" or not module.startswith("vani.centre."):
                raise
            raise InputError(f"this command needs {package}", todo="pip install 'vani-io[centre]'") from error
        return command


def commands_from(
    own: Mapping[str, tuple[str, str]], *, entry_points: str | None = None, set_up: Collection[str] = ()
) -> type[click.Group]:
    """Make a group class.

    Parameters
    ----------
    own
        Maps each command's name to `module:function` and its line of help.
    entry_points
        Group of entry points with more commands: those of the centre and of other distributions.
    set_up
        Rarely needed commands, which the help lists apart.
    """

    def entry_of(name: str) -> _Entry | None:
        # Looking for plug-ins takes time, so the commands of the table come first.
        return _Entry(*own[name]) if name in own else entries().get(name)

    def entries() -> dict[str, _Entry]:
        points = plug_ins(entry_points) if entry_points is not None else ()
        added = {point.name: _Entry(point.value) for point in points if point.name not in own}
        return {name: _Entry(*entry) for name, entry in own.items()} | added

    class Commands(click.Group):
        """A group that imports a command when it is called."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            del ctx
            return list(entries())

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            del ctx
            entry = entry_of(cmd_name)
            return None if entry is None else entry.command()

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            del ctx
            rows = [(n, entry.help or entry.command().get_short_help_str(90)) for n, entry in entries().items()]
            for title, is_set_up in (("Commands", False), ("Set-up", True)):
                if of_section := [row for row in rows if (row[0] in set_up) is is_set_up]:
                    with formatter.section(title):
                        formatter.write_dl(of_section)

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            name = args[0] if args else ""
            if name and not name.startswith("-") and entry_of(name) is None:
                ctx.fail(f"no command {name!r}; {nearest(name, entries(), f'`{ctx.command_path} --help` lists them')}")
            return super().resolve_command(ctx, args)

    return Commands
