"""File calls of a run under Score-P or another OTF2 writer. Each process is a rank, and each location is a thread.

All events are read once and their rows are kept (see `scanned`), because the number of calls is known only at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from vani.calls import Layer
from vani.columns import to_numpy
from vani.distinct import distinct
from vani.errors import TraceError
from vani.readers.otf2 import anchor_of, files_of
from vani.readers.otf2.archive import Archive, open_archive
from vani.readers.otf2.calls import ROWS, Calls, Functions, Handle, does_io
from vani.readers.paths import PathTable, classes_of
from vani.readers.programs import app_name
from vani.readers.scanned import KnownRows, Spool, SpooledReader
from vani.readers.trace_reader import Limit, Piece
from vani.units import counted

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
        users=np.bincount(pairs & 0xFFFFFFFF, minlength=len(paths.paths)).astype(np.int64),
        # Score-P records all calls of a process, also those of MPI's start.
        classes=classes_of(paths.paths, [], np.zeros(len(paths.paths), np.bool_)),
        names=functions.texts,
        library_calls_alone=library_calls if library_calls == calls.sum() else 0,
        hosts=[_host(process) for process in processes],
        places=_places(definitions),
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
