"""Sphinx extension: writes the help of every command below the page of commands.

The repository has no copy of it, so that no page must follow a change of an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from vani.cli.main import commands

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PAGE = "docs/commands"
_WIDTH = 80


def help_of_all() -> str:
    """Markdown: a heading and what `--help` prints, for `vani` and each command in the order of the help."""
    return "\n".join(f"## {name}\n\n```text\n{text}\n```\n" for name, text in _texts("vani", commands, None))


def _texts(name: str, command: click.Command, above: click.Context | None) -> Iterator[tuple[str, str]]:
    settings = {"terminal_width": _WIDTH, **command.context_settings}
    context = click.Context(command, info_name=name.rpartition(" ")[2], parent=above, **settings)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from _texts(f"{name} {inner}", found, context)


def _append(app: Sphinx, page: str, source: list[str]) -> None:  # noqa: ARG001 - the signature of the event
    if page == PAGE:
        source[0] += "\n" + help_of_all()


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("source-read", _append)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
