"""`vani centre demo`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vani.atomic import new_directory
from vani.cli.options import FILE, quiet_option


@click.command()
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="DIR",
    help="Keep the hook's state, logs, history and known/ in this new folder.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the jobs and the noise.")
@click.option(
    "--slurm",
    is_flag=True,
    help="Run the jobs under a Slurm on this host, with real I/O calls: ten minutes; needs root, Slurm and FUSE.",
)
@quiet_option
def demo(output: Path | None, seed: int, slurm: bool, quiet: bool) -> None:
    """Run a day of forty jobs with the hook of `vani plan job` and without, before and after it has learned.

    Five programs run on a model of a striped file system, by a small scheduler: all seconds are modelled. The hook, its
    plans, logs, history and `known/` are real.
    """
    # Both load the history's libraries.
    from vani.centre.demo.centre import run_centre  # noqa: PLC0415
    from vani.centre.demo.centre_text import centre_as_text  # noqa: PLC0415
    from vani.centre.demo.slurm_day import run_slurm_days  # noqa: PLC0415

    def progress(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    run = run_slurm_days if slurm else run_centre
    with _folder(output) as folder:
        report = run(folder, seed=seed, progress=progress)
    click.echo(centre_as_text(report), nl=False)


@contextmanager
def _folder(output: Path | None) -> Iterator[Path]:
    if output is not None:
        with new_directory(output) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory(prefix="vani-centre-") as scratch:
        yield Path(scratch)
