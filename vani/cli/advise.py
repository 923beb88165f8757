"""`vani advise`: settings for the workload of a profile."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
@click.option("-q", "--quiet", is_flag=True, help="Nothing for eyes on stderr.")
def advise(  # noqa: PLR0917 - click calls it by name
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
    _emit(_written(advice, kind), output)
    if not quiet and sys.stderr.isatty() and not (kind == "text" and output is None):
        _show(advice)


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


def _show(advice: Advice) -> None:
    from rich.console import Console  # noqa: PLC0415

    from vani.render.advice_text import render  # noqa: PLC0415

    render(advice, None, Console(stderr=True))


def _emit(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    from vani.atomic import write_text  # noqa: PLC0415

    write_text(output, text)
