"""File calls of a run under Score-P or another OTF2 writer. Each process is a rank, and each location is a thread.

All events are read once and their rows are kept (see `spool`), because the number of calls is known only at the end.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import Layer
from vani.columns import to_numpy
from vani.distinct import distinct
from vani.errors import TraceError
from vani.readers.delivery import Columns, Delivery, Rows, Spool, process_batches
from vani.readers.functions import function_table
from vani.readers.identity import identity_of
from vani.readers.otf2 import anchor_of, files_of
from vani.readers.otf2.archive import Archive, open_archive
from vani.readers.otf2.calls import ROWS, Calls, Functions, Handle, does_io
from vani.readers.paths import PathTable, file_table
from vani.readers.programs import app_name
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import Limit, Piece
from vani.units import counted

Ints = NDArray[np.int64]

_LAYERS = {
    **{"POSIX": Layer.POSIX, "ISOC": Layer.STDIO, "MPI-IO": Layer.MPIIO, "HDF5": Layer.HDF5},
    **{"PnetCDF": Layer.PNETCDF, "NetCDF": Layer.NETCDF},
}
"""Layers by the identification of an I/O paradigm, as in OTF2's documentation; others belong to the program."""
_AGAIN = "trace again with I/O recording (`scorep --io=runtime:posix` at linking), or trace the run with Recorder"
_LIMITS = (
    Limit(
        "io.bytes",
        "bytes are what calls moved; calls that Score-P does not wrap (stat, mmap, rename, truncate) leave no record",
    ),
    Limit("io.access_pattern", "positions are followed by path: two descriptors of one path in one process share one"),
    Limit("io.past_end", "opens that failed are recorded without a path"),
)


@dataclass(frozen=True)
class _Known:
    """Results of reading all events."""

    rows: Spool
    calls: Ints
    """Calls per rank."""
    paths: list[str]
    users: Ints
    """Number of ranks that use each file."""
    functions: list[str]
    library_calls_alone: int
    """Number of library calls, if there are no file-system calls."""
    hosts: list[str]
    last_ns: int
    """Time of the run's last event on the run's clock."""
    start_unix_s: float | None
    app: str
    problems: list[str]


class Otf2Reader:
    """An OTF2 archive."""

    tool = "otf2"
    format = "otf2"
    layout = "processes"

    def __init__(self, path: Path) -> None:
        """Record the state of the files; nothing is read yet."""
        self.path = path
        self._anchor = anchor_of(path)
        self._identity = identity_of(path, files_of, with_ends=True)
        self._lock = threading.Lock()
        self._known: _Known | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path.absolute(),)

    @property
    def app(self) -> str:
        return self.known.app

    @property
    def ranks(self) -> int:
        return len(self.known.calls)

    @property
    def start_unix_s(self) -> float | None:
        return self.known.start_unix_s

    @property
    def limits(self) -> tuple[Limit, ...]:
        return _LIMITS

    @property
    def problems(self) -> list[str]:
        return self.known.problems

    def digest(self) -> str:
        return self._identity.digest()

    def changed(self) -> bool:
        return identity_of(self.path, files_of, with_ends=True) != self._identity

    def calls_per_rank(self) -> Ints:
        return self.known.calls

    def functions(self) -> pa.Table:
        return function_table(self.known.functions)

    def files(self) -> pa.Table:
        return file_table(self.known.paths, None)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Hosts, if the archive names each process's, and library calls if there are no calls below them."""
        hosts = list(dict.fromkeys(self.known.hosts))
        facts: list[tuple[str, list[str], int]] = [("hosts", hosts, 1)] if hosts and all(hosts) else []
        alone = self.known.library_calls_alone
        return [*facts, ("file_system_calls_missing", [], alone)] if alone else facts

    @property
    def known(self) -> _Known:
        """The tables and rows, from one pass over all events."""
        with self._lock:
            if self._known is None:
                with open_archive(self._anchor) as archive:
                    self._known = _read(archive, self._anchor)
            return self._known

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        known = self.known
        piece.span_ns = max(piece.span_ns, known.last_ns)
        rank_of_process = np.arange(len(known.calls), dtype=np.int32)
        yield from process_batches(
            known.rows,
            rank_of_process,
            known.calls,
            ranks,
            lambda: Delivery(known.users == 1, known.functions, piece, by_time=False),
            _in_order,
            _rows,
        )


def _in_order(column: Columns) -> NDArray[np.intp]:
    # Calls that begin in the same tick keep the location's order: a library call before those that it made.
    return np.lexsort((column["start"], column["process"]))


def _rows(column: Columns) -> Rows:
    of_calls = {name: values for name, values in column.items() if name not in ("process", "start", "took")}
    signatures = Signatures.of_calls(**of_calls | {"flags": column["flags"].copy()})
    ids = np.arange(len(column["start"]), dtype=np.int32)
    return Rows(column["process"], signatures, ids, column["start"], column["took"])


def _read(archive: Archive, anchor: Path) -> _Known:
    """Read all events.

    Raises
    ------
    TraceError
        No location is readable, or none has a file call.
    """
    definitions = archive.definitions
    clock = definitions.clock_properties
    resolution, zero = max(1, clock.timer_resolution), clock.global_offset
    paths = PathTable()
    files = {file._ref: paths.code(file.name or "") if file.name else -1 for file in definitions.io_files}
    regions = {
        region._ref: name
        for region in definitions.regions
        for name in (_plain(region.name),)
        if does_io(name, _word(region.region_role))
    }
    handles = {handle._ref: _handle(handle, files, paths) for handle in definitions.io_handles}
    offset = next((a._ref for a in definitions.attributes if a.name == "Offset" and _word(a.type) == "UINT64"), None)
    processes = [g for g in definitions.location_groups if _word(g.location_group_type) == "PROCESS"]
    number = {process._ref: rank for rank, process in enumerate(processes)}
    threads: Counter[int] = Counter()
    functions, spool, problems = Functions(), Spool(ROWS, by="process"), list[str]()
    programs: set[str] = set()
    library_calls = 0
    calls, pairs, last = np.zeros(len(processes), np.int64), np.zeros(0, np.int64), 0
    for location in definitions.locations:
        rank = None if location.group is None else number.get(location.group._ref)
        if rank is None or _word(location.type) != "CPU_THREAD":
            continue
        of_location = Calls(
            *(rank, threads[rank], regions, handles, files, functions),
            lambda ticks: (ticks - zero) * 1_000_000_000 // resolution,
            offset,
        )
        threads[rank] += 1
        problem = archive.read(location._ref, of_location.callbacks)
        if problem is not None:
            problems.append(f"location {location.name} of {processes[rank].name}: {problem}")
        if of_location.program is not None:
            programs.add(definitions.strings[of_location.program])
        batch = of_location.batch()
        calls[rank] += len(batch)
        library_calls += int((to_numpy(batch.column("layer")) > Layer.STDIO).sum())
        last = max(last, of_location.last)
        if len(batch):
            spool.add(batch)
            file = to_numpy(batch.column("file"))
            pairs = distinct(pairs, (rank << 32) + file[file >= 0].astype(np.int64))
    if not calls.any():
        raise _without_calls(definitions, anchor, problems)
    realtime = clock.realtime_timestamp
    return _Known(
        rows=spool,
        calls=calls,
        paths=paths.paths,
        users=np.bincount(pairs & 0xFFFFFFFF, minlength=len(paths.paths)).astype(np.int64),
        functions=functions.names,
        library_calls_alone=library_calls if library_calls == calls.sum() else 0,
        hosts=[_host(process) for process in processes],
        last_ns=last,
        start_unix_s=None if realtime >= 1 << 63 else realtime / 1e9,
        app=_app(programs, anchor),
        problems=problems,
    )


def _without_calls(definitions: Any, anchor: Path, problems: Sequence[str]) -> TraceError:
    if problems:
        return TraceError(f"has no call on files: {problems[0]}", where=anchor, todo="copy it again, with its folder")
    events = sum(location.number_of_events for location in definitions.locations)
    kinds = Counter(_word(region.paradigm).replace("_", " ").lower() for region in definitions.regions)
    regions = ", ".join(f"{n} of {kind}" for kind, n in kinds.most_common(3))
    return TraceError(
        f"has no call on files: {counted(events, 'event')} of {counted(len(definitions.locations), 'location')}"
        + (f", with {counted(len(definitions.regions), 'region')} ({regions})" if regions else ""),
        where=anchor,
        todo=_AGAIN,
    )


def _handle(handle: Any, files: dict[int, int], paths: PathTable) -> Handle:
    paradigm = handle.io_paradigm
    identification = "" if paradigm is None else str(paradigm.identification)
    if handle.file is not None:
        code = files.get(handle.file._ref, -1)
    else:
        # Standard streams have names but no files.
        code = paths.code(handle.name) if handle.name in ("stdin", "stdout", "stderr") else -1
    is_folder = type(handle.file).__name__ == "IoDirectory"
    return Handle(code, _LAYERS.get(identification, Layer.USER), identification, is_folder)


def _host(process: Any) -> str:
    node = process.system_tree_parent
    while node is not None and node.class_name != "node":
        node = node.parent
    return "" if node is None else str(node.name)


def _app(programs: set[str], anchor: Path) -> str:
    """The program that all processes ran, or the folder's name if they differ."""
    name = Path(programs.pop()).name if len(programs) == 1 else ""
    return name or app_name(anchor.resolve().parent.name)


def _plain(name: str) -> str:
    """A function's plain name, because TAU writes `read()`."""
    return name.removesuffix("()")


def _word(value: Any) -> str:
    """The last word of an OTF2 constant, such as `FILE_IO`; empty if the library does not know the constant."""
    return str(getattr(type(value), "_names", {}).get(value.value, ""))
