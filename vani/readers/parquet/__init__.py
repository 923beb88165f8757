"""Traces converted to Parquet by WisIO (dfanalyzer) or by Recorder's own recorder2parquet."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Literal

from vani.errors import TraceError, UnknownFormatError
from vani.readers.trace_reader import TraceReader

_OF_RECORDER = {"arg_count", "args_1", "args_2"}
_OF_WISIO = {"tmid", "file_name", "io_cat", "acc_pat", "proc_name"}


def is_parquet(path: Path) -> bool:
    """Return whether a directory, or `_parquet` in it, contains Parquet files other than a Vani store."""
    return path.is_dir() and not is_store(path) and bool(_parts().find_parts(path))


def is_parquet_part(name: str) -> bool:
    """Return whether a file with this name in a trace belongs to it."""
    return name.endswith(".parquet")


def is_store(path: Path) -> bool:
    """Return whether `vani convert` wrote a directory."""
    return (path / "manifest.json").is_file() and (path / "calls").is_dir()


def is_converted(path: Path) -> bool:
    """Return whether those files are a converted trace, complete or not; False if no file is readable."""
    if not path.is_dir():
        return False
    try:
        return _kind(_columns_at(path)) is not None
    except TraceError:
        return False


def _parts() -> ModuleType:
    from vani.readers.parquet import parts  # noqa: PLC0415 - loads libraries that few traces need

    return parts


def _columns_at(path: Path) -> tuple[str, ...]:
    names: tuple[str, ...] = _parts().column_names(_parts().find_parts(path))
    return names


def _kind(names: Sequence[str]) -> Literal["recorder2parquet", "wisio"] | None:
    """The converter with the most matching columns; its reader reports missing ones."""
    if "func_id" not in names and "rank" not in names:
        return None
    of_recorder, of_wisio = len(_OF_RECORDER.intersection(names)), len(_OF_WISIO.intersection(names))
    if of_recorder > of_wisio:
        return "recorder2parquet"
    return "wisio" if of_wisio else None


def open_parquet(path: Path) -> TraceReader:
    """Recognise the converter by the columns and open its files, without reading rows.

    Raises
    ------
    UnknownFormatError
        The Parquet files contain something else, or lack a required column.
    TraceError
        The files are damaged.
    """
    names = _columns_at(path)
    kind = _kind(names)
    # Most traces are not in Parquet, so the readers are imported only here.
    if kind == "recorder2parquet":
        from vani.readers.parquet.recorder2parquet import Recorder2ParquetReader  # noqa: PLC0415

        return Recorder2ParquetReader(path)
    if kind == "wisio":
        from vani.readers.parquet.wisio import WisIOReader  # noqa: PLC0415

        return WisIOReader(path)
    shown = ", ".join(names[:5])
    raise UnknownFormatError(
        f"Parquet files with columns {shown}: neither WisIO nor recorder2parquet wrote them",
        where=path,
        todo="name a Recorder trace, or Parquet files of one of the two converters",
    )
