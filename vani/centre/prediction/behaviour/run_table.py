"""Runs from a CSV file: their start and end, user, application and amounts of data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vani.centre.prediction.behaviour.runs import TOTALS, Floats, Runs, categories_of
from vani.errors import InputError, one_line
from vani.units import counted

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES: Final = {
    "application": ("application", "app"),
    "user": ("user",),
    "processes": ("processes",),
    "submitted": ("submitted", "start"),
    "ended": ("ended", "end"),
    "bytes_read": ("bytes_read",),
    "bytes_written": ("bytes_written",),
    "metadata": ("metadata", "metadata_ops"),
}
"""Required figures, each with the accepted names of its column."""
_WORDS: Final = ("application", "user")
_OTHERS: Final = ("reads", "writes", "files")
_MOST: Final = 1e30


def read_table(path: Path) -> Runs:
    """Read runs, in any order.

    Raises
    ------
    InputError
        The file or a column is missing, a column occurs twice, a cell is empty or not a number, or a run ends
        before it begins. The error names the row.
    """
    table = _table(path)
    if not table.num_rows:
        raise InputError("has no runs", where=path, todo="add a row per run")
    called = {ours: _called(table, theirs, path) for ours, theirs in _NAMES.items()}
    called |= {name: name for name in _OTHERS if name in table.column_names}
    words = {name: _words(table, called[name], path) for name in _WORDS}
    numbers = {ours: _numbers(table, theirs, path) for ours, theirs in called.items() if ours not in _WORDS}
    submitted, ended = numbers["submitted"], numbers["ended"]
    if (ended < submitted).any():
        row = int(np.argmax(ended < submitted))
        raise InputError(
            f"ends at {ended[row]:.17g}, before it starts at {submitted[row]:.17g}",
            where=f"{path}: row {row + 2}",
            todo="correct it or leave it out",
        )
    order = np.argsort(submitted, kind="stable")
    late = int((np.diff(submitted) < 0).sum())
    names, category = categories_of(
        np.array(words["application"], object)[order].tolist(),
        np.array(words["user"], object)[order].tolist(),
        numbers["processes"][order].astype(np.int64).tolist(),
    )
    unknown = np.full(len(order), np.nan)
    figures = {name: numbers[name][order] if name in numbers else unknown for name in (*TOTALS, *_OTHERS)}
    figures |= {"runtime_s": (ended - submitted)[order], "in_io_s": unknown}
    notes = (f"{counted(late, 'run')} of the table started before the run above",) if late else ()
    return Runs(names, category, submitted[order], ended[order], figures, (), notes)


def _table(path: Path) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - only tables need Arrow
    import pyarrow.csv as pa_csv  # noqa: PLC0415

    try:
        with pa.input_stream(str(path)) as stream:
            head = stream.read(1 << 16).split(b"\n", 1)[0]
        names = [name.strip().strip('"') for name in head.decode("utf-8-sig").split(",")]
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(column_names=names, skip_rows=1),
            convert_options=pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
    except FileNotFoundError:
        raise InputError("no such file", where=path) from None
    except (OSError, ValueError) as error:  # Arrow's own errors are subclasses of ValueError
        if path.is_dir():
            raise InputError("is a directory", where=path, todo="name a CSV file") from None
        if "Empty CSV" in str(error):
            raise InputError("has no runs", where=path, todo="add a row per run") from None
        raise InputError(f"cannot be read as CSV ({one_line(str(error))[:150]})", where=path) from error
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"column {one_line(name)!r} appears twice", where=path, todo="leave one out")
    return table


def _called(table: pa.Table, names: tuple[str, ...], path: Path) -> str:
    present = [name for name in names if name in table.column_names]
    if len(present) == 1:
        return present[0]
    if present:
        raise InputError(f"columns {' and '.join(present)} are the same", where=path, todo="leave one out")
    raise InputError(f"no column {' or '.join(names)}", where=path, todo="add it: one row is one run")


def _words(table: pa.Table, name: str, path: Path) -> list[str]:
    cells: list[str] = [cell.strip() for cell in table[name].to_pylist()]
    if not all(cells):
        raise _wrong(name, "", cells.index(""), path)
    return cells


def _numbers(table: pa.Table, name: str, path: Path) -> Floats:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    cells: Any = pc.utf8_trim_whitespace(table[name])
    try:
        numbers: Floats = pc.cast(cells, pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        texts = cells.to_pylist()
        row = next(row for row, cell in enumerate(texts) if not _is_number(cell))
        raise _wrong(name, texts[row], row, path) from None
    sound = (numbers >= 0) & (numbers <= _MOST)
    if name == "processes":
        sound &= (numbers >= 1) & (numbers < 2**53) & (numbers == np.floor(numbers))
    if not sound.all():
        row = int(np.argmin(sound))
        raise _wrong(name, cells[row].as_py(), row, path)
    return numbers


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _wrong(name: str, cell: str, row: int, path: Path) -> InputError:
    return InputError(
        f"{name} is {one_line(cell)[:40]!r}" if cell else f"no {name}",
        where=f"{path}: row {row + 2}",
        todo="correct it or leave the row out",
    )
