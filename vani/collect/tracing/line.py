"""The command line that runs a command under a tracer, as words that no shell sees, and the files that it leaves."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final, Literal

from vani.collect.tracing.launchers import launcher_of, programs_at, with_variables
from vani.errors import InputError, os_errors_as
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


def preloaded_line(
    tracer: str,
    command: Sequence[str],
    library: Path,
    folder: Path,
    environment: Mapping[str, str],
    behind: int = 0,
) -> TracedLine:
    """The command line with a tracer's library preloaded in each process, as the command's launcher requires.

    Parameters
    ----------
    tracer
        `recorder`, `dftracer`, or `timer`, the one of `vani tune`.
    behind
        Number of words before launcher and program (`timeout 60`), which are not traced.

    Raises
    ------
    InputError
        The launcher is unknown, or configured to pass no variables on, or the library is at a path that cannot be
        preloaded.
    """
    if {" ", ":"} & {*str(library)}:
        what = "cannot be preloaded: LD_PRELOAD ends a path at a space or colon"
        raise InputError(what, where=library, todo="use a folder without these in its name")
    before = environment.get("LD_PRELOAD", "")
    before_it, traced = list(command[:behind]), command[behind:]
    launcher = launcher_of(traced, environment)
    own = {name: value.format(folder) for name, value in _VARIABLES[tracer].items()}
    if tracer == "recorder" and launcher is None:
        own["RECORDER_WITH_NON_MPI"] = "1"
    variables = {"LD_PRELOAD": f"{library}:{before}" if before else str(library), **own}
    if launcher is not None:
        return TracedLine(tracer, [*before_it, *with_variables(traced, launcher, variables)])
    if not behind:
        return TracedLine(tracer, list(command), variables)
    set_here = ["env", *(f"{name}={value}" for name, value in variables.items())]
    return TracedLine(tracer, [*before_it, *set_here, *traced])


_VARIABLES: Final = {
    "recorder": {"RECORDER_TRACES_DIR": "{}"},
    "dftracer": {
        "DFTRACER_ENABLE": "1",
        "DFTRACER_INIT": "PRELOAD",
        "DFTRACER_INC_METADATA": "1",
        "DFTRACER_DATA_DIR": "all",
        "DFTRACER_LOG_FILE": "{}/run",
    },
    "timer": {"VANI_TIMER": "{}"},
}
"""Variables of each library, with the trace's folder in place of `{}`; DFTracer records everything that it can."""


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


_MARK = "vani-trace.json"
_FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@dataclass(frozen=True)
class Traced:
    """A command that ran."""

    status: int
    """Exit status; 128 plus the signal number if a signal ended the command."""
    files: int
    """Files of the trace."""
    bytes: int


def free_name(name: str) -> Path:
    """A folder that does not exist yet: `NAME.trace`, `NAME.trace.2`, ..."""
    path, number = Path(f"{name}.trace"), 1
    while os.path.lexists(path):
        number += 1
        path = Path(f"{name}.trace.{number}")
    return path


def new_folder(folder: Path, line: TracedLine, command: Sequence[str]) -> None:
    """Create the folder of the trace, and record the command in it.

    Raises
    ------
    InputError
        The name exists already, or the folder cannot be created.
    """
    if os.path.lexists(folder):
        raise InputError("already exists: traces are not overwritten", where=folder, todo="name another folder with -o")
    with os_errors_as(InputError, "cannot be made", where=folder, todo="name another with -o"):
        folder.mkdir()
    if line.tracer == "strace":
        noted = {
            "tracer": line.tracer,
            "command": list(command),
            "folder": str(Path.cwd()),
            "started_s": time.time(),
        }
        (folder / _MARK).write_text(json.dumps(noted, indent=1) + "\n", encoding="utf-8")


def run_line(line: TracedLine, folder: Path, environment: Mapping[str, str]) -> Traced:
    """Run the command line with this process's streams until it ends.

    Raises
    ------
    InputError
        It cannot be started.
    """
    before = set(folder.rglob("*"))
    with os_errors_as(InputError, "cannot be started", where=line.words[0], todo="check the spelling"):
        process = subprocess.Popen(line.words, env={**environment, **line.variables})
    with _signals_to(process, traced=Path(line.words[0]).name == "strace"):
        status = process.wait()
    left = [path for path in folder.rglob("*") if path.is_file() and path not in before]
    return Traced(128 - status if status < 0 else status, len(left), sum(path.stat().st_size for path in left))


@contextmanager
def _signals_to(process: subprocess.Popen[bytes], *, traced: bool) -> Iterator[None]:
    """Let signals end the command, not this process, which must still report where the trace is.

    Parameters
    ----------
    traced
        The process is strace; signals are for the program.
    """

    def forward(number: int, frame: FrameType | None) -> None:
        del frame
        # strace blocks signals, and the program would continue without it.
        for pid in (_begun_by(process.pid) if traced else []) or [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def ignore(number: int, frame: FrameType | None) -> None:
        """Ignore Ctrl-C, which a terminal sends to all its processes, including the command."""

    before = {number: signal.signal(number, forward) for number in _FORWARDED}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, ignore)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _begun_by(pid: int) -> list[int]:
    """The child processes of a process, as reported by Linux."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (OSError, ValueError):
        return []


def is_static(program: Path) -> bool:
    """Return whether a program is statically linked, so that no library can be preloaded.

    True for an ELF file without an interpreter segment (System V ABI, chapter 5); False for all others, including
    scripts.
    """
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:4] != b"\x7fELF" or head[4] != 2:
                return False
            order: Literal["little", "big"] = "little" if head[5] == 1 else "big"
            at, size, number = (int.from_bytes(head[a:b], order) for a, b in ((32, 40), (54, 56), (56, 58)))
            file.seek(at)
            table = file.read(size * number)
    except OSError:
        return False
    kinds = {int.from_bytes(table[i * size : i * size + 4], order) for i in range(number)}
    return bool(kinds) and 3 not in kinds
