"""Small files of /proc and /sys, below a root that tests put elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["entries", "read"]

_MAX_BYTES: Final = 16 << 20


def read(path: Path) -> str | None:
    """Read a small text file; None where it is not there or cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="backslashreplace")
    except (OSError, ValueError):
        return None


def entries(folder: Path) -> list[Path]:
    """List a folder, sorted; empty where it is not there or cannot be read."""
    try:
        return sorted(folder.iterdir())
    except (OSError, ValueError):
        return []
