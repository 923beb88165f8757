"""Columns of text, and lists cut at a readable length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Final

_LISTED: Final = 100
"""Maximum number of rows and reasons to show; the document has all."""


def table(
    head: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, left: int = 1, all_rows: bool = False
) -> list[str]:
    """Lay out the first rows, or all, in columns; the first `left` are left-aligned, the others right-aligned."""
    cells = list(chain([head], rows if all_rows else islice(rows, _LISTED)))
    wide = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = [
        "  ".join(
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in cells
    ]
    return lines if all_rows else [*lines, *_more(rows)]


def listed(lines: Sequence[str]) -> Iterable[str]:
    """The first lines, and the number of further ones."""
    return [*lines[:_LISTED], *_more(lines)]


def _more(some: Sequence[object]) -> list[str]:
    return [f"... and {len(some) - _LISTED:,} more (--format yaml has all)"] if len(some) > _LISTED else []
