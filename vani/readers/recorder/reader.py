"""Puts the parts of a Recorder trace together, rank by rank, batch by batch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.calls import FILES, FUNCTIONS, Occurrences
from vani.columns import small_table, to_arrow
from vani.errors import TraceError, UnknownFormatError
from vani.readers.base import BATCH_ROWS, Limit, Piece
from vani.readers.functions import FACTS
from vani.readers.recorder.batch_builder import BatchBuilder, Chunk
from vani.readers.recorder.call_table import CallTable, decode_call_table
from vani.readers.recorder.frames import Inflater, inflate_frame, split_frames
from vani.readers.recorder.grammar import Grammar, decode_grammar
from vani.readers.recorder.metadata import LAYOUTS, Metadata, decode_metadata
from vani.readers.recorder.occurrences import occurrences
from vani.readers.recorder.patterns import RunningOffsets, group_positions
from vani.readers.recorder.probe import Shape, app_name, probe
from vani.readers.recorder.signatures import (
    PathTable,
    Signatures,
    classify_path,
    function_rows,
    interpret,
)
from vani.readers.recorder.source import Extent, open_source
from vani.readers.recorder.timestamps import Clock

__all__ = ["RecorderReader"]

_USER_FUNCTION_ID = 255
_MOST_GRAMMARS_BYTES = 1 << 28
"""Of all unique grammars together, which stay in memory."""
_TOLD = 8
"""Damaged ranks that are reported one by one."""
_CACHED_CALLS = 1 << 16
_SMALL_GRAMMARS = 1 << 20
_NOTHING = Extent(Path(), 0, 0)
_CACHED_SYMBOLS = 1 << 23

Ints = NDArray[np.int64]


@dataclass
class _Tables:
    """What is known of the whole trace before a call is read."""

    paths: PathTable
    handles: dict[tuple[int, str], int]
    calls: Ints
    users: NDArray[np.int32]
    """Number of ranks that name each file."""
    shared: Signatures | None
    grammars: list[Grammar | None]
    """By unique grammar (inter-process compression); empty otherwise."""
    of_rank: Ints
    """Unique grammar of each rank, -1 if it is lost."""
    sharing: Ints
    """Number of ranks of each unique grammar."""
    pattern_position: NDArray[np.int64]
    facts: list[tuple[str, list[str], int]]
    problems: list[str]
    nested: bool
    """Some call has a depth above 0."""


@dataclass(frozen=True)
class _Segments:
    """Parts of recorder.ts by rank: offset in the file and length, 0 where there is none."""

    path: Path
    offset: Ints
    length: Ints
    problem: str | None


class RecorderReader:
    """A Recorder trace of layout 2.3 to 3.x."""

    tool = "recorder"

    def __init__(self, path: Path, shape: Shape | None = None) -> None:
        """Recognise the trace and read its metadata.

        Raises
        ------
        TraceError
            The trace cannot be decoded at all.
        """
        self.path = path
        self._shape = shape or probe(path)
        self._source = open_source(path, combined=self._shape.combined)
        layout = LAYOUTS[self._shape.layout]
        self._strict = self._shape.layout == "3.x"
        self._meta: Metadata = decode_metadata(
            self._source.read("recorder.mt"), layout, where=self._source.where("recorder.mt")
        )
        self._lock = threading.Lock()
        self._known: _Tables | None = None
        self._cache: dict[int, tuple[Signatures, Grammar]] = {}
        self._cached_symbols = 0

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers of a cluster open the trace themselves, from the shared file system.
        return RecorderReader, (self.path.absolute(), self._shape)

    @property
    def format(self) -> str:
        return self._meta.version or self._shape.version

    @property
    def layout(self) -> str:
        return self._shape.layout

    @property
    def app(self) -> str:
        return app_name(self.path.resolve().name)

    @property
    def ranks(self) -> int:
        return self._meta.ranks

    @property
    def start_unix_s(self) -> float | None:
        return self._meta.start_unix_s if self._meta.start_unix_s > 1e9 else None

    @property
    def metadata(self) -> Metadata:
        return self._meta

    @property
    def problems(self) -> list[str]:
        return self.tables.problems

    @property
    def limits(self) -> tuple[Limit, ...]:
        """What Recorder's traces never tell, and what is assumed in its place."""
        limits = [
            Limit(
                "io.bytes",
                "Recorder stores no return values: bytes are what calls asked for, short reads and "
                "failed calls look whole",
            ),
            Limit(
                "io.past_end",
                "file ends follow from writes, truncations and opens; a file that the run opens with O_CREAT "
                "before anything else is taken to have been empty then",
            ),
            Limit(
                "io.access_pattern",
                "Recorder names files, not descriptors: two descriptors of one path in one process share "
                "a position",
            ),
            Limit(
                "io.ops.metadata",
                "stat calls of glibc 2.33 and newer, openat, unlinkat and calls before MPI_Init or after "
                "MPI_Finalize are in no record",
            ),
        ]
        if not self._meta.layers_traced.get("posix", True):
            limits.append(Limit("io", "POSIX tracing was off: file-system calls are not in the trace"))
        if self._nested_by_time:
            limits.append(
                Limit(
                    "interfaces",
                    "call depth is not stored or 0 everywhere: a call is taken as made by the library call "
                    "whose interval contains it",
                )
            )
        return tuple(limits)

    def digest(self) -> str:
        return self._source.digest()

    def calls_per_rank(self) -> Ints:
        return self.tables.calls

    def functions(self) -> pa.Table:
        rows = function_rows(self._meta.functions)
        return small_table(list(zip(*rows, strict=True)), FUNCTIONS)

    def files(self) -> pa.Table:
        paths = self.tables.paths.paths
        classes = [int(classify_path(p)) for p in paths]
        return small_table([range(len(paths)), paths, classes], FILES)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """(function, its arguments, number of calls) of the calls in `functions.FACTS`."""
        return self.tables.facts

    def occurrences(self) -> Occurrences:
        """How often each call occurs, counted on the grammars alone."""
        tables = self.tables
        group = (
            np.where(tables.calls > 0, np.arange(self.ranks), -1) if tables.shared is None else tables.of_rank
        )
        return occurrences(group, self._of_rank, by_time=self._nested_by_time, where=str(self.path))

    @property
    def _nested_by_time(self) -> bool:
        """No depth is stored: intervals tell who called whom."""
        return self._meta.stores_depth is False or not self.tables.nested

    @property
    def tables(self) -> _Tables:
        """Everything that is known without reading time stamps."""
        with self._lock:
            if self._known is None:
                if self._strict:
                    self._known = self._read_strictly()
                else:
                    self._known = self._read_shared() if self._meta.interprocess else self._read_per_rank()
                if not self._known.calls.any() and self._known.problems:
                    problem, self._known = self._known.problems[0], None
                    raise TraceError(
                        f"no rank can be read: {problem}", where=self.path, todo="trace the run again"
                    )
                if self._meta.layout.framed and self._segments.problem:
                    self._known.problems.append(self._segments.problem)
            return self._known

    # ---------------------------------------------------------------- tables

    def _read_strictly(self) -> _Tables:
        """Layouts known from sources alone are read only if everything about them is as described."""
        found = "recorder.dat" if self._shape.combined else "recorder.mt without VERSION"
        version = f"Recorder {self.format} ({found})"
        try:
            tables = self._read_shared() if self._meta.interprocess else self._read_per_rank()
            problems = tables.problems or self._check_times(tables)
        except TraceError as error:
            problems = [str(error)]
        if problems:
            raise UnknownFormatError(
                f"{version} is not as the layouts that Vani knows: {problems[0]}",
                where=self.path,
                todo="convert it with the Recorder that wrote it, or update Vani",
            )
        return tables

    def _check_times(self, tables: _Tables) -> list[str]:
        problem = self._segments.problem
        if problem is None and any(self._segment(r) is None for r in np.flatnonzero(tables.calls).tolist()):
            problem = "recorder.ts lacks the time stamps of some rank"
        return [] if problem is None else [problem]

    def _table(self, name: str) -> bytes:
        content = self._source.read(name)
        if not self._meta.layout.framed:
            return content
        return inflate_frame(content, where=self._source.where(name))

    def _interpret(
        self, table: CallTable, paths: PathTable, handles: dict[tuple[int, str], int]
    ) -> Signatures:
        return interpret(
            table,
            self._meta.functions,
            paths,
            handles,
            interprocess_patterns=self._meta.interprocess_patterns,
            intraprocess_patterns=self._meta.intraprocess_patterns,
            user_function_id=_USER_FUNCTION_ID if self._meta.layout.function_bytes == 4 else None,
        )

    def _read_shared(self) -> _Tables:
        """With inter-process compression: one call table, and unique grammars that ranks share."""
        framed = self._meta.layout.framed
        cst = "recorder.cst" if framed else "0.cst"
        table = decode_call_table(
            self._table(cst),
            function_bytes=self._meta.layout.function_bytes,
            counted=self._meta.layout.counted,
            where=self._source.where(cst),
        )
        paths = PathTable()
        handles: dict[tuple[int, str], int] = {}
        signatures = self._interpret(table, paths, handles)
        problems = list(signatures.problems)
        ranks = self.ranks
        ids = self._source.read("ug.mt")
        where = self._source.where("ug.mt")
        numbers = np.frombuffer(ids[: len(ids) // 4 * 4], "<i4").astype(np.int64)
        of_rank = np.full(ranks, -1, dtype=np.int64)
        of_rank[: len(numbers)] = numbers[:ranks]
        if len(ids) == 4 * (ranks + 1):
            unique = int(numbers[-1])
        else:
            problems.append(f"{where}: has {len(ids)} bytes, {ranks} ranks need {4 * (ranks + 1)}")
            unique = int(of_rank.max()) + 1
        if not 1 <= unique <= ranks:
            raise TraceError(f"claims {unique} grammars of {ranks} ranks", where=where)
        strays = np.flatnonzero((of_rank < 0) | (of_rank >= unique))
        if len(strays):
            problems.append(
                f"{where}: ranks {_span(strays)}: left out, it names none of the {unique} grammars for them"
            )
            of_rank[strays] = -1
        grammars = self._unique_grammars(unique, len(table), problems)
        lengths = np.array([0 if g is None else g.calls for g in grammars], dtype=np.int64)
        lost = np.array([*(g is None for g in grammars), False])
        calls = np.append(lengths, 0)[of_rank]
        left_out = np.flatnonzero(lost[of_rank])
        if len(left_out):
            problems.append(
                f"{self._source.where('ug.cfg')}: ranks {_span(left_out)}: left out, their grammars are lost"
            )
        of_rank[left_out] = -1
        users = np.zeros(len(paths.paths), dtype=np.int32)
        times = np.bincount(of_rank[of_rank >= 0], minlength=unique)
        totals = np.zeros(len(table), dtype=np.int64)
        for grammar, count in zip(grammars, times.tolist(), strict=True):
            if grammar is not None and count:
                files = signatures.file[grammar.terminals]
                users[np.unique(files[files >= 0])] += count
                ids_used, often = grammar.used
                totals[ids_used] += often * count
        if table.count is not None and not problems and (totals != table.count).any():
            entry = int(np.flatnonzero(totals != table.count)[0])
            problems.append(
                f"call table counts {table.count[entry]} calls of signature {entry}, "
                f"the grammars {totals[entry]}: grammars are used"
            )
        position = np.zeros((ranks, 0), dtype=np.int64)
        if signatures.slope.any():
            position = group_positions(signatures, grammars, of_rank)
        return _Tables(
            paths,
            handles,
            calls,
            users,
            signatures,
            grammars,
            of_rank,
            times,
            position,
            self._facts(table, totals),
            problems,
            bool((signatures.depth > 0).any()),
        )

    def _unique_grammars(self, unique: int, terminals: int, problems: list[str]) -> list[Grammar | None]:
        grammars: list[Grammar | None] = [None] * unique
        frames: list[memoryview] = []
        if self._meta.layout.framed:
            content = memoryview(self._source.read("ug.cfg"))
            where = self._source.where("ug.cfg")
            frames = _whole_frames(content, unique, where, problems)
            if len(frames) != unique:
                problems.append(f"{where}: holds {len(frames)} whole grammars of {unique}")
        spent = 0

        def decode(index: int) -> Grammar | TraceError:
            nonlocal spent
            name = "ug.cfg" if self._meta.layout.framed else f"{index}.cfg"
            where = self._source.where(name) + (f" (grammar {index})" if frames else "")
            try:
                framed = self._meta.layout.framed
                buffer = inflate_frame(frames[index], where=where) if framed else self._source.read(name)
                spent += len(buffer)
                if spent > _MOST_GRAMMARS_BYTES:
                    raise TraceError(
                        f"grammars are larger than the {_MOST_GRAMMARS_BYTES} bytes that Vani takes",
                        where=where,
                    )
                return decode_grammar(buffer, terminals=terminals, where=where)
            except TraceError as error:
                return error

        there = range(min(unique, len(frames)) if self._meta.layout.framed else unique)
        # Two threads halve it: most of the work is numpy's, which lets others run.
        if len(there) > 1 and (self._source.extent("ug.cfg") or _NOTHING).length > _SMALL_GRAMMARS:
            with ThreadPoolExecutor(max_workers=2) as pool:
                found = list(pool.map(decode, there))
        else:
            found = [decode(index) for index in there]
        for index, result in enumerate(found):
            if isinstance(result, TraceError):
                problems.append(str(result))
            else:
                grammars[index] = result
        return grammars

    def _read_per_rank(self) -> _Tables:
        """Without inter-process compression: a call table and a grammar per rank."""
        paths = PathTable()
        handles: dict[tuple[int, str], int] = {}
        problems: list[str] = []
        calls = np.zeros(self.ranks, dtype=np.int64)
        users: dict[int, int] = {}
        facts: dict[tuple[str, ...], int] = {}
        nested = False
        lost = np.ones(self.ranks, dtype=np.bool_)
        there = self._source.ranks_with_tables(self.ranks)
        lost[there] = False
        absent = np.flatnonzero(lost)[:_TOLD].tolist()
        told = 0
        # A wrong number of ranks may claim millions whose files no one needs to look for.
        for rank in sorted([*there, *absent]):
            try:
                signatures, grammar, table = self._rank_tables(rank, paths, handles)
            except TraceError as error:
                lost[rank] = True
                told += 1
                if told <= _TOLD:
                    problems.append(f"rank {rank}: left out, {error}")
                continue
            problems += [p for p in signatures.problems if p not in problems]
            calls[rank] = grammar.calls
            nested = nested or bool((signatures.depth > 0).any())
            used = signatures.file[grammar.terminals]
            for file in np.unique(used[used >= 0]).tolist():
                users[file] = users.get(file, 0) + 1
            for name, args, count in self._facts(table, grammar.occurrences(len(table))):
                facts[(name, *args)] = facts.get((name, *args), 0) + count
        if lost.sum() > _TOLD:
            problems.append(f"ranks {_span(np.flatnonzero(lost))}: left out")
        counted = np.zeros(len(paths.paths), dtype=np.int32)
        for file, count in users.items():
            counted[file] = count
        return _Tables(
            paths,
            handles,
            calls,
            counted,
            None,
            [],
            np.full(self.ranks, -1, dtype=np.int64),
            np.empty(0, dtype=np.int64),
            np.zeros((self.ranks, 0), dtype=np.int64),
            [(k[0], list(k[1:]), c) for k, c in facts.items()],
            problems,
            nested,
        )

    def _rank_tables(
        self, rank: int, paths: PathTable, handles: dict[tuple[int, str], int]
    ) -> tuple[Signatures, Grammar, CallTable]:
        layout = self._meta.layout
        table = decode_call_table(
            self._table(f"{rank}.cst"),
            function_bytes=layout.function_bytes,
            counted=layout.counted,
            where=self._source.where(f"{rank}.cst"),
        )
        grammar = decode_grammar(
            self._table(f"{rank}.cfg"), terminals=len(table), where=self._source.where(f"{rank}.cfg")
        )
        signatures = self._interpret(table, paths, handles)
        size = grammar.symbols + len(table)
        if self._cached_symbols + size <= _CACHED_SYMBOLS:
            self._cached_symbols += size
            self._cache[rank] = signatures, grammar
        return signatures, grammar, table

    def _facts(self, table: CallTable, counts: Ints) -> list[tuple[str, list[str], int]]:
        wanted = [i for i, n in enumerate(self._meta.functions) if n in FACTS]
        rows = np.flatnonzero(np.isin(table.func, wanted) & (counts > 0))[:10_000]
        texts = table.args.take(to_arrow(rows)).to_pylist()
        return [
            (self._meta.functions[table.func[r]], t, int(counts[r])) for r, t in zip(rows, texts, strict=True)
        ]

    def _of_rank(self, rank: int) -> tuple[Signatures, Grammar] | None:
        tables = self.tables
        if tables.shared is not None:
            index = int(tables.of_rank[rank])
            grammar = tables.grammars[index] if index >= 0 else None
            return None if grammar is None else (tables.shared, grammar)
        if rank in self._cache:
            return self._cache[rank]
        if not tables.calls[rank]:
            return None
        signatures, grammar, _ = self._rank_tables(rank, tables.paths, tables.handles)
        return signatures, grammar

    # ---------------------------------------------------------------- time stamps

    @functools.cached_property
    def _segments(self) -> _Segments:
        """Where each rank's part of recorder.ts lies."""
        where = self._source.where("recorder.ts")
        none = np.zeros(self.ranks, dtype=np.int64)
        whole = self._source.extent("recorder.ts")
        if whole is None:
            return _Segments(Path(), none, none, f"{where}: is missing")
        try:
            with whole.path.open("rb") as file:
                file.seek(whole.offset)
                head = file.read(min(8 * self.ranks, whole.length))
        except OSError as error:
            return _Segments(whole.path, none, none, f"{where}: cannot be read ({error.strerror})")
        if len(head) < 8 * self.ranks:
            return _Segments(whole.path, none, none, f"{where}: ends within its table of {self.ranks} ranks")
        sizes = np.frombuffer(head, "<u8")
        # Sizes beyond the file are cut to it before they are added up, their sum to twice that: no overflow.
        cut = np.minimum(sizes, whole.length).astype(np.int64)
        cut[np.cumsum(cut, dtype=np.float64) > 2.0 * whole.length] = 0
        starts = 8 * self.ranks + np.cumsum(cut) - cut
        lengths = np.clip(whole.length - starts, 0, cut)
        used = 8 * self.ranks + float(sizes.sum(dtype=np.float64))
        problem = (
            None
            if used == whole.length
            else f"{where}: has {whole.length} bytes, its table claims {used:.0f}"
        )
        return _Segments(whole.path, whole.offset + starts, lengths, problem)

    def _segment(self, rank: int) -> Extent | None:
        """Where the rank's time stamps lie; None where there are none."""
        if not self._meta.layout.framed:
            return self._source.extent(f"{rank}.ts")
        offset, length = int(self._segments.offset[rank]), int(self._segments.length[rank])
        return Extent(self._segments.path, offset, length) if length else None

    def _open_times(self, rank: int) -> Any:
        """A source of the rank's raw time stamps with `read(size)`; None where there are none."""
        extent = self._segment(rank)
        if extent is None:
            return None
        if self._meta.layout.framed and self._meta.compressed_times:
            if extent.length < 16:
                return None
            return Inflater(extent.path, extent.offset + 16, extent.length - 16)
        return _Raw(extent)

    # ---------------------------------------------------------------- calls

    def batches(self, ranks: range, piece: Piece) -> Iterator[pa.RecordBatch]:
        tables = self.tables
        builder = BatchBuilder(
            piece,
            functions=self._meta.functions,
            private=tables.users == 1,
            by_time=self._nested_by_time,
            handles=len(tables.handles),
        )
        pending: list[Chunk] = []
        rows = 0
        calls = tables.calls > 0
        for rank in (r for r in ranks if calls[r]):
            for chunk in self._chunks(rank, tables, piece):
                pending.append(chunk)
                rows += len(chunk.ids)
                if rows >= BATCH_ROWS:
                    yield builder.build(pending)
                    pending, rows = [], 0
        if rows:
            yield builder.build(pending)

    def _chunks(self, rank: int, tables: _Tables, piece: Piece) -> Iterator[Chunk]:
        expected = int(tables.calls[rank])
        where = self._source.where("recorder.ts" if self._meta.layout.framed else f"{rank}.ts")
        try:
            of_rank = self._of_rank(rank)
            times = self._open_times(rank)
        except (TraceError, OSError) as error:
            piece.problems.append(f"rank {rank}: {expected} calls left out, {_reason(error, where)}")
            return
        if of_rank is None or times is None:
            piece.problems.append(
                f"rank {rank}: {expected} calls left out, {where} has no time stamps for them"
            )
            return
        signatures, grammar = of_rank
        clock = Clock(self._meta.resolution_s)
        running = (
            RunningOffsets(from_first=self.layout == "2.5g") if self._meta.intraprocess_patterns else None
        )
        read = 0
        try:
            for expanded in self._expand(rank, grammar):
                ids = expanded
                raw = times.read(8 * len(ids))
                whole = len(raw) // 8
                if not whole:
                    break
                start, duration = clock.times(np.frombuffer(raw, "<u4", 2 * whole).reshape(-1, 2))
                ids = ids[:whole]
                read += whole
                yield Chunk(
                    rank,
                    signatures,
                    ids,
                    start,
                    duration,
                    self._offsets(rank, signatures, ids, tables, running),
                )
                if whole < len(expanded):
                    break
            if read < expected:
                piece.problems.append(
                    f"rank {rank}: {expected - read} of {expected} calls left out, "
                    f"the time stamps in {where} end before them"
                )
            elif times.read(1):
                piece.problems.append(
                    f"rank {rank}: {where} holds more time stamps than its {expected} calls; those behind are not used"
                )
        except (TraceError, OSError) as error:
            lost = f"{expected - read} of {expected} calls left out, " if read < expected else ""
            piece.problems.append(f"rank {rank}: {lost}{_reason(error, where)}")
        finally:
            times.close()
        if read:
            piece.ranks_read += 1
        piece.repaired_times += clock.repaired

    def _expand(self, rank: int, grammar: Grammar) -> Iterator[NDArray[np.int32]]:
        shared = len(self.tables.sharing) and self.tables.sharing[self.tables.of_rank[rank]] > 1
        if grammar.calls > _CACHED_CALLS or not shared:
            return grammar.expand(BATCH_ROWS)
        # Ranks that share a small grammar expand it once.
        return iter((grammar.whole,))

    def _offsets(
        self,
        rank: int,
        signatures: Signatures,
        ids: NDArray[np.int32],
        tables: _Tables,
        running: RunningOffsets | None,
    ) -> Ints | None:
        if not tables.pattern_position.shape[1] and running is None:
            return None
        value = signatures.value[ids]
        if tables.pattern_position.shape[1]:
            slope = signatures.slope[ids]
            rows = np.flatnonzero(slope)
            value[rows] += slope[rows] * tables.pattern_position[rank, signatures.slope_group[ids[rows]]]
        if running is not None:
            running.resolve(signatures.running[ids], value)
        return value


class _Raw:
    """Raw time stamps of one rank."""

    def __init__(self, extent: Extent) -> None:
        self._file = extent.path.open("rb")
        self._file.seek(extent.offset)
        self._left = extent.length

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()


def _whole_frames(content: memoryview, most: int, where: str, problems: list[str]) -> list[memoryview]:
    """Frames up to the first that is not whole, but no more than `most` and one."""
    frames: list[memoryview] = []
    at = 0
    while at < len(content) and len(frames) <= most:
        try:
            size = 16 + int.from_bytes(content[at : at + 8], "little")
            frames += split_frames(content[at : at + size], where=where)
        except TraceError as error:
            problems.append(str(error))
            break
        at += size
    return frames


def _reason(error: TraceError | OSError, where: str) -> str:
    if isinstance(error, TraceError):
        return str(error) if error.where else f"{where}: {error}"
    return f"{where}: cannot be read ({error.strerror})"


def _span(ranks: NDArray[Any]) -> str:
    shown = ", ".join(str(r) for r in ranks[:5])
    return shown if len(ranks) <= 5 else f"{shown}, ... ({len(ranks)} in all)"
