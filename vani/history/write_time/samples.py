"""Samples of writes: what was written how, and how long it took. Columns as arrays, one row per sample."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from vani.errors import InputError, one_line

__all__ = ["MOST_SAMPLES", "Samples", "read_samples"]

Floats = npt.NDArray[np.float64]

MOST_SAMPLES: Final = 200_000
_MOST_COLUMNS: Final = 100
_MOST_WORDS: Final = 20
"""Distinct words of a column beyond which they are names, not a setting."""

_TIMES: Final = ("seconds", "time_s", "total_s")


@dataclass(frozen=True)
class Samples:
    """Writes and their times.

    Parameters
    ----------
    numbers
        By column, shape (samples,): `nodes`, `processes`, `bytes`, `stripe_count`, `io_nodes`, `request` are known;
        others are taken as they are.
    words
        By column, the setting of each sample, shape (samples,).
    seconds
        Mean time of each, shape (samples,).
    """

    numbers: Mapping[str, Floats]
    words: Mapping[str, npt.NDArray[np.str_]]
    seconds: Floats

    def __len__(self) -> int:
        return len(self.seconds)

    def only(self, chosen: npt.NDArray[np.bool_]) -> Samples:
        """The samples where `chosen`, shape (samples,), is true."""
        return Samples(
            {name: column[chosen] for name, column in self.numbers.items()},
            {name: column[chosen] for name, column in self.words.items()},
            self.seconds[chosen],
        )

    def of_scale(self, name: str) -> Floats:
        """The column that tells the scale.

        Raises
        ------
        InputError
            There is no such column.
        """
        if name not in self.numbers:
            known = ", ".join(self.numbers)
            raise InputError(f"no column {name!r}", where="--scale", todo=f"columns of numbers are {known}")
        return self.numbers[name]


def read_samples(path: Path) -> Samples:
    """Read samples from CSV with a line of names.

    `seconds` (or `time_s`, `total_s`) is the time; `bandwidth` (bytes per second) with `bytes` does as well. Samples
    that agree in everything else are repetitions: their mean time is one sample, as Xie et al. define it.

    Raises
    ------
    InputError
        No such file, no samples, a name twice, an empty cell, or a number that is none; names the line.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(line for line in file if not line.startswith("#"))
            head = [name.strip() for name in next(rows, [])]
            _refuse_head(head, path)
            columns = _columns(rows, head, path)
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except IsADirectoryError:
        raise InputError("is a directory", where=path, todo="name a CSV file") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read as CSV ({why})", where=path) from error
    return _grouped(columns, path)


def _refuse_head(head: Sequence[str], path: Path) -> None:
    if not any(head):
        raise InputError("is empty", where=path, todo="begin it with the names of the columns")
    for name in head:
        if head.count(name) > 1:
            raise InputError(f"column {name!r} is there twice", where=path, todo="leave one out")
    if len(head) > _MOST_COLUMNS:
        raise InputError(f"has {len(head):,} columns", where=path, todo=f"keep at most {_MOST_COLUMNS}")
    if not set(_TIMES) & set(head) and not {"bandwidth", "bytes"} <= set(head):
        raise InputError(
            "has neither a column `seconds` nor `bandwidth` and `bytes`",
            where=path,
            todo="add the time of each write",
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
        if number > MOST_SAMPLES:
            raise InputError(f"has more than {MOST_SAMPLES:,} samples", where=path, todo="leave some out")
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


def _grouped(columns: Mapping[str, list[str]], path: Path) -> Samples:
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
    return _means(numbers, words, _times(numbers, path))


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
    del numbers[name]
    return times


def _means(numbers: dict[str, Floats], words: dict[str, npt.NDArray[np.str_]], times: Floats) -> Samples:
    keys = [
        *numbers.values(),
        *(np.unique(column, return_inverse=True)[1].astype(float) for column in words.values()),
    ]
    table = np.stack(keys, axis=1) if keys else np.zeros((len(times), 1))
    _, first, group = np.unique(table, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()  # numpy 2.0 gives it two dimensions
    counts = np.bincount(group)
    order = np.argsort(first)
    means = (np.bincount(group, weights=times) / counts)[order]
    chosen = first[order]
    return Samples(
        {name: column[chosen] for name, column in numbers.items()},
        {name: column[chosen] for name, column in words.items()},
        means,
    )


def _is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False
