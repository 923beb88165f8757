"""Standard streams that may be closed, full or unread, where the command's work decides on its exit status.

Standard error is for people: text that cannot be written there is dropped. So is text that is no longer read, as with
`| head -n 1`. A document that does not fit on standard output is an error.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any

from vani.errors import InputError

__all__ = ["guard_streams"]


def guard_streams() -> None:
    """Put streams in the place of stdout and stderr that behave so; for commands, once, at their very beginning."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Or else the next file that is opened, perhaps the output, gets what C libraries print.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    sys.stdout = _text(1, sys.stdout, errors="backslashreplace")
    sys.stderr = _text(2, sys.stderr, errors="backslashreplace")


def _text(number: int, before: Any, *, errors: str) -> io.TextIOWrapper:
    """A text stream like the one `before`, which is None if there was no stream."""
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
    """Writes until an error, which it reports once; drops the rest."""

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
