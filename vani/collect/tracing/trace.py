"""Runs a command under a tracer, and checks that the trace can be profiled, without reading its calls and times."""

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from vani.collect import collect as facts_of_job
from vani.collect.tracing.launchers import launcher_of, launches_in, programs_at, starts_others
from vani.collect.tracing.line import free_name, is_static, new_folder, preloaded_line, run_line, strace_line
from vani.collect.tracing.outcome import Missed
from vani.collect.tracing.tracers import find_dftracer, find_recorder
from vani.errors import InputError, VaniError
from vani.readers.programs import app_of, program_behind
from vani.schema.document import dumps
from vani.schema.job import Job
from vani.schema.settings import Option, Settings

_PRELOADED: Final = {"recorder": "Recorder", "dftracer": "DFTracer"}
_MAX_SHOWN: Final = 5
"""Number of a script's launches that an error names."""


class TraceSettings(Settings):
    """How a command is traced."""

    output: Annotated[Path | None, Option(("-o", "--output"), "DIR")] = Field(
        default=None, description="Folder for the trace; it must not exist yet. [default: PROGRAM.trace]"
    )
    recorder: Annotated[Path | None, Option(metavar="PATH")] = Field(
        default=None, description="Recorder's library, or its installation folder."
    )
    tracer: Literal["auto", "recorder", "strace", "dftracer"] = Field(
        default="auto", description="Recorder if found, else strace; or one of the named tracers."
    )
    dry_run: bool = Field(default=False, description="Print the command line for a shell, and run nothing.")
    collect: bool = Field(default=True, description="Do not write job.yaml into the folder.")
    check: bool = Field(
        default=False, description="Run the command again under strace, and print what the tracer missed."
    )


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
    missed: tuple[Missed, ...] | None = None
    """Files that the tracer did not fully record, mapped files and most bytes first; None without `check`."""

    @property
    def exit_status(self) -> int:
        """Exit status of the command; 2 if the command succeeded but its trace cannot be used."""
        return self.status or (2 if self.fault else 0)


def trace(
    command: Sequence[str],
    settings: TraceSettings | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    **fields: Any,
) -> Trace:
    """Run a command under Recorder if it is available, otherwise under strace.

    Parameters
    ----------
    command
        The command's words; no shell interprets them.
    settings, fields
        The settings, or single fields of `TraceSettings`. With `dry_run`, only the line is built. With `collect`,
        `job.yaml` in the folder gets facts that only the running job knows.
    environment
        Environment variables; by default those of this process.

    Raises
    ------
    InputError
        There is no command or tracer, `output` exists, a launcher's line cannot be parsed, or Recorder would trace
        a script, whose programs would all write to one folder.
    """
    settings = TraceSettings.of(settings, **fields)
    tracer = settings.tracer
    env = os.environ if environment is None else environment
    if not command:
        raise InputError("no command was given", todo="vani trace -- COMMAND...")
    behind = program_behind(command)
    program = list(command[behind:])
    executable = shutil.which(command[0], path=env.get("PATH"))
    if executable is None and not settings.dry_run:
        raise InputError("cannot be run: no such program", where=command[0], todo="check the spelling")
    launcher = launcher_of(program, env)
    several = launcher is None and starts_others(program, env.get("PATH"))
    if launcher is not None:
        try:
            program = program[programs_at(program, launcher)[0] :]
            program = program[program_behind(program) :]
        except InputError:
            # Only the program's name is lost, if strace need not precede it.
            program = []
    folder = (settings.output or free_name(app_of(program) or "run")).absolute()
    second = folder.with_name(f"{folder.name}.check")
    if taken := [path for path in (folder, second) if os.path.lexists(path) and (settings.check or path == folder)]:
        raise InputError(
            "already exists: traces are not overwritten", where=taken[0], todo="name another folder with -o"
        )
    library = None if tracer in ("strace", "dftracer") else find_recorder(settings.recorder, env)
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
        library = find_dftracer(program, env)
    if library is None:
        line = strace_line(command, folder, env, behind)
    else:
        line = preloaded_line("dftracer" if tracer == "dftracer" else "recorder", command, library, folder, env, behind)
    if line.tracer != "strace" and file is not None and is_static(Path(file)):
        remark = (
            f"{program[0]} is linked statically: {_PRELOADED[line.tracer]} cannot see its calls; link it dynamically, "
            "or use --tracer strace"
        )
    planned = Trace(folder, line.tracer, line.words, line.variables, remark)
    if settings.dry_run:
        return planned
    # Refused before the first run if there is no strace.
    again_line = strace_line(command, second, env, behind) if settings.check else None
    new_folder(folder, line, program or command)
    job = _collected(env) if settings.collect else None
    _write(job, folder)
    started_s = time.time()
    try:
        ran = run_line(line, folder, env)
    except InputError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    from vani.collect.tracing.outcome import data_files, files_after, missed, opened  # noqa: PLC0415 - loads Arrow

    done = replace(planned, status=ran.status, files=ran.files, bytes=ran.bytes)
    readers, fault = opened(folder, line.tracer, None if file is None else Path(file), ran)
    after = files_after((path for reader in readers for path in data_files(reader)), started_s)
    _write(None if job is None else job.model_copy(update={"files_after": after}), folder)
    if not fault and again_line is not None:
        if line.tracer == "strace":
            return replace(done, missed=tuple(missed(folder, folder, after)))
        new_folder(second, again_line, program or command)
        try:
            run_line(again_line, second, env)
            return replace(done, missed=tuple(missed(folder, second, after)))
        finally:
            shutil.rmtree(second, ignore_errors=True)
    if not fault:
        return done
    with_strace = line.tracer != "strace" and shutil.which("strace", path=env.get("PATH")) is not None
    again = ("vani", "trace", "--tracer", "strace", "--", *command) if with_strace else ()
    return replace(done, fault=fault, again=again)


def _one_folder_for(program: Sequence[str], environment: Mapping[str, str]) -> InputError:
    steps = launches_in(program, environment.get("PATH"))
    shown = ", ".join(f"vani trace -- {step}" for step in steps[:_MAX_SHOWN])
    more = f" and {len(steps) - _MAX_SHOWN} more" if len(steps) > _MAX_SHOWN else ""
    return InputError(
        "may start several programs, which Recorder would write into one folder",
        where=" ".join(program[:2]),
        todo=f"trace each launch ({shown or 'vani trace -- mpiexec ...'}{more}), or use --tracer strace",
    )


def _collected(environment: Mapping[str, str]) -> Job | None:
    """Facts about the job; None if the machine cannot be examined: the run is traced anyway."""
    try:
        return facts_of_job(environment)
    except (VaniError, OSError, ValueError):
        return None


def _write(job: Job | None, folder: Path) -> None:
    """Write job.yaml, if there is a job."""
    if job is not None:
        (folder / "job.yaml").write_text(dumps(job), encoding="utf-8")
