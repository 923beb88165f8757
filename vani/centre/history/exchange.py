"""A whole history as one file of compressed JSON lines, or its runs as a Parquet file for other programs."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from vani.atomic import destination, refuse_read_only, write_bytes
from vani.centre.history import rows
from vani.centre.history.measured import check_measurement
from vani.centre.history.runs import read, tables, write
from vani.centre.history.runs.store import Store
from vani.centre.history.targets import check_target_times
from vani.centre.prediction.creations.series import unpack_creations
from vani.errors import DocumentError, InputError, StoreError
from vani.schema.settings import PathLike

_SCHEMA: Final = "vani.history-export/1"
_KINDS: Final[Mapping[str, type[rows.AnyRow]]] = {
    "run": rows.StoredRun,
    "source": rows.Source,
    "judged": rows.Verdict,
    "job": rows.AccountedJob,
    "measured": rows.Measurement,
    "letter": rows.Letter,
}
"""The rows by the key of their lines."""
_AT_ONCE: Final = 2000
_MAX_LINE: Final = 16 << 20
"""Maximum length of a line in bytes: a run with a profile of many files takes a tenth."""
_MAX_INFLATED: Final = 1 << 28


def history_export(path: PathLike, *, db: PathLike | None = None) -> int:
    """Write all runs to a file, completely or not at all; return the number of runs."""
    packed = io.BytesIO()
    with Store(db).reading() as connection, gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as file:

        def line(tree: dict[str, Any]) -> None:
            file.write(json.dumps(tree, separators=(",", ":")).encode() + b"\n")

        line({"schema": _SCHEMA, "layout": tables.LAYOUT, "names": read.fact(connection, "names")})
        for name, kind in _KINDS.items():
            for row in read.rows(connection, kind):
                line({name: row.values()})
        for name, contents in (("profile", read.all_profiles), ("creations", read.all_creations)):
            for digest, content in contents(connection):
                line({name: [digest, base64.b64encode(content).decode()]})
        number = read.number_of(connection, tables.runs)
        line({"end": number})
    write_bytes(Path(path), packed.getvalue())
    return number


def history_import(path: PathLike, *, db: PathLike | None = None) -> tuple[int, int]:
    """Add the runs of an exported file, all or none; return the number of new runs, and of all runs in the file.

    Raises
    ------
    DocumentError
        The file is not an export, or is incomplete.
    StoreError
        Names are plain in one of store and file and hashed in the other, or hashed with different keys.
    """
    store, path, new, number = Store(db), Path(path), 0, 0
    ended = False
    lines = _lines(path)
    first, _ = next(lines, ({}, 0))
    if first.get("schema") != _SCHEMA:
        raise DocumentError(
            "is not an exported history", where=path, todo="name what `vani history export` wrote"
        )
    if first.get("layout") != tables.LAYOUT:
        raise DocumentError(
            "was exported by another version of Vani", where=path, todo="add its logs again: `vani history add LOGS`"
        )
    with store.writing(make=True) as connection:
        names, there = first.get("names"), read.fact(connection, "names")
        empty = not read.whole(connection, read.Period()).runs and not read.number_of(connection, tables.measured)
        if empty and names is not None:
            write.set_fact(connection, "names", names)
        elif names != there:
            raise StoreError(
                "has other names than the file: one of them is anonymised, or uses another key",
                where=store.name,
                todo="import it into a new history",
            )
        waiting: dict[str, list[Any]] = {name: [] for name in (*_KINDS, "profile", "creations")}

        def put() -> int:
            added = write.add_runs(connection, waiting.pop("run"))
            write.put_profiles(connection, dict(waiting.pop("profile")))
            write.put_creations(connection, dict(waiting.pop("creations")))
            write.add_measurements(connection, waiting.pop("measured"))
            for some in waiting.values():
                write.put(connection, some)
            waiting.update({name: [] for name in (*_KINDS, "profile", "creations")})
            return len(added)

        bytes_waiting = 0
        for tree, length in lines:
            kind, value = _row(path, tree)
            ended = kind == "end"
            if not ended:
                waiting[kind].append(value)
                number += kind == "run"
                bytes_waiting += length
                if sum(map(len, waiting.values())) >= _AT_ONCE or bytes_waiting >= _MAX_LINE:
                    new += put()
                    bytes_waiting = 0
        if not ended:
            raise DocumentError("was cut off", where=path, todo="copy it again, or export again")
        new += put()
    return new, number


def _lines(path: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Each line as a mapping, with its length in bytes."""
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(_MAX_LINE + 1):
                if len(line) > _MAX_LINE:
                    raise DocumentError(
                        f"has a line longer than {_MAX_LINE >> 20} MiB",
                        where=path,
                        todo="name what `vani history export` wrote",
                    )
                tree = json.loads(line)
                if not isinstance(tree, dict):
                    raise ValueError("no mapping")
                yield tree, len(line)
    except gzip.BadGzipFile as error:
        raise DocumentError(
            "is not an exported history", where=path, todo="name what `vani history export` wrote"
        ) from error
    except OSError as error:
        raise DocumentError(f"cannot be read ({error.strerror or error})", where=path) from error
    except (EOFError, zlib.error, ValueError, RecursionError) as error:
        raise DocumentError(
            "is a damaged export", where=path, todo="copy it again, or export again"
        ) from error


def _row(path: Path, tree: dict[str, Any]) -> tuple[str, Any]:
    (kind, value), *rest = tree.items()
    try:
        if rest:
            raise ValueError("more than one row")
        if kind == "end":
            return kind, value
        if kind == "profile":
            digest, content = value
            return kind, (_digest(digest), _packed(base64.b64decode(content, validate=True)))
        if kind == "creations":
            digest, content = value
            packed = base64.b64decode(content, validate=True)
            return kind, (_digest(digest), (len(unpack_creations(packed)), packed))
        model: Any = _KINDS[kind]
        if set(value) != {field.name for field in fields(model)}:
            raise ValueError("other columns")
        value = {name: tuple(part) if isinstance(part, list) else part for name, part in value.items()}
        if value.get("digest") is not None:
            _digest(value["digest"])
        row = model(**value)
        if isinstance(row, rows.StoredRun):
            check_target_times(row.target_times)
        if isinstance(row, rows.Measurement):
            check_measurement(row)
        refuse_impossible_values(row)
        return kind, row
    except (KeyError, TypeError, ValueError, RecursionError, zlib.error) as error:
        raise DocumentError(
            f"has a row that is not a {kind}", where=path, todo="export again with this version of Vani"
        ) from error


def _packed(content: bytes) -> bytes:
    """A profile in stored form, if the content is one."""
    stream = zlib.decompressobj()
    text = stream.decompress(content, _MAX_INFLATED)
    if not stream.eof or not str(json.loads(text)["schema"]).startswith("vani.profile/"):
        raise ValueError("no packed profile")
    return content


def _digest(text: object) -> str:
    if not isinstance(text, str) or len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError("no digest")
    return text


_MAX_INTEGER: Final = 1 << 63
"""Databases store integers below this limit."""
_LATEST: Final = 1 << 33
"""Latest time in seconds since 1970: the year 2242."""
_SIGNED: Final = ("uid", "changed_ns", "saved_low_s", "saved_s", "saved_high_s")
_KINDS_OF_RUNS: Final = ("darshan", "profile", "trace")


def refuse_impossible_values(row: Any) -> None:
    """Raise ValueError, naming the column, if a value has the wrong type, is not finite or is out of range."""
    for field in fields(row):
        value = getattr(row, field.name)
        # Annotations of that module are strings.
        kinds = str(field.type).split(" | ")
        if not _is_one_of(value, kinds):
            raise ValueError(f"{field.name} is not a {kinds[0]}")
        if isinstance(value, str):
            # Databases cannot store lone surrogates.
            value.encode()
        if isinstance(value, int | float) and not -_MAX_INTEGER < value < _MAX_INTEGER:
            raise ValueError(f"{field.name} is out of range")
        if isinstance(value, int | float) and value < 0 and field.name not in _SIGNED:
            raise ValueError(f"{field.name} is negative")
    if isinstance(row, rows.StoredRun) and (
        row.kind not in _KINDS_OF_RUNS or row.processes < 1 or (row.submitted or 0) >= _LATEST
    ):
        raise ValueError("no such run is possible")


def _is_one_of(value: object, kinds: list[str]) -> bool:
    if value is None:
        return "None" in kinds
    if isinstance(value, bool):
        return "bool" in kinds
    if isinstance(value, tuple):
        return "tuple[str, ...]" in kinds and all(isinstance(item, str) for item in value)
    if isinstance(value, float):
        return "float" in kinds and math.isfinite(value)
    return (isinstance(value, int) and bool({"int", "float"} & set(kinds))) or (
        isinstance(value, str) and "str" in kinds
    )


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
    path = Path(path)
    place = destination(path)
    refuse_read_only(path)
    partial = place.with_name(f".{place.name}.{os.urandom(8).hex()}.partial")
    number = 0
    try:
        with Store(db).reading() as connection, pq.ParquetWriter(partial, schema) as file:
            for page in read.pages(connection, tables.runs, "id", _PAGE):
                judged = read.verdicts_of(connection, [row["digest"] for row in page])
                file.write_table(_arrow_table(pa, page, judged, schema))
                number += len(page)
        partial.replace(place)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror})", where=path, todo="name another file") from error
    finally:
        partial.unlink(missing_ok=True)
    return number


def _arrow_table(pa: Any, page: list[dict[str, Any]], judged: dict[str, Any], schema: Any) -> Any:
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
