"""Measured writes from a CSV file with a header."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from vani.centre.write_time.samples import MOST_WRITES, Floats, Writes
from vani.errors import InputError, one_line

_MOST_COLUMNS: Final = 100
_MOST_WORDS: Final = 20
"""Number of distinct words in a column above which they are names, not settings."""

_SECONDS: Final = (1e-9, 1e9)
"""Limits of a write time."""
_TIMES: Final = ("seconds", "time_s", "total_s")


def read_csv(text: str, path: Path) -> Writes:
    """Read a row per write, or per repetition.

    The time is in `seconds` (or `time_s`, `total_s`), or follows from `bandwidth` (bytes per second) and `bytes`.

    Raises
    ------
    InputError
        There are no writes, a name occurs twice, or a cell is empty or not a number. The error names the line.
    """
    try:
        rows = csv.reader(line for line in io.StringIO(text, newline="") if not line.startswith("#"))
        head = [name.strip() for name in next(rows, [])]
        _refuse_head(head, path)
        columns = _columns(rows, head, path)
    except csv.Error as error:
        raise InputError(f"cannot be read as CSV ({error})", where=path) from error
    return _of_columns(columns, path)


def _refuse_head(head: Sequence[str], path: Path) -> None:
    if not any(head):
        raise InputError("is empty", where=path, todo="start it with the names of the columns")
    if not all(head):
        raise InputError("has a column without a name", where=path, todo="name it or leave it out")
    for name in head:
        if head.count(name) > 1:
            raise InputError(f"column {name!r} appears twice", where=path, todo="leave one out")
    if len(head) > _MOST_COLUMNS:
        raise InputError(f"has {len(head):,} columns", where=path, todo=f"keep at most {_MOST_COLUMNS}")
    if not set(_TIMES) & set(head) and not {"bandwidth", "bytes"} <= set(head):
        raise InputError(
            "has neither a column `seconds` nor `bandwidth` and `bytes`",
            where=path,
            todo="add the time of each write",
        )
    times = [name for name in (*_TIMES, "bandwidth") if name in head]
    if len(times) > 1:
        raise InputError(
            f"has two times of writes, {times[0]!r} and as {times[1]!r}", where=path, todo="leave one out"
        )


def _columns(rows: Iterator[list[str]], head: Sequence[str], path: Path) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {name: [] for name in head}
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise InputError(
                f"{len(row)} cells where there are {len(head)} columns",
                where=f"{path}: row {number}",
                todo="complete it",
            )
        if number > MOST_WRITES:
            raise InputError(f"has more than {MOST_WRITES:,} samples", where=path, todo="leave some out")
        for name, cell in zip(head, row, strict=True):
            if not cell.strip():
                raise InputError(
                    f"no {one_line(name)}",
                    where=f"{path}: row {number}",
                    todo="fill it in or leave the row out",
                )
            columns[name].append(cell.strip())
    if not columns[head[0]]:
        raise InputError("has no samples", where=path, todo="add a row per write")
    return columns


def _of_columns(columns: Mapping[str, list[str]], path: Path) -> Writes:
    numbers: dict[str, Floats] = {}
    words: dict[str, npt.NDArray[np.str_]] = {}
    for name, cells in columns.items():
        try:
            numbers[name] = np.array([float(cell) for cell in cells])
        except ValueError:
            kinds = set(cells)
            if len(kinds) > _MOST_WORDS or name in (*_TIMES, "bytes", "nodes", "processes"):
                odd = next(cell for cell in cells if not _is_number(cell))
                raise InputError(
                    f"{name} is {odd[:40]!r}",
                    where=path,
                    todo=f"give a number (a column of words has at most {_MOST_WORDS} of them)",
                ) from None
            words[name] = np.array(cells)
            continue
        wrong = ~np.isfinite(numbers[name]) | (numbers[name] < 0) | (numbers[name] > 1e30)
        if wrong.any():
            row = int(np.argmax(wrong)) + 2
            raise InputError(f"{name} is {cells[row - 2]}", where=f"{path}: row {row}", todo="give 0 or more")
    return Writes(numbers, words, _times(numbers, path))


def _times(numbers: dict[str, Floats], path: Path) -> Floats:
    name: str = next((name for name in _TIMES if name in numbers), "bandwidth")
    if name == "bandwidth":
        times = np.divide(
            numbers["bytes"], numbers[name], out=np.zeros(len(numbers[name])), where=numbers[name] > 0
        )
    else:
        times = numbers[name]
    if not (times > 0).all():
        row = int(np.argmax(~(times > 0))) + 2
        raise InputError(f"a {name} of 0", where=f"{path}: row {row}", todo="leave the row out")
    if not ((times >= _SECONDS[0]) & (times <= _SECONDS[1])).all():
        row = int(np.argmax((times < _SECONDS[0]) | (times > _SECONDS[1]))) + 2
        raise InputError(
            f"a write of {times[row - 2]:g} s", where=f"{path}: row {row}", todo="give seconds, or leave the row out"
        )
    del numbers[name]
    return times


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
