"""The command line that runs a command under a tracer, as a list of words that no shell sees."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vani.collect.tracing.launchers import launcher_of, programs_at, with_variables
from vani.errors import InputError
from vani.readers.strace.system_calls import WANTED

LOG = "run.strace"
"""The log of a command without a launcher; `rank-N.strace` for MPI ranks."""

# The question mark suppresses the error on machines without such a call.
STRACE = (
    "--seccomp-bpf",
    "-f",
    "-ttt",
    "-T",
    "-y",
    # File contents are private.
    "-s",
    "0",
    # libaio requests with their sizes; everything else is abbreviated.
    "-e",
    "abbrev=!io_submit",
    "-e",
    "trace=" + ",".join(f"?{name}" for name in WANTED),
)


@dataclass(frozen=True)
class TracedLine:
    """A command line to run."""

    tracer: str
    """`recorder`, `strace` or `dftracer`."""
    words: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    """Variables to add to the environment."""


def recorder_line(
    command: Sequence[str], library: Path, folder: Path, environment: Mapping[str, str], behind: int = 0
) -> TracedLine:
    """The command line with Recorder's library preloaded in the way that the command's launcher requires.

    Parameters
    ----------
    behind
        Number of words before launcher and program (`timeout 60`), which are not traced.

    Raises
    ------
    InputError
        The launcher is unknown, or configured to pass no variables on.
    """
    variables = {"RECORDER_TRACES_DIR": str(folder)}
    if launcher_of(command[behind:], environment) is None:
        variables["RECORDER_WITH_NON_MPI"] = "1"
    return _preloaded("recorder", command, library, variables, environment, behind)


def dftracer_line(
    command: Sequence[str], library: Path, folder: Path, environment: Mapping[str, str], behind: int = 0
) -> TracedLine:
    """The command line with DFTracer's library preloaded, and everything recorded that it can record.

    Raises
    ------
    InputError
        The launcher is unknown, or configured to pass no variables on.
    """
    variables = {
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_INC_METADATA": "1",
        "DFTRACER_DATA_DIR": "all",
        "DFTRACER_LOG_FILE": str(folder / "run"),
    }
    return _preloaded("dftracer", command, library, variables, environment, behind)


def _preloaded(
    tracer: str,
    command: Sequence[str],
    library: Path,
    variables: Mapping[str, str],
    environment: Mapping[str, str],
    behind: int,
) -> TracedLine:
    before = environment.get("LD_PRELOAD", "")
    variables = {"LD_PRELOAD": f"{library}:{before}" if before else str(library), **variables}
    before_it, traced = list(command[:behind]), command[behind:]
    launcher = launcher_of(traced, environment)
    if launcher is not None:
        return TracedLine(tracer, [*before_it, *with_variables(traced, launcher, variables)])
    if not behind:
        return TracedLine(tracer, list(command), variables)
    set_here = ["env", *(f"{name}={value}" for name, value in variables.items())]
    return TracedLine(tracer, [*before_it, *set_here, *traced])


def strace_line(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], behind: int = 0
) -> TracedLine:
    """The command line with strace before the program: with a launcher, before each of its ranks.

    Parameters
    ----------
    behind
        Number of words before launcher and program.

    Raises
    ------
    InputError
        strace is not installed, or the program in a launcher's command line cannot be found.
    """
    strace = shutil.which("strace", path=environment.get("PATH"))
    if strace is None:
        raise InputError(
            "neither Recorder's library nor strace was found",
            todo="name the library with --recorder or RECORDER_ROOT (docs/tracing.md), or install strace",
        )
    launcher = launcher_of(command[behind:], environment)
    if launcher is None:
        return TracedLine("strace", [strace, *STRACE, "-o", str(folder / LOG), "--", *command])
    # Only the process itself knows its rank.
    begin = [sys.executable, "-I", "-S", str(Path(__file__).with_name("rank.py")), str(folder)]
    words = list(command)
    for at in reversed(programs_at(command[behind:], launcher)):
        words[behind + at : behind + at] = [*begin, strace, *STRACE, "--"]
    return TracedLine("strace", words)
