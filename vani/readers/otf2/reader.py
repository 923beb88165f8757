"""File calls of a run under Score-P or another OTF2 writer. Each process is a rank, and each location is a thread.

All events are read once and their rows are kept (see `scanned`), because the number of calls is known only at the end.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from vani.calls import DIRECT, LOCK, SYNCHRONOUS, Flag, Kind, Layer
from vani.columns import Columns, distinct, to_numpy
from vani.errors import TraceError
from vani.readers.functions import PositionRule, meaning_of
from vani.readers.otf2 import anchor_of, files_of
from vani.readers.otf2.archive import Archive, offset_of, open_archive
from vani.readers.paths import PathTable, classes_of
from vani.readers.programs import app_name
from vani.readers.scanned import KnownRows, Spool, SpooledReader, batch_of, row_schema, users_of
from vani.readers.signatures import NO_VALUE, Codes
from vani.readers.trace_reader import Limit, Piece
from vani.site import BUDGET
from vani.units import counted

ROWS = row_schema("process thread func layer kind depth rule flags file bytes value start took")
"""A call: `value` is an offset or a position; times are nanoseconds since the start of the archive's clock."""

_CODES = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q"}
_IO_ROLES = frozenset({"FILE_IO", "FILE_IO_METADATA"})
_LIBRARIES = re.compile(r"MPI_File_\w+|H5[A-Z]\w*|nc(?:mpi)?_\w+")
_UNDEFINED = (1 << 64) - 1
"""Byte count or position of a call that failed or has none."""
_PER_BYTE = 15
"""Memory of a profile in bytes, for each byte of a location's events."""
_LATEST_NS = 1 << 60
_LARGEST = (1 << 63) - 1
"""Longest plausible time: 36 years."""
_DEEPEST = 100
_MAX_FUNCTIONS = 30_000
_KINDS = (Kind.READ, Kind.WRITE, Kind.SYNC)
"""Kinds by `OTF2_IoOperationMode`."""
_MODES = ("read", "write", "flush")
_CREATION = ((1 << 0, Flag.CREATE), (1 << 1, Flag.TRUNCATE), (1 << 2, Flag.DIRECTORY))
_STATUS = ((1 << 1, Flag.APPEND), (1 << 4, SYNCHRONOUS), (1 << 5, SYNCHRONOUS), (1 << 6, DIRECT))
"""Bits of `OTF2_IoCreationFlag` and `OTF2_IoStatusFlag`."""
_READ_ONLY = (0, 3, 4)
"""`OTF2_IoAccessMode`: READ_ONLY, EXECUTE_ONLY, SEARCH_ONLY."""
_COLLECTIVE = 1 << 1
"""Bit of `OTF2_IoOperationFlag`."""
_NAMES = {
    Layer.POSIX: {"flush": "fsync", "seek": "lseek", "remove": "unlink", "lock": "flock"},
    Layer.STDIO: {word: f"f{word}" for word in ("open", "close", "read", "write", "flush", "seek")},
    Layer.MPIIO: {
        **{word: f"MPI_File_{word}" for word in ("open", "close", "read", "write", "seek")},
        "flush": "MPI_File_sync",
        "remove": "MPI_File_delete",
    },
}
"""Function names for events outside regions."""


def does_io(name: str, role: str) -> bool:
    """Return whether a region is a file call, by its name and its role's name."""
    return role in _IO_ROLES or _LIBRARIES.fullmatch(name) is not None


class Functions(Codes):
    """An archive's functions, numbered."""

    def number(self, text: str) -> int:
        """The number of a function; the last number is shared by all functions that do not fit."""
        return super().number(text if len(self.texts) < _MAX_FUNCTIONS else "(other)")


@dataclass(frozen=True)
class Handle:
    """A process's open file."""

    file: int
    """File code, -1 if the file has no name."""
    layer: Layer
    paradigm: str
    is_folder: bool


@dataclass
class _Call:
    """A call that has not ended yet."""

    row: int
    region: int | None
    """None for an operation outside all I/O regions, or inside the region of another file's call."""
    handle: int | None = None
    operations: int = 0
    is_known: bool = True
    """Whether each of its operations reported the bytes that it moved."""


class Calls:
    """Collects a location's calls; pass `callbacks` to `Archive.read`."""

    def __init__(
        self,
        process: int,
        thread: int,
        regions: dict[int, str],
        handles: dict[int, Handle],
        files: dict[int, int],
        functions: Functions,
        nanoseconds: Callable[[int], int],
        offset: int | None,
    ) -> None:
        """Start without calls.

        Parameters
        ----------
        process, thread
            Number of the process in the archive, and of the location in the process.
        regions
            Names of the regions that do I/O.
        handles
            All processes' handles by number; duplicated ones are added.
        files
            File codes, by the files' numbers in the archive.
        nanoseconds
            Converts a time stamp to nanoseconds.
        offset
            Number of the attribute that contains an operation's offset.
        """
        self._location, self._regions, self._handles, self._files = (process, thread), regions, handles, files
        self._functions, self._ns, self._offset = functions, nanoseconds, offset
        self._columns: dict[str, array[int]] = {name: array(_CODES[ROWS.field(name).type]) for name in ROWS.names}
        self._stack: list[_Call] = []
        self._pending: dict[tuple[int, int], _Call] = {}
        """The call of each running operation, by handle and matching id."""
        self.last = 0
        """Time of the last event in nanoseconds."""
        self.program: int | None = None
        """Number of the text that names the program."""
        self.callbacks: dict[str, Callable[..., object]] = {
            "ProgramBegin": lambda _time, _, name, *_arguments: setattr(self, "program", name),
            "Enter": self._enter,
            "Leave": self._leave,
            "IoCreateHandle": self._create,
            "IoDestroyHandle": lambda time, _, handle: self._event(time, handle, "close", Flag.CLOSE),
            "IoDuplicateHandle": self._duplicate,
            "IoSeek": lambda time, _, handle, _distance, _whence, position: self._seek(time, handle, position),
            "IoChangeStatusFlags": lambda time, _, handle, _status: self._event(time, handle, "fcntl"),
            "IoDeleteFile": self._delete,
            **dict.fromkeys(("IoAcquireLock", "IoReleaseLock", "IoTryLock"), self._lock),
            "IoOperationBegin": self._begin,
            "IoOperationComplete": self._complete,
            "IoOperationCancelled": lambda time, _, handle, number: self._complete(time, _, handle, _UNDEFINED, number),
        }

    def __len__(self) -> int:
        return len(self._columns["start"])

    def batch(self) -> pa.RecordBatch:
        """All calls, sorted by start time; call it after reading the location."""
        for call in self._stack:
            self._end(call.row, self.last)
        for call in self._pending.values():
            self._columns["bytes"][call.row] = NO_VALUE
        column: Columns = {name: np.array(values) for name, values in self._columns.items()}
        # A call that moves no bytes, such as a read at the end of a file, is not a data operation.
        nothing = (column["kind"] <= Kind.WRITE) & (column["layer"] <= Layer.STDIO) & (column["bytes"] == 0)
        column["kind"][nothing], column["rule"][nothing] = Kind.METADATA, PositionRule.NONE
        column["bytes"][nothing] = NO_VALUE
        return batch_of(column, ROWS)

    def _enter(self, time: int, _: Any, region: int) -> None:
        self.last = self._time(time)
        name = self._regions.get(region)
        if name is not None:
            self._stack.append(_Call(self._row(self.last, name), region))

    def _leave(self, time: int, _: Any, region: int) -> None:
        self.last = self._time(time)
        if region in self._regions and any(call.region == region for call in self._stack):
            while True:
                call = self._stack.pop()
                self._end(call.row, self.last)
                if call.region == region:
                    break

    def _row(self, start: int, name: str) -> int:
        meaning = meaning_of(name)
        process, thread = self._location
        row = len(self)
        of_file_system = meaning.layer <= Layer.STDIO and meaning.rule in (PositionRule.AT, PositionRule.ADVANCE)
        values = (
            *(process, thread, self._functions.number(name), meaning.layer, meaning.kind),
            min(len(self._stack), _DEEPEST),
            meaning.rule if of_file_system else PositionRule.NONE,
            # Other flags depend on the call's events.
            int(meaning.flags & (Flag.COLLECTIVE | Flag.DIRECTORY | Flag.STAT | Flag.RENAME | LOCK)),
            *(-1, NO_VALUE, NO_VALUE, start, 0),
        )
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        return row

    def _end(self, row: int, time: int) -> None:
        self._columns["took"][row] = max(0, time - self._columns["start"][row])

    def _time(self, ticks: int) -> int:
        return min(max(self._ns(ticks), -_LATEST_NS), _LATEST_NS)

    def _call(self, time: int, handle: int, word: str) -> _Call:
        """The call of an event: the region around it, or a new call without a region."""
        self.last = self._time(time)
        known = self._handles.get(handle)
        call = self._stack[-1] if self._stack else None
        if call is None or call.handle not in (None, handle):
            layer = Layer.POSIX if known is None else known.layer
            name = word if layer in _NAMES or known is None else f"{known.paradigm} {word}"
            call = _Call(self._row(self.last, _NAMES.get(layer, {}).get(word, name)), None)
        call.handle = handle
        if known is not None:
            columns = self._columns
            columns["file"][call.row], columns["layer"][call.row] = known.file, known.layer
            if known.is_folder:
                columns["flags"][call.row] |= Flag.DIRECTORY
        return call

    def _event(self, time: int, handle: int, word: str, flags: int = 0) -> int:
        row = self._call(time, handle, word).row
        self._columns["flags"][row] |= flags
        return row

    def _create(self, time: int, _: Any, handle: int, mode: Any, creation: Any, status: Any) -> None:
        # Numbers, since no member of `Flag` takes a negative one such as DIRECT.
        flags = int(Flag.OPEN if mode.value in _READ_ONLY else Flag.OPEN | Flag.WRITABLE)
        for bits, table in ((creation.value, _CREATION), (status.value, _STATUS)):
            for bit, flag in table:
                flags |= int(flag) if bits & bit else 0
        row = self._event(time, handle, "open", flags)
        self._set_rule(row, PositionRule.OPEN, NO_VALUE)

    def _duplicate(self, time: int, _: Any, old: int, new: int, _status: Any) -> None:
        self._event(time, old, "dup")
        if old in self._handles:
            self._handles[new] = self._handles[old]

    def _seek(self, time: int, handle: int, position: int) -> None:
        row = self._event(time, handle, "seek")
        self._columns["flags"][row] |= Flag.SEEK
        self._set_rule(row, PositionRule.SEEK_SET, min(position, _LARGEST))

    def _lock(self, time: int, _: Any, handle: int, _type: Any) -> None:
        known = self._handles.get(handle)
        # flockfile locks a stream for the threads of its process.
        self._event(time, handle, "lock", LOCK if known is None or known.layer is Layer.POSIX else 0)

    def _delete(self, time: int, _: Any, _paradigm: int, file: int) -> None:
        self.last = self._time(time)
        row = self._stack[-1].row if self._stack else self._row(self.last, "unlink")
        self._columns["file"][row] = self._files.get(file, -1)
        self._columns["flags"][row] |= Flag.REMOVE
        self._set_rule(row, PositionRule.GONE, NO_VALUE)

    def _begin(
        self, time: int, attributes: Any, handle: int, mode: Any, flags: Any, _requested: int, number: int
    ) -> None:
        if mode.value >= len(_KINDS):
            return
        call = self._call(time, handle, _MODES[mode.value])
        self._pending[handle, number] = call
        call.operations += 1
        columns, row = self._columns, call.row
        if columns["layer"][row] > Layer.NETCDF:
            return
        columns["kind"][row] = _KINDS[mode.value]
        if flags.value & _COLLECTIVE:
            columns["flags"][row] |= Flag.COLLECTIVE
        if _KINDS[mode.value] is not Kind.SYNC and call.operations == 1:
            self._place(row, offset_of(attributes, self._offset))

    def _place(self, row: int, offset: int | None) -> None:
        columns = self._columns
        value = NO_VALUE if offset is None else min(offset, _LARGEST)
        if columns["layer"][row] == Layer.MPIIO:
            columns["value"][row] = value
        elif value != NO_VALUE:
            self._set_rule(row, PositionRule.AT, value)
        elif columns["rule"][row] != PositionRule.AT:
            self._set_rule(row, PositionRule.ADVANCE, NO_VALUE)

    def _complete(self, time: int, _: Any, handle: int, moved: int, number: int) -> None:
        self.last = self._time(time)
        call = self._pending.pop((handle, number), None)
        if call is None:
            return
        if call.region is None:
            self._end(call.row, self.last)
        columns, row = self._columns, call.row
        if not Kind.READ <= columns["kind"][row] <= Kind.WRITE:
            return
        total = moved + max(columns["bytes"][row], 0)
        call.is_known &= moved != _UNDEFINED
        columns["bytes"][row] = min(total, _LARGEST) if call.is_known else NO_VALUE

    def _set_rule(self, row: int, rule: PositionRule, value: int) -> None:
        """Set the position rule, because only file-system calls move a position."""
        if self._columns["layer"][row] <= Layer.STDIO:
            self._columns["rule"][row], self._columns["value"][row] = rule, value


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


@dataclass(frozen=True, kw_only=True)
class _Archive(KnownRows):
    """Results of reading all events."""

    library_calls_alone: int
    """Number of library calls if no others were recorded."""
    hosts: list[str]
    places: list[tuple[str, list[str], int]]
    """Facts about the mounts and Lustre layouts of the files."""
    last_ns: int
    """Time of the run's last event on the run's clock."""
    start_unix_s: float | None
    app: str


class Otf2Reader(SpooledReader[_Archive]):
    """An OTF2 archive."""

    tool: ClassVar = "otf2"
    format: ClassVar = "otf2"
    layout: ClassVar = "processes"
    _parts_of = staticmethod(files_of)
    _limits: ClassVar = _LIMITS

    def __init__(self, path: Path) -> None:
        """Record the state of the files; nothing is read yet."""
        self._anchor = anchor_of(path)
        super().__init__(path)

    @property
    def app(self) -> str:
        return self.known.app

    @property
    def start_unix_s(self) -> float | None:
        return self.known.start_unix_s

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Hosts, if the archive names each process's, places of files, and library calls if there are no others."""
        hosts = list(dict.fromkeys(self.known.hosts))
        facts = [*self.known.places, *([("hosts", hosts, 1)] if hosts and all(hosts) else [])]
        alone = self.known.library_calls_alone
        return [*facts, ("file_system_calls_missing", [], alone)] if alone else facts

    def _scan(self) -> _Archive:
        # The events of one location at a time are in memory.
        BUDGET.expect(_PER_BYTE * max(file.stat().st_size for file in files_of(self._anchor)), self._anchor)
        with open_archive(self._anchor) as archive:
            return _read(archive, self._anchor)

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        piece.span_ns = max(piece.span_ns, self.known.last_ns)
        yield from super().batches(ranks, piece)


def _read(archive: Archive, anchor: Path) -> _Archive:
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
        # TAU writes `read()`.
        for name in (region.name.removesuffix("()"),)
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
        layer, file = (to_numpy(batch.column(name)) for name in ("layer", "file"))
        library_calls += int((layer > Layer.STDIO).sum())
        last = max(last, of_location.last)
        if len(batch):
            spool.add(batch)
            pairs = distinct(pairs, (rank << 32) + file[file >= 0].astype(np.int64))
    if not calls.any():
        raise _without_calls(definitions, anchor, problems)
    realtime = clock.realtime_timestamp
    return _Archive(
        rows=spool,
        rank_of=np.arange(len(calls), dtype=np.int32),
        calls=calls,
        paths=paths.paths,
        users=users_of(pairs, len(paths.paths)),
        # Score-P records all calls of a process, also those of MPI's start.
        classes=classes_of(paths.paths, [], np.zeros(len(paths.paths), np.bool_)),
        names=functions.texts,
        library_calls_alone=library_calls if library_calls == calls.sum() else 0,
        hosts=[_host(process) for process in processes],
        places=_places(definitions),
        last_ns=last,
        start_unix_s=None if realtime >= 1 << 63 else realtime / 1e9,
        # The folder names a run of several programs.
        app=(len(programs) == 1 and Path(*programs).name) or app_name(anchor.resolve().parent.name),
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


def _places(definitions: Any) -> list[tuple[str, list[str], int]]:
    """Facts `mount` (folder, type) and `layout` (path, stripe counts, stripe sizes, first bytes of the components).

    Properties of files are those of Score-P's `scorep_platform_mountinfo.c` and `scorep_platform_lustre.c`.
    """
    files: dict[str, dict[str, str]] = {}
    for entry in definitions.io_file_properties:
        files.setdefault(entry.io_file.name, {})[entry.name] = str(entry.value)
    mounts = dict.fromkeys((known.get("Mount Point", ""), known.get("File system", "")) for known in files.values())
    return [("mount", list(mount), 1) for mount in mounts if all(mount)] + [
        ("layout", [path, known["Stripe Count"], known["Stripe Size"], known.get("Extent Begin", "0")], 1)
        for path, known in files.items()
        if {"Stripe Count", "Stripe Size"} <= known.keys()
    ]


def _host(process: Any) -> str:
    node = process.system_tree_parent
    while node is not None and node.class_name != "node":
        node = node.parent
    return "" if node is None else str(node.name)


def _word(value: Any) -> str:
    """The last word of an OTF2 constant, such as `FILE_IO`; empty if the library does not know the constant."""
    return str(getattr(type(value), "_names", {}).get(value.value, ""))
