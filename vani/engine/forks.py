"""Tasks in forks of this process: they share all that it has read, wait for no lock of its, and send back results.

Threads wait for Python's lock wherever they do not compute, so that a second one is worth half and a fifth nothing.
Processes that are started load Vani and the tables of a trace again, and share no memory.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vani.errors import VaniError

__all__ = ["can_fork", "fork_number", "share"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TRIES = 5
_NUMBER = np.dtype(np.int32)
_MOST_READ = 1 << 16
_ANSWER_ROOM = 1 << 20
"""What anyone may ask for (pipe(7))."""
# sys/prctl.h of Linux
_PR_SET_PDEATHSIG = 1

Answer = TypeVar("Answer")


def can_fork() -> bool:
    """Tell whether this process can be forked: on Linux, and where no other thread may hold a lock meanwhile."""
    if sys.platform != "linux":
        return False
    for _ in range(_TRIES):
        try:
            if len(list(Path("/proc/self/task").iterdir())) == 1:
                return True
        except OSError:
            return False
        # The system knows threads that have ended for a moment longer.
        time.sleep(0.001)
    return False


def fork_number() -> int:
    """Which of the forks that share tasks this process is, from 1 on; 0: none."""
    return _number


_number = 0


def share(
    work: Callable[[Iterator[int]], Answer], count: int, forks: int, told: Callable[[int], None]
) -> list[Answer]:
    """Share the numbers below `count` among this process and some forks of it; what `work` made of those of each.

    Where the system allows fewer forks, the others do their work.

    Parameters
    ----------
    work
        Takes the numbers that come and returns something that can be pickled. What it changes in a fork is lost, but
        for files.
    told
        Called with how many numbers are done, by all of them.

    Raises
    ------
    VaniError
        A fork was killed. Whatever `work` raises is raised here; the forks end first.
    """
    queue = _Queue(count, told)
    begun: list[_Fork] = []
    try:
        for number in range(1, forks + 1):
            try:
                begun.append(_fork(work, queue, number))
            except OSError:
                break
        own = work(queue.numbers())
        return [own, *(one.answer() for one in begun)]
    finally:
        for one in begun:
            one.end()
        queue.close()


class _Queue:
    """Numbers that are taken once each, by whichever process comes first."""

    def __init__(self, count: int, told: Callable[[int], None]) -> None:
        # What several processes read from a pipe each of them gets apart from the others; of a file whose place they
        # share, two may get the same (memfd_create(2) on Linux 6).
        self._begins, put = os.pipe()
        with os.fdopen(put, "wb", buffering=0) as file:
            room = fcntl.fcntl(put, fcntl.F_GETPIPE_SZ) // _NUMBER.itemsize
            self._run = -(-count // room)
            file.write(np.arange(0, count, self._run, dtype=_NUMBER).tobytes())
        self._done = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._told, self._count, self._finished = told, count, 0

    def numbers(self) -> Iterator[int]:
        while taken := os.read(self._begins, _NUMBER.itemsize):
            first = int.from_bytes(taken, sys.byteorder)
            for number in range(first, min(first + self._run, self._count)):
                yield number
                self._tell()

    def empty(self) -> None:
        """Let nobody take any more."""
        while os.read(self._begins, _MOST_READ):
            pass

    def close(self) -> None:
        for descriptor in (self._begins, *self._done):
            os.close(descriptor)

    def _tell(self) -> None:
        others, own = self._done
        # Nothing new, or so much that nobody looks.
        with suppress(BlockingIOError):
            if _number:
                os.write(own, b".")
            else:
                self._finished += len(os.read(others, _MOST_READ))
        if not _number:
            self._finished += 1
            self._told(self._finished)


@dataclass
class _Fork:
    process: int
    reads: int
    """End of a pipe, through which the answer comes."""
    is_gone: bool = False

    def answer(self) -> Any:
        try:
            with os.fdopen(os.dup(self.reads), "rb") as file:
                is_done, answer = pickle.load(file)
        except (EOFError, pickle.UnpicklingError) as error:
            raise VaniError(
                "a process that shared the work was killed, as happens where memory runs out",
                todo="use --scheduler synchronous, or a machine with more memory",
            ) from error
        if not is_done:
            raise answer
        return answer

    def end(self) -> None:
        """Wait for it; it has no work any more, or its answer is of no use."""
        if self.is_gone:
            return
        self.is_gone = True
        os.close(self.reads)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def _fork(work: Callable[[Iterator[int]], Any], queue: _Queue, number: int) -> _Fork:
    reads, writes = os.pipe()
    with suppress(OSError):
        # Answers of megabytes would pass in pieces of 64 KiB, each of which waits for the other process.
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, _ANSWER_ROOM)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process = os.fork()
        if not process:
            try:
                _begin(number, parent, before)
                _answer(work, queue, writes)
            finally:
                # Nothing of the parent is to be put away here: neither its folders nor what it has not yet written.
                os._exit(0)
    except OSError:
        os.close(reads)
        raise
    finally:
        os.close(writes)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _Fork(process, reads)


def _begin(number: int, parent: int, mask: set[signal.Signals] | set[int]) -> None:
    """Run by a fork first: it ends with its parent, however that ends, and leaves interrupts to it."""
    global _number  # noqa: PLW0603 - it is the process's
    _number = number
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # What is shared stays shared: looking for cycles in it would write to its pages.
    gc.freeze()


def _answer(work: Callable[[Iterator[int]], Any], queue: _Queue, writes: int) -> None:
    try:
        answer: tuple[bool, Any] = (True, work(queue.numbers()))
    except BaseException as error:
        queue.empty()
        answer = (False, _to_be_sent(error))
    with os.fdopen(writes, "wb") as file:
        pickle.dump(answer, file, protocol=5)


def _to_be_sent(error: BaseException) -> BaseException:
    if not isinstance(error, VaniError):
        error.add_note(f"in a process that shared the work:\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    return error
