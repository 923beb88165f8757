"""`vani profile`: characterises the I/O of a run from its trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import click
from pydantic import Field

from vani.cli.options import FILE, format_option, output_option, quiet_option, settings_options
from vani.cli.output import check_outputs, emit_all, shows_summary, stderr_console, system_files, working
from vani.cli.sources import ProfileSettings, Resources, is_trace, scheduler_files
from vani.errors import InputError, os_errors_as
from vani.render.formats import GRAPH, PROFILE
from vani.schema.settings import Option, PathLike
from vani.units import format_count

if TYPE_CHECKING:
    from vani.cli.characterise import Characterised
    from vani.engine.executor import Progress
    from vani.schema.profile import Profile

_TABLE: Final = "write it as .yaml or .json; `vani diff FOLDER -o runs.csv` writes a line for each run"
_OTHERS: Final = {
    ".csv": _TABLE,
    ".tsv": _TABLE,
    ".parquet": _TABLE,
    ".html": "write it as .yaml or .json; `vani report PROFILE -o run.html` makes a page of it",
}
"""The alternative to suggest for each suffix that a profile cannot have."""


class _Options(ProfileSettings):
    """Options of the command that have no meaning for a Python caller."""

    graph: Annotated[Path | None, Option(metavar="FILE")] = Field(
        default=None, description="Export the dependency graph (readers of outputs) as .dot or .json."
    )
    graph_of: Literal["apps", "processes"] = Field(
        default="apps", description="Nodes of the graph: apps, or the processes of all apps."
    )
    each: bool = Field(default=False, description="Profile each trace separately, into the folder that -o names.")
    diagnosis: bool = Field(
        default=False, description="Add the program's behaviour to the summary, whether or not it costs time."
    )


def profile(
    *traces: PathLike, settings: ProfileSettings | None = None, progress: Progress | None = None, **fields: Any
) -> Profile:
    """Characterise a workload: one trace directory, several, or a directory of traces.

    Parameters
    ----------
    traces
        Directories that a tracer wrote, or Parquet stores made from them.
    settings, fields
        The settings, or single fields of `ProfileSettings`. `job` and `system` may also be models, `scheduler` a Dask
        client. With `quick`, attributes that depend on times or on the order of calls are null; this is for Recorder
        traces only, and `store`, `scheduler` and `progress` are ignored.
    progress
        Called with (stage, done, total).

    Raises
    ------
    InputError
        A trace or document cannot be read, or the traces are unrelated.
    VaniError
        Vani itself is at fault, for example after a failed self-check.
    """
    settings = ProfileSettings.of(settings, **fields)
    if not settings.quick:
        return characterise(*traces, settings=settings, progress=progress).profile
    if settings.phase_gap is not None:
        raise InputError("quick profiles have no phases", todo="leave the phase gap or --quick out")
    from vani.cli.counted import quick_profile  # noqa: PLC0415 - loads Arrow

    return quick_profile(traces, settings)


def characterise(
    *traces: PathLike, settings: ProfileSettings | None = None, progress: Progress | None = None, **fields: Any
) -> Characterised:
    """Characterise a workload like `profile`, but keep the measurements, for graphs."""
    from vani.cli.characterise import characterise as characterise_in  # noqa: PLC0415 - loads Arrow

    settings = ProfileSettings.of(settings, **fields)
    with Resources(traces, settings, progress) as resources:
        return characterise_in(resources, traces, settings)


def profile_of(
    resources: Resources, source: PathLike | Profile, *, system: Any = None, files: int | None
) -> PathLike | Profile:
    """Return a profile or its path unchanged; profile a trace first, and list that many files."""
    if not isinstance(source, (str, Path)) or not is_trace(source):
        return source
    from vani.cli.characterise import characterise as characterise_in  # noqa: PLC0415 - loads Arrow

    return characterise_in(resources, [source], ProfileSettings(system=system, files=files)).profile


@click.command("profile")
@click.argument("traces", nargs=-1, required=True, type=FILE, metavar="TRACE [TRACE ...]")
@output_option("Write the profile here, not to stdout.")
@format_option(PROFILE, default=None, help="Output format; by default from the suffix of -o, else yaml.")
@settings_options(_Options)
@quiet_option
def command(traces: tuple[Path, ...], output: Path | None, settings: _Options, kind: str | None, quiet: bool) -> None:
    """Characterise the I/O of a run from its trace.

    Each TRACE is a folder or a file from a tracer, or a folder of several. Together they are one workload if they
    share files, a job or a time. The profile goes to stdout as YAML (or JSON), a summary to stderr.
    """
    read = list(chain(traces, [settings.job], scheduler_files(settings.scheduler), system_files(settings.system)))
    if settings.each:
        _profile_each(traces, output, settings, kind, read, quiet=quiet)
        return
    check_outputs([output, *filter(None, [settings.graph])], read)
    _check_names(output, settings)
    characterised, texts = _characterised(traces, settings, quiet=quiet)
    emit_all([(PROFILE.render(PROFILE.chosen(kind, output, "yaml"), characterised), output), *texts])
    if shows_summary(output, quiet=quiet):
        _show(characterised, output, diagnosis=settings.diagnosis)


def _check_names(output: Path | None, settings: _Options) -> None:
    """Raise InputError if a name has the suffix of another format, or the graph cannot be made."""
    suffix = "" if output is None else output.suffix.lower()
    if suffix in _OTHERS:
        raise InputError(f"a profile cannot be written as {suffix[1:]}", where=str(output), todo=_OTHERS[suffix])
    if settings.graph is None:
        return
    GRAPH.needed_for(settings.graph)
    if settings.quick:
        what = "a graph shows readers of earlier outputs and needs time stamps"
        raise InputError(what, todo="leave --graph or --quick out")


def _characterised(
    traces: tuple[Path, ...], settings: _Options, *, quiet: bool
) -> tuple[Profile, list[tuple[str, Path]]]:
    """The profile, and the other files to write with it."""
    with working(*traces, quiet=quiet or settings.quick, with_calls=True) as progress:
        if settings.graph is None:
            return profile(*traces, settings=settings, progress=progress), []
        run = characterise(*traces, settings=settings, progress=progress)
        graph = GRAPH.render(GRAPH.needed_for(settings.graph), run.graph(settings.graph_of))
        return run.profile, [(graph, settings.graph)]


def _show(profile: Profile, output: Path | None, *, diagnosis: bool) -> None:
    from vani.advisors.judge import diagnosis as diagnosis_of  # noqa: PLC0415 - `vani --help` pays for nothing
    from vani.render.screen import print_profile  # noqa: PLC0415 - `vani --help` pays for nothing

    print_profile(profile, stderr_console(), saved=output, diagnosis=diagnosis_of(profile) if diagnosis else ())


def _profile_each(
    traces: Sequence[Path],
    folder: Path | None,
    settings: _Options,
    kind: str | None,
    read: Sequence[Path | None],
    *,
    quiet: bool,
) -> None:
    """Write a profile of each trace to `folder`, named after the trace, and print a line about each.

    Raises
    ------
    InputError
        Options conflict, there is no folder, or no trace can be read. A single unreadable trace is only reported.
    """
    from vani.readers.open import traces_at  # noqa: PLC0415 - loads Arrow

    for name in ("together", "graph", "diagnosis"):
        if getattr(settings, name):
            raise InputError(f"--each and --{name} contradict each other", todo="leave one of them out")
    if folder is None or str(folder) == "-":
        raise InputError("--each writes several files", todo="name a folder for them with -o FOLDER")
    suffix = kind if kind in ("json", "yaml") else "yaml"
    paths = list(dict.fromkeys(trace for path in traces for trace in traces_at(path)))
    places = list(zip(paths, _names(paths, folder, suffix), strict=True))
    what = "is not a folder and cannot be created"
    with os_errors_as(InputError, what, where=folder, todo="name a folder with -o"):
        folder.mkdir(parents=True, exist_ok=True)
    check_outputs([place for _, place in places], read)
    console = stderr_console() if shows_summary(folder, quiet=quiet) else None
    unread: list[InputError] = []
    for trace, place in places:
        try:
            profiled = profile(trace, settings=settings)
        except InputError as error:
            unread.append(error)
            line = f"left out: {error}"
        else:
            emit_all([(PROFILE.render(suffix, profiled), place)])
            line = profiled.verdict.sentence if profiled.verdict is not None else "profiled"
        if console is not None:
            console.print(f"{trace.name}: {line}", markup=False)
    if len(unread) == len(places):
        raise unread[0]
    if console is not None:
        done = f"{format_count(len(places) - len(unread))} profiles in {folder}"
        console.print(f"{done}    compare them: vani diff {folder}", markup=False)


def _names(traces: Sequence[Path], folder: Path, suffix: str) -> Iterator[Path]:
    """A file name for each trace, numbered if several traces have the same name."""
    taken: set[str] = set()
    for trace in traces:
        stem = trace.resolve().name.removesuffix(".gz").removesuffix(".txt").removesuffix(".darshan") or "trace"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name)
        yield folder / f"{name}.{suffix}"
