"""Columns of numbers, and CSV files with the names of their columns in the first line."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.errors import InputError, one_line
from vani.schema.document import read_bytes, text_of
from vani.schema.settings import PathLike

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class CsvFile:
    """The columns of a file, and the cells and the line of each row."""

    path: PathLike
    head: list[str]
    rows: list[list[str]]
    lines: list[int]

    def place(self, row: int) -> str:
        """Where a row is, for errors."""
        return f"{self.path}:{self.lines[row]}"

    def column(self, name: str) -> list[str]:
        """The cells of a column, without spaces around them."""
        at = self.head.index(name)
        return [row[at].strip() for row in self.rows]


def read_csv_file(path: Path, todo: str, *, most: int, megabytes: int = 256) -> CsvFile:
    """Read a file of at most so many rows and megabytes; `todo` is the advice for one that cannot be read.

    Raises
    ------
    InputError
        The file is missing, too large or not text, or as in `parse_csv`.
    """
    return parse_csv(text_of(read_bytes(path, most=megabytes << 20, todo=todo), path), path, most=most)


def parse_csv(text: str, path: PathLike, *, most: int, named: Callable[[str], str] = str.strip) -> CsvFile:
    """Parse the text of a file. Lines that begin with # are comments, and an empty line is a row only of one column.

    Parameters
    ----------
    named
        Called with each name in the first line; returns the column that it means.

    Raises
    ------
    InputError
        A column appears twice, a row has other columns than the first one, or there are more than `most` rows.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        read = [(reader.line_num, row) for row in reader if not row or not row[0].startswith("#")]
    except csv.Error as error:
        todo = "correct the line"
        raise InputError(f"is not CSV ({error})", where=f"{path}:{reader.line_num}", todo=todo) from error
    head = list(map(named, read[0][1])) if read else []
    for name in head:
        if head.count(name) > 1:
            raise InputError(f"column {one_line(name)!r} appears twice", where=path, todo="leave one out")
    rows = [(line, row or [""]) for line, row in read[1:] if row or len(head) == 1]
    for line, row in rows:
        if len(row) != len(head):
            what = f"{len(row)} cells where there are {len(head)} columns"
            raise InputError(what, where=f"{path}:{line}", todo="complete it, and quote cells with commas")
    if len(rows) > most:
        raise InputError(f"has more than {most:,} rows", where=path, todo="leave some out")
    return CsvFile(path, head, [row for _, row in rows], [line for line, _ in rows])
