"""One run of a program with one setting: its folder, environment, time, and cleaning up.

A run may use folders near the nodes in place of others, with copies before and after it.
"""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

from vani.errors import InputError, one_line
from vani.schema.tuned import Setting

DATA: Final = "{data}"
"""Placeholder in a command for the output folder of a run."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S: Final = 10.0
"""Time that a program has to exit after SIGTERM."""


@dataclass(frozen=True)
class Ended:
    """The end of a command: exit status (128 + n after signal n), seconds, and True if it was stopped as too slow."""

    status: int
    seconds: float
    too_slow: bool = False


def free_folder(data: Path, number: int) -> Path:
    """An unused path below `data`, named after the run.

    Raises
    ------
    InputError
        All names are taken.
    """
    names = (f"vani-tune-{number}{suffix}" for suffix in ("", *(f"-{again}" for again in range(2, 1000))))
    for name in names:
        if not os.path.lexists(data / name):
            return data / name
    raise InputError(
        "has no free name for a run's folder", where=data, todo="remove folders of earlier sessions"
    )


def begin_folder(folder: Path, *, is_new: bool) -> None:
    """Create the folder of a run, or check that a folder to be emptied afterwards is empty.

    Raises
    ------
    InputError
        The folder cannot be created, or is not empty: nothing that existed before a run is ever removed.
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
    """Remove what a run left in a folder that was empty before. Links are removed, but not their targets."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def command_in(command: Sequence[str], folder: Path) -> list[str]:
    """The command for a run that writes into `folder`."""
    return [word.replace(DATA, str(folder)) for word in command]


def environment_of(setting: Setting, folder: Path, hint_file: Path) -> dict[str, str]:
    """Environment of a run. Its MPI-IO hints are written to `hint_file`, followed by the user's other hints.

    ROMIO reads one file, in which the first line of a name counts. Cray MPICH reads one variable for all hints, and
    Open MPI one per hint.
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
    """Run a command until it ends, with its output appended to `log`.

    Parameters
    ----------
    limit_s
        Seconds after which the command is stopped.
    lock
        Descriptor that the command inherits: the file stays locked while any process of the run is alive.

    Raises
    ------
    InputError
        The command cannot be started.
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
    """Run a user's shell line, such as `--verify`. Return its exit status."""
    return launch(["sh", "-c", line], environment, log, lock=lock).status


def printed_by(line: str, environment: Mapping[str, str], *, lock: int) -> str:
    """The output of a user's shell line, such as `--time`."""
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
    """Parse a text as seconds above 0. Raises ValueError with the text if it is not a time."""
    try:
        seconds = float(text)
    except ValueError:
        raise ValueError(repr(one_line(text.strip())[:40])) from None
    if not 0 < seconds < math.inf:
        raise ValueError(f"{seconds:g}")
    return seconds


@contextmanager
def signals_waiting() -> Iterator[None]:
    """Defer signals that end this process until the block is done, so that its changes are complete or undone."""
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
    """Make sure that no process of the command's group outlives the block."""
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


_PREFIX: Final = "vani-tune-"


@dataclass
class Near:
    """Folders that a setting stages to near storage for one run.

    Parameters
    ----------
    folder
        Output folder of the run.
    note
        File that lists the created folders, so that a later session can remove those of a killed one.
    """

    setting: Setting
    folder: Path
    note: Path
    output: Path = field(init=False)
    """Folder that the program writes to."""
    inputs: dict[str, str] = field(init=False, default_factory=dict)
    """Copy of each input folder."""

    def __post_init__(self) -> None:
        self.output = self.folder

    def begin(self) -> None:
        """Create the folders and copy what the program reads. Raises OSError on failure."""
        for source, near in self.setting.stage_in.items():
            copy = self._new(near)
            shutil.copytree(source, copy, symlinks=True, dirs_exist_ok=True)
            self.inputs[source] = str(copy)
        if self.setting.stage_out is not None:
            self.output = self._new(self.setting.stage_out)

    def words(self, words: Sequence[str]) -> list[str]:
        """The command with input folders replaced by their copies."""
        replaced = list(words)
        for source, copy in self.inputs.items():
            replaced = [word.replace(source, copy) for word in replaced]
        return replaced

    def bring_back(self) -> None:
        """Copy what the program wrote to the run's output folder. Raises OSError on failure."""
        if self.output != self.folder:
            shutil.copytree(self.output, self.folder, symlinks=True, dirs_exist_ok=True)

    def _new(self, near: str) -> Path:
        path = Path(near) / f"{_PREFIX}{uuid.uuid4().hex[:12]}"
        with self.note.open("a", encoding="utf-8") as file:
            file.write(f"{path}\n")
            file.flush()
            os.fsync(file.fileno())
        path.mkdir(mode=0o700)
        return path


def remove_noted(note: Path) -> None:
    """Remove the folders listed in the note, and the note itself."""
    if not note.is_file():
        return
    for line in note.read_text(encoding="utf-8").splitlines():
        path = Path(line)
        if path.name.startswith(_PREFIX) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
    note.unlink()
