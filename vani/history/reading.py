"""What a process does that only reads files: each that begins loads this module, and no database."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait

from vani.history.discovery import Candidate
from vani.history.ingest_result import IngestResult, MakeProfile, ingest_file

__all__ = ["Reading", "end_with_parent"]


@dataclass(frozen=True)
class Reading:
    """How a process reads files."""

    make: MakeProfile
    totals: bool
    user: str | None

    def __call__(self, some: Sequence[Candidate]) -> list[IngestResult]:
        return [ingest_file(one, self.make, totals=self.totals, user=self.user) for one in some]


def end_with_parent() -> None:
    """In a process that reads: leave interruptions to the parent, and end when it has gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_wait_for, args=(parent.sentinel,), daemon=True).start()


def _wait_for(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
