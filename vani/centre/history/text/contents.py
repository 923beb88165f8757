"""The runs of a history, and the files that could not be read, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vani.centre.history.text.rows import damaged
from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.units import counted

if TYPE_CHECKING:
    from vani.centre.history.schema import HistoryContents, MeasuredSetting

def contents_by_month(contents: HistoryContents) -> str:
    """Write the number of runs by month, and the measured settings."""
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
    if contents.settings:
        rows = [*map(setting_cells, contents.settings)]
        lines += ["", "Settings measured by vani tune:", *columns(_HEAD, rows, left=6)]
    return "\n".join([*lines, *([damaged(contents.damaged)] if contents.damaged else [])]) + "\n"


_HEAD = ("day", "application", "machine", "setting", "by", "verdict", "processes", "times as fast", "runs")


def setting_cells(row: MeasuredSetting) -> tuple[str, ...]:
    """A measured setting as table cells: texts from day to verdict, then numbers."""
    speedup = "-" if row.speedup is None else f"{row.speedup:.2f}"
    if row.low is not None and row.high is not None:
        speedup += f" ({row.low:.2f} to {row.high:.2f})"
    processes = "unknown" if row.processes is None else f"{row.processes:,}"
    names = (row.application or "unknown", row.machine or "unknown", row.setting)
    words = (row.day, *map(one_line, names), ", ".join(row.rules), row.verdict.replace("_", " "))
    return (*words, processes, speedup, f"{row.runs:,}")


def reasons(files: Iterable[tuple[str, str]]) -> str:
    """Write each file's path and the reason why it could not be read."""
    return "".join(f"{one_line(path)}: {one_line(reason)}\n" for path, reason in files)
