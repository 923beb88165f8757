"""The runs of a history, and the files that could not be read, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.history.rows import damaged
from vani.render.history.text import columns
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.history import Kept

__all__ = ["kept", "reasons"]


def kept(told: Kept) -> str:
    """Write runs by month."""
    lines = [
        f"{one_line(told.place)}: {counted(told.runs, 'run')}, {counted(told.profiles, 'profile')}, "
        f"{counted(told.judged, 'run')} judged" + ("; users and paths are hashes" if told.anonymised else ""),
        *columns(
            ("month", "runs", "users"),
            [(one.month or "unknown", f"{one.runs:,}", f"{one.users:,}") for one in told.months],
            left=1,
        ),
    ]
    return "\n".join([*lines, *([damaged(told.damaged)] if told.damaged else [])]) + "\n"


def reasons(files: Iterable[tuple[str, str]]) -> str:
    """Write path and reason of each file."""
    return "".join(f"{one_line(path)}: {one_line(reason)}\n" for path, reason in files)
