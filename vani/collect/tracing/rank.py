"""Begins strace in front of one MPI rank: `python -m vani.collect.tracing.rank STRACE FOLDER PROGRAM...`.

It becomes strace, so that signals and the exit status are the program's.
"""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

from vani.collect.tracing.launchers import RANK_VARIABLES
from vani.collect.tracing.line import strace_words

__all__ = ["log_of"]


def log_of(folder: Path, environment: dict[str, str]) -> Path:
    """The rank's log, named by its number; where no launcher tells one, by host and process."""
    for variable in RANK_VARIABLES:
        value = environment.get(variable, "")
        if value.isdecimal():
            return folder / f"rank-{int(value):05d}.strace"
    return folder / f"{socket.gethostname()}-{os.getpid()}.strace"


if __name__ == "__main__":
    words = strace_words(sys.argv[1], log_of(Path(sys.argv[2]), dict(os.environ)), sys.argv[3:])
    os.execv(words[0], words)
