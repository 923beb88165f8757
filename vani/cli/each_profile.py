"""`vani profile --each`: profiles each trace in a folder, and prints a line about each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from vani import api
from vani.cli.output import emit, shows_summary, summary_console
from vani.cli.output_guard import check_outputs, system_files
from vani.cli.scheduler_options import scheduler_files
from vani.errors import InputError, one_line
from vani.render.formats import PROFILE
from vani.units import format_count

if TYPE_CHECKING:
    from vani.engine.scheduler import Scheduler

class ProfileOptions(TypedDict):
    """Options of `vani profile` passed on to the library unchanged."""

    job: Path | None
    system: str | None
    store: Path | None
    phase_gap: float | None
    files: int | None
    together: bool
    scheduler: Scheduler


def profile_each(
    traces: Sequence[Path],
    folder: Path | None,
    *,
    quick: bool,
    given: Mapping[str, bool],
    kind: str | None,
    quiet: bool,
    options: ProfileOptions,
) -> None:
    """Write a profile of each trace to `folder`, named after the trace.

    `given` maps each option that only suits a single profile to whether it was given.

    Raises
    ------
    InputError
        Options conflict, there is no folder, or no trace can be read. A single unreadable trace is only reported.
    """
    from vani.readers.open import traces_at  # noqa: PLC0415

    others = {"--together": options["together"], **given}
    if any(others.values()):
        other = next(name for name, is_given in others.items() if is_given)
        raise InputError(f"--each and {other} contradict each other", todo="leave one of them out")
    if folder is None or str(folder) == "-":
        raise InputError("--each writes several files", todo="name a folder for them with -o FOLDER")
    suffix = kind if kind in ("json", "yaml") else "yaml"
    paths = list(dict.fromkeys(trace for path in traces for trace in traces_at(path)))
    places = list(zip(paths, _names(paths, folder, suffix), strict=True))
    _make(folder)
    read = chain(
        traces, [options["job"]], scheduler_files(options["scheduler"]), system_files(options["system"])
    )
    check_outputs([place for _, place in places], list(read))
    console = summary_console() if shows_summary(folder, quiet=quiet) else None
    unread: list[InputError] = []
    for trace, place in places:
        try:
            profile = api.profile(trace, **options, quick=quick)
        except InputError as error:
            unread.append(error)
            line = f"left out: {error}"
        else:
            emit(PROFILE.render(suffix, profile), place)
            line = profile.verdict.sentence if profile.verdict is not None else "profiled"
        if console is not None:
            console.print(f"{one_line(trace.name)}: {one_line(line)}", markup=False)
    if len(unread) == len(places):
        raise unread[0]
    if console is not None:
        done = f"{format_count(len(places) - len(unread))} profiles in {folder}"
        console.print(f"{done}    compare them: vani table {folder}", markup=False)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"is not a folder and cannot be created ({error.strerror})", where=folder, todo="name a folder with -o"
        ) from error


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
