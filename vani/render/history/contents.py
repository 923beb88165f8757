"""The runs of a history, and the files that could not be read, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.render.history.rows import damaged
from vani.render.history.text import columns
from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.history import HistoryContents

__all__ = ["contents_by_month", "reasons"]


def contents_by_month(contents: HistoryContents) -> str:
    """Write runs by month."""
    lines = [
        f"{one_line(contents.place)}: {counted(contents.runs, 'run')}, {counted(contents.profiles, 'profile')}, "
        f"{counted(contents.judged, 'run')} judged"
        + ("; users and paths are hashes" if contents.anonymised else ""),
        *columns(
            ("month", "runs", "users"),
            [(month.month or "unknown", f"{month.runs:,}", f"{month.users:,}") for month in contents.months],
            left=1,
        ),
    ]
    return "\n".join([*lines, *([damaged(contents.damaged)] if contents.damaged else [])]) + "\n"


def reasons(files: Iterable[tuple[str, str]]) -> str:
    """Write path and reason of each file."""
    return "".join(f"{one_line(path)}: {one_line(reason)}\n" for path, reason in files)
