"""Calls of ranks, from signatures, expanded grammars and time stamps, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.errors import TraceError
from vani.readers.plausible import NO_VALUE
from vani.readers.recorder.batch_builder import BatchBuilder, Chunk, note_calls
from vani.readers.recorder.call_sites import Origins
from vani.readers.recorder.grammar import Grammar
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.patterns import RunningOffsets
from vani.readers.recorder.tables import Tables
from vani.readers.recorder.time_files import TimeFiles
from vani.readers.recorder.timestamps import Clock
from vani.readers.signatures import Signatures
from vani.readers.trace_reader import BATCH_ROWS, Piece
from vani.units import counted

_CACHED_CALLS = 1 << 16
_AT_ONCE = 1024
"""Number of ranks with grammars that are expanded together."""

Ints = NDArray[np.int64]


class CallReader:
    """Reads the calls of one trace, given its tables."""

    def __init__(
        self,
        meta: Metadata,
        tables: Tables,
        of_rank: Callable[[int], tuple[Signatures, Grammar] | None],
        times: TimeFiles,
        origins: Origins | None,
    ) -> None:
        """`of_rank` returns a rank's signatures and grammar, None without a grammar; `origins` is None if unknown."""
        self._meta, self._tables, self._of_rank = meta, tables, of_rank
        self._times, self._origins = times, origins

    def batches(
        self, ranks: range, piece: Piece, *, by_time: bool, call_sites: bool
    ) -> Iterator[pa.RecordBatch]:
        """See `RecorderReader.batches`; `by_time`: no depth shows which call made which."""
        tables = self._tables
        builder = BatchBuilder(
            piece,
            functions=self._meta.functions,
            private=tables.users == 1,
            by_time=by_time,
            handles=tables.handles,
            call_sites=call_sites,
        )
        pending: list[Chunk] = []
        rows = 0
        with_calls = ranks.start + np.flatnonzero(tables.calls[ranks.start : ranks.stop] > 0)
        ahead = _Ahead(tables, with_calls)
        for rank in with_calls.tolist():
            for chunk in self._chunks(rank, piece, ahead):
                if rows and rows + len(chunk.ids) > 2 * BATCH_ROWS:
                    yield builder.build(pending)
                    pending, rows = [], 0
                pending.append(chunk)
                rows += len(chunk.ids)
                # Free the memory of its parts before the next one.
                del chunk
                if rows >= BATCH_ROWS:
                    yield builder.build(pending)
                    pending, rows = [], 0
        if rows:
            yield builder.build(pending)

    def tell(self, ranks: range, *, by_time: bool) -> Piece:
        """Compute the summary that `batches` makes, but only from times and the number of calls of each signature."""
        tables, piece = self._tables, Piece()
        with_calls = ranks.start + np.flatnonzero(tables.calls[ranks.start : ranks.stop] > 0)
        ahead = _Ahead(tables, with_calls)
        for rank in with_calls.tolist():
            for chunk in self._chunks(rank, piece, ahead):
                if chunk.signatures.rename_to.max(initial=-1) >= 0:
                    # The renamed file may depend on earlier calls.
                    piece = Piece()
                    for _ in self.batches(ranks, piece, by_time=by_time, call_sites=False):
                        pass
                    return piece
                self._note(chunk, piece)
        return piece

    def _note(self, chunk: Chunk, piece: Piece) -> None:
        count = np.bincount(chunk.ids)
        used = np.flatnonzero(count)
        count = count[used]
        size, func = chunk.signatures.bytes[used], chunk.signatures.func[used].astype(np.int64)
        piece.bytes += float((np.where(size == NO_VALUE, 0, size).astype(np.float64) * count).sum())
        note_calls(
            piece,
            self._meta.functions,
            np.bincount(func + 1, weights=count).astype(np.int64),
            int(chunk.start.min()),
            int((chunk.start + chunk.duration).max()),
        )

    def _chunks(self, rank: int, piece: Piece, ahead: _Ahead) -> Iterator[Chunk]:
        expected = int(self._tables.calls[rank])
        where = self._times.where(rank)
        try:
            expansion = self._expansion(rank, ahead)
            times = self._times.open(rank)
        except (TraceError, OSError) as error:
            piece.problems.append(
                f"rank {rank}: {counted(expected, 'call')} left out, {_reason(error, where)}"
            )
            return
        if expansion is None or times is None:
            piece.problems.append(
                f"rank {rank}: {counted(expected, 'call')} left out, {where} has no time stamps for them"
            )
            return
        signatures, expanding = expansion
        clock = Clock(self._meta.resolution_s)
        running = (
            RunningOffsets(from_first=self._meta.layout.name == "2.5g")
            if self._meta.intraprocess_patterns
            else None
        )
        origins = self._origins
        read = 0
        try:
            for expanded in expanding:
                ids = expanded
                raw = times.read(8 * len(ids))
                rows = len(raw) // 8
                if not rows:
                    break
                start, duration = clock.times(np.frombuffer(raw, "<u4", 2 * rows).reshape(-1, 2))
                ids = ids[:rows]
                read += rows
                yield Chunk(
                    rank,
                    signatures,
                    ids,
                    start,
                    duration,
                    self._offsets(rank, signatures, ids, running),
                    None if origins is None else origins.of(rank, signatures.site[ids]),
                )
                if rows < len(expanded):
                    break
            if read < expected:
                piece.problems.append(
                    f"rank {rank}: {expected - read:,} of {counted(expected, 'call')} left out, "
                    f"the time stamps in {where} end before them"
                )
            elif times.read(1):
                piece.problems.append(
                    f"rank {rank}: {where} contains more time stamps than its {counted(expected, 'call')}; "
                    "those behind are not used"
                )
        except (TraceError, OSError) as error:
            lost = f"{expected - read:,} of {counted(expected, 'call')} left out, " if read < expected else ""
            piece.problems.append(f"rank {rank}: {lost}{_reason(error, where)}")
        finally:
            times.close()
        if running is not None and running.lost:
            piece.problems.append(
                f"rank {rank}: offsets of {counted(running.lost, 'call')} add up to more than can be "
                "counted: they are unknown"
            )
        if read:
            piece.ranks_read += 1
        piece.repaired_times += clock.repaired
        piece.time_ns += clock.spent * self._meta.resolution_s * 1e9

    def _expansion(self, rank: int, ahead: _Ahead) -> tuple[Signatures, Iterator[NDArray[np.int32]]] | None:
        """Signatures of the rank, and its calls in order."""
        tables = self._tables
        ids = ahead.calls_of(rank)
        if ids is not None and tables.shared is not None:
            return tables.shared, iter((ids,))
        of_rank = self._of_rank(rank)
        if of_rank is None:
            return None
        signatures, grammar = of_rank
        shared = len(tables.sharing) and tables.sharing[tables.of_rank[rank]] > 1
        if grammar.calls > _CACHED_CALLS or not shared:
            # Each batch has a fixed cost, so a short rest is merged into the last one.
            runs = max(1, -(-grammar.calls // (2 * BATCH_ROWS)))
            return signatures, grammar.expand(-(-grammar.calls // runs))
        # Ranks that share a small grammar expand it once.
        return signatures, iter((grammar.whole,))

    def _offsets(
        self,
        rank: int,
        signatures: Signatures,
        ids: NDArray[np.int32],
        running: RunningOffsets | None,
    ) -> Ints | None:
        position = self._tables.pattern_position
        if not position.shape[1] and running is None:
            return None
        value = signatures.value[ids]
        if position.shape[1]:
            slope = signatures.slope[ids]
            rows = np.flatnonzero(slope)
            value[rows] += slope[rows] * position[rank, signatures.slope_group[ids[rows]]]
        if running is not None:
            running.resolve(signatures.running[ids], value)
        return value


class _Ahead:
    """Expands the small grammars of many consecutive ranks together."""

    def __init__(self, tables: Tables, ranks: Ints) -> None:
        """`ranks` lists all ranks that will be read, in order."""
        self._tables, self._ranks = tables, ranks
        self._at = 0
        self._ids: dict[int, NDArray[np.int32]] = {}

    def calls_of(self, rank: int) -> NDArray[np.int32] | None:
        """Ids of the rank's calls; None if its grammar is better expanded alone."""
        grammars, of_rank = self._tables.grammars, self._tables.of_rank
        if grammars is None or not grammars.is_small(int(of_rank[rank])):
            return None
        index = int(of_rank[rank])
        if index not in self._ids:
            self._at += int(np.searchsorted(self._ranks[self._at :], rank))
            some = of_rank[self._ranks[self._at : self._at + _AT_ONCE]]
            some = some[np.cumsum(grammars.calls[some]) <= BATCH_ROWS]
            indices = {index, *(i for i in some.tolist() if grammars.is_small(i))}
            self._ids = grammars.expanded(sorted(indices))
        return self._ids[index]


def _reason(error: TraceError | OSError, where: str) -> str:
    if isinstance(error, TraceError):
        return str(error) if error.where else f"{where}: {error}"
    return f"{where}: cannot be read ({error.strerror})"
