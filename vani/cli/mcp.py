"""`vani mcp`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.options import FILE, system_option
from vani.cli.work import keep_freed_memory


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FILE, metavar="DIR [DIR ...]")
@system_option()
def mcp(folders: tuple[Path, ...], system: str | None) -> None:
    """Let an AI assistant query runs by the Model Context Protocol on stdin and stdout.

    It reads only files below each DIR, and writes only the cache of `vani profile`. The
    assistant's program starts it; its tools are contents, profile, diagnosis, advise, explain, diff and history. Needs
    pip install 'vani-io[mcp]'.
    """
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    keep_freed_memory()
    api.mcp_serve(folders, system=system)
