"""Puts the parts of a Recorder trace together, rank by rank, batch by batch."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vani.calls import FUNCTIONS, Occurrences
from vani.columns import small_table, to_arrow
from vani.errors import TraceError
from vani.readers.app_names import AppName, app_of_folder
from vani.readers.base import BATCH_ROWS, Limit, Piece
from vani.readers.functions import FACTS
from vani.readers.handles import Handles, HandleTable
from vani.readers.identity import Identity, identity_of
from vani.readers.interpret import interpret
from vani.readers.paths import Paths, PathTable
from vani.readers.probes import Probes
from vani.readers.recorder.batch_builder import BatchBuilder, Chunk
from vani.readers.recorder.call_sites import Origins, call_site_batches, is_interpreter, read_origins
from vani.readers.recorder.call_table import PART_BYTES, Buffer, Part, TableBytes, call_table_parts
from vani.readers.recorder.frames import FramedTable, Inflater, inflate_frame
from vani.readers.recorder.grammar import Grammar, decode_grammar
from vani.readers.recorder.grammar_files import grammar_files
from vani.readers.recorder.interned import InternedHandles, InternedPaths
from vani.readers.recorder.metadata import LAYOUTS, Metadata, decode_metadata
from vani.readers.recorder.occurrences import occurrences
from vani.readers.recorder.packed import SignaturePacker
from vani.readers.recorder.patterns import RunningOffsets, group_positions
from vani.readers.recorder.probe import Shape, probe
from vani.readers.recorder.rank_count import ranks_borne_out
from vani.readers.recorder.source import Extent, open_source, part_files
from vani.readers.recorder.timestamps import Clock
from vani.readers.recorder.unique_grammars import UniqueGrammars
from vani.readers.signatures import CallTable, Signatures
from vani.readers.tables import file_table, function_rows

__all__ = ["RecorderReader"]

_USER_FUNCTION_ID = 255
_MOST_GRAMMARS_BYTES = 1 << 28
"""Of all unique grammars together, which stay in memory."""
_TOLD = 8
"""Damaged ranks that are reported one by one."""
_CACHED_CALLS = 1 << 16
_SMALL_GRAMMARS = 1 << 20
_NOTHING = Extent(Path(), 0, 0)
_CACHED_SYMBOLS, _OVERHEAD = 1 << 22, 256
"""Symbols and signatures of ranks with tables of their own that are kept; objects cost as much as so many."""
_SMALL_TABLE = 1 << 16
"""Bytes of a file whose table is inflated at once, whatever it holds."""
_MOST_FACTS = 10_000
_AT_ONCE = 1024
"""Ranks whose grammars are expanded together."""

Ints = NDArray[np.int64]


@dataclass
class _Tables:
    """What is known of the whole trace before a call is read."""

    paths: Sequence[str]
    """By code."""
    handles: int
    """Number of ids by which calls name open files."""
    calls: Ints
    users: NDArray[np.int32]
    """Number of ranks that name each file."""
    probes: NDArray[np.bool_]
    """Shape (paths,): paths that were only looked for."""
    shared: Signatures | None
    grammars: UniqueGrammars | None
    """With inter-process compression, else None."""
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

    def __init__(self, path: Path, shape: Shape | None = None, identity: Identity | None = None) -> None:
        """Recognise the trace and read its metadata.

        Raises
        ------
        TraceError
            The trace cannot be decoded at all.
        """
        self.path = path
        # Before anything is read: what changes from now on is noticed.
        self._identity = identity or identity_of(path, part_files)
        self._shape = shape or probe(path)
        self._source = open_source(path, combined=self._shape.combined)
        layout = LAYOUTS[self._shape.layout]
        self._meta: Metadata = decode_metadata(
            self._source.read("recorder.mt"), layout, where=self._source.where("recorder.mt")
        )
        found, self._miscounted = ranks_borne_out(self._source, self._meta)
        self._meta = replace(self._meta, ranks=found)
        self._lock = threading.Lock()
        self._known: _Tables | None = None
        self._cache: dict[int, tuple[Signatures, Grammar]] = {}
        self._cached_symbols = 0
        self._own_paths, self._own_handles = PathTable(), HandleTable()
        """Of ranks with call tables of their own."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers of a cluster open the trace themselves, from the shared file system.
        return RecorderReader, (self.path.absolute(), self._shape, self._identity)

    @property
    def format(self) -> str:
        return self._meta.version or self._shape.version

    @property
    def layout(self) -> str:
        return self._shape.layout

    @property
    def app(self) -> str:
        """Name of the executable by its call sites, else by the directory's name.

        An interpreter says nothing of the program that it ran, whose name the directory may have.
        """
        program = self._program
        return self._app_name.name if program is None else program

    @property
    def _program(self) -> str | None:
        """Name of the executable that call sites tell, unless it is an interpreter."""
        program = next(iter(self._origins.programs), None)
        return None if program is None or is_interpreter(program) else program

    @functools.cached_property
    def _app_name(self) -> AppName:
        return app_of_folder(self.path.resolve().name, self._holds_folder)

    def _holds_folder(self, name: str) -> bool:
        """Whether a path of the trace, or its own, leads through a folder of that name."""
        if name in self.path.resolve().parent.parts:
            return True
        try:
            paths = self.files()["path"]
        except TraceError:
            return False
        return bool(pc.any(pc.match_substring(paths, f"/{name}/")).as_py())

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
        if self._program is None and self._app_name.doubt:
            limits.append(Limit("traces.app", self._app_name.doubt))
        if not self._meta.layers_traced.get("posix", True):
            limits.append(Limit("io", "POSIX tracing was off: file-system calls are not in the trace"))
        if self._nested_by_time:
            told = ", where its call site does not tell" if self._telling_origins else ""
            limits.append(
                Limit(
                    "interfaces",
                    "call depth is not stored or 0 everywhere: a call is taken as made by the library call "
                    f"whose interval contains it{told}",
                )
            )
        programs = self._origins.programs
        if len(programs) > 1:
            shown = ", ".join(f"{name} ({count})" for name, count in list(programs.items())[:_TOLD])
            limits.append(
                Limit(
                    "apps.name",
                    f"the processes ran different executables, {shown}: one app, named by the first",
                )
            )
        return tuple(limits)

    def digest(self) -> str:
        return self._identity.digest()

    def changed(self) -> bool:
        return identity_of(self.path, part_files) != self._identity

    def calls_per_rank(self) -> Ints:
        return self.tables.calls

    def functions(self) -> pa.Table:
        rows = function_rows(self._meta.functions)
        return small_table(list(zip(*rows, strict=True)), FUNCTIONS)

    def files(self) -> pa.Table:
        return file_table(self.tables.paths, self.tables.probes)

    def facts(self) -> list[tuple[str, list[str], int]]:
        """(function, its arguments, number of calls) of the calls in `functions.FACTS`."""
        return self.tables.facts

    def occurrences(self) -> Occurrences:
        """How often each call occurs, counted on the grammars alone."""
        tables = self.tables
        group = (
            np.where(tables.calls > 0, np.arange(self.ranks), -1) if tables.shared is None else tables.of_rank
        )
        origins = self._telling_origins
        if origins is not None and tables.shared is not None:
            # Equal calls of two ranks may come from different places.
            known = origins.tables().astype(np.int64) + 1
            _, pairs = np.unique(group * (known.max() + 1) + known, return_inverse=True)
            group = np.where(group < 0, -1, pairs)
        return occurrences(
            group,
            self._of_rank,
            by_time=self._nested_by_time,
            where=str(self.path),
            origins=None if origins is None else origins.of,
        )

    def call_sites(self) -> Iterator[pa.RecordBatch] | None:
        """`vani.calls.CALL_SITES`; None where the tracer stored none."""
        return call_site_batches(self._source, self.ranks) if self._origins.stored else None

    @functools.cached_property
    def _origins(self) -> Origins:
        if not self._meta.layout.site_bytes:
            return Origins.none(self.ranks)
        return read_origins(self._source, self.ranks)

    @property
    def _telling_origins(self) -> Origins | None:
        """Origins, if they can tell more than depths do: that no library made a call is told by its depth, too."""
        origins = self._origins
        tells = origins.libraries or (origins.stored and self._meta.stores_depth is False)
        return origins if tells else None

    @property
    def _nested_by_time(self) -> bool:
        """No depth is stored: intervals tell who called whom."""
        return self._meta.stores_depth is False or not self.tables.nested

    @property
    def tables(self) -> _Tables:
        """Everything that is known without reading time stamps."""
        with self._lock:
            if self._known is None:
                self._known = self._read_shared() if self._meta.interprocess else self._read_per_rank()
                if not self._known.calls.any() and self._known.problems:
                    problem, self._known = self._known.problems[0], None
                    raise TraceError(
                        f"no rank can be read: {problem}", where=self.path, todo="trace the run again"
                    )
                if self._meta.layout.framed and self._segments.problem:
                    self._known.problems.append(self._segments.problem)
                self._known.problems[:0] = self._source.problems(self.ranks)
                if self._miscounted:
                    self._known.problems.insert(0, self._miscounted)
                self._known.problems.extend(self._origins.problems)
            return self._known

    def release(self) -> None:
        """Forget the tables."""
        with self._lock:
            self._known = None
            self._cache, self._cached_symbols = {}, 0
            self._own_paths, self._own_handles = PathTable(), HandleTable()

    # ---------------------------------------------------------------- tables

    def _open_table(self, name: str) -> TableBytes:
        """A call table; one that is large is inflated as it is read."""
        extent = self._source.extent(name)
        where = self._source.where(name)
        if not self._meta.layout.framed or extent is None or extent.length <= _SMALL_TABLE:
            return Buffer(self._table(name))
        table = FramedTable(extent.path, extent.offset, extent.length, where=where)
        if table.size > PART_BYTES:
            return table
        table.close()
        return Buffer(self._table(name))

    def _table(self, name: str) -> bytes:
        content = self._source.read(name)
        if not self._meta.layout.framed:
            return content
        return inflate_frame(content, where=self._source.where(name))

    def _interpret(
        self, table: CallTable, paths: Paths, handles: Handles, ids: Ints | None = None
    ) -> Signatures:
        return interpret(
            table,
            self._meta.functions,
            paths,
            handles,
            interprocess_patterns=self._meta.interprocess_patterns,
            intraprocess_patterns=self._meta.intraprocess_patterns,
            user_function_id=_USER_FUNCTION_ID if self._meta.layout.function_bytes == 4 else None,
            ids=ids,
            ranks=self.ranks,
        )

    def _read_table(
        self, name: str, source: TableBytes, paths: Paths, handles: Handles
    ) -> tuple[Signatures | SignaturePacker, _Kept]:
        """Read and interpret a call table, a large one part by part, and keep what else is asked of it later."""
        layout = self._meta.layout
        kept, packer = _Kept(self._meta.functions), None
        for part in call_table_parts(
            source,
            function_bytes=layout.function_bytes,
            counted=layout.counted,
            where=self._source.where(name),
            site_bytes=layout.site_bytes,
            part_bytes=PART_BYTES,
        ):
            kept.add(part)
            if source.size <= PART_BYTES:
                return self._interpret(part.table, paths, handles), kept
            if packer is None:
                packer = SignaturePacker(part.entries)
            packer.add(part.ids, self._interpret(part.table, paths, handles, part.ids))
        assert packer is not None
        return packer, kept

    def _read_shared_table(self) -> tuple[Signatures, _Kept, Sequence[str], int]:
        """Signatures, what else is kept of them, all paths and the number of handles."""
        name = "recorder.cst" if self._meta.layout.framed else "0.cst"
        with closing(self._open_table(name)) as source:
            if source.size <= PART_BYTES:
                paths, handles = PathTable(), HandleTable()
                signatures, kept = self._read_table(name, source, paths, handles)
                assert isinstance(signatures, Signatures)
                return signatures, kept, paths.paths, len(handles)
            some_paths, some_handles = InternedPaths(), InternedHandles()
            packer, kept = self._read_table(name, source, some_paths, some_handles)
        assert isinstance(packer, SignaturePacker)
        path_codes, texts = some_paths.finish()
        handle_codes, count = some_handles.finish()
        signatures = packer.packed(texts, path_codes=path_codes, handle_codes=handle_codes)
        return signatures, kept, texts, count

    def _read_shared(self) -> _Tables:
        """With inter-process compression: one call table, and unique grammars that ranks share."""
        framed = self._meta.layout.framed
        signatures, kept, paths, handles = self._read_shared_table()
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
        times = np.bincount(of_rank[of_rank >= 0], minlength=unique)
        tally = _Tally(signatures, len(paths), times, Probes(self._meta.functions))
        files = grammar_files(self._source, framed=framed, count=unique, problems=problems)
        large = (self._source.extent("ug.cfg") or _NOTHING).length > _SMALL_GRAMMARS
        grammars = UniqueGrammars(
            files,
            unique,
            len(signatures),
            tally.add,
            most_bytes=_MOST_GRAMMARS_BYTES,
            threads=2 if large else 1,
        )
        problems += grammars.problems
        calls = np.append(grammars.calls, 0)[of_rank]
        left_out = np.flatnonzero(np.append(grammars.lost, False)[of_rank])
        if len(left_out):
            problems.append(
                f"{self._source.where('ug.cfg')}: ranks {_span(left_out)}: left out, their grammars are lost"
            )
        of_rank[left_out] = -1
        counts = kept.counts
        if counts is not None and not problems and (tally.totals != counts).any():
            entry = int(np.flatnonzero(tally.totals != counts)[0])
            problems.append(
                f"call table counts {counts[entry]} calls of signature {entry}, "
                f"the grammars {tally.totals[entry]}: grammars are used"
            )
        position = np.zeros((ranks, 0), dtype=np.int64)
        if tally.kinds is not None:
            position = group_positions(tally.kinds, of_rank)
        return _Tables(
            paths=paths,
            handles=handles,
            calls=calls,
            users=tally.users,
            probes=tally.probes.found(len(paths)),
            shared=signatures,
            grammars=grammars,
            of_rank=of_rank,
            sharing=times,
            pattern_position=position,
            facts=kept.facts(tally.totals),
            problems=problems,
            nested=signatures.depth.max(initial=0) > 0,
        )

    def _read_per_rank(self) -> _Tables:
        """Without inter-process compression: a call table and a grammar per rank."""
        paths, handles = self._own_paths, self._own_handles
        problems: list[str] = []
        calls = np.zeros(self.ranks, dtype=np.int64)
        users = np.zeros(0, dtype=np.int32)
        facts: dict[tuple[str, ...], int] = {}
        probes = Probes(self._meta.functions)
        nested = False
        unbelieved: set[str] = set()
        lost = np.ones(self.ranks, dtype=np.bool_)
        there = [rank for rank in self._source.ranks_with("cst", "cfg") if rank < self.ranks]
        lost[there] = False
        absent = np.flatnonzero(lost)[:_TOLD].tolist()
        told = 0
        # A wrong number of ranks may claim millions whose files no one needs to look for.
        for rank in sorted([*there, *absent]):
            try:
                signatures, grammar, kept = self._rank_tables(rank)
            except TraceError as error:
                lost[rank] = True
                told += 1
                if told <= _TOLD:
                    problems.append(f"rank {rank}: left out, {error}")
                continue
            # Of many ranks each may have other numbers that are wrong: the first of each function stands for all.
            signatures.unbelieved = {n: t for n, t in signatures.unbelieved.items() if n not in unbelieved}
            unbelieved.update(signatures.unbelieved)
            problems += [p for p in signatures.problems if p not in problems]
            calls[rank] = grammar.calls
            nested = nested or signatures.depth.max(initial=0) > 0
            probes.see(signatures, grammar.terminals)
            used = signatures.file[grammar.terminals]
            if len(users) < len(paths.paths):
                users = np.append(users, np.zeros(len(paths.paths), dtype=np.int32))
            users[np.unique(used[used >= 0])] += 1
            for name, args, count in kept.facts(grammar.occurrences(len(signatures))):
                facts[(name, *args)] = facts.get((name, *args), 0) + count
        if lost.sum() > _TOLD:
            problems.append(f"ranks {_span(np.flatnonzero(lost))}: left out")
        return _Tables(
            paths=paths.paths,
            handles=len(handles),
            calls=calls,
            users=np.append(users, np.zeros(len(paths.paths), dtype=np.int32))[: len(paths.paths)],
            probes=probes.found(len(paths.paths)),
            shared=None,
            grammars=None,
            of_rank=np.full(self.ranks, -1, dtype=np.int64),
            sharing=np.empty(0, dtype=np.int64),
            pattern_position=np.zeros((self.ranks, 0), dtype=np.int64),
            facts=[(k[0], list(k[1:]), c) for k, c in facts.items()],
            problems=problems,
            nested=nested,
        )

    def _rank_tables(self, rank: int) -> tuple[Signatures, Grammar, _Kept]:
        name = f"{rank}.cst"
        with closing(self._open_table(name)) as source:
            found, kept = self._read_table(name, source, self._own_paths, self._own_handles)
        signatures = found.packed(self._own_paths.paths) if isinstance(found, SignaturePacker) else found
        grammar = decode_grammar(
            self._table(f"{rank}.cfg"), terminals=len(signatures), where=self._source.where(f"{rank}.cfg")
        )
        size = grammar.symbols + len(signatures) + _OVERHEAD
        if self._cached_symbols + size <= _CACHED_SYMBOLS:
            self._cached_symbols += size
            self._cache[rank] = signatures, grammar
        return signatures, grammar, kept

    def _of_rank(self, rank: int) -> tuple[Signatures, Grammar] | None:
        tables = self.tables
        if tables.shared is not None and tables.grammars is not None:
            index = int(tables.of_rank[rank])
            grammar = tables.grammars[index] if index >= 0 else None
            return None if grammar is None else (tables.shared, grammar)
        if rank in self._cache:
            return self._cache[rank]
        if not tables.calls[rank]:
            return None
        signatures, grammar, _ = self._rank_tables(rank)
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

    def batches(self, ranks: range, piece: Piece, *, call_sites: bool = False) -> Iterator[pa.RecordBatch]:
        tables = self.tables
        builder = BatchBuilder(
            piece,
            functions=self._meta.functions,
            private=tables.users == 1,
            by_time=self._nested_by_time,
            handles=tables.handles,
            call_sites=call_sites,
        )
        pending: list[Chunk] = []
        rows = 0
        wanted = ranks.start + np.flatnonzero(tables.calls[ranks.start : ranks.stop] > 0)
        ahead = _Ahead(tables, wanted)
        for rank in wanted.tolist():
            for chunk in self._chunks(rank, tables, piece, ahead):
                pending.append(chunk)
                rows += len(chunk.ids)
                if rows >= BATCH_ROWS:
                    yield builder.build(pending)
                    pending, rows = [], 0
        if rows:
            yield builder.build(pending)

    def _chunks(self, rank: int, tables: _Tables, piece: Piece, ahead: _Ahead) -> Iterator[Chunk]:
        expected = int(tables.calls[rank])
        where = self._source.where("recorder.ts" if self._meta.layout.framed else f"{rank}.ts")
        try:
            expansion = self._expansion(rank, tables, ahead)
            times = self._open_times(rank)
        except (TraceError, OSError) as error:
            piece.problems.append(f"rank {rank}: {expected} calls left out, {_reason(error, where)}")
            return
        if expansion is None or times is None:
            piece.problems.append(
                f"rank {rank}: {expected} calls left out, {where} has no time stamps for them"
            )
            return
        signatures, expanding = expansion
        clock = Clock(self._meta.resolution_s)
        running = (
            RunningOffsets(from_first=self.layout == "2.5g") if self._meta.intraprocess_patterns else None
        )
        origins = self._telling_origins
        read = 0
        try:
            for expanded in expanding:
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
                    None if origins is None else origins.of(rank, signatures.site[ids]),
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
        if running is not None and running.lost:
            piece.problems.append(
                f"rank {rank}: offsets of {running.lost} calls add up to more than can be counted: they are unknown"
            )
        if read:
            piece.ranks_read += 1
        piece.repaired_times += clock.repaired
        piece.time_ns += clock.spent * self._meta.resolution_s * 1e9

    def _expansion(
        self, rank: int, tables: _Tables, ahead: _Ahead
    ) -> tuple[Signatures, Iterator[NDArray[np.int32]]] | None:
        """What the rank's calls are, and the calls in order."""
        ids = ahead.calls_of(rank)
        if ids is not None and tables.shared is not None:
            return tables.shared, iter((ids,))
        of_rank = self._of_rank(rank)
        if of_rank is None:
            return None
        signatures, grammar = of_rank
        shared = len(tables.sharing) and tables.sharing[tables.of_rank[rank]] > 1
        if grammar.calls > _CACHED_CALLS or not shared:
            return signatures, grammar.expand(BATCH_ROWS)
        # Ranks that share a small grammar expand it once.
        return signatures, iter((grammar.whole,))

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


class _Kept:
    """What is kept of a call table besides the meaning of its signatures: counts, and the texts of a few functions."""

    def __init__(self, functions: tuple[str, ...]) -> None:
        self._functions = functions
        self._wanted = [i for i, n in enumerate(functions) if n in FACTS]
        self.counts: NDArray[np.uint32] | None = None
        """Calls of each signature as the table tells; None where it does not."""
        self._facts: list[tuple[Ints, Ints, pa.ListArray]] = []
        self._held = 0

    def add(self, part: Part) -> None:
        """Take a part of the table."""
        table = part.table
        if table.count is not None:
            if self.counts is None:
                self.counts = np.zeros(part.entries, np.uint32)
            self.counts[part.ids] = table.count
        rows = np.flatnonzero(np.isin(table.func, self._wanted))
        if len(rows) and self._held < 8 * _MOST_FACTS:
            self._facts.append((part.ids[rows], table.func[rows], table.args.take(to_arrow(rows))))
            self._held += len(rows)

    def facts(self, counts: Ints) -> list[tuple[str, list[str], int]]:
        """(function, its arguments, number of calls) of signatures that were called, by `counts`; in order of ids."""
        if not self._facts:
            return []
        ids, func = (np.concatenate([f[i] for f in self._facts]) for i in range(2))
        args = pa.concat_arrays([f[2] for f in self._facts])
        rows = np.flatnonzero(counts[ids] > 0)
        rows = rows[np.argsort(ids[rows])][:_MOST_FACTS]
        texts = args.take(to_arrow(rows)).to_pylist()
        return [(self._functions[func[r]], t, int(counts[ids[r]])) for r, t in zip(rows, texts, strict=True)]


class _Tally:
    """What all grammars together tell: calls by signature, ranks by file, kinds of calls with patterns by grammar."""

    def __init__(self, signatures: Signatures, files: int, ranks: Ints, probes: Probes) -> None:
        """`ranks[grammar]`: ranks that share it."""
        self._signatures, self._ranks, self._files = signatures, ranks, files
        self.probes = probes
        self.totals = np.zeros(len(signatures), dtype=np.int64)
        self.users = np.zeros(files, dtype=np.int32)
        self.kinds: Ints | None = None
        if signatures.slope.any():
            self.kinds = np.zeros(
                (len(ranks), int(signatures.slope_group.max(initial=-1)) + 1), dtype=np.int64
            )

    def add(self, grammar: Ints, ids: Ints, often: Ints) -> None:
        """Take the terminals of some grammars."""
        ranks = self._ranks[grammar]
        np.add.at(self.totals, ids, often * ranks)
        self.probes.see(self._signatures, ids)
        file = self._signatures.file[ids]
        named = np.flatnonzero(file >= 0)
        pairs = np.unique(grammar[named] * max(1, self._files) + file[named])
        np.add.at(self.users, pairs % max(1, self._files), self._ranks[pairs // max(1, self._files)])
        if self.kinds is not None:
            group = self._signatures.slope_group[ids]
            some = group >= 0
            np.add.at(self.kinds, (grammar[some], group[some]), 1)


class _Ahead:
    """Expands the grammars of many ranks that come one after the other together, where each has a small one."""

    def __init__(self, tables: _Tables, ranks: Ints) -> None:
        """`ranks`: all that will be asked for, in that order."""
        self._tables, self._ranks = tables, ranks
        self._at = 0
        self._ids: dict[int, NDArray[np.int32]] = {}

    def calls_of(self, rank: int) -> NDArray[np.int32] | None:
        """Ids of the rank's calls; None where its grammar is best expanded on its own."""
        grammars, of_rank = self._tables.grammars, self._tables.of_rank
        if grammars is None or not grammars.is_small(int(of_rank[rank])):
            return None
        index = int(of_rank[rank])
        if index not in self._ids:
            self._at += int(np.searchsorted(self._ranks[self._at :], rank))
            some = of_rank[self._ranks[self._at : self._at + _AT_ONCE]]
            some = some[np.cumsum(grammars.calls[some]) <= BATCH_ROWS]
            wanted = {index, *(i for i in some.tolist() if grammars.is_small(i))}
            self._ids = grammars.expanded(sorted(wanted))
        return self._ids[index]


def _reason(error: TraceError | OSError, where: str) -> str:
    if isinstance(error, TraceError):
        return str(error) if error.where else f"{where}: {error}"
    return f"{where}: cannot be read ({error.strerror})"


def _span(ranks: NDArray[Any]) -> str:
    shown = ", ".join(str(r) for r in ranks[:5])
    return shown if len(ranks) <= 5 else f"{shown}, ... ({len(ranks)} in all)"
