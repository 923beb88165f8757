"""Runs that are repeated daily, as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from vani.centre.history.text.text import columns
from vani.errors import one_line
from vani.units import format_seconds

if TYPE_CHECKING:
    from vani.centre.history.schema import Daily

def daily_text(application: str, series: Sequence[Daily]) -> str:
    """Write a row for each series."""
    if not series:
        return f"{one_line(application)}: no combination of user, processes and file system has eight runs or more\n"
    head = ("user", "processes", "mount", "runs", "latest", "took", "seven before", "usual is", "", "next")
    rows = [
        (
            one_line(daily.user),
            f"{daily.processes:,}",
            one_line(daily.mount),
            f"{daily.runs:,}",
            f"{datetime.fromtimestamp(daily.at, UTC):%Y-%m-%d}",
            format_seconds(daily.last_s),
            format_seconds(daily.usual_s),
            "unknown"
            if daily.low is None or daily.high is None
            else f"{format_seconds(daily.low * daily.usual_s)} to {format_seconds(daily.high * daily.usual_s)}",
            daily.verdict.upper() if daily.verdict == "slower" else daily.verdict,
            format_seconds(daily.next_s),
        )
        for daily in series
    ]
    title = one_line(application)
    return "\n".join([title, *columns(head, rows, left=1)]) + "\n"
