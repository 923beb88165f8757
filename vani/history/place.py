"""Where a history lies that nobody named."""

from __future__ import annotations

import os
from pathlib import Path

from vani.site import setting

__all__ = ["ENVIRONMENT", "default_place"]

ENVIRONMENT = "VANI_HISTORY"


def default_place() -> str:
    """What VANI_HISTORY or a file of settings names (`vani.site`), else a file in the user's folder for data."""
    named = setting("history").value
    if named:
        return named
    data = os.environ.get("XDG_DATA_HOME")
    folder = Path(data) if data and Path(data).is_absolute() else Path.home() / ".local" / "share"
    return str(folder / "vani" / "history.sqlite")
