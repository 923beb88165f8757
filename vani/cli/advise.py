"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani.cli.output import emit, eyes, quiet_option, watched

if TYPE_CHECKING:
    from vani.schema.advice import Advice

__all__ = ["advise"]


@click.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write here, not to stdout.")
@click.option("--system", metavar="NAME|FILE", help="The machine: a bundled name or a system.yaml.")
@click.option("--select", multiple=True, metavar="RULES", help="Ask only these: ids, names or families.")
@click.option("--ignore", multiple=True, metavar="RULES", help="Do not ask these.")
@click.option(
    "--format",
    "kind",
    type=click.Choice(["yaml", "json", "text"]),
    default="yaml",
    show_default=True,
    help="What is written.",
)
@quiet_option
def advise(
    profile: Path,
    output: Path | None,
    system: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    kind: str,
    quiet: bool,
) -> None:
    """Recommend storage settings for the workload in PROFILE."""
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    advice = api.advise(
        profile,
        system=system,
        select=select or None,
        ignore=ignore or None,
    )
    emit(_written(advice, kind), output)
    if watched(quiet=quiet) and not (kind == "text" and output is None):
        from vani.render.advice_text import render  # noqa: PLC0415

        render(advice, None, eyes())


def _written(advice: Advice, kind: str) -> str:
    if kind == "yaml":
        return advice.to_yaml()
    if kind == "json":
        return json.dumps(advice.model_dump(by_alias=True), indent=2, ensure_ascii=False) + "\n"
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415

    from vani.render.advice_text import render  # noqa: PLC0415

    text = StringIO()
    # Text that goes to a file or another program has no colour and the width of a letter.
    render(advice, None, Console(file=text, width=80, color_system=None, force_terminal=False))
    return text.getvalue()
