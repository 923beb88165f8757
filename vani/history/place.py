"""Where a history lies that nobody named."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["ENVIRONMENT", "default_place"]

ENVIRONMENT = "VANI_HISTORY"


def default_place() -> str:
    """What the variable VANI_HISTORY names, else a file in the user's folder for data."""
    named = os.environ.get(ENVIRONMENT)
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(folder / "vani" / "history.sqlite")
