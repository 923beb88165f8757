"""`vani centre demo`: its days as text for a terminal."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from vani.atomic import new_directory
from vani.centre.demo.centre import CentreDay, CentreReport, run_centre
from vani.centre.demo.programs import PROGRAMS
from vani.centre.demo.slurm import run_slurm_days
from vani.cli.options import FILE, quiet_option
from vani.demo.striped_model import MACHINES
from vani.render.table import table
from vani.units import format_rate, format_share


def centre_as_text(report: CentreReport) -> str:
    """The report as text: a table of days and a table of programs."""
    machine = MACHINES[report.machine]
    head = ("day", "mean I/O", "gain", "makespan", "OST Cost", "slower", "worst", "error", "in range", "changed")
    programs = [program.name for program in PROGRAMS]
    lines = [
        f"{report.jobs} jobs of {len(programs)} programs on {report.nodes} nodes and {machine.targets} targets of "
        f"{format_rate(machine.target_rate)}.",
        *_what_is_real(report),
        "",
        *table(head, [_row(day) for day in report.days], left=(), all_rows=True),
        "",
        "gain: mean I/O time without the hook over that of the day. slower: jobs with more than 1.1 times their I/O",
        "time without the hook; worst: the largest such ratio. error: median of |measured / expected - 1|; in range:",
        "share of jobs that took as long as was expected. changed: jobs that got other stripes or OSTs.",
        "",
        "Mean I/O time of a job in seconds:",
        *table(
            ("day", *programs),
            [(day.name, *(f"{costs.io_s:.2f}" for costs in day.programs)) for day in report.days],
            left=(),
            all_rows=True,
        ),
        "",
        *(f"{program.name}: {program.does}, {program.nodes} nodes" for program in PROGRAMS),
        _verdict(report),
    ]
    return "\n".join(lines) + "\n"


def _what_is_real(report: CentreReport) -> list[str]:
    if report.pace is None:
        return ["The file system is a model: all seconds are modelled, and say nothing about Lustre."]
    return [
        "Real: Slurm, the hook's scripts, the placement library, I/O calls on a mount, and all seconds. Stand-ins: the",
        "file system behind the mount (it waits as a model says, not as Lustre), and liblustreapi. Pauses, computation",
        f"and files are {report.pace:g} times those of the modelled day.",
    ]


def _row(day: CentreDay) -> tuple[str, ...]:
    return (
        day.name,
        f"{day.io_s:.2f} s",
        f"{day.gain:.2f}",
        f"{day.makespan_s:.0f} s",
        f"{day.ost_cost:.2f}",
        f"{day.slower}",
        f"{day.worst:.2f}",
        "" if day.error is None else format_share(day.error),
        "" if day.within is None else format_share(day.within),
        f"{day.changed}",
    )


def _verdict(report: CentreReport) -> str:
    last, chance = report.days[-1], report.days[1]
    return (
        f"\n{last.name}: {last.gain:.2f} times as fast in I/O; {last.slower} of {report.jobs} jobs slower by more than "
        f"10 %. Other noise alone, without the hook, makes {chance.slower} slower."
    )


@click.command("demo")
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
def command(output: Path | None, seed: int, slurm: bool, quiet: bool) -> None:
    """Run a day of forty jobs with the hook of `vani plan job` and without, before and after it has learned.

    Five programs run on a model of a striped file system, by a small scheduler: all seconds are modelled. The hook, its
    plans, logs, history and `known/` are real.
    """
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
