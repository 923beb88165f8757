"""Making a store: tasks that each decode some ranks into one Parquet file, and the manifest at the end.

A store in memory is made in the same way, without files. Those named `calls/part-*.parquet` of another one are one
dataset; names with an underscore in front are small tables that
plain readers of a dataset pass over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from vani.atomic import new_directory
from vani.calls import CALL_SITE, CALL_SITES, CALLS, MOST_SUM, RENAMES
from vani.columns import small_table
from vani.engine.executor import Executor
from vani.errors import InputError, TraceError
from vani.readers.identity import changed_error, explained, unchanged
from vani.readers.trace_reader import DecodesAgain, Piece, TellsCallSites, TraceReader
from vani.store.in_memory_parts import InMemoryParts
from vani.store.locks import being_written
from vani.store.manifest import OTHERS_WRITE, Manifest, PartEntry, columns_now
from vani.store.parts import plan_parts
from vani.store.read import FILE_TABLE, FUNCTION_TABLE, RENAME_TABLE, ROW_GROUP, Store

__all__ = [
    "PartTask",
    "check_call_sites",
    "decode_into_memory",
    "decode_on_demand",
    "decode_part",
    "tell_part",
    "write_store",
]

_DICTIONARY = ["file", "bytes", "duration_ns"]
# The other columns hold few values: plain, they compress nearly as well and are written in half the time.
_ENCODING = {"start_ns": "DELTA_BINARY_PACKED", "offset": "DELTA_BINARY_PACKED"}
_SMALL: Mapping[str, object] = {"compression": "zstd", "compression_level": 1}
_FAST: Mapping[str, object] = {"compression": "lz4"}
_STATISTICS = ["rank", "start_ns", "duration_ns"]
# By rank and time row groups are passed over; to find the extremes of the others takes a tenth of writing them.

@dataclass(frozen=True, eq=False)
class PartTask:
    """Decode some ranks of a trace."""

    ranks: range
    file: Path | None
    """What they are written to; None: nothing is written."""
    keep: bool = False
    """Hand on the calls themselves."""
    is_short_lived: bool = False
    """The file is for this machine and soon read: it is compressed in less time, to more bytes."""
    call_sites: bool = False
    """With the place that each call was made from; the reader is one that tells it."""


def decode_part(task: PartTask, reader: TraceReader) -> Piece:
    """Decode some ranks, into one Parquet file if that is asked for, and tell what was found on the way.

    May run several times, even at once: a worker that was taken for lost may still be writing.
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
    """The counts of some ranks, without the columns of their calls."""
    assert isinstance(reader, DecodesAgain)
    return reader.tell(task.ranks)


def _write_part(
    file: Path,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    packed: Mapping[str, object],
    kept: list[pa.RecordBatch] | None,
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
                writer.write_batch(batch, row_group_size=ROW_GROUP)
                if kept is not None:
                    kept.append(batch)
        partial.replace(file)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise


def check_call_sites(reader: TraceReader) -> Iterator[pa.RecordBatch]:
    """The call sites of a trace, `vani.calls.CALL_SITES`; raises InputError if it has none."""
    found = reader.call_sites() if isinstance(reader, TellsCallSites) else None
    if found is None:
        raise InputError(
            "has no call sites",
            where=reader.path,
            todo="leave --call-sites out, or trace with a Recorder that stores them (recorder.dat of format 2)",
        )
    return found


def decode_into_memory(reader: TraceReader, *, version: str, executor: Executor) -> Store:
    """Decode a trace into a store that lies in no folder.

    Parameters
    ----------
    executor
        One that shares memory with this process.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened.
    """
    with unchanged(reader):
        parts = plan_parts(reader.calls_per_rank())
        pieces = _pieces(reader, executor, decode_part, [PartTask(ranks, None, keep=True) for ranks in parts])
        entries = _entries(parts, pieces)
        manifest, tables = _manifest(reader, pieces, entries, version=version), _tables(reader, pieces)
    kept = {entry.file: piece.calls for entry, piece in zip(entries, pieces, strict=True)}
    return Store(_nowhere(reader), manifest, kept, tables)


def decode_on_demand(reader: TraceReader, *, version: str, executor: Executor, scratch: Path) -> Store:
    """A store that lies in no folder, and whose calls are decoded each time that they are asked for.

    Parameters
    ----------
    reader
        One that is a `DecodesAgain`.
    executor
        One that shares memory with this process.
    scratch
        Folder for what is noted of the calls while they are measured, see `Store`.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened. Batches of the store raise it, too.
    """
    with unchanged(reader):
        parts = plan_parts(reader.calls_per_rank(), short_last=True)
        pieces = _pieces(reader, executor, tell_part, [PartTask(ranks, None) for ranks in parts])
        entries = _entries(parts, pieces)
        manifest, tables = _manifest(reader, pieces, entries, version=version), _tables(reader, pieces)
    told = {entry.file: (piece.records, piece.problems) for entry, piece in zip(entries, pieces, strict=True)}
    return Store(_nowhere(reader), manifest, {}, tables, partial(_decode_again, reader, told), scratch)


def _decode_again(
    reader: TraceReader, told: Mapping[str, tuple[int, list[str]]], part: PartEntry
) -> Iterator[pa.RecordBatch]:
    """The calls of a part of which records and problems were told before."""
    piece = Piece()
    with explained(reader):
        yield from reader.batches(range(*part.ranks), piece)
    if (piece.records, piece.problems) != told[part.file]:
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
) -> InMemoryParts:
    """Decode a trace into the store at `path`, which appears whole or not at all.

    Parameters
    ----------
    executor
        Where parts are decoded and written.
    keep
        Keep the calls in memory, too: they will be read next, in this process.
    is_short_lived
        The calls are for this machine and soon read: they are compressed in less time, to more bytes.
    call_sites
        Tell of each call from where it was made, and write the table of these places.
    unless
        Asked when all is written: an equal store that another run put there meanwhile stays if it says so.

    Returns
    -------
    InMemoryParts
        The calls that are in memory, for `open_store`.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened.
    InputError
        Call sites were asked for that the trace does not have.
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
            # Begun by a worker that was lost.
            stray.unlink(missing_ok=True)
        _write_table(reader.files(), folder / FILE_TABLE)
        _write_table(reader.functions(), folder / FUNCTION_TABLE)
        if places is not None:
            import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

            with (
                _new_file(folder / "_call_sites.parquet") as raw,
                pq.ParquetWriter(raw, CALL_SITES, compression="zstd", write_page_checksum=True) as writer,
            ):
                for batch in places:
                    writer.write_batch(batch)
        _write_table(_renames(pieces), folder / RENAME_TABLE)
        entries = _entries(parts, pieces, files)
        _manifest(reader, pieces, entries, version=version, call_sites=call_sites).write(folder)
        for place in folder.rglob("*.*"):
            _keep_from_others(place)
    if not keep:
        return {}
    return {entry.file: piece.calls for entry, piece in zip(entries, pieces, strict=True)}


def _pieces(
    reader: TraceReader,
    executor: Executor,
    function: Callable[[PartTask, TraceReader], Piece],
    tasks: Sequence[PartTask],
) -> list[Piece]:
    """Results of the tasks, in their order."""
    per_rank = reader.calls_per_rank()
    calls = [int(per_rank[task.ranks.start : task.ranks.stop].sum()) for task in tasks]
    # A long task that began last would keep all other workers waiting.
    order = sorted(range(len(tasks)), key=calls.__getitem__, reverse=True)
    results = executor.map(
        function, [tasks[number] for number in order], stage="decode", broadcast=[reader]
    )
    pieces = [piece for _, piece in sorted(zip(order, results, strict=True), key=itemgetter(0))]
    # Workers in other folders open the trace by its absolute path; messages name it as the user did.
    absolute, given = (str(path / "_")[:-1] for path in (reader.path.absolute(), reader.path))
    if absolute != given:
        for piece in pieces:
            piece.problems = [text.replace(absolute, given) for text in piece.problems]
    return pieces


def _entries(
    parts: Sequence[range], pieces: Sequence[Piece], files: Sequence[Path] | None = None
) -> list[PartEntry]:
    """What the manifest says of each part; one that is in no file has no size."""
    sizes = [0] * len(parts) if files is None else [file.stat().st_size for file in files]
    return [
        PartEntry(_part_name(index), (ranks.start, ranks.stop), piece.records, size)
        for index, (ranks, piece, size) in enumerate(zip(parts, pieces, sizes, strict=True))
    ]


def _tables(reader: TraceReader, pieces: Sequence[Piece]) -> dict[str, pa.Table]:
    return {
        FILE_TABLE: reader.files(),
        FUNCTION_TABLE: reader.functions(),
        RENAME_TABLE: _renames(pieces),
    }


def _nowhere(reader: TraceReader) -> Path:
    """What stands for the folder of a store that lies in none."""
    return Path(f"<{reader.digest()[:16]}>")


def _part_name(index: int) -> str:
    return f"calls/part-{index:05}.parquet"


def _renames(pieces: Sequence[Piece]) -> pa.Table:
    renames = [r for p in pieces for r in p.renames]
    columns = list(zip(*renames, strict=True)) or [()] * 4
    return small_table(columns, RENAMES)


def _manifest(
    reader: TraceReader,
    pieces: Sequence[Piece],
    parts: list[PartEntry],
    *,
    version: str,
    call_sites: bool = False,
) -> Manifest:
    """What is known of a trace when all its parts are decoded.

    Raises
    ------
    TraceError
        Its sums would leave 64 bits.
    """
    problems = [*reader.problems, *(m for p in pieces for m in p.problems)]
    functions: dict[str, int] = {}
    for piece in pieces:
        for name, count in piece.functions.items():
            functions[name] = functions.get(name, 0) + count
    moved, spent = sum(p.bytes for p in pieces), sum(p.time_ns for p in pieces)
    if max(moved, spent) >= MOST_SUM:
        what = f"move {moved:.3g} bytes" if moved >= MOST_SUM else f"take {spent / 1e9:.3g} s"
        raise TraceError(
            f"its calls {what} together, more than can be counted",
            where=reader.path,
            todo="the trace is damaged, trace the run again",
        )
    firsts = [p.first_ns for p in pieces if p.first_ns is not None]
    return Manifest(
        source=str(reader.path.resolve()),
        digest=reader.digest(),
        tool=reader.tool,
        format=reader.format,
        layout=reader.layout,
        app=reader.app,
        ranks=reader.ranks,
        records=sum(p.records for p in pieces),
        start_unix_s=reader.start_unix_s,
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
        columns=columns_now(call_sites=call_sites),
        bytes=moved,
        time_ns=spent,
    )


def _keep_from_others(place: Path) -> None:
    """Let nobody else write, whatever the process's mask allows: such a store would not be believed."""
    mode = place.stat().st_mode
    if mode & OTHERS_WRITE:
        # Some file systems have no modes.
        with suppress(OSError):
            place.chmod(mode & 0o777 & ~OTHERS_WRITE)


def _write_table(table: pa.Table, path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

    with _new_file(path) as raw:
        pq.write_table(table, raw, compression="zstd", write_page_checksum=True)


def _new_file(path: Path) -> pa.NativeFile:
    # As bytes: pyarrow takes a path for a URI or UTF-8, neither of which it need be.
    return pa.OSFile(os.fsencode(path), "wb")
