"""Planning within the time that a prolog has."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from vani.centre.prolog.state import State
from vani.errors import InputError

# Runs work within a time budget, even if the work fails.
#
# The work runs in a child process. The parent waits no longer than the budget, and is not affected by anything that
# happens in the child, such as an error, a crash, lack of memory, or a file system that does not respond.

_GRACE_S: Final = 10.0
"""Seconds after the deadline for work that must always be done; nothing waits for it."""

_FIRST: Final = b"."
_LONGEST_WORD: Final = 4000


class Deadline:
    """The time by which the work must be done.

    Parameters
    ----------
    budget_s
        Budget in seconds, from the start of this process.
    """

    def __init__(self, budget_s: float) -> None:
        self._end_s = time.monotonic() + budget_s - age_of_process_s()

    @property
    def left_s(self) -> float:
        """Remaining seconds, at least 0."""
        return max(0.0, self._end_s - time.monotonic())


def age_of_process_s() -> float:
    """Seconds since this process started, including interpreter start-up; 0 if the system does not report it."""
    try:
        with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib takes longer to load than this to run
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0.0
    return age if 0.0 <= age < 3600.0 else 0.0


def within(deadline: Deadline, first: Callable[[], object], work: Callable[[], str]) -> tuple[bool, str]:
    """Run `work` in a child process until the deadline; return whether it finished, and its one-line result.

    An error in the work becomes the line. A child that misses the deadline is killed.

    Parameters
    ----------
    first
        Short work that must be done even without a budget, and is not killed. Its errors are not reported; `work`
        has to detect them.
    """
    try:
        reading, writing = os.pipe()
        child = os.fork()
    except OSError as error:
        return False, f"no process can be started ({error.strerror})"
    if child == 0:
        os.close(reading)
        _work(first, work, writing, deadline)
    os.close(writing)
    said, is_done = b"", False
    try:
        said, is_done = _listen(reading, deadline)
    finally:
        os.close(reading)
        if is_done or said:
            _end(child)
    if is_done:
        return said[1:2] == b"+", said[2:].decode(errors="backslashreplace")
    if deadline.left_s:
        return False, "the planning process died (killed, or out of memory)"
    return False, "not finished within the budget"


def _work(first: Callable[[], object], work: Callable[[], str], writing: int, deadline: Deadline) -> None:
    """The child process: it never returns, and a kernel timer ends it at the latest."""
    try:
        # A session of its own: schedulers kill the processes that a prolog leaves behind.
        os.setsid()
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, deadline.left_s + _GRACE_S)
        with suppress(Exception):
            first()
        with suppress(OSError):
            os.write(writing, _FIRST)
        signal.setitimer(signal.ITIMER_REAL, deadline.left_s + 0.1)
        said = "+" + work()
    except BaseException as error:
        # Catch any error, since the job has to start anyway.
        said = f"-{_line(error)}"
    with suppress(BaseException):
        # The final NUL byte distinguishes a complete message from a truncated one.
        os.write(writing, said.encode(errors="backslashreplace")[:_LONGEST_WORD] + b"\0")
    os._exit(0)


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'input or output'}: {error.strerror}"
    return str(error) or type(error).__name__


def _listen(reading: int, deadline: Deadline) -> tuple[bytes, bool]:
    """The child's output until the deadline, and whether it is complete."""
    said = b""
    while not said.endswith(b"\0"):
        ready, _, _ = select.select([reading], [], [], deadline.left_s)
        more = os.read(reading, _LONGEST_WORD + 2) if ready else b""
        if not more:
            return said, False
        said += more
    return said[:-1], True


def _end(child: int) -> None:
    """Kill a child and wait for it briefly: one that hangs in the kernel cannot be killed."""
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
        for _ in range(20):
            if os.waitpid(child, os.WNOHANG)[0]:
                return
            time.sleep(0.002)


# The planner's lock: one process plans for all registered jobs while the others wait.

_TO_PLAN_S: Final = 0.15
"""Minimum time for planning. A process with less would not finish, and would block others that have time."""


def plan_for_new(
    state: State, environment: Mapping[str, str], deadline: Deadline, plan: Callable[[], str]
) -> str:
    """Register the job of this environment, and plan unless another process does; return the outcome as one line.

    Parameters
    ----------
    plan
        Plans for all running jobs and returns a line; called under the lock.

    Raises
    ------
    InputError
        There is no plan because another process has the lock, or because `plan` failed.
    """
    number = state.register(environment).job

    def is_over() -> bool:
        return state.is_planned(number) or deadline.left_s < _TO_PLAN_S

    with state.locked(is_over) as is_ours:
        if state.is_planned(number):
            return "planned together with other jobs"
        if not is_ours or deadline.left_s < _TO_PLAN_S:
            raise InputError("registered, but there was no time to plan; the next job's planning includes it")
        return plan()


def plan_for_ended(state: State, number: str, deadline: Deadline, plan: Callable[[], str]) -> str:
    """Remove a job, and share what it had among the running jobs; see `plan_for_new`."""
    state.forget(number)
    with state.locked(lambda: deadline.left_s < _TO_PLAN_S) as is_ours:
        if not is_ours or deadline.left_s < _TO_PLAN_S:
            return " its I/O nodes are shared when the next job starts"
        return plan()
