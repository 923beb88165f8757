"""`vani centre demo`: its days as text for a terminal."""

from __future__ import annotations

import click

from vani.centre.demo.centre import CentreDay, CentreReport, run_centre
from vani.centre.demo.programs import PROGRAMS
from vani.cli.options import quiet_option
from vani.demo.striped_model import MACHINES
from vani.render.table import table
from vani.units import format_rate


def centre_as_text(report: CentreReport) -> str:
    """The report as text: a table of days and a table of programs."""
    machine = MACHINES[report.machine]
    head = ("day", "mean I/O", "gain", "makespan", "OST Cost", "slower", "worst")
    programs = [program.name for program in PROGRAMS]
    lines = [
        f"{report.jobs} jobs of {len(programs)} programs on {report.nodes} nodes and {machine.targets} targets of "
        f"{format_rate(machine.target_rate)}.",
        "The file system is a model: all seconds are modelled, and say nothing about Lustre.",
        "",
        *table(head, [_row(day) for day in report.days], left=(), all_rows=True),
        "",
        "gain: mean I/O time without a rule over that of the day. slower: jobs with more than 1.1 times their I/O",
        "time without a rule; worst: the largest such ratio.",
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


def _row(day: CentreDay) -> tuple[str, ...]:
    return (
        day.name,
        f"{day.io_s:.2f} s",
        f"{day.gain:.2f}",
        f"{day.makespan_s:.0f} s",
        f"{day.ost_cost:.2f}",
        f"{day.slower}",
        f"{day.worst:.2f}",
    )


def _verdict(report: CentreReport) -> str:
    chance, *rules = report.days[1:]
    best = max(rules, key=lambda day: day.gain)
    return (
        f"\n{best.name}: {best.gain:.2f} times as fast in I/O; {best.slower} of {report.jobs} jobs slower by more than "
        f"10 %. Other noise alone makes {chance.slower} slower."
    )


@click.command("demo")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the jobs and the noise.")
@quiet_option
def command(seed: int, quiet: bool) -> None:
    """Run a day of forty jobs without and with each fixed rule for the layouts of their files.

    Five programs run on a model of a striped file system, by a small scheduler: all seconds are modelled.
    """
    def progress(text: str) -> None:
        if not quiet:
            click.echo(text, err=True)

    click.echo(centre_as_text(run_centre(seed=seed, progress=progress)), nl=False)
