"""A rehearsal as text for people, and its jobs as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Final

from vani.errors import one_line
from vani.render.table import cell
from vani.units import counted, format_seconds, format_share

if TYPE_CHECKING:
    from vani.centre.plan.schema.rehearsal import Rehearsal

_MOST_ROWS: Final = 20
_LONGEST: Final = 40


def text_of(rehearsal: Rehearsal) -> str:
    """The number of jobs, their savings by name, and why other jobs are not counted."""
    known = sum(row.saved_s is not None for row in rehearsal.jobs)
    lines = [f"{counted(len(rehearsal.jobs), 'job')} ran; the possible saving is known for {known:,}."]
    if known:
        lines.append(_total(rehearsal))
        lines += ["", *_table(rehearsal)]
    if rehearsal.reasons:
        lines += ["", "Not counted:"]
        ordered = sorted(rehearsal.reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        lines += [f"  {number:>7,}  {one_line(reason)}" for reason, number in ordered[:_MOST_ROWS]]
        if len(ordered) > _MOST_ROWS:
            lines.append(f"  and {counted(len(ordered) - _MOST_ROWS, 'more reason')}")
    return "\n".join(lines) + "\n"


def _total(rehearsal: Rehearsal) -> str:
    some = rehearsal.applications
    io_s, saved, low, high = (
        sum(values) for values in zip(*((a.io_s, a.saved_s, a.low_s, a.high_s) for a in some), strict=True)
    )
    slower = sum((row.saved_s or 0.0) < 0 for row in rehearsal.jobs)
    share = f"{format_share(saved / io_s)}; " if io_s else ""
    of = f"{_signed(saved)} of their {format_seconds(io_s)} of I/O time"
    text = f"The hook would have saved {of} ({share}{_span(low, high)})."
    return text + (f" {counted(slower, 'job')} would have been slower." if slower else "")


def _span(low: float, high: float) -> str:
    return f"{_signed(low)} to {_signed(high)}"


def _signed(seconds: float) -> str:
    return f"-{format_seconds(-seconds)}" if seconds < 0 else format_seconds(seconds)


def _table(rehearsal: Rehearsal) -> list[str]:
    rows = [("name", "jobs", "counted", "I/O time", "saved", "range")]
    shown = [application for application in rehearsal.applications if application.known][:_MOST_ROWS]
    rows += [
        (
            one_line(entry.name)[:_LONGEST] or "(no name)",
            f"{entry.jobs:,}",
            f"{entry.known:,}",
            format_seconds(entry.io_s),
            _signed(entry.saved_s),
            _span(entry.low_s, entry.high_s),
        )
        for entry in shown
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def csv_of_jobs(rehearsal: Rehearsal) -> str:
    """A row for each job; unknown values are empty."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    names = list(type(rehearsal.jobs[0]).model_fields)
    out.writerow(names)
    out.writerows([cell(getattr(row, name)) for name in names] for row in rehearsal.jobs)
    return text.getvalue()
