"""`vani diff`: compares two runs, attribute by attribute."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani import api
from vani.cli.options import format_option, output_option, quiet_option, source_argument
from vani.cli.output import emit
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.render.formats import DIFF

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

@click.command()
@source_argument("a", metavar="A")
@source_argument("b", metavar="B")
@format_option(DIFF, default="text")
@click.option("--all", "everything", is_flag=True, help="Also show changes within the tolerance, and repetitions.")
@click.option(
    "--strip",
    multiple=True,
    metavar="PATTERN",
    help="Prefix of paths that differs between runs, such as '/scratch/job*'; by default the policy's.",
)
@output_option()
@decoding_options
@quiet_option
def diff(
    a: Path,
    b: Path,
    kind: str,
    everything: bool,
    strip: tuple[str, ...],
    output: Path | None,
    store: Path | None,
    scheduler: Scheduler,
    quiet: bool,
) -> None:
    """Show what changed from A to B, most important changes first.

    A and B are profiles, baselines or traces (folders or files). Files, apps and phases are matched by name.
    Changes that exceed the tolerance and affect at least 1 % of the I/O time are marked.
    """
    with working(a, b, quiet=quiet) as progress:
        check_outputs([output], chain([a, b], scheduler_files(scheduler), api.files_of_gate(baselines=None)))
        differences = api.diff(a, b, strip=strip or None, store=store, scheduler=scheduler, progress=progress)
    emit(DIFF.render(kind, differences, everything=everything), output)
