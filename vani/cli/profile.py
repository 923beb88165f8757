"""`vani profile`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

import click

from vani import api
from vani.cli.each_profile import ProfileOptions, profile_each
from vani.cli.options import FILE, files_option, format_option, output_option, quiet_option, system_option
from vani.cli.output import emit_all, progress_bar, shows_progress, shows_summary, summary_console
from vani.cli.output_guard import check_outputs, system_files
from vani.cli.scheduler_options import decoding_options, scheduler_files
from vani.cli.work import keep_freed_memory
from vani.errors import InputError
from vani.render.formats import GRAPH, PROFILE

if TYPE_CHECKING:
    from vani.engine.executor import Progress
    from vani.schema.profile import Profile

_TABLE: Final = "write it as .yaml or .json; `vani table PROFILE -o runs.csv` writes a line for each run"
_OTHERS: Final = {
    ".csv": _TABLE,
    ".tsv": _TABLE,
    ".parquet": _TABLE,
    ".html": "write it as .yaml or .json; `vani report PROFILE -o run.html` makes a page of it",
}
"""The alternative to suggest for each suffix that a profile cannot have."""


@click.command()
@click.argument("traces", nargs=-1, required=True, type=FILE, metavar="TRACE [TRACE ...]")
@output_option("Write the profile here, not to stdout.")
@format_option(PROFILE, default=None, help="Output format; by default from the suffix of -o, else yaml.")
@click.option("--job", type=FILE, metavar="FILE", help="job.yaml that `vani collect` wrote inside the job.")
@system_option()
@click.option(
    "--phase-gap",
    type=float,
    metavar="SECONDS",
    help="Pause that separates I/O phases; by default determined from the data.",
)
@files_option("Number of files to list, most I/O time first.", default=100)
@click.option(
    "--quick",
    is_flag=True,
    help="Count calls without reading time stamps: takes seconds for any trace; the profile has no times.",
)
@click.option(
    "--graph",
    type=FILE,
    metavar="FILE",
    help="Export the dependency graph (readers of outputs) as .dot or .json.",
)
@click.option(
    "--graph-of",
    type=click.Choice(["apps", "processes"]),
    default="apps",
    show_default=True,
    help="Nodes of the graph: apps, or the processes of all apps.",
)
@click.option("--each", is_flag=True, help="Profile each trace separately, into the folder that -o names.")
@click.option(
    "--together",
    is_flag=True,
    help="Treat the traces as one workload even if they share no file, no job and no time.",
)
@click.option(
    "--diagnosis", is_flag=True, help="Add the program's behaviour to the summary, whether or not it costs time."
)
@decoding_options
@quiet_option
def profile(
    traces: tuple[Path, ...],
    output: Path | None,
    quick: bool,
    graph: Path | None,
    graph_of: str,
    kind: str | None,
    quiet: bool,
    each: bool,
    diagnosis: bool,
    **options: Unpack[ProfileOptions],
) -> None:
    """Characterise the I/O of a run from its trace.

    Each TRACE is a folder or a file from a tracer, or a folder of several. Together they are one workload if they
    share files, a job or a time. The profile goes to stdout as YAML (or JSON), a summary to stderr.
    """
    if each:
        given = {"--graph": graph is not None, "--diagnosis": diagnosis}
        profile_each(traces, output, quick=quick, given=given, kind=kind, quiet=quiet, options=options)
        return
    read = chain(
        traces, [options["job"]], scheduler_files(options["scheduler"]), system_files(options["system"])
    )
    check_outputs([output, *filter(None, [graph])], read)
    _check_names(output, graph, quick=quick)
    keep_freed_memory()
    with progress_bar(show=shows_progress(quiet=quiet) and not quick) as progress:
        characterised, exported = _characterised(traces, quick, graph, graph_of, options, progress)
    emit_all([(_text(characterised, kind, output), output), *exported])
    if shows_summary(output, quiet=quiet):
        _show(characterised, output, diagnosis=diagnosis)


def _check_names(output: Path | None, graph: Path | None, *, quick: bool) -> None:
    """Raise InputError if a name has the suffix of another format, or the graph cannot be made."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix in _OTHERS:
        raise InputError(f"a profile cannot be written as {suffix[1:]}", where=str(output), todo=_OTHERS[suffix])
    if graph is None:
        return
    GRAPH.needed_for(graph)
    if quick:
        raise InputError(
            "a graph shows readers of earlier outputs and needs time stamps",
            todo="leave --graph or --quick out",
        )


def _characterised(
    traces: tuple[Path, ...],
    quick: bool,
    graph: Path | None,
    graph_of: str,
    options: ProfileOptions,
    progress: Progress | None,
) -> tuple[Profile, list[tuple[str, Path]]]:
    """The profile, and the other files to write with it."""
    if quick:
        return api.profile(*traces, **options, quick=True), []
    run = api.characterise(*traces, **options, progress=progress)
    if graph is None:
        return run.profile, []
    return run.profile, [(GRAPH.render(GRAPH.needed_for(graph), run.graph(graph_of)), graph)]


def _text(profile: Profile, kind: str | None, output: Path | None) -> str:
    by_name = PROFILE.of_file(output) if output is not None else None
    return PROFILE.render(kind or by_name or "yaml", profile)


def _show(profile: Profile, output: Path | None, *, diagnosis: bool) -> None:
    from vani.advisors.diagnosis import diagnosis as diagnosis_of  # noqa: PLC0415 - `vani --help` pays for nothing
    from vani.render.screen import print_profile  # noqa: PLC0415 - `vani --help` pays for nothing

    print_profile(profile, summary_console(), saved=output, diagnosis=diagnosis_of(profile) if diagnosis else ())
