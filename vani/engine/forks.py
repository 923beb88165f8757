"""Tasks in forks of this process: they share all that it has read, wait for no lock of its, and send back results.

Threads wait for Python's lock wherever they do not compute, so that a second one is worth half and a fifth nothing.
Processes that are started load Vani and the tables of a trace again, and share no memory. Forks stay for the passes
that follow: each new one, and this process beside it, would copy all memory that it works in once more.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import mmap
import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import numpy as np

from vani.engine.parcel import load_parts, pack_in_parts
from vani.engine.shared_memory import SharedMemory
from vani.errors import VaniError

__all__ = ["Forks", "can_fork"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TRIES = 5
_NUMBER = np.dtype(np.int32)
_NO_MORE = -1
_MOST_READ = 1 << 16
_ANSWER_ROOM = 1 << 20
"""What anyone may ask for (pipe(7))."""
_MOST_TOLD = 1 << 26
"""Bytes; of more, forks that are made anew have no need to be told, and answers pass through a pipe."""
# sys/prctl.h of Linux
_PR_SET_PDEATHSIG = 1

Answer = TypeVar("Answer")
Work = Callable[[Iterator[int]], Any]


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


class Forks:
    """Forks of this process that share tasks with it, pass after pass.

    Parameters
    ----------
    most
        How many there may be. Where the system allows fewer, the others do their work.

    Raises
    ------
    OSError
        The system gives no pipes, or no memory for what they are told.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._forks: list[_Fork] = []
        self._known: list[Any] = []
        """What this process and all forks have, and can refer to."""
        self._between: _Between | None = _Between()

    def share(
        self,
        work: Callable[[Iterator[int]], Answer],
        count: int,
        progress: Callable[[int], None],
        constants: Sequence[Any] = (),
    ) -> list[Answer]:
        """Share the numbers below `count` among this process and the forks; what `work` made of those of each.

        Parameters
        ----------
        work
            Takes the numbers that come, to the last, and returns something that can be pickled. What it changes in a
            fork is lost to this process, but for files.
        progress
            Called with how many numbers are done, by all of them.
        constants
            Objects that the work of this pass or of later ones refers to, which do not change: forks are told of them
            once.

        Raises
        ------
        VaniError
            A fork was killed. Whatever `work` raises is raised here; the forks end first.
        """
        try:
            if not self._have_been_told(work, constants):
                if self._forks:
                    self.end()
                self._known = list(constants)
            self._between = self._between or _Between()
            queue, told = self._between.queue, self._between.memory
            while len(self._forks) < min(self._most, count - 1):
                try:
                    # It writes to each place there once, and this process reads there for as long as it likes.
                    answers = told.region(1 + len(self._forks))
                    self._forks.append(_fork(work, self._known, told, queue, answers))
                except OSError:
                    break
            queue.fill(count, len(self._forks))
            own = work(queue.numbers(progress))
            return [own, *(one.answer() for one in self._forks)]
        except _NotUnderstoodError:
            self.end()
        except BaseException:
            self.end()
            raise
        return self.share(work, count, progress, constants)

    def _have_been_told(self, work: Work, constants: Sequence[Any]) -> bool:
        """Tell the forks that are there what they need for a pass; False if there are none, or it cannot be told."""
        if self._between is None or not self._forks:
            return False
        held = set(map(id, self._known))
        new = [one for one in constants if id(one) not in held]
        known = [*self._known, *new]
        try:
            parcels = [pack_in_parts(new, self._known), pack_in_parts(work, known)]
        except Exception:
            # Measures of others may hold anything. Forks that are made anew have it.
            return False
        places = self._between.memory.put([part for parcel in parcels for part in parcel])
        if places is None:
            return False
        self._known = known
        orders = pickle.dumps((places[: len(parcels[0])], places[len(parcels[0]) :]))
        for one in self._forks:
            one.tell(orders)
        return True

    def end(self, *, wait: bool = True) -> None:
        """End the forks: there is no work any more, or their answers are of no use.

        Parameters
        ----------
        wait
            Until they are gone, as must be where they may be at work. Those that have none write to nothing, and the
            system takes some time to put away the memory of each: it may do so while this process goes on.
        """
        for one in self._forks:
            one.kill()
        for one in self._forks:
            if wait:
                one.wait()
            else:
                atexit.register(_wait_for, one.process)
        self._forks, self._known = [], []
        if self._between is not None:
            # Of the memory, what was answered there stays as long as it is needed.
            self._between.queue.close()
            self._between = None


class _Between:
    """What this process has in common with its forks.

    Raises
    ------
    OSError
        The system gives none of it.
    """

    def __init__(self) -> None:
        self.memory = SharedMemory(_MOST_TOLD)
        """Where this process tells them what they need; its regions are where they answer."""
        self.queue = _Queue()


class _NotUnderstoodError(Exception):
    """Forks cannot make objects of what they were told. Those that are made anew need not."""


class _Queue:
    """Numbers that are taken once each, by whichever process comes first."""

    def __init__(self) -> None:
        # What several processes read from a pipe each of them gets apart from the others; of a file whose place they
        # share, two may get the same (memfd_create(2) on Linux 6).
        self._takes, self._puts = os.pipe()
        self._done = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pass = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.int64, 3)
        """How many numbers there are, how many come at a time, and whether they are of no use any more."""

    def fill(self, count: int, forks: int) -> None:
        """Put the numbers of a pass, for this process and some forks."""
        self._read_done()
        ends = np.full(1 + forks, _NO_MORE, _NUMBER)
        room = fcntl.fcntl(self._puts, fcntl.F_GETPIPE_SZ) // _NUMBER.itemsize - len(ends)
        run = -(-count // room)
        self._pass[:] = count, run, 0
        os.write(self._puts, np.concatenate((np.arange(0, count, run, dtype=_NUMBER), ends)).tobytes())

    def numbers(self, progress: Callable[[int], None] | None = None) -> Iterator[int]:
        """Those of this pass that this process takes; forks, of which nobody hears progress, tell of it here."""
        finished = 0
        for first in iter(self._take, _NO_MORE):
            count, run, is_over = self._pass.tolist()
            for number in range(first, first if is_over else min(first + run, count)):
                yield number
                if progress is None:
                    # There may be so much already that nobody looks.
                    with suppress(BlockingIOError):
                        os.write(self._done[1], b".")
                else:
                    finished += 1 + self._read_done()
                    progress(finished)

    def _take(self) -> int:
        return int.from_bytes(os.read(self._takes, _NUMBER.itemsize), sys.byteorder, signed=True)

    def _read_done(self) -> int:
        """How many numbers forks have done since it was last asked."""
        with suppress(BlockingIOError):
            return len(os.read(self._done[0], _MOST_READ))
        return 0

    def empty(self) -> None:
        """Let nobody do any more."""
        self._pass[2] = 1

    def close(self) -> None:
        for descriptor in (self._takes, self._puts, *self._done):
            os.close(descriptor)


class _Fork:
    """A fork, as this process knows it.

    Parameters
    ----------
    orders, answers
        Ends of pipes: through one it is told what to do next, through the other comes what it found.
    memory
        Where it lays down what it found.
    """

    def __init__(self, process: int, orders: int, answers: int, memory: SharedMemory) -> None:
        self.process, self._orders, self._memory = process, orders, memory
        self._answers = os.fdopen(answers, "rb")

    def tell(self, orders: bytes) -> None:
        left = memoryview(orders)
        try:
            while left:
                left = left[os.write(self._orders, left) :]
        except BrokenPipeError as error:
            raise _killed() from error

    def answer(self) -> Any:
        try:
            places, sent = pickle.load(self._answers)
        except (EOFError, pickle.UnpicklingError) as error:
            raise _killed() from error
        is_done, answer = sent if places is None else load_parts(self._memory.at(places))
        if not is_done:
            raise answer
        return answer

    def kill(self) -> None:
        self._answers.close()
        os.close(self._orders)
        # Where whoever started this process ignores SIGCHLD, the system forgets a child that has ended (wait(2)).
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def wait(self) -> None:
        _wait_for(self.process)


def _wait_for(process: int) -> None:
    with suppress(ChildProcessError):
        os.waitpid(process, 0)


def _killed() -> VaniError:
    return VaniError(
        "a process that shared the work was killed, as happens where memory runs out",
        todo="use --scheduler synchronous, or a machine with more memory",
    )


def _fork(work: Work, known: list[Any], told: SharedMemory, queue: _Queue, memory: SharedMemory) -> _Fork:
    listens, orders = os.pipe()
    answers, writes = os.pipe()
    with suppress(OSError):
        # Answers of megabytes would pass in pieces of 64 KiB, each of which waits for the other process.
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, _ANSWER_ROOM)
    parent = os.getpid()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        process = os.fork()
        if not process:
            try:
                _begin(parent, before)
                with os.fdopen(listens, "rb") as from_parent, os.fdopen(writes, "wb") as to_parent:
                    _serve(work, known, told, queue, from_parent, _Answers(to_parent, memory))
            finally:
                # Nothing of the parent is to be put away here: neither its folders nor what it has not yet written.
                os._exit(0)
    except OSError:
        os.close(orders)
        os.close(answers)
        raise
    finally:
        os.close(listens)
        os.close(writes)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return _Fork(process, orders, answers, memory)


def _begin(parent: int, mask: set[signal.Signals] | set[int]) -> None:
    """Run by a fork first: it ends with its parent, however that ends, and leaves interrupts to it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(other, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # What is shared stays shared: looking for cycles in it would write to its pages.
    gc.freeze()


@dataclass
class _Answers:
    """Where a fork puts what it found, at once: whoever is done first does not wait until others read it."""

    pipe: IO[bytes]
    memory: SharedMemory

    def send(self, answer: tuple[bool, Any]) -> None:
        places = self.memory.put(pack_in_parts(answer))
        pickle.dump((places, answer if places is None else None), self.pipe, protocol=5)
        self.pipe.flush()


def _serve(
    work: Work, known: list[Any], told: SharedMemory, queue: _Queue, orders: IO[bytes], answers: _Answers
) -> NoReturn:
    """Run by a fork: one pass after the other, until it is killed."""
    while True:
        try:
            answer: tuple[bool, Any] = (True, work(queue.numbers()))
        except BaseException as error:
            queue.empty()
            answer = (False, _to_be_sent(error))
        answers.send(answer)
        # It is not to lie in memory beside that of the next pass.
        del answer
        new, wanted = pickle.load(orders)
        try:
            known += load_parts(told.at(new), known)
            work = load_parts(told.at(wanted), known)
        except Exception:
            work = _not_understood


def _not_understood(numbers: Iterator[int]) -> NoReturn:
    del numbers
    raise _NotUnderstoodError


def _to_be_sent(error: BaseException) -> BaseException:
    if not isinstance(error, VaniError):
        error.add_note(f"in a process that shared the work:\n{traceback.format_exc()}")
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    return error
