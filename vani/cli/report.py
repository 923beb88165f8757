"""`vani report`: one page for people."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import click

from vani.cli.output import (
    emit,
    progress_bar,
    quiet_option,
    shows_progress,
    shows_summary,
    summary_console,
)
from vani.cli.places import check_places, system_files
from vani.cli.where import scheduler_files, where_options
from vani.errors import InputError, one_line
from vani.units import format_bytes

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.profile import Profile

__all__ = ["report"]

_SUFFIXES = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".txt": "txt"}
_NAMES = {"html": "HTML", "markdown": "Markdown", "txt": "text"}
# Whoever asks for one of these would not be glad of a page under its name.
_OTHERS = {".pdf", ".svg", ".png", ".jpg", ".json", ".yaml", ".yml", ".csv", ".tex", ".rst", ".doc", ".docx"}


@click.command()
@click.argument("profile", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write here, not to stdout."
)
@click.option(
    "--advice",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What `vani advise` wrote about this profile; all rules are asked by default.",
)
@click.option("--system", metavar="NAME|FILE", help="The machine: a bundled name or a system.yaml.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the decoded calls lie, for the plots over time; the user's cache by default.",
)
@click.option(
    "--format",
    "kind",
    type=click.Choice(["html", "markdown", "txt"]),
    help="What is written; by default what the name of FILE ends in, else html.",
)
@where_options
@quiet_option
def report(
    profile: Path,
    output: Path | None,
    advice: Path | None,
    system: str | None,
    store: Path | None,
    kind: str | None,
    scheduler: Scheduler,
    quiet: bool,
) -> None:
    """Write a report about PROFILE that a scientist, a support engineer and a reviewer can each use.

    The page is one HTML file: it needs no network, prints, and says what it leaves out. PROFILE may also be a
    trace, which is profiled first.
    """
    from vani.api.report import written_report  # noqa: PLC0415 - `vani --help` pays for no library
    from vani.api.report_inputs import report_inputs  # noqa: PLC0415

    check_places([output], chain([profile, advice], scheduler_files(scheduler), system_files(system)))
    if advice is not None and system is not None:
        raise InputError(
            "--system and --advice exclude each other",
            todo="the advice names its machine: leave --system out",
        )
    suffix = "" if output is None else output.suffix.lower()
    if output is not None and kind is None and suffix in _OTHERS:
        raise InputError(
            f"a report is not written as {suffix}",
            where=output,
            todo="end the name in .html, .md or .txt"
            + (", and print the page from a browser" if suffix == ".pdf" else ""),
        )
    named = _SUFFIXES.get(suffix)
    chosen = cast(Literal["html", "markdown", "txt"], kind or named or "html")
    with progress_bar(show=shows_progress(quiet=quiet)) as progress:
        inputs = report_inputs(
            profile,
            advice=advice,
            system=system,
            store=store,
            with_heat_map=chosen == "html",
            scheduler=scheduler,
            progress=progress,
        )
        text = written_report(inputs, chosen)
    emit(text, output)
    if output is not None and str(output) != "-" and shows_summary(output, quiet=quiet):
        _summarise(inputs.profile, f"wrote {output} ({_NAMES[chosen]}, {format_bytes(len(text.encode()))})")


def _summarise(profile: Profile, wrote: str) -> None:
    """What was lost, whether I/O matters, and what was written."""
    from vani.render.verdict import how_much  # noqa: PLC0415
    from vani.schema.damage import damage  # noqa: PLC0415

    lost = damage(profile)
    console = summary_console()
    for line in filter(None, (lost, how_much(profile, whole=lost is None), wrote)):
        console.print(one_line(line), markup=False, soft_wrap=True)
