"""Standard streams that may be closed, full or unread; the command's work alone decides the exit status.

Standard error is for people, so text that cannot be written there is dropped. So is output that is no longer
read, as with `| head -n 1`. A document that cannot be written to standard output is an error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from vani.errors import InputError


def guard_streams() -> None:
    """Replace stdout and stderr with streams that behave this way; commands call it once, at the very start."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Otherwise the next file opened, perhaps the output, would receive what C libraries print.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    sys.stdout = _text(1, sys.stdout, errors="backslashreplace")
    sys.stderr = _text(2, sys.stderr, errors="backslashreplace")


def _text(number: int, before: Any, *, errors: str) -> io.TextIOWrapper:
    """A text stream like `before`, which is None if there was no stream."""
    if before is not None:
        before.flush()
    raw = _Guarded(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding="utf-8" if before is None else before.encoding,
        errors=errors,
        line_buffering=number == 2 or raw.isatty(),
    )


class _Guarded(io.FileIO):
    """A raw stream that reports the first write error once and drops everything after it."""

    _failed = False

    def write(self, data: Any, /) -> int:
        size = memoryview(data).nbytes
        if self._failed:
            return size
        try:
            return super().write(data)
        except OSError as error:
            self._failed = True
            if self.fileno() == 2 or isinstance(error, BrokenPipeError):
                return size
            why = "it is closed" if error.errno == errno.EBADF else error.strerror
            raise InputError(
                f"cannot be written ({why})", where="standard output", todo="redirect it elsewhere"
            ) from error
