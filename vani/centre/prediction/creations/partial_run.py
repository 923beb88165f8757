"""The files that a run has created so far, from a CSV file or a trace."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from vani.centre.prediction.creations.series import LARGEST, NO_RANK, Creations
from vani.errors import InputError

MOST: Final = 1_000_000
_COLUMNS: Final = ("path", "rank", "size", "stripe_count")
_LIMITS: Final = {"rank": (NO_RANK, (1 << 28) - 1), "size": (0, LARGEST), "stripe_count": (0, 1 << 16)}


def read_partial_run(path: Path) -> Creations:
    """Read a trace, or a CSV file with a header (`size`, and optionally `path`, `rank`, `stripe_count`).

    Raises
    ------
    InputError
        The file is missing or has no creations, a column is unknown, or a value is not a number. The error names
        the line.
    """
    if path.is_dir():
        from vani.centre.prediction.creations.extraction import creations_of_trace  # noqa: PLC0415 - loads Arrow

        creations = creations_of_trace(path)
        if creations is None:
            raise InputError("does not show when files were created", where=path, todo="name a trace of calls")
        return creations
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            head = [name.strip() for name in next(rows, [])]
            _refuse_head(head, path)
            columns = _columns(rows, head, path)
    except FileNotFoundError:
        raise InputError("no such file", where=path, todo="name the files created so far") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(
            f"cannot be read as CSV ({why})", where=path, todo="name a CSV file or a trace"
        ) from error
    number = len(columns["size"])
    numbers = {
        name: np.array(columns.get(name, [default] * number), dtype=np.int64)
        for name, default in (("size", 0), ("rank", NO_RANK), ("stripe_count", 0))
    }
    names = tuple(str(name) for name in columns.get("path", []))
    return Creations(numbers["size"], numbers["rank"], numbers["stripe_count"], names)


def _refuse_head(head: list[str], path: Path) -> None:
    known = ", ".join(_COLUMNS)
    unknown = [name for name in head if name not in _COLUMNS]
    if unknown or "size" not in head:
        what = f"column {unknown[0][:60]!r} is not known" if unknown else "has no column 'size'"
        raise InputError(what, where=path, todo=f"columns are {known}")
    if len(set(head)) < len(head):
        raise InputError("a column appears twice", where=path, todo="leave one out")


def _columns(rows: Iterator[list[str]], head: list[str], path: Path) -> dict[str, list[int | str]]:
    columns: dict[str, list[int | str]] = {name: [] for name in head}
    for number, row in enumerate(rows, 2):
        where = f"{path}: row {number}"
        if len(row) != len(head):
            raise InputError(
                f"{len(row)} cells where there are {len(head)} columns", where=where, todo="complete it"
            )
        if number > MOST + 1:
            raise InputError(f"has more than {MOST:,} files", where=path, todo="leave some out")
        for name, cell in zip(head, row, strict=True):
            columns[name].append(cell if name == "path" else _number(name, cell, where))
    return columns


def _number(name: str, cell: str, where: str) -> int:
    least, most = _LIMITS[name]
    text = cell.strip()
    if name != "size" and not text:
        return least
    try:
        value = int(text)
    except ValueError:
        value = most + 1
    if not least <= value <= most:
        raise InputError(f"{name} is {text[:40]!r}", where=where, todo=f"give {least:,} to {most:,}")
    return value
