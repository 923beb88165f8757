"""Tables of a report, the same for every format."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vani.units import format_bytes, format_count, format_rate, format_seconds, format_share


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
    """A column; `key` names it in narrow formats, and `number` aligns and sorts it as a number."""

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


def count(number: int | None, note: str = "") -> Cell:
    """A cell with a count."""
    return Cell(format_count(number), number, note)


def size(number: float | None, note: str = "") -> Cell:
    """A cell with bytes."""
    return Cell(format_bytes(number), number, note)


def seconds(number: float | None, note: str = "") -> Cell:
    """A cell with seconds."""
    return Cell(format_seconds(number), number, note)


def rate(number: float | None, note: str = "") -> Cell:
    """A cell with bytes per second."""
    return Cell(format_rate(number), number, note)


def share(number: float | None, note: str = "") -> Cell:
    """A cell with a share 0..1, in percent."""
    return Cell(format_share(number), number, note)


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
