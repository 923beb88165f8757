"""`vani profile`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vani.cli.memory import memory_for
from vani.cli.output import (
    emit_all,
    progress_bar,
    quiet_option,
    shows_progress,
    shows_summary,
    summary_console,
)
from vani.cli.places import check_places, system_files
from vani.cli.where import scheduler_files, where_options
from vani.errors import InputError
from vani.render.graph import check_suffix, graph_text
from vani.render.profile import FORMATS

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler
    from vani.schema.profile import Profile

__all__ = ["profile"]


def _number_or_all(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    del ctx, param
    if value == "all":
        return None
    if not value.isdecimal():
        raise click.BadParameter(f"{value!r} is neither a number of files nor 'all'")
    return int(value)


@click.command()
@click.argument(
    "traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE [TRACE ...]"
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the profile here, not to stdout.",
)
@click.option(
    "--job",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="job.yaml that `vani collect` wrote inside the job.",
)
@click.option("--system", metavar="NAME|FILE", help="The machine: a bundled name or a system.yaml.")
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the decoded calls in this folder, not in the user's cache.",
)
@click.option(
    "--phase-gap",
    type=float,
    metavar="SECONDS",
    help="Pause that separates I/O phases; found from the data by default.",
)
@click.option(
    "--files",
    default="100",
    show_default=True,
    metavar="N|all",
    callback=_number_or_all,
    help="List so many files, most I/O time first.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="Count calls without reading time stamps: seconds for any trace, no times in the profile.",
)
@click.option(
    "--graph",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Export the dependency graph, who reads whose output, as .dot or .json.",
)
@click.option(
    "--graph-of",
    type=click.Choice(["apps", "processes"]),
    default="apps",
    show_default=True,
    help="Nodes of the graph: apps, or the processes of all apps.",
)
@where_options
@quiet_option
def profile(
    traces: tuple[Path, ...],
    output: Path | None,
    job: Path | None,
    system: str | None,
    store: Path | None,
    phase_gap: float | None,
    files: int | None,
    quick: bool,
    graph: Path | None,
    graph_of: str,
    scheduler: Scheduler,
    quiet: bool,
) -> None:
    """Characterise the I/O of a run from its trace.

    Each TRACE is a directory that a tracer left, or a directory of several: together they are one workload.
    The profile goes to stdout as YAML, a summary to stderr.
    """
    _check_graph(graph, quick=quick)
    # Before anything loads numpy, as looking at the files of a trace does.
    with memory_for("counting" if quick else "calls"):
        outputs = [output, *filter(None, [graph])]
        check_places(outputs, chain(traces, [job], scheduler_files(scheduler), system_files(system)))
        from vani import api  # noqa: PLC0415 - loads Arrow

        if quick:
            made = api.profile(*traces, job=job, system=system, phase_gap=phase_gap, files=files, quick=True)
            _deliver(made, output, quiet=quiet)
            return
        with progress_bar(show=shows_progress(quiet=quiet)) as progress:
            found = api.characterise(
                *traces,
                job=job,
                system=system,
                store=store,
                phase_gap=phase_gap,
                files=files,
                scheduler=scheduler,
                progress=progress,
            )
        more = [] if graph is None else [(graph_text(found.graph(graph_of), graph), graph)]
        _deliver(found.profile, output, quiet=quiet, more=more)


def _check_graph(graph: Path | None, *, quick: bool) -> None:
    """Raises InputError where the graph has no known format, or cannot be made."""
    if graph is None:
        return
    check_suffix(graph)
    if quick:
        raise InputError(
            "a graph shows who read what others wrote before, which takes time stamps",
            todo="leave --graph or --quick out",
        )


def _deliver(
    profile: Profile, output: Path | None, *, quiet: bool, more: Sequence[tuple[str, Path]] = ()
) -> None:
    emit_all([(FORMATS.render("yaml", profile), output), *more])
    if shows_summary(output, quiet=quiet):
        from vani.render.profile.screen import render  # noqa: PLC0415 - `vani --help` pays for nothing

        render(profile, summary_console(), saved=output)
