"""Creating a store: tasks that each decode some ranks into one Parquet file, and the manifest at the end.

A store in memory is created in the same way, without files. In a folder, the files `calls/part-*.parquet` form one
data set; names with a leading underscore are small tables, which ordinary readers of a data set ignore.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from vani.atomic import new_directory
from vani.calls import CALL_SITE, CALL_SITES, CALLS, MAX_SUM, RENAMES
from vani.columns import small_table
from vani.engine.executor import Executor
from vani.errors import InputError, TraceError
from vani.readers.files import changed_error, explained, unchanged
from vani.readers.trace_reader import DecodesAgain, Piece, TellsCallSites, TraceReader
from vani.store import read
from vani.store.cache import being_written
from vani.units import format_number

_DICTIONARY = ["file", "bytes", "duration_ns"]
# The other columns have few distinct values: plain, they compress nearly as well and are written twice as fast.
_ENCODING = {"start_ns": "DELTA_BINARY_PACKED", "offset": "DELTA_BINARY_PACKED"}
_SMALL: Mapping[str, object] = {"compression": "zstd", "compression_level": 1}
_FAST: Mapping[str, object] = {"compression": "lz4"}
_STATISTICS = ["rank", "start_ns", "duration_ns"]
# Readers skip row groups by rank and time; statistics of the other columns would take a tenth of the writing time.


@dataclass(frozen=True, eq=False)
class PartTask:
    """Decode some ranks of a trace."""

    ranks: range
    file: Path | None
    """File for their calls; None keeps them in memory."""
    keep: bool = False
    """Whether to keep a file's calls in memory, too."""
    is_short_lived: bool = False
    """Whether the file is for this machine and read soon: it is compressed faster, but less."""
    call_sites: bool = False
    """Whether to store each call's call site; the reader is then a `TellsCallSites`."""


def decode_part(task: PartTask, reader: TraceReader) -> Piece:
    """Decode some ranks, into one Parquet file if the task names one, and count their calls.

    It may run several times, even at once, because a worker that was considered lost may still be writing.
    """
    piece = Piece()
    if task.call_sites and isinstance(reader, TellsCallSites):
        schema, batches = CALLS.append(CALL_SITE), reader.batches(task.ranks, piece, call_sites=True)
    else:
        schema, batches = CALLS, reader.batches(task.ranks, piece)
    if task.file is None:
        piece.calls.extend(batches)
    else:
        packed = _FAST if task.is_short_lived else _SMALL
        _write_part(task.file, schema, batches, packed, piece.calls if task.keep else None)
    return piece


def tell_part(task: PartTask, reader: TraceReader) -> Piece:
    """The counts of some ranks, without their calls' columns."""
    assert isinstance(reader, DecodesAgain)
    return reader.tell(task.ranks)


def _write_part(
    file: Path,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    packed: Mapping[str, object],
    in_memory: list[pa.RecordBatch] | None,
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

    partial = file.with_name(f".{file.name}.{uuid4().hex}.partial")
    try:
        with (
            _new_file(partial) as raw,
            pq.ParquetWriter(
                raw,
                schema,
                **packed,
                use_dictionary=_DICTIONARY,
                column_encoding=_ENCODING,
                write_statistics=_STATISTICS,
                write_page_checksum=True,
            ) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch, row_group_size=read.ROW_GROUP)
                if in_memory is not None:
                    in_memory.append(batch)
        partial.replace(file)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def check_call_sites(reader: TraceReader) -> Iterator[pa.RecordBatch]:
    """The call sites of a trace, `vani.calls.CALL_SITES`; raises InputError if it has none."""
    sites = reader.call_sites() if isinstance(reader, TellsCallSites) else None
    if sites is None:
        raise InputError(
            "has no call sites",
            where=reader.path,
            todo="leave --call-sites out, or trace with a Recorder that stores them (recorder.dat of format 2)",
        )
    return sites


def decode_into_memory(reader: TraceReader, *, version: str, executor: Executor) -> read.Store:
    """Decode a trace into a store without a folder.

    Parameters
    ----------
    executor
        An executor that shares memory with this process.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened.
    """
    with unchanged(reader):
        parts = plan_parts(reader.calls_per_rank())
        pieces = _pieces(reader, executor, decode_part, [PartTask(ranks, None) for ranks in parts])
        store = _without_folder(reader, parts, pieces, version)
    return replace(store, in_memory=_calls(store.manifest.parts, pieces))


def decode_on_demand(reader: TraceReader, *, version: str, executor: Executor, scratch: Path) -> read.Store:
    """A store without a folder, whose calls are decoded each time they are needed.

    Parameters
    ----------
    reader
        A reader that implements `DecodesAgain`.
    executor
        An executor that shares memory with this process.
    scratch
        Folder for the times of calls while they are measured, see `Store`.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened. The store's batches raise it, too.
    """
    with unchanged(reader):
        parts = plan_parts(reader.calls_per_rank(), short_last=True)
        pieces = _pieces(reader, executor, tell_part, [PartTask(ranks, None) for ranks in parts])
        store = _without_folder(reader, parts, pieces, version)
    first_pass = {
        entry.file: (piece.records, piece.problems)
        for entry, piece in zip(store.manifest.parts, pieces, strict=True)
    }
    return replace(store, decode=partial(_decode_again, reader, first_pass), scratch=scratch)


def _decode_again(
    reader: TraceReader, first_pass: Mapping[str, tuple[int, list[str]]], part: read.PartEntry
) -> Iterator[pa.RecordBatch]:
    """The calls of a part; records and problems must be those of the first pass."""
    piece = Piece()
    with explained(reader):
        yield from reader.batches(range(*part.ranks), piece)
    if (piece.records, piece.problems) != first_pass[part.file]:
        raise changed_error(reader)


def write_store(
    reader: TraceReader,
    path: Path,
    *,
    version: str,
    executor: Executor,
    keep: bool = False,
    is_short_lived: bool = False,
    call_sites: bool = False,
    unless: Callable[[], bool] = bool,
) -> read.InMemoryParts:
    """Decode a trace into the store at `path`, which appears completely or not at all.

    Parameters
    ----------
    executor
        Executor that decodes and writes the parts.
    keep
        Keep the calls in memory, too, because this process will read them next.
    is_short_lived
        The calls are for this machine and read soon: they are compressed faster, but less.
    call_sites
        Store each call's call site, and the table of call sites.
    unless
        Called when everything is written: if it returns true, another run's equal store is kept.

    Returns
    -------
    InMemoryParts
        The calls in memory, for `open_store`.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened.
    InputError
        The trace does not have the requested call sites.
    """
    places = check_call_sites(reader) if call_sites else None
    with new_directory(path, unless=unless) as folder, unchanged(reader), being_written(folder):
        (folder / "calls").mkdir()
        for place in (folder, folder / "calls"):
            _keep_from_others(place)
        parts = plan_parts(reader.calls_per_rank())
        files = [folder.absolute() / _part_name(index) for index in range(len(parts))]
        tasks = [
            PartTask(ranks, file, keep, is_short_lived, call_sites)
            for ranks, file in zip(parts, files, strict=True)
        ]
        pieces = _pieces(reader, executor, decode_part, tasks)
        for stray in (folder / "calls").glob(".*.partial"):
            # Left by a worker that was lost.
            stray.unlink(missing_ok=True)
        for name, table in _tables(reader, pieces).items():
            _write_table(folder / name, table.schema, [table])
        if places is not None:
            _write_table(folder / "_call_sites.parquet", CALL_SITES, places)
        entries = _entries(parts, pieces, files)
        _manifest(reader, pieces, entries, version=version, call_sites=call_sites).write(folder)
        for place in folder.rglob("*.*"):
            _keep_from_others(place)
    return _calls(entries, pieces) if keep else {}


def _pieces(
    reader: TraceReader,
    executor: Executor,
    function: Callable[[PartTask, TraceReader], Piece],
    tasks: Sequence[PartTask],
) -> list[Piece]:
    """Results of the tasks, in order."""
    per_rank = reader.calls_per_rank()
    calls = [int(per_rank[task.ranks.start : task.ranks.stop].sum()) for task in tasks]
    # A long task that starts last would keep all other workers waiting.
    order = sorted(range(len(tasks)), key=calls.__getitem__, reverse=True)
    results = executor.map(function, [tasks[number] for number in order], stage="decode", broadcast=[reader])
    pieces = [piece for _, piece in sorted(zip(order, results, strict=True), key=itemgetter(0))]
    # Workers in other folders open the trace by its absolute path, but messages name it as the user did.
    absolute, given = (str(path / "_")[:-1] for path in (reader.path.absolute(), reader.path))
    if absolute != given:
        for piece in pieces:
            piece.problems = [text.replace(absolute, given) for text in piece.problems]
    return pieces


def _entries(
    parts: Sequence[range], pieces: Sequence[Piece], files: Sequence[Path] | None = None
) -> list[read.PartEntry]:
    """Entries of the manifest; a part without a file has size 0."""
    sizes = [0] * len(parts) if files is None else [file.stat().st_size for file in files]
    return [
        read.PartEntry(_part_name(index), (ranks.start, ranks.stop), piece.records, size)
        for index, (ranks, piece, size) in enumerate(zip(parts, pieces, sizes, strict=True))
    ]


def _tables(reader: TraceReader, pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    renames = [rename for piece in pieces for rename in piece.renames]
    columns = list(zip(*renames, strict=True)) or [()] * 4
    return {
        read.FILE_TABLE: reader.files(),
        read.FUNCTION_TABLE: reader.functions(),
        read.RENAME_TABLE: small_table(columns, RENAMES),
    }


def _calls(entries: Sequence[read.PartEntry], pieces: Sequence[Piece]) -> read.InMemoryParts:
    return {entry.file: piece.calls for entry, piece in zip(entries, pieces, strict=True)}


def _without_folder(
    reader: TraceReader, parts: Sequence[range], pieces: Sequence[Piece], version: str
) -> read.Store:
    """A store without a folder, with its manifest and small tables; the caller adds the calls."""
    manifest = _manifest(reader, pieces, _entries(parts, pieces), version=version)
    return read.Store(Path(f"<{manifest.digest[:16]}>"), manifest, tables=_tables(reader, pieces))


def _part_name(index: int) -> str:
    return f"calls/part-{index:05}.parquet"


def _manifest(
    reader: TraceReader,
    pieces: Sequence[Piece],
    parts: list[read.PartEntry],
    *,
    version: str,
    call_sites: bool = False,
) -> read.Manifest:
    """The manifest of a trace, from the counts of all its parts.

    Raises
    ------
    TraceError
        A sum would exceed 64 bits.
    """
    problems = [*reader.problems, *(m for p in pieces for m in p.problems)]
    functions: dict[str, int] = {}
    for piece in pieces:
        for name, count in piece.functions.items():
            functions[name] = functions.get(name, 0) + count
    moved, spent = sum(p.bytes for p in pieces), sum(p.time_ns for p in pieces)
    if max(moved, spent) >= MAX_SUM:
        what = f"move {format_number(moved)} bytes" if moved >= MAX_SUM else f"take {format_number(spent / 1e9)} s"
        raise TraceError(
            f"its calls {what} together, more than can be counted",
            where=reader.path,
            todo="the trace is damaged, trace the run again",
        )
    firsts = [p.first_ns for p in pieces if p.first_ns is not None]
    return read.Manifest(
        source=str(reader.path.resolve()),
        digest=reader.digest(),
        **{name: getattr(reader, name) for name in ("tool", "format", "layout", "app", "ranks", "start_unix_s")},
        records=sum(p.records for p in pieces),
        first_ns=min(firsts) if firsts else None,
        span_ns=max((p.span_ns for p in pieces), default=0),
        functions=dict(sorted(functions.items(), key=lambda item: (-item[1], item[0]))),
        complete=not problems,
        problems=problems,
        limits=[(limit.attribute, limit.why) for limit in reader.limits],
        repaired_times=sum(p.repaired_times for p in pieces),
        facts=[(name, list(args), count) for name, args, count in reader.facts()],
        parts=parts,
        vani=version,
        columns=read.columns_now(call_sites=call_sites),
        bytes=moved,
        time_ns=spent,
    )


def _keep_from_others(place: Path) -> None:
    """Prevent others from writing, even if the umask allows it, because such a store would not be trusted."""
    mode = place.stat().st_mode
    if mode & read.OTHERS_WRITE:
        # Some file systems have no modes.
        with suppress(OSError):
            place.chmod(mode & 0o777 & ~read.OTHERS_WRITE)


def _write_table(path: Path, schema: pa.Schema, rows: Iterable[pa.Table | pa.RecordBatch]) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

    with (
        _new_file(path) as raw,
        pq.ParquetWriter(raw, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        for some in rows:
            writer.write(some)


def _new_file(path: Path) -> pa.NativeFile:
    # As bytes: pyarrow would treat a path as a URI or UTF-8, and it may be neither.
    return pa.OSFile(os.fsencode(path), "wb")


LARGE_PART = 1 << 20
"""Calls of a part: fewer are decoded and measured in less time than Dask takes to load."""
_MAX_PARTS = 1 << 14
"""Maximum number of parts: a Dask scheduler manages about a thousand tasks per second."""


def plan_parts(calls: np.ndarray[Any, np.dtype[np.int64]], *, short_last: bool = False) -> list[range]:
    """Divide ranks into ranges of an eighth of all calls, but at most a million, or more of a huge trace.

    Ranks are never divided, and a trace of up to a million calls is one part.

    Parameters
    ----------
    calls
        Calls per rank, shape (ranks,).
    short_last
        Ranges become shorter towards the end, so that the first worker to finish waits less for the others: each is an
        eighth of the rest, as in guided self-scheduling (Polychronopoulos and Kuck 1987).
    """
    left = int(calls.sum())
    wanted = left if left <= LARGE_PART else max(min(left // 8, LARGE_PART), left // _MAX_PARTS)
    parts, begin, pending = [], 0, 0
    for rank, count in enumerate(calls.tolist()):
        if short_last:
            wanted = min(wanted, max(left // 8, LARGE_PART // 8))
        if pending and pending + count > wanted:
            left -= pending
            parts.append(range(begin, rank))
            begin, pending = rank, 0
        pending += count
    parts.append(range(begin, len(calls)))
    return parts
