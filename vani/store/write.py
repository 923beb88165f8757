"""Writing a store: tasks that each decode some ranks into one Parquet file, and the manifest at the end.

The file `calls/part-*.parquet` of a store are one dataset; names with an underscore in front are small tables that
plain readers of a dataset pass over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from vani.atomic import new_directory
from vani.calls import CALL_SITE, CALL_SITES, CALLS, MOST_SUM, RENAMES
from vani.columns import small_table
from vani.errors import InputError, TraceError
from vani.readers.identity import unchanged
from vani.readers.trace_reader import Piece, TellsCallSites, TraceReader
from vani.store.kept import Kept, Room
from vani.store.locks import being_written
from vani.store.manifest import OTHERS_WRITE, Manifest, PartEntry, columns_now

__all__ = [
    "LARGE_PART",
    "ROW_GROUP",
    "SMALL_PART",
    "PartTask",
    "RunTasks",
    "check_call_sites",
    "plan_parts",
    "write_part",
    "write_store",
]

_DICTIONARY = ["file", "bytes", "duration_ns"]
# The other columns hold few values: plain, they compress nearly as well and are written in half the time.
_ENCODING = {"start_ns": "DELTA_BINARY_PACKED", "offset": "DELTA_BINARY_PACKED"}
_STATISTICS = ["rank", "start_ns", "duration_ns"]
# By rank and time row groups are passed over; to find the extremes of the others takes a tenth of writing them.
SMALL_PART, LARGE_PART = 1 << 17, 1 << 20

ROW_GROUP = 1 << 16
"""Rows of a row group: small enough that a window of time touches few, large enough to compress."""

RunTasks = Callable[[Callable[["PartTask"], Piece], Sequence["PartTask"]], list[Piece]]


@dataclass(frozen=True)
class PartTask:
    """Decode `ranks` of `reader` into `file`."""

    reader: TraceReader
    ranks: range
    file: Path
    keep: bool = False
    """Hand on the calls themselves, too."""
    call_sites: bool = False
    """With the place that each call was made from; the reader is one that tells it."""


def plan_parts(calls: np.ndarray[Any, np.dtype[np.int64]]) -> list[range]:
    """Cut the ranks into runs of about a million calls, or an eighth of a small trace; a rank is never cut."""
    wanted = int(np.clip(int(calls.sum()) // 8, SMALL_PART, LARGE_PART))
    parts, begin, held = [], 0, 0
    for rank, count in enumerate(calls.tolist()):
        if held and held + count > wanted:
            parts.append(range(begin, rank))
            begin, held = rank, 0
        held += count
    parts.append(range(begin, len(calls)))
    return parts


def write_part(task: PartTask) -> Piece:
    """Decode some ranks into one Parquet file and tell what was found on the way.

    May run several times, even at once: a worker that was taken for lost may still be writing.
    """
    import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

    piece = Piece()
    partial = task.file.with_name(f".{task.file.name}.{uuid4().hex}.partial")
    if task.call_sites and isinstance(task.reader, TellsCallSites):
        schema, batches = CALLS.append(CALL_SITE), task.reader.batches(task.ranks, piece, call_sites=True)
    else:
        schema, batches = CALLS, task.reader.batches(task.ranks, piece)
    try:
        with (
            _new_file(partial) as raw,
            pq.ParquetWriter(
                raw,
                schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=_DICTIONARY,
                column_encoding=_ENCODING,
                write_statistics=_STATISTICS,
                write_page_checksum=True,
            ) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch, row_group_size=ROW_GROUP)
                if task.keep:
                    piece.calls.append(batch)
        partial.replace(task.file)
    except BaseException:
        with suppress(OSError):
            partial.unlink()
        raise
    return piece


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


def write_store(
    reader: TraceReader,
    path: Path,
    *,
    version: str,
    run: RunTasks,
    room: Room | None = None,
    call_sites: bool = False,
    unless: Callable[[], bool] = bool,
) -> Kept:
    """Decode a trace into the store at `path`, which appears whole or not at all.

    Parameters
    ----------
    run
        Runs `write_part` on all tasks, wherever the engine does that, and returns the pieces in order.
    room
        Keep the calls in memory, too, if there is room for them: they will be read next, in this process.
    call_sites
        Tell of each call from where it was made, and write the table of these places.
    unless
        Asked when all is written: an equal store that another run put there meanwhile stays if it says so.

    Returns
    -------
    Kept
        The calls that are in memory, for `open_store`.

    Raises
    ------
    TraceError
        Nothing of the trace can be decoded, or it changed since it was opened.
    InputError
        Call sites were asked for that the trace does not have.
    """
    places = check_call_sites(reader) if call_sites else None
    calls = reader.calls_per_rank()
    files = reader.files()
    keep = room is not None and room.take(int(calls.sum()), len(files))
    with new_directory(path, unless=unless) as folder, unchanged(reader), being_written(folder):
        (folder / "calls").mkdir()
        for place in (folder, folder / "calls"):
            _keep_from_others(place)
        tasks = [
            PartTask(
                reader, ranks, folder.absolute() / "calls" / f"part-{index:05}.parquet", keep, call_sites
            )
            for index, ranks in enumerate(plan_parts(calls))
        ]
        pieces = run(write_part, tasks)
        for stray in (folder / "calls").glob(".*.partial"):
            # Begun by a worker that was lost.
            stray.unlink(missing_ok=True)
        _write_table(files, folder / "_files.parquet")
        _write_table(reader.functions(), folder / "_functions.parquet")
        if places is not None:
            import pyarrow.parquet as pq  # noqa: PLC0415 - calls that are kept in memory need none

            with (
                _new_file(folder / "_call_sites.parquet") as raw,
                pq.ParquetWriter(raw, CALL_SITES, compression="zstd", write_page_checksum=True) as writer,
            ):
                for batch in places:
                    writer.write_batch(batch)
        renames = [r for p in pieces for r in p.renames]
        columns = list(zip(*renames, strict=True)) or [()] * 4
        _write_table(small_table(columns, RENAMES), folder / "_renames.parquet")
        problems = [*reader.problems, *(m for p in pieces for m in p.problems)]
        records = sum(p.records for p in pieces)
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
        Manifest(
            source=str(reader.path.resolve()),
            digest=reader.digest(),
            tool=reader.tool,
            format=reader.format,
            layout=reader.layout,
            app=reader.app,
            ranks=reader.ranks,
            records=records,
            start_unix_s=reader.start_unix_s,
            first_ns=min(firsts) if firsts else None,
            span_ns=max((p.span_ns for p in pieces), default=0),
            functions=dict(sorted(functions.items(), key=lambda item: (-item[1], item[0]))),
            complete=not problems,
            problems=problems,
            limits=[(limit.attribute, limit.why) for limit in reader.limits],
            repaired_times=sum(p.repaired_times for p in pieces),
            facts=[(name, list(args), count) for name, args, count in reader.facts()],
            parts=[
                PartEntry(
                    str(task.file.relative_to(folder.absolute())),
                    (task.ranks.start, task.ranks.stop),
                    piece.records,
                    task.file.stat().st_size,
                )
                for task, piece in zip(tasks, pieces, strict=True)
            ],
            vani=version,
            columns=columns_now(call_sites=call_sites),
            bytes=moved,
            time_ns=spent,
        ).write(folder)
        for place in folder.rglob("*.*"):
            _keep_from_others(place)
    if not keep:
        return {}
    return {str(t.file.relative_to(t.file.parents[1])): p.calls for t, p in zip(tasks, pieces, strict=True)}


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
