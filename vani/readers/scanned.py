"""Readers that parse a whole trace once, because it mixes processes, and keep its tables and rows of numbers."""

import hashlib
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from vani.calls import FileClass
from vani.columns import Bools, Columns, Int8s, Int32s, Ints, Numbers, distinct, to_arrow, to_numpy
from vani.errors import TraceError, os_errors_as
from vani.readers.delivery import Delivery, Rows
from vani.readers.files import Identified
from vani.readers.functions import function_table
from vani.readers.paths import file_table
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import BATCH_ROWS, Limit, Piece

GROUP_ROWS = 4 * BATCH_ROWS
"""Approximate number of calls of ranks that are read together; a rank with more is read alone, in pieces."""
_MAX_FACTS = 10_000
_IN_MEMORY = 1 << 26


@dataclass(frozen=True)
class _StoredBatch:
    at: int
    size: int
    numbers: Int32s
    """Numbers of which the batch has rows, ascending."""


class Spool:
    """Record batches of one schema, in order; several threads may read them repeatedly at the same time."""

    def __init__(self, schema: pa.Schema, by: str) -> None:
        """`by` is the column of thread or process numbers by which batches are requested."""
        self.schema, self.by = schema, by
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - lives as long as this
        self._stored: list[_StoredBatch] = []
        self._lock = threading.Lock()

    def __del__(self) -> None:
        self._file.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Store a batch.

        Raises
        ------
        TraceError
            There is no room for temporary files.
        """
        data, todo = batch.serialize(), "name another folder for temporary files in TMPDIR"
        full = os_errors_as(TraceError, "cannot store the parsed rows", where=tempfile.gettempdir(), todo=todo)
        with self._lock, full:
            at = self._file.seek(0, 2)
            self._file.write(data)
        numbers = distinct(to_numpy(batch.column(self.by)))
        self._stored.append(_StoredBatch(at, data.size, numbers))

    def batches(self, wanted: Bools) -> Iterator[pa.RecordBatch]:
        """The batches that have rows with any of the numbers marked in `wanted`."""
        for stored in self._stored:
            if not wanted[stored.numbers].any():
                continue
            with self._lock:
                self._file.seek(stored.at)
                data = self._file.read(stored.size)
            yield pa.ipc.read_record_batch(pa.py_buffer(data), self.schema)


@dataclass(frozen=True, kw_only=True)
class Known:
    """Results of one pass over a trace."""

    calls: Ints
    """Calls per rank."""
    names: list[str]
    """Functions by code."""
    paths: list[str]
    users: Numbers
    """Number of ranks that use each file."""
    probes: Bools | None = None
    """Paths that were only probed; None if unknown."""
    classes: Int8s | None = None
    """`FileClass` by file, where its path alone does not determine the class; None if unknown."""
    problems: list[str]


@dataclass(frozen=True, kw_only=True)
class KnownRows(Known):
    """The same with the rows of all calls, which are delivered rank by rank."""

    rows: Spool
    rank_of: Int32s
    """Rank of each thread or process by which `rows` finds batches; -1 for those that are left out."""
    first_ns: int = 0
    """Time of the first call on the clock of the rows."""


@dataclass(frozen=True, kw_only=True)
class KnownLog(KnownRows):
    """The same of tracers that write a line per call."""

    apps: list[str]
    """App of each rank; empty if the log does not show the program."""
    maps: list[tuple[list[str], int, int, int]]
    """Mappings of files into memory: how, file, length (-1 if unknown), number of times."""


K = TypeVar("K", bound=Known)
R = TypeVar("R", bound=KnownRows)
L = TypeVar("L", bound=KnownLog)


class ScannedReader(Identified, ABC, Generic[K]):
    """A trace whose tables are known after one pass over its content; see `TraceReader`."""

    tool: ClassVar[str]
    format: ClassVar[str]
    _limits: ClassVar[tuple[Limit, ...]]

    def __init__(self, path: Path) -> None:
        """Record the state of the files; nothing is parsed yet."""
        super().__init__(path, self._parts_of, with_ends=True)
        self._lock = threading.Lock()
        self._known: K | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Cluster workers open the trace themselves, on the shared file system.
        return type(self), (self.path.absolute(),)

    @staticmethod
    @abstractmethod
    def _parts_of(path: Path) -> list[Path]:
        """The trace's files."""

    @abstractmethod
    def _scan(self) -> K:
        """Read everything once; the order of results must depend only on the files."""

    @property
    def known(self) -> K:
        """The tables, from one pass over everything."""
        with self._lock:
            if self._known is None:
                self._known = self._scan()
            return self._known

    @property
    def ranks(self) -> int:
        return len(self.known.calls)

    @property
    def start_unix_s(self) -> float | None:
        return None

    @property
    def limits(self) -> tuple[Limit, ...]:
        return self._limits

    @property
    def problems(self) -> list[str]:
        return self.known.problems

    def calls_per_rank(self) -> Ints:
        return self.known.calls

    def functions(self) -> pa.Table:
        return function_table(self.known.names)

    def files(self) -> pa.Table:
        return file_table(self.known.paths, self.known.probes, self.known.classes)


class SpooledReader(ScannedReader[R]):
    """A trace that mixes rows of several processes."""

    _by_time: ClassVar[bool] = False
    """Whether intervals decide which library call made a call."""
    _late: ClassVar[int] = 0
    """Number of rows of a process read in pieces that wait for calls that ended later but began earlier."""

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        """See `TraceReader.batches`."""
        known = self.known
        rows, rank_of, by = known.rows, known.rank_of, known.rows.by
        for group in rank_groups(ranks, known.calls, GROUP_ROWS):
            delivery = Delivery(piece, known.names, known.users == 1, by_time=self._by_time)
            is_selected = (rank_of >= group.start) & (rank_of < group.stop)
            # A process with many calls is delivered in pieces.
            is_large = int(known.calls[group.start : group.stop].sum()) > GROUP_ROWS
            waiting: list[Columns] = []
            for batch in rows.batches(is_selected):
                own = np.flatnonzero(is_selected[to_numpy(batch.column(by))])
                waiting.append({name: to_numpy(batch.column(name))[own] for name in rows.schema.names})
                if is_large and sum(len(columns[by]) for columns in waiting) >= GROUP_ROWS + self._late:
                    ordered = self._ordered(waiting)
                    cut = len(ordered[by]) - self._late
                    rows_ready = self._rows({name: values[:cut] for name, values in ordered.items()})
                    yield from delivery.batches(rows_ready)
                    waiting = [{name: values[cut:] for name, values in ordered.items()}]
            if waiting:
                yield from delivery.batches(self._rows(self._ordered(waiting)))

    def _ordered(self, parts: list[Columns]) -> Columns:
        """Joined columns, rank by rank, by call start."""
        column = joined(parts)
        ranks = self.known.rank_of[column[self.known.rows.by]]
        places = np.lexsort((*self._ties(column), column["start"], ranks))
        return {name: values[places] for name, values in column.items()}

    def _ties(self, column: Columns) -> tuple[Numbers, ...]:
        """Keys that order calls of a rank with equal starts; otherwise they keep their order."""
        del column
        return ()

    def _rows(self, column: Columns) -> Rows:
        """Calls from ordered columns."""
        known = self.known
        columns = {name: column[name] for name in Signatures.columns() if name in column} | self._interpreted(column)
        ids = np.arange(len(column["start"]), dtype=np.int32)
        rank = known.rank_of[column[known.rows.by]]
        signatures = Signatures.of_calls(known.names, **columns)
        return Rows(rank, signatures, ids, column["start"] - known.first_ns, column["took"])

    def _interpreted(self, column: Columns) -> Columns:
        """Columns of `Signatures` that the rows lack or that differ from theirs."""
        del column
        return {}


class LogReader(SpooledReader[L]):
    """A run in logs with a line per call, or the processes of one of its programs."""

    _log: ClassVar[str]
    """Name of a log in messages."""

    def __init__(self, path: Path, app: str | None = None) -> None:
        """`app`: only the processes of this program; None for all.

        Raises
        ------
        TraceError
            There is no log.
        """
        super().__init__(path)
        self._app = app
        if not self._parts_of(path):
            raise TraceError(f"contains no {self._log}", where=path, todo="trace the run again")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.path.absolute(), self._app)

    @abstractmethod
    def _parse(self) -> L:
        """Read all lines once."""

    @abstractmethod
    def _selected(self, known: L, is_own: Bools) -> L:
        """Restrict the rest of `known` to the ranks of one app; remarks about the whole log stay with the first app."""

    def _scan(self) -> L:
        known = self._parse()
        return known if self._app is None else self._of_app(known, self._app)

    def _of_app(self, known: L, app: str) -> L:
        """The ranks of one app, renumbered."""
        apps = np.array(self._apps(known))
        is_own = apps == app
        number = np.append(np.where(is_own, np.cumsum(is_own) - 1, -1), -1)
        part = replace(
            known,
            calls=known.calls[is_own],
            apps=apps[is_own].tolist(),
            rank_of=number[known.rank_of].astype(np.int32),
            problems=known.problems if is_own[0] else [],
        )
        return self._selected(part, is_own)

    @property
    @abstractmethod
    def _other_app(self) -> str:
        """Name of programs that the log does not show."""

    def _apps(self, known: L) -> list[str]:
        """The app of each rank."""
        other = self._other_app
        return [app or other for app in known.apps]

    def by_app(self) -> Sequence[Self]:
        """One reader per program, or only this one if all processes ran the same program."""
        names = [] if self._app is not None else list(dict.fromkeys(self._apps(self.known)))
        if len(names) < 2:
            return [self]
        readers = [type(self)(self.path, name) for name in names]
        for reader, name in zip(readers, names, strict=True):
            reader._identity, reader._known = self._identity, self._of_app(self.known, name)
        return readers

    @property
    def start_unix_s(self) -> float | None:
        return self.known.first_ns / 1e9

    def digest(self) -> str:
        whole = super().digest()
        return whole if self._app is None else hashlib.sha256(f"{whole} {self._app}".encode()).hexdigest()

    def mapped_files(self) -> list[tuple[str, list[str], int]]:
        """Facts about data set files that were mapped into memory, with the arguments of mmap: the length is second."""
        classes, paths = self.files()["class"].to_pylist(), self.known.paths
        facts = [
            ("mmap", ["NULL", str(length), *how, paths[code]], count)
            for how, code, length, count in self.known.maps
            if classes[code] == FileClass.DATASET
        ]
        return facts[:_MAX_FACTS]


def joined(parts: list[Columns]) -> Columns:
    """Concatenated columns."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


_TYPES = {
    **dict.fromkeys(("layer", "kind", "depth", "rule"), pa.int8()),
    **dict.fromkeys(("func", "flags"), pa.int16()),
    **dict.fromkeys(("bytes", "value", "start", "took"), pa.int64()),
    **dict.fromkeys(("there", "standard"), pa.bool_()),
}
"""Types of columns that are not integers of 32 bits."""


def row_schema(names: str) -> pa.Schema:
    """The schema of rows with these columns, which have the same types in all readers."""
    return pa.schema([(name, _TYPES.get(name, pa.int32())) for name in names.split()])


def batch_of(columns: Columns, schema: pa.Schema) -> pa.RecordBatch:
    """A record batch of columns of numbers, for a spool."""
    arrays = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        is_flag = pa.types.is_boolean(kind)
        arrays.append(pa.array(columns[name]) if is_flag else to_arrow(columns[name].astype(f"i{kind.bit_width // 8}")))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def pairs_of(rank: Ints, file: Numbers) -> Ints:
    """Distinct pairs `rank << 32 | file` of a rank, -1 for none, and a file that it uses."""
    pairs = rank.astype(np.int64) << 32 | file
    return distinct(pairs[pairs >= 0])


def users_of(pairs: Ints, files: int) -> Ints:
    """Number of ranks that use each file, shape (files,), from distinct pairs `rank << 32 | file`."""
    return np.bincount(pairs & 0xFFFFFFFF, minlength=files).astype(np.int64)


def calls_of_ranks(rank_of: Int32s, calls: Ints) -> Ints:
    """Calls per rank from those of each thread or process."""
    return np.bincount(rank_of[rank_of >= 0], calls[rank_of >= 0]).astype(np.int64)


def rank_groups(ranks: range, calls: Ints, most: int) -> Iterator[range]:
    """Split a range of ranks after about `most` calls each; ranks that are not consecutive are alone."""
    if ranks.step != 1:
        yield from (range(rank, rank + 1) for rank in ranks)
        return
    first, rows = ranks.start, 0
    for rank in ranks:
        if rows and rows + int(calls[rank]) > most:
            yield range(first, rank)
            first, rows = rank, 0
        rows += int(calls[rank])
    if rows:
        yield range(first, ranks.stop)
