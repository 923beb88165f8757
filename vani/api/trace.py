"""`vani trace` for programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vani.errors import InputError, VaniError

__all__ = ["Trace", "trace"]

Tracer = Literal["auto", "recorder", "strace"]


@dataclass(frozen=True)
class Trace:
    """A traced command: how it was run, and its result."""

    folder: Path
    tracer: str
    """`recorder` or `strace`."""
    words: list[str]
    """The line that is run."""
    variables: dict[str, str]
    """Variables that are added to its environment."""
    remark: str
    """Why the trace may be incomplete; empty where no reason is known."""
    status: int | None = None
    """Exit status of the command, 128 and the number of a signal that ended it; None where nothing was run."""
    files: int = 0
    """Files of the trace that the run left."""
    bytes: int = 0
    """Their size."""


def trace(
    command: Sequence[str],
    output: Path | None = None,
    *,
    recorder: Path | None = None,
    tracer: Tracer = "auto",
    dry_run: bool = False,
    collect: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Trace:
    """Run a command under Recorder where it is found, else under strace.

    Parameters
    ----------
    command
        Words; no shell sees them.
    output
        The folder of the trace, which must not be there; by default named after the program.
    recorder
        Recorder's library, or where it was installed.
    dry_run
        Only make the line.
    collect
        Also write `job.yaml` into the folder: what only the running job knows.
    environment
        Variables; those of this process by default.

    Raises
    ------
    InputError
        There is no command, no tracer, something is in the place of the trace, or a launcher's line cannot be read.
    """
    from vani.collect.tracing.launchers import launcher_of, program_at  # noqa: PLC0415
    from vani.collect.tracing.line import recorder_line, strace_line  # noqa: PLC0415
    from vani.collect.tracing.recorder_library import find_recorder  # noqa: PLC0415
    from vani.collect.tracing.run import begin_folder, free_name, is_static, run_line  # noqa: PLC0415
    from vani.readers.strace.app import app_of  # noqa: PLC0415

    env = os.environ if environment is None else environment
    if not command:
        raise InputError("no command was given", todo="vani trace -- COMMAND...")
    program = list(command)
    executable = shutil.which(command[0], path=env.get("PATH"))
    if executable is None and not dry_run:
        raise InputError(
            "cannot be run: there is no such program", where=command[0], todo="look how it is spelled"
        )
    launcher = launcher_of(command, env)
    if launcher is not None:
        try:
            program = list(command[program_at(command, launcher) :])
        except InputError:
            # Its name is all that is lost, where strace need not stand in front of it.
            program = []
    folder = (output or free_name(app_of(program) or "run")).absolute()
    if os.path.lexists(folder):
        raise InputError(
            "is there already: no trace is written over", where=folder, todo="name another folder with -o"
        )
    library = None if tracer == "strace" else find_recorder(recorder, env)
    if tracer == "recorder" and library is None:
        raise InputError(
            "Recorder's library was not found",
            todo="name it with --recorder or RECORDER_ROOT (docs/tracing.md)",
        )
    remark = ""
    file = shutil.which(program[0], path=env.get("PATH")) if program else None
    if library is not None and file is not None and is_static(Path(file)):
        remark = (
            f"{program[0]} is linked statically: Recorder cannot see its calls; link it dynamically, or "
            "use --tracer strace"
        )
    line = (
        strace_line(command, folder, env) if library is None else recorder_line(command, library, folder, env)
    )
    planned = Trace(folder, line.tracer, line.words, line.variables, remark)
    if dry_run:
        return planned
    begin_folder(folder, line, program or command)
    if collect:
        _collect(folder, env)
    try:
        ran = run_line(line, folder, env)
    except InputError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return replace(planned, status=ran.status, files=ran.files, bytes=ran.bytes)


def _collect(folder: Path, environment: Mapping[str, str]) -> None:
    """Write job.yaml; a machine that cannot be looked at keeps no run from being traced."""
    from vani.collect import collect  # noqa: PLC0415
    from vani.schema.document import dumps  # noqa: PLC0415

    try:
        text = dumps(collect(environment))
    except (VaniError, OSError, ValueError):
        return
    (folder / "job.yaml").write_text(text, encoding="utf-8")
