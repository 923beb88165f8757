"""Locks on stores in use, which end with their process, however it ends.

`flock` works across a machine's nodes on NFS, GPFS and on Lustre mounted with `flock`. On file systems
without locks, only the time of last use is known.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path

WRITING = ".lock"
"""File in a store that is being written; the writer keeps it locked."""
_USING = "manifest.json"
MAX_HELD = 128
"""Maximum number of locks of one run: each is an open file, and a process may have a thousand."""


class LockState(Enum):
    """Known state of a lock."""

    FREE = "free"
    """This process now has the lock."""
    TAKEN = "taken"
    UNKNOWN = "unknown"
    """There is nothing to lock, or the file system has no locks."""


@contextmanager
def being_written(store: Path) -> Iterator[None]:
    """Mark the store as being written, so that its files are not removed, however long it takes."""
    place = store / WRITING
    with place.open("w", encoding="utf-8") as file:
        file.write(f"{os.uname().nodename} {os.getpid()}\n")
        file.flush()
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
        place.unlink(missing_ok=True)


@contextmanager
def being_used(store: Path) -> Iterator[bool]:
    """Mark the store as being read, so that it is not removed; yields False if removal has begun.

    Also updates the time of its last use.
    """
    with _locked(store / _USING, fcntl.LOCK_SH) as state:
        if state is not LockState.TAKEN:
            with suppress(OSError):
                os.utime(store)
        yield state is not LockState.TAKEN


class InUse:
    """The stores that a run reads.

    Parameters
    ----------
    until
        Ends with the run.
    """

    def __init__(self, until: ExitStack) -> None:
        self._until = until
        self._held = 0

    def hold(self, store: Path) -> bool:
        """Prevent others from removing a store while the run lasts; False if removal has begun.

        Beyond `MAX_HELD` stores, only the time of their last use protects them.
        """
        if self._held >= MAX_HELD:
            with being_used(store) as there:
                return there
        self._held += 1
        return self._until.enter_context(being_used(store))


@contextmanager
def removable(store: Path, *, partial: bool) -> Iterator[LockState]:
    """Prevent others from using a store that will be removed, if it is not in use."""
    with _locked(store / (WRITING if partial else _USING), fcntl.LOCK_EX) as state:
        yield state


@contextmanager
def _locked(file: Path, kind: int) -> Iterator[LockState]:
    try:
        # NFS grants an exclusive lock only for a file that is open for writing.
        handle = os.open(file, os.O_RDWR if kind == fcntl.LOCK_EX else os.O_RDONLY)
    except OSError:
        yield LockState.UNKNOWN
        return
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            state = LockState.FREE
        except BlockingIOError:
            state = LockState.TAKEN
        except OSError:
            state = LockState.UNKNOWN
        yield state
    finally:
        os.close(handle)
