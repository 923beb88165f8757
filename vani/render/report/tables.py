"""Tables of a report, the same for every format, and limits that keep it readable; it states what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from vani.errors import one_line
from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share


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
        groups=300, members=20, all_members=1500, rows=200, calls=20, plot_rows=8, plot_bytes=350_000,
        picture_bytes=250_000, items=60, lines=60, line=2000, path=240, prose=1200,
    ),
    Limits(
        groups=120, members=5, all_members=300, rows=100, calls=20, plot_rows=8, plot_bytes=250_000,
        picture_bytes=150_000, items=30, lines=30, line=1000, path=160, prose=600,
    ),
    # Fits for every profile, since every character may become five bytes when it is escaped.
    Limits(
        groups=40, members=3, all_members=60, rows=30, calls=10, plot_rows=8, plot_bytes=150_000,
        picture_bytes=100_000, items=10, lines=10, line=500, path=100, prose=300,
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


@dataclass(frozen=True)
class Cell:
    """Text of a cell, and the number that sorts its column."""

    text: str
    value: float | None = None
    """None sorts by the text, or last in a column of numbers."""
    note: str = ""
    """Second line in smaller type."""


@dataclass(frozen=True)
class Column:
    """A column; `number` aligns and sorts it as a number."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Row:
    """A row, and the rows that it represents."""

    cells: tuple[Cell, ...]
    members: tuple[Row, ...] = ()
    unlisted: int = 0
    """Number of members that are not in `members`."""


@dataclass(frozen=True)
class Table:
    """A table with a sentence about its contents."""

    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    left_out: int = 0
    """Number of omitted rows."""


def words(text: str, note: str = "") -> Cell:
    """A cell of text."""
    return Cell(text, None, note)


def _cell_of(write: Callable[[Any], str]) -> Callable[..., Cell]:
    """A function that makes a cell of a number, and of a note if there is one."""
    return lambda number, note="": Cell(write(number), number, note)


count, size, seconds = _cell_of(format_count), _cell_of(format_bytes), _cell_of(format_seconds)
"""Cells with a count, bytes, seconds."""
rate, share = _cell_of(format_rate), _cell_of(format_share)
"""Cells with bytes per second, and with a share 0..1 in percent."""


def known(cell: Callable[..., Cell]) -> Callable[..., Cell]:
    """A function that makes a cell of a number, and an empty one of an unknown number."""
    return lambda number, note="": words("") if number is None else cell(number, note)


Shown = tuple[Column, Callable[[Any], Cell]]
"""A column, and the cell that it shows of an item."""


def shows(title: str, what: str | Callable[[Any], Cell], cell: Callable[..., Cell] = count) -> Shown:
    """A column of numbers: `what` is the attribute that `cell` shows, or makes the cell itself."""
    if callable(what):
        return Column(title, number=True), what
    get = attrgetter(what)
    return Column(title, number=True), lambda item: cell(get(item))


def worded(title: str, what: str | Callable[[Any], str | Cell], most: int = 0) -> Shown:
    """A column of text: an attribute or what a function makes of an item, cut to `most` characters."""
    get = what if callable(what) else attrgetter(what)

    def cell(item: Any) -> Cell:
        text = get(item)
        return text if isinstance(text, Cell) else words(clip(text, most) if most else text)

    return Column(title), cell


def table_of(name: str, caption: str, items: Sequence[Any], columns: Sequence[Shown], most: int) -> Table:
    """A row for each of the first `most` items."""
    rows = tuple(Row(tuple(cell(item) for _, cell in columns)) for item in items[:most])
    return Table(name, caption, tuple(column for column, _ in columns), rows, max(0, len(items) - most))


def one_by_one(table: Table) -> str:
    """A short table as part of a sentence: `opening 61 (37 ms), directory operations 10 (3.21 ms)`."""
    said = []
    for row in table.rows:
        name, number, *more = (cell.text for cell in row.cells)
        said.append(f"{name} {number}" + (f" ({more[0]})" if more else ""))
    return ", ".join(said)


def without_empty(table: Table) -> Table:
    """The table without columns that are empty in every row."""
    filled = [i for i in range(len(table.columns)) if any(row.cells[i].text for row in table.rows)]
    if len(filled) in (0, len(table.columns)):
        return table
    rows = tuple(replace(row, cells=tuple(row.cells[i] for i in filled)) for row in table.rows)
    return replace(table, columns=tuple(table.columns[i] for i in filled), rows=rows)
