"""Processes that write simultaneously, on this node or on all nodes of a job: without MPI, only with its launcher."""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import secrets
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from vani.collect.sweep_writer import JSON
from vani.errors import InputError, one_line

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
            try:
                begun.append(
                    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, text=True)
                )
            except OSError as error:
                raise InputError(
                    f"the launcher cannot be run ({error.strerror})",
                    where=one_line(words[0]),
                    todo="give --launcher as you would start an MPI program",
                ) from error
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
