"""A whole history copied to another one, or its runs as a Parquet file for other programs."""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from pydantic import TypeAdapter

from vani.atomic import destination, refuse_read_only
from vani.centre.history import rows
from vani.centre.history.measured import check_measurement
from vani.centre.history.reading import LATEST, MAX_INTEGER
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.history.targets import check_target_times
from vani.centre.prediction.creations.series import inflated, unpack_creations
from vani.errors import DocumentError, InputError, StoreError, os_errors_as
from vani.schema.settings import PathLike

_AT_ONCE: Final = 2000
_FEW: Final = 50
"""The same for profiles and creations, which are larger."""
_SIGNED: Final = ("uid", "changed_ns", "saved_low_s", "saved_s", "saved_high_s")
_KINDS_OF_RUNS: Final = ("darshan", "profile", "trace")
_TYPES: Final[Mapping[type[rows.AnyRow], TypeAdapter[Any]]] = {kind: TypeAdapter(kind) for kind in tables.OF_ROWS}


def history_export(path: PathLike, *, db: PathLike | None = None) -> int:
    """Write a whole history to a file, completely or not at all; return the number of runs.

    The file is an SQLite history itself, wherever the original is.

    Raises
    ------
    InputError
        There is no history, or the file cannot be written.
    """
    with Store(db).reading() as source, _partial(Path(path)) as partial, Store(partial).writing(make=True) as target:
        names = read.fact(source, "names")
        if names is not None:
            write.set_fact(target, "names", names)
        return _copy(source, target, Path(path))[1]


def history_import(path: PathLike, *, db: PathLike | None = None) -> tuple[int, int]:
    """Add the runs of an exported file, all or none; return the number of new runs, and of all runs in the file.

    Raises
    ------
    DocumentError
        A row of the file is not possible.
    StoreError
        The file is not a history, is damaged, or has names where the store has hashes, or hashes of another key.
    """
    store = Store(db)
    with Store(path).reading() as source, store.writing(make=True) as target:
        names, there = read.fact(source, "names"), read.fact(target, "names")
        empty = not read.whole(target, read.ALWAYS).runs and not read.number_of(target, tables.measured)
        if empty and names is not None:
            write.set_fact(target, "names", names)
        elif names != there:
            what = "has other names than the file: one of them is anonymised, or uses another key"
            raise StoreError(what, where=store.name, todo="import it into a new history")
        return _copy(source, target, Path(path))


@contextmanager
def _partial(path: Path) -> Iterator[Path]:
    """A new file next to `path`, which it replaces when the block ends without an error."""
    refuse_read_only(path)
    place = destination(path)
    partial = place.with_name(f".{place.name}.{os.urandom(8).hex()}.partial")
    try:
        with os_errors_as(InputError, "cannot be written", where=path, todo="name another file"):
            yield partial
            partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


def _copy(source: sa.Connection, target: sa.Connection, path: Path) -> tuple[int, int]:
    """Copy all rows; return the number of new runs, and of all."""
    new = 0
    try:
        for kind in tables.OF_ROWS:
            every: Iterator[Any] = read.rows(source, kind)
            for some in read.pieces(every, _AT_ONCE):
                for row in some:
                    refuse_impossible_values(row)
                new += _put(target, kind, some)
        for contents in read.pieces(read.contents(source, tables.profiles), _FEW):
            if not all(str(inflated(content)["schema"]).startswith("vani.profile/") for _, content in contents):
                raise ValueError("no packed profile")
            write.put_profiles(target, dict(contents))
        for contents in read.pieces(read.contents(source, tables.creations), _FEW):
            counted = {digest: (len(unpack_creations(content)), content) for digest, content in contents}
            write.put_creations(target, counted)
    except (KeyError, TypeError, ValueError, RecursionError, zlib.error) as error:
        todo = "export again with this version of Vani"
        raise DocumentError("has a row that is not possible", where=path, todo=todo) from error
    return new, read.number_of(source, tables.runs)


def _put(target: sa.Connection, kind: type[rows.AnyRow], some: Any) -> int:
    """Store rows; return the number of new runs."""
    if kind is rows.StoredRun:
        return len(write.add_runs(target, some))
    (write.add_measurements if kind is rows.Measurement else write.put)(target, some)
    return 0


def refuse_impossible_values(row: Any) -> None:
    """Raise ValueError if a value has the wrong type, is not finite or is out of range."""
    _TYPES[type(row)].validate_python(row)
    for name, value in row.values().items():
        if isinstance(value, str):
            # Databases cannot store lone surrogates.
            value.encode()
        if isinstance(value, int | float) and not -MAX_INTEGER < value < MAX_INTEGER:
            raise ValueError(f"{name} is out of range")
        if isinstance(value, int | float) and value < 0 and name not in _SIGNED:
            raise ValueError(f"{name} is negative")
        if name == "digest" and value is not None and (len(value) != 64 or not set(value) <= set("0123456789abcdef")):
            raise ValueError("no digest")
    if isinstance(row, rows.Measurement):
        check_measurement(row)
    if isinstance(row, rows.StoredRun):
        check_target_times(row.target_times)
        if row.kind not in _KINDS_OF_RUNS or row.processes < 1 or (row.submitted or 0) >= LATEST:
            raise ValueError("no such run is possible")


_PAGE: Final = 50_000
_ADVICE: Final = ("system", "saved_low_s", "saved_s", "saved_high_s", "rule", "setting", "why")


def history_export_runs(path: PathLike, *, db: PathLike | None = None) -> int:
    """Write all runs, with the advice on judged ones; return their number.

    The file is written completely or not at all.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    import pyarrow as pa  # noqa: PLC0415 - heavy, and other commands need none of it
    import pyarrow.parquet as pq  # noqa: PLC0415

    kinds = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
    columns = {column.name: column for column in tables.runs.columns if column.name != "id"}
    columns |= {f"advice_{name}": tables.judged.c[name] for name in _ADVICE}
    fields = [pa.field(name, kinds[column.type.python_type]) for name, column in columns.items()]
    schema = pa.schema([*fields, pa.field("submitted_at", pa.timestamp("us", tz="UTC"))])
    number = 0
    with (
        Store(db).reading() as connection,
        _partial(Path(path)) as partial,
        pq.ParquetWriter(partial, schema) as file,
    ):
        for page in read.pages(connection, tables.runs, "id", _PAGE):
            judged = read.verdicts_of(connection, [row["digest"] for row in page])
            for row in page:
                advice, seconds = judged.get(row["digest"]), row["submitted"]
                row |= {f"advice_{name}": getattr(advice, name, None) for name in _ADVICE}
                row["submitted_at"] = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
            file.write_table(pa.Table.from_pylist(page, schema=schema))
            number += len(page)
    return number
