"""`vani profile`."""

from __future__ import annotations

from pathlib import Path

import click

from vani.cli.output import check_output, emit, eyes, progress_bar, quiet_option, watched

__all__ = ["profile"]


class _Files(click.ParamType):
    name = "N|all"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        if value == "all" or isinstance(value, int):
            return value
        try:
            number = int(str(value))
        except ValueError:
            number = -1
        if number < 0:
            self.fail(f"{value!r} is neither a number of files nor 'all'", param, ctx)
        return number


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TRACE [TRACE ...]")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the profile here, not to stdout.")
@click.option("--job", type=click.Path(path_type=Path), help="job.yaml that `vani collect` wrote inside the job.")
@click.option("--system", help="Machine: a name that `vani systems` lists, or a system.yaml.")
@click.option("--store", type=click.Path(file_okay=False, path_type=Path), help="Keep the decoded calls in this folder.")
@click.option("--phase-gap", type=float, metavar="SECONDS", help="Pause that separates I/O phases; found from the data by default.")
@click.option("--files", type=_Files(), default=100, show_default=True, help="List so many files, most I/O time first.")
@click.option("--graph", type=click.Path(dir_okay=False, path_type=Path), help="Export dependencies as .dot or .json.")
@click.option("--graph-of", type=click.Choice(["apps", "processes"]), default="apps", show_default=True, help="Nodes of the graph.")
@click.option("--scheduler", metavar="ADDRESS|threads|processes", help="Where to work: here (threads), or on a Dask cluster.")
@quiet_option
def profile(
    traces: tuple[Path, ...],
    output: Path | None,
    job: Path | None,
    system: str | None,
    store: Path | None,
    phase_gap: float | None,
    files: int | str,
    graph: Path | None,
    graph_of: str,
    scheduler: str | None,
    quiet: bool,
) -> None:
    """Characterise the I/O of a run from its trace.

    Each TRACE is a directory that a tracer left, or a directory of several: together they are one workload.
    The profile goes to stdout as YAML, a summary for eyes to stderr.
    """
    from vani.api import characterise  # noqa: PLC0415 - loads Arrow, which --help does not need
    from vani.render.graph import graph_text  # noqa: PLC0415

    look = watched(quiet=quiet)
    if graph is not None:
        graph_text(None, graph)
    check_output(output, graph)
    with progress_bar(show=look) as progress:
        found = characterise(
            *traces, job=job, system=system, store=store, phase_gap=phase_gap,
            files=None if files == "all" else int(files), scheduler=scheduler, progress=progress,
        )
    text = found.profile.to_yaml()
    if graph is not None:
        emit(graph_text(found.graph(graph_of), graph), graph)
    emit(text, output)
    if look:
        from vani.render.profile_text import render  # noqa: PLC0415

        render(found.profile, eyes(), saved=output)
