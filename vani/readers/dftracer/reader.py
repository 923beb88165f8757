"""A run under DFTracer: a folder with its processes' files, or one of these files.

Each process is a rank with its threads; a job's rank also includes the calls of workers that it started. All lines are
parsed once, and their numbers are kept as rows (see `scanned`): a process may have several files, a file may have
several processes, and calls are delivered process by process. An event is written when its call ends, so rows are
sorted by the start of their calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FUNCTIONS, Layer
from vani.columns import small_table
from vani.readers.dftracer import logs_of
from vani.readers.dftracer.processes import Missing
from vani.readers.dftracer.scan import DFTracerLog, scan
from vani.readers.programs import app_name
from vani.readers.scanned import Columns, LogReader
from vani.readers.trace_reader import BATCH_ROWS, Limit

_LIMITS = (
    Limit("io.time_s", "times are whole microseconds, as DFTracer writes them"),
    Limit(
        "io.bytes",
        "bytes are what calls moved, as they returned it; calls through duplicated descriptors (dup, redirections), "
        "openat, stat of glibc 2.33 and newer, preadv2 and pwritev2 (os.preadv, os.pwritev of Python), formatted "
        "output, io_uring and libaio leave no record",
    ),
    Limit(
        "io.access_pattern", "files are named, not descriptors: two descriptors of one path share a position"
    ),
    Limit(
        "io.past_end",
        "opens do not record success: a path that is opened, and neither closed nor used, counts as a failed "
        "look-up",
    ),
    Limit(
        "workflow.processes",
        "each process with an I/O call counts, but for programs that only load their libraries and modules",
    ),
)


class DFTracerReader(LogReader[DFTracerLog]):
    """A DFTracer trace, or the processes of one app in it."""

    tool: ClassVar = "dftracer"
    format: ClassVar = "pfw"
    _log: ClassVar = "file of DFTracer"
    _parts_of = staticmethod(logs_of)
    _by_time: ClassVar = True
    _late: ClassVar = BATCH_ROWS
    _limits: ClassVar = _LIMITS

    @property
    def layout(self) -> str:
        """`ranks` if each is an MPI rank, or of a launcher such as torchrun, including the workers that it started."""
        return "ranks" if self.known.with_ranks else "processes"

    @property
    def app(self) -> str:
        if self._app is not None:
            return self._app
        names = set(self._apps(self.known))
        return names.pop() if len(names) == 1 else self._other_app

    @property
    def _other_app(self) -> str:
        return app_name(self.path.resolve().name.partition(".pfw")[0])

    def functions(self) -> pa.Table:
        names, calls = self.known.names, self.known.functions
        layers, kinds = ([int(getattr(call, part)) for call in calls] for part in ("layer", "kind"))
        return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Hosts, data set files that were mapped into memory, and processes without events."""
        hosts, missing = list(dict.fromkeys(self.known.hosts)), self.known.missing
        bound = [] if missing.most_ns is None else [str(missing.most_ns)]
        return [
            *([("processes_missing", bound, missing.number)] if missing.number else []),
            # Only if each process has a host.
            *([("hosts", hosts, 1)] if all(hosts) else []),
            *self.mapped_files(),
        ]

    def _parse(self) -> DFTracerLog:
        return scan(self.path)

    def _selected(self, known: DFTracerLog, is_own: NDArray[np.bool_]) -> DFTracerLog:
        with_files = set(known.files[(known.rank_of >= 0)[known.pairs >> 32]].tolist())
        return replace(
            known,
            hosts=[host for host, own in zip(known.hosts, is_own.tolist(), strict=True) if own],
            maps=[mapped for mapped in known.maps if mapped[1] in with_files],
            missing=known.missing if is_own[0] else Missing(0, None),
        )

    def _layers(self, column: Columns) -> NDArray[np.int8]:
        return np.array([call.layer for call in self.known.functions], np.int8)[column["func"]]

    def _ties(self, column: Columns) -> tuple[NDArray[Any], ...]:
        # Many calls begin in the same microsecond: a library call precedes the calls that it made, while calls of the
        # C library do not nest, and keep the order of events.
        return (Layer.USER - np.maximum(self._layers(column), Layer.STDIO),)

    def _interpreted(self, column: Columns) -> Columns:
        files = {"file": self._files(column, "name"), "rename_to": self._files(column, "rename_to")}
        return {"layer": self._layers(column), "thread": column["tid"], **files}

    def _files(self, column: Columns, name: str) -> NDArray[np.int32]:
        """The file of each call, -1 for none; a relative name is resolved in its process's working directory."""
        known, files = self.known, np.full(len(column["start"]), -1, np.int32)
        rows = np.flatnonzero(column[name] >= 0)
        if len(rows):
            pair = column["process"][rows].astype(np.int64) << 32 | column[name][rows]
            files[rows] = known.files[np.searchsorted(known.pairs, pair)]
        return files
