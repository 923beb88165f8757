"""Runs a command under a tracer, and checks that the trace can be profiled, without reading its calls and times."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from vani.collect import collect as facts_of_job
from vani.collect.tracing.launchers import launcher_of, launches_in, programs_at, starts_others
from vani.collect.tracing.line import (
    begin_folder,
    dftracer_line,
    free_name,
    is_static,
    recorder_line,
    run_line,
    strace_line,
)
from vani.collect.tracing.tracers import find_dftracer, find_recorder
from vani.errors import InputError, VaniError
from vani.readers.programs import app_of, program_behind
from vani.schema.document import dumps
from vani.schema.settings import Option, Settings
from vani.units import counted

if TYPE_CHECKING:
    from vani.collect.tracing.line import Traced
    from vani.readers.trace_reader import TraceReader

_PRELOADED: Final = {"recorder": "Recorder", "dftracer": "DFTracer"}
_MAX_SHOWN: Final = 5
"""Number of a script's launches that an error names."""
_MAX_READ: Final = 1 << 24
"""Size up to which logs of strace and DFTracer are parsed."""
_FORTRAN: Final = (b"libgfortran.so", b"libifcore.so", b"libifcoremt.so", b"libnvf.so", b"libpgf90.so", b"libflang")
_MAX_OF_PROGRAM: Final = 1 << 26


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
    folder = (settings.output or free_name(app_of(program) or "run")).absolute()
    if os.path.lexists(folder):
        raise InputError(
            "already exists: traces are not overwritten", where=folder, todo="name another folder with -o"
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
    if settings.dry_run:
        return planned
    begin_folder(folder, line, program or command)
    if settings.collect:
        _collect(folder, env)
    try:
        ran = run_line(line, folder, env)
    except InputError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    done = replace(planned, status=ran.status, files=ran.files, bytes=ran.bytes)
    fault = _fault(folder, line.tracer, None if file is None else Path(file), ran)
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


def _collect(folder: Path, environment: Mapping[str, str]) -> None:
    """Write job.yaml; if the machine cannot be examined, the run is traced anyway."""
    try:
        text = dumps(facts_of_job(environment))
    except (VaniError, OSError, ValueError):
        return
    (folder / "job.yaml").write_text(text, encoding="utf-8")


def _fault(folder: Path, tracer: str, program: Path | None, ran: Traced) -> str:
    """Why a trace cannot be profiled, as one line without its path; empty if it can be. None: an unknown program."""
    from vani.readers.open import open_trace, traces_at  # noqa: PLC0415 - loads Arrow

    if not ran.files:
        return (
            "the run left no trace; was it killed early, is it statically linked, or did it start on a node "
            "that cannot access this folder (docs/tracing.md)?"
        )
    if tracer != "recorder" and ran.bytes > _MAX_READ:
        return ""
    try:
        for path in traces_at(folder):
            fault = _fault_of_reader(open_trace(path))
            if fault:
                return fault
    except InputError as error:
        return f"{error.what}{_cause(tracer, program, ran)}"
    return ""


def _fault_of_reader(reader: TraceReader) -> str:
    if not reader.calls_per_rank().any():
        return "no call on files was recorded"
    surplus = sum(count for name, _, count in reader.facts() if name == "several_launches")
    if surplus:
        return (
            f"several programs wrote into this folder and overwrote files: {counted(surplus, 'rank')} of other "
            f"runs mixed with the last run's ({counted(reader.ranks, 'rank')}); put vani trace before each launch"
        )
    return ""


def _cause(tracer: str, program: Path | None, ran: Traced) -> str:
    """A probable cause, from the kind of program."""
    if tracer != "recorder" or program is None:
        return ""
    if _is_fortran(program):
        return "; Recorder 3.0 may abort Fortran programs in MPI_Finalize before it writes its tables"
    if ran.status and _has_wheel_of_h5py(program):
        return "; the h5py wheel contains its own HDF5, not the one that Recorder was built with"
    return ""


def _is_fortran(program: Path) -> bool:
    """Whether a program links a Fortran library, judged by its first 64 MiB."""
    try:
        with program.open("rb") as file:
            content = file.read(_MAX_OF_PROGRAM)
    except OSError:
        return False
    return content[:4] == b"\x7fELF" and any(name in content for name in _FORTRAN)


def _has_wheel_of_h5py(program: Path) -> bool:
    """Whether a Python's site-packages contain the libraries of h5py's wheel."""
    if not program.name.startswith("python"):
        return False
    places = {program.parent.parent, program.resolve().parent.parent}
    return any(next(place.glob("lib/python3*/site-packages/h5py.libs/*hdf5*"), None) for place in places)
