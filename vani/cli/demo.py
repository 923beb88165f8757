"""`vani demo`."""

from __future__ import annotations

import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

import click

__all__ = ["demo"]


@click.command()
def demo() -> None:
    """Profile a bundled real trace and show its first advice.

    The trace is of an IOR run of 8 processes that write and read one shared file of 128 MiB.
    """
    from rich.console import Console  # noqa: PLC0415 - --help does not need it

    from vani import api  # noqa: PLC0415
    from vani.render.advice_text import render as render_advice  # noqa: PLC0415
    from vani.render.profile_text import render as render_profile  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 80)
    with (
        tempfile.TemporaryDirectory(prefix="vani-demo-") as folder,
        as_file(files("vani") / "demo") as bundled,
    ):
        trace = bundled / "ior-shared-file-8r"
        console.print("[bold]$ vani profile ior-shared-file-8r -o profile.yaml[/bold]")
        profile = api.profile(trace, store=Path(folder), system="generic-lustre")
        render_profile(profile, console, saved=Path("profile.yaml"))
        console.print()
        console.print("[bold]$ vani advise profile.yaml --system generic-lustre[/bold]")
        advice = api.advise(profile, system="generic-lustre")
        render_advice(advice, profile, console)
        console.print()
        lines = len(dumps(profile).splitlines())
        console.print(f"The profile has {lines} lines of YAML.", markup=False)
        console.print("Now your own: vani profile TRACE -o profile.yaml", markup=False)
