"""Implements `vani trace`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vani.api.trace_fault import fault_of
from vani.collect import collect
from vani.collect.tracing.dftracer_library import find_dftracer
from vani.collect.tracing.launchers import launcher_of, programs_at
from vani.collect.tracing.line import dftracer_line, recorder_line, strace_line
from vani.collect.tracing.recorder_library import find_recorder
from vani.collect.tracing.run import begin_folder, free_name, is_static, run_line
from vani.collect.tracing.scripts import launches_in, starts_others
from vani.errors import InputError, VaniError
from vani.readers.programs import app_of, program_behind
from vani.schema.document import dumps

Tracer = Literal["auto", "recorder", "strace", "dftracer"]

_PRELOADED = {"recorder": "Recorder", "dftracer": "DFTracer"}
_SHOWN = 5
"""Number of a script's launches that an error names."""


@dataclass(frozen=True)
class Trace:
    """A traced command: how it was run, and the result."""

    folder: Path
    tracer: str
    """`recorder`, `strace` or `dftracer`."""
    words: list[str]
    """Words of the line to run."""
    variables: dict[str, str]
    """Variables added to its environment."""
    remark: str
    """Why the trace may be incomplete; empty if no reason is known."""
    status: int | None = None
    """Exit status of the command, or 128 plus the number of the signal that ended it; None if nothing was run."""
    files: int = 0
    """Number of trace files written."""
    bytes: int = 0
    """Total size of these files."""
    fault: str = ""
    """Why the trace cannot be profiled; empty if it can be, or nothing was run."""
    again: tuple[str, ...] = ()
    """A `vani trace` line that avoids the fault; empty if none is known."""

    @property
    def exit_status(self) -> int:
        """Exit status of the command; 2 if the command succeeded but its trace cannot be used."""
        return self.status or (2 if self.fault else 0)


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
    """Run a command under Recorder if it is available, otherwise under strace.

    Parameters
    ----------
    command
        The command's words; no shell interprets them.
    output
        Folder for the trace, which must not exist; by default named after the program.
    recorder
        Recorder's library, or its installation folder.
    dry_run
        Only build the line, and run nothing.
    collect
        Also write `job.yaml`, with facts that only the running job knows, to the folder.
    environment
        Environment variables; by default those of this process.

    Raises
    ------
    InputError
        There is no command or tracer, `output` exists, a launcher's line cannot be parsed, or Recorder would trace
        a script, whose programs would all write to one folder.
    """
    env = os.environ if environment is None else environment
    if not command:
        raise InputError("no command was given", todo="vani trace -- COMMAND...")
    behind = program_behind(command)
    program = list(command[behind:])
    executable = shutil.which(command[0], path=env.get("PATH"))
    if executable is None and not dry_run:
        raise InputError(
            "cannot be run: no such program", where=command[0], todo="check the spelling"
        )
    launcher = launcher_of(program, env)
    several = launcher is None and starts_others(program, env.get("PATH"))
    if launcher is not None:
        try:
            program = program[programs_at(program, launcher)[0] :]
            program = program[program_behind(program) :]
        except InputError:
            # Only the program's name is lost, if strace need not precede it.
            program = []
    folder = (output or free_name(app_of(program) or "run")).absolute()
    if os.path.lexists(folder):
        raise InputError(
            "already exists: traces are not overwritten", where=folder, todo="name another folder with -o"
        )
    library = None if tracer in ("strace", "dftracer") else find_recorder(recorder, env)
    if tracer == "recorder" and library is None:
        raise InputError(
            "Recorder's library was not found",
            todo="name it with --recorder or RECORDER_ROOT (docs/tracing.md)",
        )
    remark = ""
    if several and library is not None:
        if tracer == "recorder":
            raise _one_folder_for(program, env)
        if shutil.which("strace", path=env.get("PATH")):
            library = None
            remark = (
                f"{program[0]} may start several programs, which Recorder would write into one folder, so strace was "
                "used; for Recorder, put vani trace before each launch"
            )
    file = shutil.which(program[0], path=env.get("PATH")) if program else None
    if tracer == "dftracer":
        line = dftracer_line(command, find_dftracer(program, env), folder, env, behind)
    elif library is None:
        line = strace_line(command, folder, env, behind)
    else:
        line = recorder_line(command, library, folder, env, behind)
    if line.tracer != "strace" and file is not None and is_static(Path(file)):
        remark = (
            f"{program[0]} is linked statically: {_PRELOADED[line.tracer]} cannot see its calls; link it dynamically, "
            "or use --tracer strace"
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
    done = replace(planned, status=ran.status, files=ran.files, bytes=ran.bytes)
    fault = fault_of(folder, line.tracer, None if file is None else Path(file), ran)
    if not fault:
        return done
    with_strace = line.tracer != "strace" and shutil.which("strace", path=env.get("PATH")) is not None
    again = ("vani", "trace", "--tracer", "strace", "--", *command) if with_strace else ()
    return replace(done, fault=fault, again=again)


def _one_folder_for(program: Sequence[str], environment: Mapping[str, str]) -> InputError:
    steps = launches_in(program, environment.get("PATH"))
    shown = ", ".join(f"vani trace -- {step}" for step in steps[:_SHOWN])
    more = f" and {len(steps) - _SHOWN} more" if len(steps) > _SHOWN else ""
    return InputError(
        "may start several programs, which Recorder would write into one folder",
        where=" ".join(program[:2]),
        todo=f"trace each launch ({shown or 'vani trace -- mpiexec ...'}{more}), or use --tracer strace",
    )


def _collect(folder: Path, environment: Mapping[str, str]) -> None:
    """Write job.yaml; if the machine cannot be examined, the run is traced anyway."""
    try:
        text = dumps(collect(environment))
    except (VaniError, OSError, ValueError):
        return
    (folder / "job.yaml").write_text(text, encoding="utf-8")
