"""`vani baseline save` and `vani baseline show`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from vani import api
from vani.cli.options import FILE, output_option, quiet_option, source_argument
from vani.cli.output import shows_progress
from vani.cli.output_guard import check_outputs
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import working
from vani.errors import one_line
from vani.units import counted

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

class SaveOptions(TypedDict):
    """Options passed on to the library unchanged."""

    add: bool
    keep: int
    store: Path | None
    scheduler: Scheduler


@click.group()
def baseline() -> None:
    """Store the figures of runs for `vani check` to compare with."""


@baseline.command()
@source_argument("profiles", nargs=-1, required=True, metavar="PROFILE|TRACE ...")
@output_option("Write here; by default the policy's file, or .vani/baseline.yaml next to it.")
@click.option("--add", is_flag=True, help="Keep the existing runs and add these.")
@click.option(
    "--keep", type=click.IntRange(1, 100), default=10, show_default=True, help="With --add, keep the newest N runs.",
    metavar="N",
)  # fmt: skip
@click.option(
    "--policy",
    type=FILE,
    metavar="FILE",
    help="Policy that names the baseline; by default the nearest vani.toml or .vani.yaml, from here upwards.",
)
@decoding_options
@quiet_option
def save(
    profiles: tuple[Path, ...], output: Path | None, policy: Path | None, quiet: bool, **options: Unpack[SaveOptions]
) -> None:
    """Make a baseline from profiles or traces of the same program, one per run.

    Traces are folders or files. With several runs, `vani check` knows how much figures vary between runs.
    """
    with working(*profiles, quiet=quiet) as progress:
        if output is not None:
            files = api.files_of_gate(policy, baselines=None)
            check_outputs([output], chain(profiles, scheduler_files(options["scheduler"]), files))
        place = api.save_baseline(*profiles, output=output, policy=policy, **options, progress=progress)
    if shows_progress(quiet=quiet):
        click.echo(f"Saved {one_line(str(place))}; `vani check` compares with it.", err=True)


@baseline.command()
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE ...]")
def show(files: tuple[Path, ...]) -> None:
    """Print the contents of baselines: key figures, and the spread of runs.

    Without FILE, the policy's file, or .vani/baseline.yaml.
    """
    sources, rows = api.baseline_figures(*files)
    for path, count in sources:
        click.echo(f"{one_line(path)}: {counted(count, 'run')}")
    wide = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"  {name.ljust(wide)}  {value}")
