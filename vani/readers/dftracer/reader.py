"""A run under DFTracer: a folder with its processes' files, or one of these files.

Each process is a rank with its threads; a job's rank also includes the calls of workers that it started. All lines are
parsed once, and their numbers are kept as rows (see `spool`): a process may have several files, a file may have
several processes, and calls are delivered process by process. An event is written when its call ends, so rows are
sorted by the start of their calls.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS, FileClass, Layer
from vani.columns import small_table
from vani.errors import TraceError
from vani.readers.delivery import Columns, Delivery, Rows, process_batches
from vani.readers.dftracer import logs_of
from vani.readers.dftracer.processes import Missing
from vani.readers.dftracer.scan import Known, scan
from vani.readers.identity import identity_of
from vani.readers.paths import file_table
from vani.readers.programs import app_name
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import BATCH_ROWS, Limit, Piece

Ints = NDArray[np.int64]

_LATE = BATCH_ROWS
"""Number of rows of a process read in pieces that wait for calls that ended later but began earlier."""
_MOST_FACTS = 10_000
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


class DFTracerReader:
    """A DFTracer trace, or the processes of one app in it."""

    tool = "dftracer"
    format = "pfw"

    def __init__(self, path: Path, app: str | None = None) -> None:
        """Record the state of the files; nothing is parsed yet.

        Raises
        ------
        TraceError
            There is no DFTracer file.
        """
        self.path = path
        self._identity = identity_of(path, logs_of, with_ends=True)
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._app = app
        if not logs_of(path):
            raise TraceError("contains no file of DFTracer", where=path, todo="trace the run again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path.absolute(), self._app)

    @property
    def layout(self) -> str:
        """`ranks` if each is an MPI rank, or of a launcher such as torchrun, including the workers that it started."""
        return "ranks" if self.known.with_ranks else "processes"

    @property
    def app(self) -> str:
        if self._app is not None:
            return self._app
        names = set(_apps(self.path, self.known))
        return names.pop() if len(names) == 1 else _name_of(self.path)

    def by_app(self) -> Sequence[DFTracerReader]:
        """One reader per program, or only this one if all processes ran the same program."""
        names = list(dict.fromkeys(_apps(self.path, self.known)))
        if self._app is not None or len(names) < 2:
            return [self]
        readers = [DFTracerReader(self.path, name) for name in names]
        for reader, name in zip(readers, names, strict=True):
            reader._identity, reader._known = self._identity, _of_app(self.path, self.known, name)
        return readers

    @property
    def ranks(self) -> int:
        return len(self.known.calls)

    @property
    def start_unix_s(self) -> float | None:
        return self.known.first_ns / 1e9

    @property
    def limits(self) -> tuple[Limit, ...]:
        return _LIMITS

    @property
    def problems(self) -> list[str]:
        return self.known.problems

    def digest(self) -> str:
        whole = self._identity.digest()
        return whole if self._app is None else hashlib.sha256(f"{whole} {self._app}".encode()).hexdigest()

    def changed(self) -> bool:
        return identity_of(self.path, logs_of, with_ends=True) != self._identity

    def calls_per_rank(self) -> Ints:
        return self.known.calls

    def functions(self) -> pa.Table:
        names, calls = self.known.functions.names, self.known.functions.calls
        layers, kinds = ([int(getattr(call, part)) for call in calls] for part in ("layer", "kind"))
        return small_table([range(len(names)), names, layers, kinds], FUNCTIONS)

    def files(self) -> pa.Table:
        table = file_table(self.known.paths, self.known.probes)
        by_path = pc.equal(table["class"], pa.scalar(int(FileClass.DATASET), pa.int8()))
        classes = pc.if_else(by_path, pa.array(self.known.classes), table["class"])
        return table.set_column(table.schema.get_field_index("class"), FILES.field("class"), classes)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """Hosts, data set files that were mapped into memory, and processes without events."""
        known = self.known
        classes = self.files()["class"].to_pylist()
        mapped = [
            ("mmap", [known.paths[code]], count)
            for code, count in known.maps
            if classes[code] == FileClass.DATASET
        ]
        hosts = list(dict.fromkeys(known.hosts))
        # Only if each process has a host.
        facts: list[tuple[str, list[str], int]] = [("hosts", hosts, 1)] if all(hosts) else []
        facts += mapped[:_MOST_FACTS]
        missing = known.missing
        bound = [] if missing.most_ns is None else [str(missing.most_ns)]
        return [("processes_missing", bound, missing.number), *facts] if missing.number else facts

    @property
    def known(self) -> Known:
        """The tables and rows, from one pass over all lines."""
        with self._lock:
            if self._known is None:
                known = scan(self.path)
                self._known = known if self._app is None else _of_app(self.path, known, self._app)
            return self._known

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        known = self.known
        private = known.users == 1
        yield from process_batches(
            known.rows,
            known.rank_of_process,
            known.calls,
            ranks,
            lambda: Delivery(private, known.functions.names, piece, by_time=True),
            lambda column: _order(column, known),
            lambda column: _rows(column, known),
            late=_LATE,
        )


def _name_of(path: Path) -> str:
    return app_name(path.resolve().name.partition(".pfw")[0])


def _apps(path: Path, known: Known) -> list[str]:
    """The app of each rank."""
    other = _name_of(path)
    return [app or other for app in known.apps]


def _of_app(path: Path, known: Known, app: str) -> Known:
    """The ranks of one app, renumbered; remarks about the whole trace are attached to the first app."""
    apps = np.array(_apps(path, known))
    selected = apps == app
    number = np.append(np.where(selected, np.cumsum(selected) - 1, -1), -1)
    rank_of_process = number[known.rank_of_process].astype(np.int32)
    own = (rank_of_process >= 0)[known.pairs >> 32]
    is_first = bool(selected[0])
    with_files = set(known.files[own].tolist())
    return replace(
        known,
        calls=known.calls[selected],
        apps=apps[selected].tolist(),
        hosts=[host for host, own in zip(known.hosts, selected.tolist(), strict=True) if own],
        rank_of_process=rank_of_process,
        maps=[(code, count) for code, count in known.maps if code in with_files],
        missing=known.missing if is_first else Missing(0, None),
        problems=known.problems if is_first else [],
    )


def _order(column: Columns, known: Known) -> NDArray[np.intp]:
    """Row order: rank by rank in call order, with a library call before the calls that it made."""
    layers = np.array([call.layer for call in known.functions.calls], np.int64)[column["func"]]
    # Many calls begin in the same microsecond. Calls of the C library do not nest, and keep the order of events.
    depth = Layer.USER - np.maximum(layers, Layer.STDIO)
    return np.lexsort((depth, column["start"], known.rank_of_process[column["process"]]))


def _rows(column: Columns, known: Known) -> Rows:
    n, func = len(column["start"]), column["func"]
    signatures = Signatures.of_calls(
        func=func,
        layer=np.array([call.layer for call in known.functions.calls], np.int8)[func],
        kind=column["kind"].copy(),
        thread=column["tid"],
        file=_files(column, "name", known),
        bytes=column["bytes"],
        rule=column["rule"],
        flags=column["flags"].copy(),
        value=column["value"],
        rename_to=_files(column, "rename_to", known),
    )
    rank = known.rank_of_process[column["process"]]
    start = column["start"] - known.first_ns
    return Rows(rank, signatures, np.arange(n, dtype=np.int32), start, column["took"])


def _files(column: Columns, name: str, known: Known) -> NDArray[np.int32]:
    """The file of each call, -1 for none; a relative name is resolved in its process's working directory."""
    files = np.full(len(column["start"]), -1, np.int32)
    rows = np.flatnonzero(column[name] >= 0)
    if len(rows):
        pair = column["process"][rows].astype(np.int64) << 32 | column[name][rows]
        files[rows] = known.files[np.searchsorted(known.pairs, pair)]
    return files
