"""A file that a thread writes while other work goes on, and that takes its place once all is known to be right."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path

__all__ = ["FileAside"]

_MOST_PIECES = 1000
"""That are written in one go; systems take 1,024 (IOV_MAX)."""


class FileAside:
    """Begin to write a file: what tells its kind, the SHA-256 of all that follows, and that.

    Where it cannot be written there is none in the end.

    Parameters
    ----------
    place
        Where it will lie, in a folder that is there; what lay there before is replaced.
    kind
        Its first bytes.
    pieces
        Written one after another, not copied; they must not change until the file is done.
    """

    def __init__(self, place: Path, kind: bytes, pieces: Sequence[bytes | memoryview]) -> None:
        self._place = place
        self._partial = place.with_name(f".{place.name}.{os.urandom(4).hex()}.partial")
        thread = ThreadPoolExecutor(1)
        self._written = thread.submit(_write, self._partial, kind, pieces)
        thread.shutdown(wait=False)

    def keep(self) -> None:
        """Put it in its place, once it is written."""
        try:
            if self._written.result():
                with suppress(OSError):
                    self._partial.replace(self._place)
        finally:
            self.drop()

    def drop(self) -> None:
        """Leave nothing of it; does nothing to one that is in its place."""
        with suppress(Exception):
            self._written.result()
        with suppress(OSError):
            self._partial.unlink(missing_ok=True)


def _write(path: Path, kind: bytes, pieces: Sequence[bytes | memoryview]) -> bool:
    """Whether all of it was written. Python's lock is taken a few times only: each time, others have it for long."""
    begin = len(kind) + hashlib.sha256().digest_size
    try:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644), "r+b", buffering=0) as file:
            file.write(kind.ljust(begin, b"\0"))
            left = iter(pieces)
            while some := list(islice(left, _MOST_PIECES)):
                if os.writev(file.fileno(), some) != sum(map(len, some)):
                    return False
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as written, memoryview(written) as content:
                digest = hashlib.sha256(content[begin:]).digest()
            os.pwrite(file.fileno(), digest, len(kind))
    except OSError:
        return False
    return True
