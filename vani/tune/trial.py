"""One run of a program under one setting: its folder, its environment, its time, and all as before afterwards."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from vani.errors import InputError, one_line
from vani.schema.tuned import Setting

__all__ = [
    "DATA",
    "Ended",
    "begin_folder",
    "command_in",
    "empty",
    "environment_of",
    "free_folder",
    "launch",
    "launch_shell",
    "printed_by",
    "seconds_in",
    "signals_waiting",
]

DATA: Final = "{data}"
"""Word, or part of one, for the folder of a run's output."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S: Final = 10.0
"""Time that a program has to end after SIGTERM."""


@dataclass(frozen=True)
class Ended:
    """The end of a command: exit status (128 and more: by a signal), seconds, whether it was stopped for its time."""

    status: int
    seconds: float
    too_slow: bool = False


def free_folder(data: Path, number: int) -> Path:
    """A path below `data` where nothing is, named after the run."""
    names = (f"vani-tune-{number}{suffix}" for suffix in ("", *(f"-{again}" for again in range(2, 1000))))
    for name in names:
        if not os.path.lexists(data / name):
            return data / name
    raise InputError(
        "has no free name for a run's folder", where=data, todo="remove folders of earlier sessions"
    )


def begin_folder(folder: Path, *, is_new: bool) -> None:
    """Make the folder of a run, or make sure that the one that is emptied has nothing in it.

    Raises
    ------
    InputError
        It cannot be made, or is not empty: nothing that was there before a run is ever removed.
    """
    try:
        if is_new:
            folder.mkdir()
        elif any(folder.iterdir()):
            raise InputError(
                "is not empty, and vani tune removes no existing files",
                where=folder,
                todo="empty it, or leave out --clean: then each run gets its own folder",
            )
    except OSError as error:
        raise InputError(f"cannot be used ({error.strerror})", where=folder) from error


def empty(folder: Path) -> None:
    """Remove what a run left in a folder that was empty before it; links are removed, not what they lead to."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def command_in(command: Sequence[str], folder: Path) -> list[str]:
    """The words of the command for a run that writes into `folder`."""
    return [word.replace(DATA, str(folder)) for word in command]


def environment_of(setting: Setting, folder: Path, hint_file: Path) -> dict[str, str]:
    """Variables of a run; its hints of MPI-IO are written to `hint_file`, with those of the user that are others.

    ROMIO reads one file, in which the first line of a name counts; Cray MPICH one variable, Open MPI one for each.
    """
    environment = dict(os.environ) | {"VANI_DATA": str(folder)} | setting.ompio | setting.environment
    if setting.hints:
        own: list[str] = []
        if "ROMIO_HINTS" in os.environ:
            with suppress(OSError):
                own = Path(os.environ["ROMIO_HINTS"]).read_text(encoding="utf-8").splitlines()
        lines = "".join(f"{name} {value}\n" for name, value in setting.hints.items())
        lines += "".join(f"{line}\n" for line in own if (line.split() or [""])[0] not in setting.hints)
        hint_file.write_text(lines, encoding="utf-8")
        words = ":".join(f"{name}={value}" for name, value in setting.hints.items())
        cray = environment.get("MPICH_MPIIO_HINTS")
        environment |= {
            "ROMIO_HINTS": str(hint_file),
            "ROMIO_PRINT_HINTS": "1",
            "MPICH_MPIIO_HINTS": f"{cray},*:{words}" if cray else f"*:{words}",
        }
    return environment


def launch(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    *,
    limit_s: float | None = None,
    lock: int,
) -> Ended:
    """Run a command until it ends; its output goes to `log`.

    Parameters
    ----------
    limit_s
        Seconds after which it is stopped.
    lock
        A descriptor that it inherits: while any process of the run lives, no one else can lock that file.

    Raises
    ------
    InputError
        It cannot be started.
    """
    with log.open("ab") as output:
        begin = time.perf_counter()
        try:
            process = subprocess.Popen(
                words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
                process_group=0,
            )
        except OSError as error:
            raise InputError(
                f"cannot be started ({error.strerror})", where=words[0], todo="check the spelling"
            ) from error
        with _ended_with_us(process):
            try:
                status = process.wait(limit_s)
            except subprocess.TimeoutExpired:
                return Ended(128 + signal.SIGTERM, time.perf_counter() - begin, too_slow=True)
        return Ended(128 - status if status < 0 else status, time.perf_counter() - begin)


def launch_shell(line: str, environment: Mapping[str, str], log: Path, *, lock: int) -> int:
    """Run a line of the user's, such as `--verify`; returns its exit status."""
    return launch(["sh", "-c", line], environment, log, lock=lock).status


def printed_by(line: str, environment: Mapping[str, str], *, lock: int) -> str:
    """The output of a line of the user's, such as `--time`."""
    done = subprocess.run(
        ["sh", "-c", line],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        pass_fds=[lock],
        check=False,
    )
    return done.stdout


def seconds_in(text: str) -> float:
    """The number that a text is; raises ValueError with the text where it is none, or no time."""
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(repr(one_line(text.strip())[:40])) from None
    if not 0 < seconds < math.inf:
        raise ValueError(f"{seconds:g}")
    return seconds


@contextmanager
def signals_waiting() -> Iterator[None]:
    """Let signals that end this process wait until the block is done: what it changes is known then, or as before."""
    arrived: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        arrived.append(number)

    is_main = threading.current_thread() is threading.main_thread()
    numbers: list[int] = [n for n in _SIGNALS if signal.getsignal(n) is not signal.SIG_IGN] if is_main else []
    before = {number: signal.signal(number, note) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived[:1]:
            signal.raise_signal(number)


@contextmanager
def _ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """However this block ends, no process of the command's group continues."""
    try:
        yield
    finally:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
