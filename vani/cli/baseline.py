"""`vani baseline save` and `vani baseline show`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from vani.cli.output import progress_bar, quiet_option, shows_progress
from vani.cli.places import check_places
from vani.errors import one_line
from vani.units import counted

__all__ = ["baseline"]


@click.group()
def baseline() -> None:
    """Keep the figures of runs, for `vani check` to compare later ones with."""


@baseline.command()
@click.argument(
    "profiles", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PROFILE [PROFILE ...]"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write here; by default what the policy names, or .vani/baseline.yaml beside it.",
)
@click.option("--add", is_flag=True, help="Keep the runs that are there, and add these.")
@click.option(
    "--keep", type=click.IntRange(1, 100), default=10, show_default=True, help="With --add, keep the newest N runs.",
    metavar="N",
)  # fmt: skip
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Names the baseline; the nearest vani.toml or .vani.yaml, from here upwards, by default.",
)
@quiet_option
def save(
    profiles: tuple[Path, ...], output: Path | None, add: bool, keep: int, policy: Path | None, quiet: bool
) -> None:
    """Make a baseline of profiles or traces of the same program, one run each.

    Several runs tell `vani check` how much figures differ from run to run.
    """
    from vani import api  # noqa: PLC0415 - `vani --help` pays for no library

    if output is not None:
        check_places([output], chain(profiles, api.files_of_gate(policy, baselines=None)))

    look = shows_progress(quiet=quiet)
    with progress_bar(show=look and any(one.is_dir() for one in profiles)) as progress:
        place = api.save_baseline(
            *profiles, output=output, add=add, keep=keep, policy=policy, progress=progress
        )
    if look:
        click.echo(f"Saved {one_line(str(place))}; `vani check` compares with it.", err=True)


@baseline.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE ...]")
def show(files: tuple[Path, ...]) -> None:
    """Print what baselines hold: key figures, and how far runs differ.

    Without FILE, what the policy names, or .vani/baseline.yaml.
    """
    from vani import api  # noqa: PLC0415

    sources, rows = api.baseline_figures(*files)
    for path, count in sources:
        click.echo(f"{one_line(path)}: {counted(count, 'run')}")
    wide = max(len(name) for name, _ in rows)
    for name, value in rows:
        click.echo(f"  {name.ljust(wide)}  {value}")
