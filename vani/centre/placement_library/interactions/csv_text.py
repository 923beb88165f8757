"""The interaction database as CSV, with the columns of Tarazu's tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Final

from vani.centre.placement_library.interactions.interaction import Interaction
from vani.errors import InputError, one_line

COLUMNS: Final = (
    "file_name",
    "file_size",
    "extent_id",
    "extent_start",
    "extent_end",
    "stripe_size",
    "stripe_count",
    "mpi_rank",
    "ost_list",
)
_NEEDED: Final = ("file_name", "stripe_size", "stripe_count", "ost_list")
"""The columns of a file with a plain layout, whose extents have none."""
_ALIASES: Final = {"file": "file_name", "rank": "mpi_rank"}
_DIGITS: Final = 19


def is_csv(text: str) -> bool:
    """Whether a text begins like such a table: a header line, after lines that begin with `#`."""
    return set(_NEEDED) <= set(_columns(_table(text)[0]))


def read_csv(text: str, where: str) -> list[Interaction]:
    """Parse rows.

    An empty cell means unknown, and `extent_end` may also be -1 or EOF; OSTs are separated by spaces.

    Raises
    ------
    InputError
        A column or cell is invalid.
    """
    body, skipped = _table(text)
    columns = _columns(body)
    if unknown := [name for name in columns if name not in COLUMNS]:
        raise InputError(
            f"column {unknown[0][:60]!r} is not known", where=where, todo=f"give {', '.join(COLUMNS)}"
        )
    if missing := [name for name in _NEEDED if name not in columns]:
        raise InputError(f"column '{missing[0]}' is missing", where=where, todo=f"give {', '.join(COLUMNS)}")
    if len(set(columns)) != len(columns):
        raise InputError("a column appears twice", where=where, todo="name each once")
    rows = csv.reader(io.StringIO(body, newline=""), strict=True)
    interactions = []
    try:
        next(rows)
        for cells in rows:
            line = f"{where}:{skipped + rows.line_num}"
            if not cells:
                continue
            if len(cells) != len(columns):
                raise InputError(
                    f"has {len(cells)} cells for {len(columns)} columns",
                    where=line,
                    todo="quote values with commas",
                )
            interactions.append(_row(dict(zip(columns, cells, strict=True)), line))
    except csv.Error as error:
        raise InputError(
            f"is not CSV ({error})", where=f"{where}:{skipped + rows.line_num}", todo="correct the line"
        ) from error
    return interactions


def write_csv(rows: Iterable[Interaction]) -> str:
    """Format rows as CSV that `read_csv` accepts."""
    out = io.StringIO(newline="")
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    table.writerows(
        (
            row.file,
            row.file_size,
            row.extent_id,
            row.extent_start,
            row.extent_end,
            row.stripe_size,
            row.stripe_count,
            row.mpi_rank,
            " ".join(map(str, row.osts)),
        )
        for row in rows
    )
    return out.getvalue()


def _table(text: str) -> tuple[str, int]:
    """The text after the comments at its top, and the number of these lines."""
    skipped = 0
    while text.startswith("#"):
        text = text.partition("\n")[2]
        skipped += 1
    return text, skipped


def _columns(body: str) -> list[str]:
    try:
        names = next(csv.reader([body.partition("\n")[0].rstrip("\r")], strict=True), [])
    except csv.Error:
        return []
    plain = (name.strip().lower().replace(" ", "_") for name in names)
    return [_ALIASES.get(name, name) for name in plain]


def _row(cells: dict[str, str], line: str) -> Interaction:
    def number(name: str) -> int | None:
        text = cells.get(name, "").strip()
        return None if not text else _integer(text, name, line)

    def needed(name: str) -> int:
        value = number(name)
        if value is None:
            raise InputError(f"{name} is empty", where=line, todo="give a whole number")
        return value

    end = cells.get("extent_end", "").strip()
    extent, start = number("extent_id"), number("extent_start")
    return Interaction(
        file=cells["file_name"],
        file_size=number("file_size"),
        extent_id=1 if extent is None else extent,
        extent_start=0 if start is None else start,
        extent_end=None if end.upper() in {"", "-1", "EOF"} else _integer(end, "extent_end", line),
        stripe_size=needed("stripe_size"),
        stripe_count=needed("stripe_count"),
        mpi_rank=number("mpi_rank"),
        osts=tuple(_integer(text, "ost_list", line) for text in cells["ost_list"].split()),
    )


def _integer(text: str, name: str, line: str) -> int:
    # Python refuses to parse thousands of digits, and accepts digits of other scripts.
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):
        raise InputError(
            f"{name} is {one_line(text)[:40]!r}", where=line, todo="give a whole number, 0 or more"
        )
    return int(text)
