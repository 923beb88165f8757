"""File throughput by number of Lustre targets, for each pattern: a short test, bounded in bytes and time.

Processes write simultaneously to 1, 2, 4, ... targets according to a pattern; flush time is included:

- shared: one file, with a region for each process;
- collective: one file written like aggregators of collective calls do, in alternating whole stripes. The cost of data
  exchange between processes is not included;
- strided: one file, in alternating pieces of less than a stripe. Only on several nodes, because processes on one share
  locks;
- own: a file for each process.

Files are unlinked before anything is written to them, so that no data remains however the test ends. On several
nodes, an MPI launcher starts the processes, which do not need MPI themselves.
"""

import contextlib
import hmac
import json
import os
import secrets
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from vani.collect.node import NoAnswer, ask
from vani.collect.sweep_writer import JSON
from vani.collect.transfer_test import check_room, failed_test
from vani.errors import InputError, one_line, os_errors_as
from vani.schema.system import StripeCurve, StripePoint
from vani.units import KiB, MiB, lfs_size

_PROGRAM: Final = Path(__file__).with_name("sweep_writer.py")
_BEGIN_S: Final = 120.0
"""Time limit for a launcher, which is slow on many nodes."""
_MORE_S: Final = 10.0
"""Time to wait for one more process if their number is unknown."""
_FLUSH_S: Final = 120.0
"""Time in addition to writing within which a process must have flushed."""
_END_S: Final = 5.0


@dataclass(frozen=True)
class Writer:
    """A connection to a process."""

    host: str
    stream: IO[str]
    connection: socket.socket

    def send(self, message: Mapping[str, Any]) -> None:
        self.stream.write(json.dumps(message) + "\n")
        self.stream.flush()

    def answer(self, limit_s: float) -> dict[str, Any]:
        """The next line that the process sends.

        Raises
        ------
        InputError
            There is none in time, or it reports an error.
        """
        self.connection.settimeout(limit_s)
        try:
            line = self.stream.readline()
            answer = json.loads(line) if line else {"error": "it ended"}
        except (OSError, ValueError) as error:
            answer = {"error": f"no answer in {limit_s:g} s" if isinstance(error, TimeoutError) else "no answer"}
        if "error" in answer:
            raise InputError(
                f"a writing process on {one_line(self.host)} failed ({one_line(str(answer['error']))})",
                todo="name a folder that all nodes of the job may write, with room and quota, or a smaller --size",
            )
        return dict(answer)


class Writers:
    """Processes, with those on one node being consecutive."""

    def __init__(self, connected: Sequence[Writer]) -> None:
        self._writers = sorted(connected, key=lambda writer: writer.host)

    def __len__(self) -> int:
        return len(self._writers)

    @property
    def nodes(self) -> int:
        return len({writer.host for writer in self._writers})

    def rate(self, tasks: Sequence[Mapping[str, Any]], limit_s: float, *, opened: Any) -> float | None:
        """Bytes per second from the common start until the last has flushed; None if nothing was written.

        A task has `path`, `begin`, `step`, `piece` and `pieces`. `opened` is called when all have opened their files.
        """
        for writer, task in zip(self._writers, tasks, strict=True):
            writer.send(task)
        for writer in self._writers:
            writer.answer(_FLUSH_S)
        opened()
        begin = time.monotonic()
        for writer in self._writers:
            writer.send({"limit_s": limit_s})
        moved = sum(int(writer.answer(limit_s + _FLUSH_S)["moved"]) for writer in self._writers)
        return moved / (time.monotonic() - begin) if moved else None


@contextlib.contextmanager
def writers(folder: Path, launcher: str | None, count: int) -> Iterator[Writers]:
    """Start processes with a launcher (`srun -N 4 --ntasks-per-node 8`), or `count` of them on this node.

    `folder` is a place where all of them can read a file, which is removed again.

    Raises
    ------
    InputError
        The launcher cannot be run or fails, or its processes do not connect.
    """
    secret = secrets.token_hex(16)
    control = folder / f".vani-sweep-{secrets.token_hex(8)}"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("" if launcher else "127.0.0.1", 0), backlog=1024))
        listener.settimeout(0.2)
        hosts = [socket.gethostname(), socket.getfqdn()] if launcher else ["127.0.0.1"]
        stack.callback(control.unlink, missing_ok=True)
        text = json.dumps({"hosts": hosts, "port": listener.getsockname()[1], "secret": secret})
        # Only this user may read it.
        with os.fdopen(os.open(control, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding=JSON) as file:
            file.write(text)
        output = stack.enter_context(tempfile.TemporaryFile("w+", errors="replace"))
        command = [sys.executable, os.fspath(_PROGRAM), os.fspath(control.resolve())]
        lines = [[*shlex.split(launcher), *command]] if launcher else [command] * count
        begun: list[subprocess.Popen[str]] = []
        stack.callback(_end, begun)
        for words in lines:
            todo = "give --launcher as you would start an MPI program"
            with os_errors_as(InputError, "the launcher cannot be run", where=one_line(words[0]), todo=todo):
                begun.append(
                    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True)
                )
        yield Writers(_connected(listener, secret, None if launcher else count, begun, output, stack))


def _connected(
    listener: socket.socket,
    secret: str,
    count: int | None,
    begun: Sequence[subprocess.Popen[str]],
    output: IO[str],
    stack: contextlib.ExitStack,
) -> list[Writer]:
    """Connections of all processes; `count` is their number if known beforehand."""
    connected: list[Writer] = []
    last = begin = time.monotonic()
    while len(connected) < (count or sys.maxsize):
        now = time.monotonic()
        if count is None and connected and now - last > _MORE_S:
            break
        if now - begin > _BEGIN_S or any(process.poll() is not None for process in begun):
            output.seek(0)
            words = one_line(output.read().strip().rpartition("\n")[2])
            why = f" ({words})" if words else ""
            raise InputError(
                f"{len(connected)} writing processes connected, not {count or 'one'}{why}",
                todo="check --launcher, and that the job's nodes can connect to this node",
            )
        with contextlib.suppress(TimeoutError):
            connection = stack.enter_context(listener.accept()[0])
            connection.settimeout(_END_S)
            stream = stack.enter_context(connection.makefile("rw", encoding=JSON))
            try:
                hello = json.loads(stream.readline(4096))
                is_ours = hmac.compare_digest(str(hello["secret"]), secret)
            except (OSError, ValueError, TypeError, KeyError):
                continue
            if is_ours:
                count = count or hello.get("size")
                connected.append(Writer(str(hello.get("host")), stream, connection))
                last = time.monotonic()
    return connected


def _end(begun: Sequence[subprocess.Popen[str]]) -> None:
    for process in begun:
        with contextlib.suppress(subprocess.TimeoutExpired):
            # Without a connection, they end by themselves.
            process.wait(_END_S)
            continue
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_S)
        process.kill()


LIMIT_S: Final = 5.0
"""Seconds after which a file is cut short."""

MAX_TARGETS: Final = 32
"""Maximum number of targets that one node keeps busy (our choice)."""

_ROUNDS: Final = 2
_PROCESSES: Final = 8
_LEAST_PIECE: Final = 64 * KiB
_STRIPE: Final = MiB
_REMOVING_S: Final = 5.0

SetStripes = Callable[[Path, int], None]
"""Gives an empty folder a default layout with this many stripes of 1 MiB."""


@dataclass(frozen=True)
class Pattern:
    """A way to write: `piece` bytes at a time, to files with stripes of 1 MiB."""

    name: str
    calls: Literal["independent", "collective"] = "independent"
    layout: Literal["shared", "file_per_process"] = "shared"
    order: Literal["contiguous", "strided"] = "contiguous"
    piece: int = 4 * MiB


PATTERNS: Final = (
    Pattern("shared"),
    # ROMIO's aggregators send at most one stripe at a time to a target.
    Pattern("collective", calls="collective", piece=_STRIPE),
    Pattern("strided", order="strided", piece=256 * KiB),
    Pattern("own", layout="file_per_process"),
)


def counts_of(targets: int | None, nodes: int = 1) -> list[int]:
    """Stripe counts that are measured for this number of targets: 1, 2, 4, ..."""
    most = min(targets or MAX_TARGETS * nodes, MAX_TARGETS * nodes)
    return [1 << shift for shift in range(most.bit_length())]


def longest_s(targets: int | None) -> float:
    """Maximum seconds of writing on one node."""
    return len(PATTERNS) * len(counts_of(targets)) * _ROUNDS * LIMIT_S


def sweep(
    folder: Path,
    size: int,
    targets: int | None,
    *,
    launcher: str | None = None,
    set_stripes: SetStripes | None = None,
) -> list[StripeCurve]:
    """Write `size` bytes per pattern below `folder`, spread over counts and rounds; returns a curve for each pattern.

    `launcher` starts the processes on several nodes; without it, they run on this one. `set_stripes` is
    `lfs setstripe` by default.

    Raises
    ------
    InputError
        The folder has no room or is not on Lustre, `lfs` refuses, a file cannot be written, or the launcher fails.
    """
    check_room(folder, size)
    with writers(folder, launcher, _PROCESSES) as begun:
        patterns = [pattern for pattern in PATTERNS if begun.nodes > 1 or pattern.order == "contiguous"]
        return [
            _curve(pattern, folder, size, _filled(pattern, size, targets, begun), begun, set_stripes or _lfs_setstripe)
            for pattern in patterns
        ]


def _filled(pattern: Pattern, size: int, targets: int | None, begun: Writers) -> list[int]:
    """The counts for which each file fills all targets."""
    counts = counts_of(targets, begun.nodes)
    files = len(begun) if pattern.layout == "file_per_process" else 1
    while counts and size // (len(counts) * _ROUNDS) < files * counts[-1] * _STRIPE:
        counts.pop()
    if len(counts) < 2:
        raise InputError(
            f"files of {lfs_size(size)}iB in total fill fewer than two targets each",
            todo="give a larger --size, or leave --sweep out",
        )
    return counts


def _curve(
    pattern: Pattern, folder: Path, size: int, counts: list[int], begun: Writers, set_stripes: SetStripes
) -> StripeCurve:
    rates: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(_ROUNDS):
        for count in counts:
            rate = _rate(pattern, folder, size // (len(counts) * _ROUNDS), count, begun, set_stripes)
            if rate:
                rates[count].append(rate)
    return StripeCurve(
        operation="write",
        calls=pattern.calls,
        layout=pattern.layout,
        order=pattern.order,
        nodes=begun.nodes,
        processes_per_node=max(1, len(begun) // begun.nodes),
        points=[
            StripePoint(stripe_count=count, bandwidth=statistics.fmean(some), deviation=statistics.pstdev(some))
            for count, some in rates.items()
            if some
        ],
    )


def _rate(
    pattern: Pattern, folder: Path, size: int, count: int, begun: Writers, set_stripes: SetStripes
) -> float | None:
    # Other nodes may test the same folder.
    below = folder / f".vani-sweep-{secrets.token_hex(8)}"
    try:
        below.mkdir(mode=0o700)
        set_stripes(below, count)
        return begun.rate(_tasks(pattern, below, size, len(begun)), LIMIT_S, opened=lambda: _without_names(below))
    except OSError as error:
        raise failed_test(folder, error) from error
    finally:
        _remove(below)


def _tasks(pattern: Pattern, below: Path, size: int, processes: int) -> list[dict[str, Any]]:
    # No process writes more than its part of a small test.
    piece = max(_LEAST_PIECE, min(pattern.piece, size // processes // _LEAST_PIECE * _LEAST_PIECE))
    pieces = max(1, size // processes // piece)
    own = pattern.layout == "file_per_process"
    in_turn = pattern.calls == "collective" or pattern.order == "strided"
    return [
        {
            "path": os.fspath((below / (f"{rank}" if own else "shared")).resolve()),
            "begin": 0 if own else rank * piece * (1 if in_turn else pieces),
            "step": piece * processes if in_turn else piece,
            "piece": piece,
            "pieces": pieces,
        }
        for rank in range(processes)
    ]


def _without_names(below: Path) -> None:
    for path in below.iterdir():
        path.unlink(missing_ok=True)


def _remove(below: Path) -> None:
    """Remove a folder, in which some file systems keep hidden unlinked files until they are closed everywhere."""
    until = time.monotonic() + _REMOVING_S
    while below.exists():
        shutil.rmtree(below, ignore_errors=True)
        if time.monotonic() > until:
            break
        time.sleep(0.05)


def _lfs_setstripe(path: Path, count: int) -> None:
    try:
        ask(["lfs", "setstripe", "-c", str(count), "-S", lfs_size(_STRIPE), os.fspath(path)])
    except NoAnswer as error:
        raise InputError(
            f"stripes cannot be set ({error})",
            where=path.parent,
            todo="run it where Lustre is mounted, name a folder on it, or leave --sweep out",
        ) from None
