"""A session of `vani tune`: a series of runs, each with its folder, environment and time.

The session is saved after each step and restores everything at the end. A run may use folders near the nodes in place
of others, with copies before and after it.
"""

import fcntl
import math
import os
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal, Protocol

from vani.errors import InputError, one_line, os_errors_as
from vani.schema.settings import PathLike
from vani.schema.tuned import RunIO, Setting, Tuned, TunedRun
from vani.tune.search import next_candidates, not_worth_a_run, result_of
from vani.units import format_bytes

_VARIABLE: Final = "VANI_DATA"
_SCRIPT: Final = 1 << 20
"""Size in bytes below which a file in a command may be a script."""
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


def folder_of_run(tuned: Tuned, number: int) -> Path:
    """Folder of a run: the session's own if runs empty it, else an unused path below it, or next to it for a copy.

    Raises
    ------
    InputError
        All names are taken.
    """
    data, before = Path(tuned.data), ""
    if tuned.fresh == "emptied":
        return data
    if tuned.fresh == "sibling":
        data, before = data.parent, f"{data.name}-"
    names = (f"{before}vani-tune-{number}{suffix}" for suffix in ("", *(f"-{again}" for again in range(2, 1000))))
    for name in names:
        if not os.path.lexists(data / name):
            return data / name
    raise InputError("has no free name for a run's folder", where=data, todo="remove folders of earlier sessions")


def fresh_folder(command: Sequence[str], data: Path) -> Literal["subfolder", "sibling"]:
    """Kind of folder of each run: a new one below `data`, if the command takes it, or else a copy of `data`.

    Raises
    ------
    InputError
        The program may write into `data` whatever folder it gets, and there are files that it could overwrite.
    """
    if any(DATA in word or _VARIABLE in word for word in command):
        return "subfolder"
    if data == Path.cwd() or any(in_copy(word, data, Path("/")) != word for word in command):
        return "sibling"
    scripts = (path for word in command if (path := Path(word)).is_file() and path.stat().st_size < _SCRIPT)
    if not any(data.iterdir()) or any(_VARIABLE.encode() in path.read_bytes() for path in scripts):
        return "subfolder"
    raise InputError(
        "contains files that a run could overwrite: the command has no {data}, and does not name this folder",
        where=data,
        todo="write {data} where the command names its output folder",
    )


def begin_folder(folder: Path, *, is_new: bool) -> None:
    """Create the folder of a run, or check that a folder to be emptied afterwards is empty.

    Raises
    ------
    InputError
        The folder cannot be created, or is not empty: nothing that existed before a run is ever removed.
    """
    with os_errors_as(InputError, "cannot be used", where=folder):
        if is_new:
            folder.mkdir()
        elif any(folder.iterdir()):
            raise InputError(
                "is not empty, and vani tune removes no existing files",
                where=folder,
                todo="empty it, or leave out --clean: then each run gets its own folder",
            )


def remove_output(tuned: Tuned, folder: Path) -> None:
    """Remove what a run left in its folder, and a new folder itself. Links are removed, but not their targets."""
    is_new = tuned.fresh != "emptied"
    if (is_new and tuned.keep) or not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    if is_new:
        folder.rmdir()


def command_in(tuned: Tuned, folder: Path) -> list[str]:
    """The command for a run that writes into `folder`, in which the copy replaces a copied folder."""
    words = [word.replace(DATA, str(folder)) for word in tuned.command]
    if tuned.fresh == "sibling":
        return [in_copy(word, Path(tuned.data), folder) for word in words]
    return words


def in_copy(word: str, data: Path, folder: Path) -> str:
    """A word of a command with `folder` in place of `data`: a path, also after `=`, or the folder's name in a text."""
    before, equals, path = word.rpartition("=")
    place = Path(path).resolve()
    if path and data != Path.cwd() and not Path(path).is_absolute() and place.is_relative_to(data):
        return f"{before}{equals}{folder / place.relative_to(data)}"
    return word.replace(str(data), str(folder))


def size_below(folder: Path) -> int:
    """Bytes of the files in a folder and the folders below."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


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
    folder: Path | None = None,
) -> Ended:
    """Run a command until it ends, with its output appended to `log`.

    Parameters
    ----------
    limit_s
        Seconds after which the command is stopped.
    lock
        Descriptor that the command inherits: the file stays locked while any process of the run is alive.
    folder
        Working folder; by default the one of this process.

    Raises
    ------
    InputError
        The command cannot be started.
    """
    with log.open("ab") as output:
        begin = time.perf_counter()
        with os_errors_as(InputError, "cannot be started", where=words[0], todo="check the spelling"):
            process = subprocess.Popen(
                words,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[lock],
                process_group=0,
            )
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


_NEAR = "near.txt"
_LOCK = "vani-tune.lock"
DOCUMENT = "tuned.yaml"
"""The document in the state folder."""
_FULL = 1 << 20
"""Bytes of room below which a failed run may have needed more."""
_PATIENCE = 3.0
_LEAST_PATIENCE_S = 60.0
"""A run is stopped after `_PATIENCE` times a run without settings, plus a minute: it cannot be the best any more."""


Line = tuple[list[str], dict[str, str]]
"""Command and environment of a run."""


class Layouts(Protocol):
    """Sets and restores layouts of folders."""

    def set(self, folder: Path, options: str) -> str | None:
        """Set the layout of new files in a folder. Return why it was not applied, or None if it was."""

    def undo(self) -> None:
        """Restore all layouts that are still set, including those of a killed session."""


class IOTimes(Protocol):
    """Measures the I/O time of runs."""

    def line(self, number: int, command: Sequence[str], environment: Mapping[str, str]) -> Line:
        """Command and environment for run `number`; called just before it starts."""

    def measured(self, number: int) -> tuple[float, RunIO] | str:
        """I/O time of a finished run in seconds, with its parts, or why it is unknown."""


@contextmanager
def locked(state: Path) -> Iterator[int]:
    """Lock a state folder for this process and its runs; yields the descriptor.

    Raises
    ------
    InputError
        Another session, or a run that outlived one, has the lock.
    """
    with (state / _LOCK).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                "a run of this session is still in progress", where=state, todo="wait for it, or stop it"
            ) from None
        except OSError:
            # The file system has no locks: only the user can know.
            pass
        yield file.fileno()


def run_before(tuned: Tuned, state: Path, begin: Sequence[str], lock: int) -> None:
    """Run the program once, in a folder of its own, with words before its command. The run is not measured.

    Raises
    ------
    InputError
        The program or `prepare` fails.
    """
    folder = folder_of_run(tuned, 0)
    begin_folder(folder, is_new=tuned.fresh != "emptied")
    log = state / "run-0.log"
    environment = environment_of(Setting(), folder, state / "run-0.hints")
    lines = [] if tuned.prepare is None else [["sh", "-c", tuned.prepare]]
    try:
        copy_inputs(tuned, folder)
        for words in [*lines, [*begin, *command_in(tuned, folder)]]:
            if status := launch(words, environment, log, lock=lock, folder=working_folder(tuned, folder)).status:
                raise InputError(
                    f"{words[-1] if words in lines else 'the traced run'} ended with {_end_of(status, folder, log)}",
                    where=log,
                    todo=f"check its output, remove {state} and start again",
                )
    finally:
        remove_output(tuned, folder)


def working_folder(tuned: Tuned, folder: Path) -> Path | None:
    """Folder in which a run starts: the copy of the present one, if that is copied; None for the present one."""
    return folder if tuned.fresh == "sibling" and Path(tuned.data) == Path.cwd() else None


def copy_inputs(tuned: Tuned, folder: Path) -> None:
    """Copy the files of a folder whose copies the runs use; nothing for other sessions."""
    if tuned.fresh != "sibling":
        return
    try:
        shutil.copytree(tuned.data, folder, symlinks=True, dirs_exist_ok=True, ignore=_states)
    except (OSError, shutil.Error) as error:
        raise InputError(f"cannot be copied ({_reason(error)})", where=tuned.data) from error


def _states(folder: str, names: list[str]) -> list[str]:
    """Folders of sessions, which are no input."""
    return [name for name in names if (Path(folder) / name / _LOCK).is_file()]


def _reason(error: OSError | shutil.Error) -> str:
    return error.strerror or str(error.args[0])[:200]


def _free(place: PathLike) -> float:
    """Free bytes of a file system; infinite for one that does not state its size, such as CephFS without a manager."""
    usage = shutil.disk_usage(place)
    return usage.free if usage.total else math.inf


def _end_of(status: int, folder: Path, log: Path) -> str:
    """How a program failed: its status, whether its file system is full, and the last line that it printed."""
    full = ", its file system is full" if _free(folder) < _FULL else ""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"status {status}{full}" + (f": {one_line(last)[:200]}" if last else "")


@dataclass
class Session:
    """A session and what it needs to run.

    Parameters
    ----------
    tuned
        The document so far.
    state
        Folder of the document and the logs.
    reported
        Finds the MPI hints reported in a log, with the value for each file.
    progress
        Called with the document after each run.
    io_times
        Measures the I/O time of runs. None: it stays unknown.
    mapped
        Adds the order of processes over nodes to a launcher's command; returns None if it is not a launcher.
    """

    tuned: Tuned
    state: Path
    layouts: Layouts
    reported: Callable[[str], Mapping[str, Sequence[str]]]
    progress: Callable[[Tuned], None] | None = None
    io_times: IOTimes | None = None
    mapped: Callable[[Sequence[str], Literal["block", "cyclic"]], list[str] | None] | None = None

    def carry_out(self, lock: int, most_runs: int | None = None) -> Tuned:
        """Run until the search is over, or `most_runs` more. Return the document, with the result if it is over.

        Raises
        ------
        InputError
            Something that the session needs fails. Measurements are kept and everything is restored.
        """
        with signals_waiting():
            self._tidy()
        runs = 0
        while (candidates := next_candidates(self.tuned)) is not None:
            if runs == most_runs:
                return self.tuned
            self._run(candidates, lock)
            runs += 1
        left_out = [item for item in not_worth_a_run(self.tuned) if item not in self.tuned.not_tried]
        ended = self.tuned.ended or datetime.now(UTC).isoformat(timespec="seconds")
        self._keep(result=result_of(self.tuned), not_tried=[*self.tuned.not_tried, *left_out], ended=ended)
        return self.tuned

    def _tidy(self) -> None:
        """Mark the run of a killed session as interrupted and restore the layout."""
        self.layouts.undo()
        remove_noted(self.state / _NEAR)
        for run in self.tuned.runs:
            if run.outcome == "running":
                self._end(run, outcome="interrupted", remark="the session was killed")
        if self.tuned.fresh == "emptied":
            begin_folder(Path(self.tuned.data), is_new=False)

    def _run(self, candidates: list[int], lock: int) -> None:
        tuned, number = self.tuned, len(self.tuned.runs) + 1
        is_new = tuned.fresh != "emptied"
        folder = folder_of_run(tuned, number)
        self._check_room()
        run = TunedRun(number=number, candidates=candidates, folder=str(folder))
        if not is_new:
            # Before anything is set: existing files must never be removed below.
            begin_folder(folder, is_new=False)
        self._keep(runs=[*tuned.runs, run])
        changes: dict[str, Any] = {"outcome": "interrupted"}
        try:
            if is_new:
                begin_folder(folder, is_new=True)
            changes = self._measured(run, tuned.setting(candidates), folder, lock)
        finally:
            # Callbacks run from last to first, each even if another fails.
            with signals_waiting(), ExitStack() as after:
                after.callback(self._end, run, **changes)
                after.callback(remove_output, tuned, folder)
                after.callback(remove_noted, self.state / _NEAR)
                after.callback(self.layouts.undo)
        if self.progress is not None:
            self.progress(self.tuned)

    def _check_room(self) -> None:
        """Raise InputError if a run, which needs as much room as the first, may fill the file system."""
        place = Path(self.tuned.data).parent if self.tuned.fresh == "sibling" else self.tuned.data
        need, free = self.tuned.run_bytes or 0, _free(place)
        if need > free:
            raise InputError(
                f"has room for {format_bytes(int(free))}, and a run needs {format_bytes(need)}",
                where=self.tuned.data,
                todo="make room, then run vani tune --resume",
            )

    def _measured(self, run: TunedRun, setting: Setting, folder: Path, lock: int) -> dict[str, Any]:
        """Carry out a run. Return the changes to its entry in the document."""
        tuned, log = self.tuned, self.state / f"run-{run.number}.log"
        if setting.layout is not None:
            with signals_waiting():
                why = self.layouts.set(folder, setting.layout)
            if why is not None:
                return {"outcome": "not_applied", "remark": why}
        copy_inputs(tuned, folder)
        near = Near(setting, folder, self.state / _NEAR)
        begin = time.perf_counter()
        try:
            near.begin()
        except OSError as error:
            return {"outcome": "not_applied", "remark": f"cannot be copied to near storage ({error.strerror or error})"}
        copying_s = time.perf_counter() - begin
        environment = environment_of(setting, near.output, self.state / f"run-{run.number}.hints")
        if tuned.prepare is not None and (status := launch_shell(tuned.prepare, environment, log, lock=lock)):
            raise InputError(
                f"--prepare ended with status {status}", where=log, todo="fix it, then run vani tune --resume"
            )
        first = next((known.seconds for known in tuned.runs if known.outcome == "ended"), None)
        limit_s = None if first is None else _PATIENCE * first + _LEAST_PATIENCE_S
        words = near.words(command_in(tuned, near.output))
        if setting.mapping is not None and self.mapped is not None:
            words = self.mapped(words, setting.mapping) or words
        if self.io_times is not None:
            words, environment = self.io_times.line(run.number, words, environment)
        ended = launch(words, environment, log, limit_s=limit_s, lock=lock, folder=working_folder(tuned, near.output))
        begin = time.perf_counter()
        try:
            near.bring_back()
        except OSError as error:
            return {"outcome": "failed", "remark": f"its output cannot be copied ({error.strerror or error})"}
        copying_s += time.perf_counter() - begin
        environment["VANI_DATA"] = str(folder)
        printed = self.reported(log.read_text(encoding="utf-8", errors="replace")) if setting.hints else {}
        hints = {
            name: value if value in printed[name] else printed[name][-1]
            for name, value in setting.hints.items()
            if name in printed
        }
        seconds = ended.seconds + (copying_s if setting.stage_in or setting.stage_out else 0.0)
        changes: dict[str, Any] = {"seconds": round(seconds, 6), "status": ended.status, "hints": hints}
        if ended.too_slow:
            return changes | {"outcome": "too_slow", "remark": f"stopped after {ended.seconds:.0f} s"}
        if ended.status:
            return changes | {"outcome": "failed", "remark": _end_of(ended.status, folder, log)}
        if tuned.verify is not None and (status := launch_shell(tuned.verify, environment, log, lock=lock)):
            return changes | {
                "outcome": "not_verified", "remark": f"--verify ended with status {status}, see {log}"
            }  # fmt: skip
        if tuned.time is not None:
            text = printed_by(tuned.time, environment | {"VANI_LOG": str(log)}, lock=lock)
            try:
                changes["seconds"] = seconds_in(text)
            except ValueError as error:
                raise InputError(
                    f"printed {error}, where seconds should be",
                    where="--time",
                    todo="fix it, start again, and test it first: $VANI_LOG is what the program printed",
                ) from None
        if tuned.run_bytes is None:
            # Saved with the run itself.
            self.tuned = tuned.model_copy(update={"run_bytes": size_below(folder)})
        io = self._io(run.number)
        if "io_s" in io and (setting.stage_in or setting.stage_out):
            # Copies are I/O that the program did not do itself.
            io["io_s"] = round(io["io_s"] + copying_s, 6)
        return changes | io | {"outcome": "ended", "remark": self._remark(setting, hints, folder)}

    def _io(self, number: int) -> dict[str, Any]:
        measured = self.io_times.measured(number) if self.io_times is not None else "is not measured (--io-time off)"
        if isinstance(measured, str):
            return {"io_why": measured}
        return {"io_s": round(measured[0], 6), "io": measured[1]}

    def _remark(self, setting: Setting, hints: Mapping[str, str], folder: Path) -> str:
        wrong = [f"{name} {hints[name]}" for name in hints if hints[name] != setting.hints[name]]
        if wrong:
            return f"MPI took {', '.join(wrong)}"
        return "" if any(folder.iterdir()) else f"wrote nothing to {folder}: does it write there ({{data}})?"

    def _end(self, run: TunedRun, **changes: Any) -> None:
        ended = run.model_copy(update=changes)
        self._keep(runs=[ended if known.number == run.number else known for known in self.tuned.runs])

    def _keep(self, **changes: Any) -> None:
        self.tuned = self.tuned.model_copy(update=changes)
        self.tuned.save(self.state / DOCUMENT)
