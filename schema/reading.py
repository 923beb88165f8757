"""Bytes of a document and their digest, read beside whatever else is to be done.

Reading and hashing a profile of 50,000 files takes 50 ms and leaves the interpreter to others, such as to the
import of what the profile is read with: begin before that. This module loads nothing heavy.
"""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path
from typing import Final

from vani.errors import DocumentError, refuse_named_pipe

__all__ = ["MAX_BYTES", "Reading"]

MAX_BYTES: Final = 1 << 29
"""Longer documents are refused: a profile of 50,000 files has about 1e8 bytes, and a device no end."""


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
            It cannot be read, or is too long.
        """
        self._is_read.wait()
        if self._content is None:
            if isinstance(self._error, DocumentError):
                raise self._error
            if isinstance(self._error, FileNotFoundError):
                raise DocumentError("no such file", where=self.path) from self._error
            why = getattr(self._error, "strerror", None) or self._error
            raise DocumentError(f"cannot be read ({why})", where=self.path) from self._error
        return self._content

    def sha256(self) -> str:
        """Their digest; empty where they cannot be read."""
        self._thread.join()
        return self._digest

    def _read(self) -> None:
        try:
            refuse_named_pipe(self.path)
            with self.path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                del content  # The error keeps what its place knows.
                todo = "name a document of Vani; a profile is shorter with fewer files (`--files N`)"
                raise DocumentError(f"is longer than {MAX_BYTES >> 20} MiB", where=self.path, todo=todo)
            self._content = content
        except (OSError, ValueError, MemoryError, DocumentError) as error:
            self._error = error
        finally:
            self._is_read.set()
        if self._content is not None:
            self._digest = hashlib.sha256(self._content).hexdigest()
