"""Darshan commands that print text without per-file counters, recognised by their output."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from vani.errors import UnknownFormatError, one_line

_TOTAL = re.compile(r"total_[A-Za-z0-9_-]+: ")
_SIGNS: Sequence[tuple[str, tuple[str, ...], str]] = (
    (
        "darshan-dxt-parser",
        ("# DXT, file_id", "# DXT_POSIX module data", "# DXT_MPIIO module data", "# no DXT module data"),
        "at most single reads and writes, and no counters",
    ),
    ("darshan-parser --total", ("total_",), "sums over all files and no counters of single files"),
    (
        "darshan-parser --perf",
        ("# performance", "# total_bytes:", "# I/O timing for unique files", "# agg_perf_by_"),
        "rates of the whole run and no counters of files",
    ),
    (
        "darshan-parser --file-list",
        ("# Per-file summary of I/O activity",),
        "times of files and no counters",
    ),
    ("darshan-parser --file", ("# files", "# Total file counts", "# <file_type>"), "numbers of files and no counters"),
)
"""The command, how its lines begin, and its contents in place of counters. The first match counts, because
`--perf` and `--file` print less than `--total`."""
_EMPTY = "# no module data available"
"""Line that `darshan-parser` prints for a log without records."""
_TODO: Final = "name the log itself, or print its counters with `darshan-parser LOG > FILE` and name FILE"


def is_total(line: str) -> bool:
    """Whether a line is a sum printed by `darshan-parser --total` (or `--all`)."""
    return _TOTAL.match(line) is not None


def refuse_other_texts(path: Path, text: str, exe: str) -> None:
    """Raise an error that names the command behind a text without counters; return if the text matches none.

    Raises
    ------
    UnknownFormatError
        Another command or option printed the text.
    """
    lines = text.split("\n")
    for command, signs, instead in _SIGNS:
        if any(line.startswith(signs) for line in lines):
            raise UnknownFormatError(f"is text of `{command}`{_run(exe)}, which has {instead}", where=path, todo=_TODO)


def refuse_head_alone(path: Path, text: str, exe: str) -> None:
    """Refuse a text without counter lines, unless `darshan-parser` printed it for a log without records.

    Raises
    ------
    UnknownFormatError
        The text ends after the head.
    """
    if not any(line.startswith(_EMPTY) for line in text.split("\n")):
        raise UnknownFormatError(
            f"is the head of a printed Darshan log{_run(exe)}, without a counter", where=path, todo=_TODO
        )


def _run(exe: str) -> str:
    return f" of the run of {one_line(exe.split(maxsplit=1)[0])}" if exe.split() else ""
