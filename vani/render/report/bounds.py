"""Limits on how much of a profile a report shows, which keep it readable; it states what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from vani.errors import one_line


@dataclass(frozen=True)
class Limits:
    """Maximum numbers of items and of characters in a report."""

    groups: int
    """Rows of the file table: files, or datasets of many files."""
    members: int
    """Files shown under one dataset."""
    all_members: int
    """Files shown under all datasets together."""
    rows: int
    """Rows of any other table."""
    calls: int
    """Functions in the table of calls; all others share a row."""
    plot_rows: int
    """Rows of the table behind a plot."""
    plot_bytes: int
    """All plot specifications together, as JSON."""
    picture_bytes: int
    """All pictures of plots together."""
    items: int
    """Recommendations, with everything that belongs to them."""
    evidence: int
    """Numbers under one recommendation."""
    lines: int
    """Lines to paste under one recommendation."""
    line: int
    """Characters of a line to paste; a longer one is omitted, since half a command is useless."""
    path: int
    """Characters of a path or a name."""
    prose: int
    """Characters of a sentence."""


LEVELS: Final = (
    Limits(
        groups=300, members=20, all_members=1500, rows=200, calls=20, plot_rows=200, plot_bytes=350_000,
        picture_bytes=250_000, items=60, evidence=30, lines=60, line=2000, path=240, prose=1200,
    ),
    Limits(
        groups=120, members=5, all_members=300, rows=100, calls=20, plot_rows=60, plot_bytes=250_000,
        picture_bytes=150_000, items=30, evidence=12, lines=30, line=1000, path=160, prose=600,
    ),
    # Fits for every profile, since every character may become five bytes when it is escaped.
    Limits(
        groups=40, members=3, all_members=60, rows=30, calls=10, plot_rows=20, plot_bytes=150_000,
        picture_bytes=100_000, items=10, evidence=6, lines=10, line=500, path=100, prose=300,
    ),
)  # fmt: skip
"""From the usual limits to those that fit for any profile."""


def clip(text: str, most: int) -> str:
    """Text on one line without control characters, shortened in the middle to `most` characters."""
    # Parts that are cut off are not escaped first, so a name of a megabyte costs no more than a long one.
    safe = one_line(text if len(text) <= 2 * most else text[:most] + text[-most:])
    if len(safe) <= most:
        return safe
    front = most // 3
    return f"{safe[:front]}…{safe[len(safe) - (most - front - 1) :]}"
