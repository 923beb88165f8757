"""Reads files in several processes while discovery still continues. It loads no database."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Final

from vani.centre.history.discovery import Candidate
from vani.centre.history.ingest_result import IngestResult, MakeProfile, ingest_file
from vani.errors import InputError


@dataclass(frozen=True)
class Reading:
    """How a process reads files."""

    make: MakeProfile
    totals: bool
    user: str | None

    def __call__(self, some: Sequence[Candidate]) -> list[IngestResult]:
        return [ingest_file(candidate, self.make, totals=self.totals, user=self.user) for candidate in some]


def end_with_parent() -> None:
    """In a reading process: leave interruptions to the parent, and end when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for, args=(parent.sentinel,), daemon=True).start()


def _wait_for(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


MANY: Final = 1000
"""Number of new logs from which on only totals are stored."""
_CHUNK: Final = 50
_FEW: Final = 4
"""The same if profiles are made, which take longer."""
_AHEAD: Final = 40
"""Number of batches read ahead while others are written; with fewer, the processes would wait for the database."""
_WHILE_FINDING: Final = 200
"""Number of batches read while files are discovered: searching 100,000 files takes as long."""


class Readers:
    """Reads files, and yields the results in order.

    Parameters
    ----------
    make
        Makes a profile of a log or trace; a module-level function, since other processes call it.
    totals
        Store only sums of logs, without profiles; None does so for `MANY` files or more.
    workers
        Number of reading processes; None uses one per core, or only this process for few files.
    """

    def __init__(
        self, make: MakeProfile, *, totals: bool | None, user: str | None, workers: int | None
    ) -> None:
        self._make, self._totals, self._user, self._workers = make, totals, user, workers
        self._pool: ProcessPoolExecutor | None = None
        self._waiting: deque[Future[list[IngestResult]]] = deque()
        self._handed = 0

    def totals(self, files: int) -> bool:
        """Whether only sums are stored for this many files."""
        return files >= MANY if self._totals is None else self._totals

    def look(self, candidates: Sequence[Candidate]) -> None:
        """Start reading the files discovered so far, if more of them will not change how they are read."""
        if self._workers == 1 or len(candidates) - self._handed < _FEW:
            return
        if len(candidates) < MANY and (self._totals is None or self._workers is None):
            return
        size, ahead = self._pieces(len(candidates), _WHILE_FINDING)
        if (
            len(candidates) - self._handed >= size
            and len(self._waiting) < ahead
            and self._processes(len(candidates)) > 1
        ):
            self._hand_out(candidates, size)

    def results(self, candidates: Sequence[Candidate]) -> Generator[IngestResult]:
        """Yield the results of all files, reading ahead only as far as the processes need.

        Raises
        ------
        InputError
            One of the processes was killed.
        """
        size, ahead = self._pieces(len(candidates), _AHEAD)
        if self._processes(len(candidates)) <= 1:
            reading = self._reading(len(candidates))
            for start in range(0, len(candidates), size):
                yield from reading(candidates[start : start + size])
            return
        try:
            while self._handed < len(candidates) or self._waiting:
                while self._handed < len(candidates) and len(self._waiting) <= ahead:
                    self._hand_out(candidates, size)
                yield from self._waiting.popleft().result()
        except BrokenProcessPool as error:
            raise InputError(
                "a reading process was killed",
                todo="run this again: finished logs are stored; use --workers 1 if memory is short",
            ) from error

    def close(self) -> None:
        """End the processes; batches that have not started are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _hand_out(self, candidates: Sequence[Candidate], size: int) -> None:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._processes(len(candidates)),
                mp_context=multiprocessing.get_context("spawn"),
                initializer=end_with_parent,
            )
        piece = candidates[self._handed : self._handed + size]
        self._waiting.append(self._pool.submit(self._reading(len(candidates)), piece))
        self._handed += len(piece)

    def _reading(self, files: int) -> Reading:
        return Reading(self._make, self.totals(files), self._user)

    def _pieces(self, files: int, ahead: int) -> tuple[int, int]:
        """Number of files per batch, and number of batches that may wait to be consumed."""
        processes = self._processes(files)
        return (_CHUNK, max(ahead, 4 * processes)) if self.totals(files) else (_FEW, 4 * processes)

    def _processes(self, files: int) -> int:
        if self._workers is not None:
            return self._workers
        return len(os.sched_getaffinity(0)) if files >= MANY else 1
