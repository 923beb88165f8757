"""A ranking of storage targets, as text for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.schema.syntax.json_writer import json_text
from vani.units import counted, format_number, format_seconds

if TYPE_CHECKING:
    from vani.centre.history.schema import TargetRow

def targets_as_json(rows: Sequence[TargetRow]) -> str:
    """Write the rows as a list."""
    return json_text([row.model_dump() for row in rows], indent=2) + "\n"


def targets_as_text(rows: Sequence[TargetRow], limit: int) -> str:
    """Write the first rows, and which targets to examine."""
    if not rows:
        return "No run lists four or more storage targets. Darshan logs with the Lustre module list them.\n"
    head = ("mount", "OST", "runs", "files", "time per file: mean", "median", "times the others", "lost")
    cells = [
        (
            one_line(row.mount),
            str(row.target),
            f"{row.runs:,}",
            format_number(row.files),
            format_seconds(row.mean_s),
            format_seconds(row.median_s),
            format_number(row.times) + (" SLOW" if row.slow else ""),
            format_seconds(row.lost_s),
        )
        for row in rows[:limit]
    ]
    slow = [row for row in rows if row.slow]
    lines = [f"{counted(len(rows), 'storage target')}", *columns(head, cells, left=1)]
    lines += [
        f"Slow: OST {row.target} of {one_line(row.mount)}. `lfs osts {one_line(row.mount)}` shows its name and state."
        f"{_of_jobs(row)}"
        for row in slow[:limit]
    ] or ["No target is slow in most runs."]
    return "\n".join(lines) + "\n"


def _of_jobs(row: TargetRow) -> str:
    names = ", ".join(map(one_line, row.jobs))
    return f" Largest losses: job{'s' if len(row.jobs) > 1 else ''} {names}." if names else ""
