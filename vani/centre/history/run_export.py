"""Exports runs to a Parquet file with a row per run, for pandas, DuckDB and others."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from vani.atomic import destination, refuse_read_only
from vani.centre.history.runs import read, tables
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.history.runs.store import Store

_AT_ONCE: Final = 50_000
_ADVICE: Final = ("system", "saved_low_s", "saved_s", "saved_high_s", "rule", "setting", "why")


def export_runs(store: Store, path: Path) -> int:
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
    place = destination(path)
    refuse_read_only(path)
    partial = place.with_name(f".{place.name}.{os.urandom(8).hex()}.partial")
    number = 0
    try:
        with store.reading() as connection, pq.ParquetWriter(partial, schema) as file:
            for page in read.pages(connection, tables.runs, "id", _AT_ONCE):
                judged = read.verdicts_of(connection, [row["digest"] for row in page])
                file.write_table(_table(pa, page, judged, schema))
                number += len(page)
        partial.replace(place)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", where=path, todo="name another file") from error
    finally:
        partial.unlink(missing_ok=True)
    return number


def _table(pa: Any, page: list[dict[str, Any]], judged: dict[str, Any], schema: Any) -> Any:
    values = {}
    for field in schema:
        if field.name == "submitted_at":
            seconds = [None if row["submitted"] is None else round(row["submitted"] * 1e6) for row in page]
            values[field.name] = pa.array(seconds, field.type)
        elif field.name.startswith("advice_"):
            name = field.name.removeprefix("advice_")
            values[field.name] = pa.array(
                [getattr(judged.get(row["digest"]), name, None) for row in page], field.type
            )
        else:
            values[field.name] = pa.array([row[field.name] for row in page], field.type)
    return pa.table(values, schema=schema)
