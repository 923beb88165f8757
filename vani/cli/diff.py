"""`vani diff`: two runs, attribute by attribute."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from vani.cli.output import emit, progress_bar, quiet_option, shows_progress
from vani.cli.places import check_places
from vani.render.diff import FORMATS

__all__ = ["diff"]


@click.command()
@click.argument("a", type=click.Path(path_type=Path), metavar="A")
@click.argument("b", type=click.Path(path_type=Path), metavar="B")
@click.option(
    "--format",
    "kind",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="What is written.",
)
@click.option("--all", "everything", is_flag=True, help="Also what is within the tolerance, and repetitions.")
@click.option(
    "--strip",
    multiple=True,
    metavar="PATTERN",
    help="Beginning of paths that differs from run to run, such as '/scratch/job*'; that of the policy by default.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not to stdout."
)
@quiet_option
def diff(
    a: Path, b: Path, kind: str, everything: bool, strip: tuple[str, ...], output: Path | None, quiet: bool
) -> None:
    """Tell what changed from A to B, the most important first.

    A and B are profiles, baselines or traces. Files, apps and phases are matched by name. What exceeds the
    tolerance and concerns at least 1 % of the I/O time is marked.
    """
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    check_places([output], chain([a, b], api.files_of_gate(baselines=None)))

    look = shows_progress(quiet=quiet)
    with progress_bar(show=look and (a.is_dir() or b.is_dir())) as progress:
        found = api.diff(a, b, strip=strip or None, progress=progress)
    emit(FORMATS.render(kind, found, everything=everything), output)
