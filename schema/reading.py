"""Bytes of a document and their digest, read beside whatever else is to be done.

Reading and hashing a profile of 50,000 files takes 50 ms and leaves the interpreter to others, such as to the
import of what the profile is read with: begin before that. This module loads nothing heavy.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

from vani.errors import DocumentError

__all__ = ["Reading"]


class Reading:
    """A file that is being read; `content` and `sha256` wait for it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._content: bytes | None = None
        self._error: Exception | None = None
        self._digest = ""
        self._is_read = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True, name="reading")
        self._thread.start()

    def content(self) -> bytes:
        """The file's bytes.

        Raises
        ------
        DocumentError
            It cannot be read.
        """
        self._is_read.wait()
        if self._content is None:
            why = getattr(self._error, "strerror", None) or self._error
            raise DocumentError(f"cannot be read ({why})", where=self.path) from self._error
        return self._content

    def sha256(self) -> str:
        """Their digest; empty where they cannot be read."""
        self._thread.join()
        return self._digest

    def _read(self) -> None:
        try:
            self._content = self.path.read_bytes()
        except (OSError, ValueError, MemoryError) as error:
            self._error = error
        finally:
            self._is_read.set()
        if self._content is not None:
            self._digest = hashlib.sha256(self._content).hexdigest()
