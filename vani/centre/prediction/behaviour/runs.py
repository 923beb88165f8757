"""Runs of many applications as columns, from a history or a CSV file, with the figures that distinguish behaviours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.history.runs import read
from vani.centre.prediction.behaviour.clustering import behaviour_ids
from vani.errors import InputError, one_line
from vani.units import counted

if TYPE_CHECKING:
    import pyarrow as pa
    import sqlalchemy as sa

TOTALS: Final = ("bytes_read", "bytes_written", "metadata")
"""Figures that distinguish behaviours."""



@dataclass(frozen=True)
class Runs:
    """Runs in order of submission.

    Attributes
    ----------
    names
        Application, user and number of processes of each category.
    category
        Index into `names` for each run, shape (runs,).
    submitted, ended
        Seconds since 1970, shape (runs,).
    figures
        Arrays by name, shape (runs,); NaN if unknown. The figures in `TOTALS` are always known.
    digests
        Digest of each run, if the runs are from a store.
    notes
        Notes on runs that were left out.
    """

    names: Sequence[tuple[str, str, int]]
    category: Ints
    submitted: Floats
    ended: Floats
    figures: Mapping[str, Floats]
    digests: Sequence[str] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.category)

    @cached_property
    def ids(self) -> Ints:
        """The behaviour of each run, numbered within its category, shape (runs,)."""
        return behaviour_ids(self.category, np.column_stack([self.figures[name] for name in TOTALS]))

    def only(self, chosen: Flags) -> Runs:
        """The runs selected by `chosen`, shape (runs,); categories keep their numbers."""
        columns = (self.category[chosen], self.submitted[chosen], self.ended[chosen])
        figures = {name: values[chosen] for name, values in self.figures.items()}
        digests = list(compress(self.digests, chosen.tolist()))
        return Runs(self.names, *columns, figures, digests, self.notes)


def categories_of(
    applications: Sequence[str], users: Sequence[str], processes: Sequence[int]
) -> tuple[list[tuple[str, str, int]], Ints]:
    """Categories in order of their first run, and the category of each run, shape (runs,)."""
    known: dict[tuple[str, str, int], int] = {}
    numbers = [known.setdefault(names, len(known)) for names in zip(applications, users, processes, strict=True)]
    return list(known), np.array(numbers, np.int64)


_NAMES: Final = ("application", "user", "processes")
_FIGURES: Final = (*TOTALS, "reads", "writes", "files", "runtime_s", "in_io_s")
_COLUMNS: Final = (*_NAMES, "submitted", "digest", *_FIGURES)


def kept_runs(connection: sa.Connection, application: str | None = None, user: str | None = None) -> Runs:
    """Read the runs of an application (None: of all), without those whose totals are unknown."""
    rows = read.figures_of(connection, _COLUMNS, application, user)
    columns = dict(zip(_COLUMNS, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_COLUMNS, ())
    figures = {name: np.array(columns[name], np.float64) for name in _FIGURES}
    known = np.ones(len(rows), np.bool_)
    for name in TOTALS:
        known &= figures[name] >= 0
    submitted = np.array(columns["submitted"], np.float64)
    # The run time may be unknown, but a run with a log has ended.
    ended = submitted + np.maximum(np.nan_to_num(figures["runtime_s"]), 0.0)
    names, category = categories_of(*(columns[name] for name in _NAMES))
    left = len(rows) - int(known.sum())
    notes = (f"{counted(left, 'run')} without the bytes moved were left out",) if left else ()
    runs = Runs(names, category, submitted, ended, figures, columns["digest"], notes)
    return runs.only(known) if left else runs


_CSV_NAMES: Final = {
    "application": ("application", "app"), "user": ("user",), "processes": ("processes",),
    "submitted": ("submitted", "start"), "ended": ("ended", "end"), "bytes_read": ("bytes_read",),
    "bytes_written": ("bytes_written",), "metadata": ("metadata", "metadata_ops"),
}
"""Required figures, each with the accepted names of its column."""
_WORDS: Final = ("application", "user")
_OTHERS: Final = ("reads", "writes", "files")
_MAX_FIGURE: Final = 1e30


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
    called = {ours: _called(table, theirs, path) for ours, theirs in _CSV_NAMES.items()}
    called |= {name: name for name in _OTHERS if name in table.column_names}
    words = {name: _words(table, called[name], path) for name in _WORDS}
    numbers = {ours: _numbers(table, theirs, path) for ours, theirs in called.items() if ours not in _WORDS}
    submitted, ended = numbers["submitted"], numbers["ended"]
    if (ended < submitted).any():
        row = int(np.argmax(ended < submitted))
        what = f"ends at {ended[row]:.17g}, before it starts at {submitted[row]:.17g}"
        raise InputError(what, where=f"{path}: row {row + 2}", todo="correct it or leave it out")
    order = np.argsort(submitted, kind="stable")
    late = int((np.diff(submitted) < 0).sum())
    applications, users = (np.array(words[name], object)[order].tolist() for name in _WORDS)
    names, category = categories_of(applications, users, numbers["processes"][order].astype(np.int64).tolist())
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
    sound = (numbers >= 0) & (numbers <= _MAX_FIGURE)
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
    what = f"{name} is {one_line(cell)[:40]!r}" if cell else f"no {name}"
    return InputError(what, where=f"{path}: row {row + 2}", todo="correct it or leave the row out")
