"""Traces that were converted to Parquet: by WisIO (dfanalyzer) or by Recorder's own recorder2parquet."""

from __future__ import annotations

from pathlib import Path

from vani.errors import UnknownFormatError
from vani.readers.parquet.parts import column_names, find_parts
from vani.readers.parquet.recorder2parquet import Recorder2ParquetReader
from vani.readers.parquet.wisio import WisIOReader

__all__ = ["Recorder2ParquetReader", "WisIOReader", "is_parquet", "open_parquet"]

_OF_RECORDER = {"arg_count", "args_1", "args_2"}
_OF_WISIO = {"tmid", "file_name", "io_cat", "acc_pat", "proc_name"}


def is_parquet(path: Path) -> bool:
    """Tell whether a directory, or `_parquet` in it, holds Parquet files, of whatever kind."""
    return bool(find_parts(path))


def open_parquet(path: Path) -> WisIOReader | Recorder2ParquetReader:
    """Recognise the converter by the columns and open its files; reads no rows yet.

    Raises
    ------
    UnknownFormatError
        Parquet files of something else, or without a column that is needed.
    TraceError
        Damaged files.
    """
    names = set(column_names(find_parts(path)))
    if "func_id" in names or "rank" in names:
        # The one with more of its own columns: one that is missing is then named.
        if len(names & _OF_RECORDER) > len(names & _OF_WISIO):
            return Recorder2ParquetReader(path)
        if names & _OF_WISIO:
            return WisIOReader(path)
    shown = ", ".join(sorted(names)[:5])
    raise UnknownFormatError(
        f"Parquet files with columns {shown}: neither WisIO nor recorder2parquet wrote them",
        where=path,
        todo="name a Recorder trace, or Parquet files of one of the two converters",
    )
