"""Runs a command in processes of its own: time, processor time, peak memory, memory over time, a time limit.

A child's peak counts what its parent had when it was forked, so commands start from a small process. Memory over
time is that of the command and all its descendants together, read from /proc every 20 ms; pages that processes
share are counted once for each of them. Where there is no /proc (other systems than Linux) there is only the
peak of the largest process.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from vani.errors import one_line

_INTERVAL_S = 0.02
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_MAX_LINE = 200

_LAUNCH = """
import json, os, sys, time
out, command = json.loads(sys.argv[1])
report = os.fdopen(int(sys.argv[2]), "w")
began = time.monotonic()
pid = os.fork()
if pid == 0:
    try:
        os.setsid()
        sink = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for place, source in ((0, nothing), (1, sink), (2, sink)):
            os.dup2(source, place)
        report.close()
        os.execvp(command[0], command)
    except Exception as error:
        os.write(2, f"cannot be started: {error}\\n".encode())
    os._exit(127)
print(pid, began, file=report, flush=True)
_, status, usage = os.wait4(pid, 0)
print(time.monotonic() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, status, file=report, flush=True)
"""
# Kilobytes on Linux, bytes on macOS.
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


class CommandError(Exception):
    """A command of Vani's own did not succeed, so nothing can be said about its speed."""


@dataclass(frozen=True)
class CommandRun:
    """How a command went."""

    outcome: str
    """`done`, `crashed`, or `timed out`."""
    seconds: float
    cpu_s: float
    peak_bytes: int
    """Peak memory of the largest process, as counted by the kernel."""
    tree_peak_bytes: int | None
    """Peak memory of all processes together, from samples; null without /proc."""
    began: float
    """Start on the monotonic clock."""
    last_line: str
    """Last line that the command printed, made safe to print."""
    samples: list[tuple[float, int]] = field(default_factory=list, repr=False)
    """(seconds since it began, bytes of all its processes)."""

    @property
    def memory_bytes(self) -> int:
        """Peak of all processes together, or of the largest process if the samples missed more."""
        return max(self.peak_bytes, self.tree_peak_bytes or 0)


def run(
    command: Sequence[str | Path], *, limit_s: float = 3600.0, environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> CommandRun:  # fmt: skip
    """Run a command to its end or to the time limit.

    Parameters
    ----------
    environment
        Added to that of this process.
    folder
        Its working directory.
    """
    with tempfile.TemporaryDirectory(prefix="vani-bench-run-") as place:
        printed = Path(place) / "printed"
        reader, writer = os.pipe()
        task = json.dumps([str(printed), [os.fspath(word) for word in command]])
        launcher = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _LAUNCH, task, str(writer)],
            env={**os.environ, **(environment or {})}, cwd=folder, pass_fds=[writer],
        )  # fmt: skip
        os.close(writer)
        with os.fdopen(reader) as report:
            pid_text, began_text = report.readline().split()
            pid, began = int(pid_text), float(began_text)
            samples: list[tuple[float, int]] = []
            late = False
            try:
                while launcher.poll() is None:
                    now = time.monotonic() - began
                    if (held := _tree_bytes(pid)) is not None:
                        samples.append((now, held))
                    if now > limit_s and not late:
                        late = True
                        _end(pid)
                    time.sleep(_INTERVAL_S)
            finally:
                # What is left of its session: workers that outlived a crashed command, or all of it if interrupted.
                _end(pid)
                launcher.wait()
            seconds, cpu, peak, status = report.readline().split()
        last = _last_line(printed)
    failed = "timed out" if late else "crashed"
    if not late and os.WIFSIGNALED(int(status)):
        number = os.WTERMSIG(int(status))
        last = f"{signal.strsignal(number)} (signal {number})" + (f"; {last}" if last else "")
    return CommandRun(
        "done" if int(status) == 0 and not late else failed, float(seconds), float(cpu), int(peak) * _PEAK_UNIT,
        tree_peak_bytes=max((held for _, held in samples), default=None), began=began, last_line=last, samples=samples,
    )  # fmt: skip


def succeed(command: Sequence[str | Path], **options: object) -> CommandRun:
    """Run a command of Vani's; raises CommandError with its last line if it does not succeed."""
    found = run(command, **options)  # type: ignore[arg-type]
    if found.outcome != "done":
        shown = " ".join(os.fspath(c) for c in command)
        raise CommandError(one_line(f"{found.outcome}: {shown}: {found.last_line}"))
    return found


def _end(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _tree_bytes(root: int) -> int | None:
    """Resident bytes of a process and all its descendants; None where that cannot be read (any more)."""
    total, waiting = 0, [root]
    while waiting:
        pid = waiting.pop()
        try:
            total += int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += [int(child) for child in (task / "children").read_bytes().split()]
        except (OSError, IndexError, ValueError):
            continue
    return total or None


def _last_line(printed: Path) -> str:
    try:
        with printed.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 65536))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Some name the machine they crashed on, which is nobody's business.
    return one_line(lines[-1].replace(platform.node() or "\0", "HOST"))[:_MAX_LINE] if lines else ""
