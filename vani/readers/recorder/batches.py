"""Calls of ranks, from signatures, expanded grammars and time stamps, batch by batch."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from vani.columns import Int32s, Ints, Numbers, distinct
from vani.errors import TraceError
from vani.kernels import call
from vani.readers.delivery import note_calls
from vani.readers.recorder.batch_builder import BatchBuilder, Chunk
from vani.readers.recorder.call_sites import Origins
from vani.readers.recorder.grammar import Grammar
from vani.readers.recorder.metadata import Metadata
from vani.readers.recorder.source import Extent, Inflater, Source
from vani.readers.recorder.tables import Tables
from vani.readers.signatures import NO_VALUE, Signatures, claimed
from vani.readers.trace_reader import BATCH_ROWS, Piece
from vani.units import counted, format_number

_MAX_NS = 1 << 62
_REPAIR_S = 10.0
"""A delta this close to 2^32 ticks is negative, because threads are recorded when their calls end."""


@dataclass
class Clock:
    """Converts one rank's deltas to times, batch by batch.

    Both numbers of a call are ticks since the *start of the previous call*. Small negative ones wrap
    modulo 2^32 and are corrected; calls that end before their start (a clock set back) get duration 0.
    """

    resolution: float
    previous: int = 0
    repaired: int = 0
    """Calls that start before the previous call, or that end before they begin."""
    spent: float = 0.0
    """Total ticks of all calls."""

    def times(self, deltas: Numbers) -> tuple[Ints, Ints]:
        """Start and duration in nanoseconds, shape (n,) each, from `deltas`, uint32 of shape (n, 2).

        Raises
        ------
        TraceError
            The run would have lasted longer than 64 bits can count, so the deltas or the resolution are wrong.
        """
        threshold = (1 << 32) - int(_REPAIR_S / self.resolution) if self.resolution > 0 else 1 << 32
        threshold = max(threshold, 1 << 31)
        per_tick = self._whole_ns
        if per_tick is not None:
            state = np.array([self.previous, self.repaired, 0])
            # Just below the limit, so numpy refuses it.
            most = _MAX_NS // per_tick // 2
            out = call(
                "times",
                n=len(deltas),
                deltas=deltas,
                threshold=threshold,
                ns_per_tick=per_tick,
                most=most,
                state=state,
            )
            if out is not None:
                self.previous, self.repaired, spent = state.tolist()
                self.spent += spent
                return out["start"], out["duration"]
        begin, end = deltas[:, 0].astype(np.int64), deltas[:, 1].astype(np.int64)
        for ticks in (begin, end):
            ticks[np.flatnonzero(ticks >= threshold)] -= 1 << 32
        duration = end - begin
        self.repaired += int(np.count_nonzero(begin < 0) + np.count_nonzero(duration < 0))
        np.maximum(duration, 0, out=duration)
        start = np.cumsum(begin)
        start += self.previous
        if len(start):
            self.previous = int(start[-1])
            most = int(duration.max())
            longest = max(int(start.max()), -int(start.min())) + most
            self.spent += claimed(duration, most)
            if longest * self.resolution * 1e9 > _MAX_NS:
                raise TraceError(f"time stamps claim a run of {format_number(longest * self.resolution)} s")
        return self._ns(start), self._ns(duration)

    @property
    def _whole_ns(self) -> int | None:
        """Nanoseconds per tick, if that is a whole number."""
        per_tick = self.resolution * 1e9
        rounded = round(per_tick) if per_tick < _MAX_NS else 0
        return rounded if rounded >= 1 and abs(per_tick - rounded) < 1e-6 * per_tick else None

    def _ns(self, ticks: Ints) -> Ints:
        per_tick = self._whole_ns
        if per_tick is not None:
            return ticks * per_tick
        nanoseconds: Ints = np.rint(ticks * (self.resolution * 1e9)).astype(np.int64)
        return nanoseconds


@dataclass(frozen=True, eq=False)
class _Segments:
    """Segments of recorder.ts by rank: offset in the file and length, 0 if there is none."""

    path: Path
    offset: Ints
    length: Ints
    problem: str | None


class TimeFiles:
    """Finds and opens the time stamps of one trace's ranks."""

    def __init__(self, source: Source, meta: Metadata) -> None:
        self._source, self._meta = source, meta

    @property
    def problem(self) -> str | None:
        """A fault in the table of a recorder.ts that all ranks share."""
        return self._segments.problem if self._meta.layout.framed else None

    def where(self, rank: int) -> str:
        """Name the place of a rank's time stamps for a message."""
        return self._source.where("recorder.ts" if self._meta.layout.framed else f"{rank}.ts")

    @functools.cached_property
    def _segments(self) -> _Segments:
        """Place of each rank's segment in recorder.ts."""
        where = self._source.where("recorder.ts")
        none = np.zeros(self._meta.ranks, dtype=np.int64)
        extent = self._source.extent("recorder.ts")
        if extent is None:
            return _Segments(Path(), none, none, f"{where}: is missing")
        head, problem = b"", f"{where}: ends within its table of {counted(self._meta.ranks, 'rank')}"
        try:
            with extent.path.open("rb") as file:
                file.seek(extent.offset)
                head = file.read(min(8 * self._meta.ranks, extent.length))
        except OSError as error:
            problem = f"{where}: cannot be read ({error.strerror})"
        if len(head) < 8 * self._meta.ranks:
            return _Segments(extent.path, none, none, problem)
        sizes = np.frombuffer(head, "<u8")
        # To avoid overflow, sizes are limited to the file's before they are added up, and their sum to twice that.
        cut = np.minimum(sizes, extent.length).astype(np.int64)
        cut[np.cumsum(cut, dtype=np.float64) > 2.0 * extent.length] = 0
        starts = 8 * self._meta.ranks + np.cumsum(cut) - cut
        lengths = np.clip(extent.length - starts, 0, cut)
        used = 8 * self._meta.ranks + float(sizes.sum(dtype=np.float64))
        problem = f"{where}: has {counted(extent.length, 'byte')}, its table claims {used:.0f}"
        return _Segments(extent.path, extent.offset + starts, lengths, None if used == extent.length else problem)

    def _segment(self, rank: int) -> Extent | None:
        """Place of the rank's time stamps; None if there are none."""
        if not self._meta.layout.framed:
            return self._source.extent(f"{rank}.ts")
        offset, length = int(self._segments.offset[rank]), int(self._segments.length[rank])
        return Extent(self._segments.path, offset, length) if length else None

    def open(self, rank: int) -> "Inflater | RawTimes | None":
        """A source of the rank's raw time stamps with `read(size)`; None if there are none."""
        extent = self._segment(rank)
        is_frame = self._meta.layout.framed and self._meta.compressed_times
        if extent is None or (is_frame and extent.length < 16):
            return None
        return Inflater(extent.path, extent.offset + 16, extent.length - 16) if is_frame else RawTimes(extent)


class RawTimes:
    """Uncompressed time stamps of one rank."""

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


_FAR = 1 << 62


class RunningOffsets:
    """Undoes the intra-process differences of one rank, batch by batch."""

    def __init__(self, *, from_first: bool) -> None:
        """`from_first`: differences are from the function's first offset (2.5g), not from its previous one (3.0)."""
        self._from_first = from_first
        self.lost = 0
        """Number of calls whose offsets add up to an implausible number and are therefore unknown."""
        self._base: dict[int, int] = {}

    def resolve(self, function: Numbers, stored: Ints) -> None:
        """Replace differences in `stored` with offsets, in place; `function` is -1 for rows that are left unchanged."""
        for code in distinct(function[function >= 0]).tolist():
            rows = np.flatnonzero((function == code) & (stored != NO_VALUE))
            if not len(rows):
                continue
            values = stored[rows]
            if np.abs(values).sum(dtype=np.float64) + abs(self._base.get(code, 0)) >= _FAR:
                # Their sums would overflow 64 bits, so offsets are unknown from here on.
                stored[rows] = NO_VALUE
                self._base[code] = _FAR
                self.lost += len(rows)
                continue
            if self._from_first:
                known = self._base.get(code)
                if known is None:
                    self._base[code] = known = int(values[0])
                    values[1:] += known
                else:
                    values += known
            else:
                values = np.cumsum(values) + self._base.get(code, 0)
                self._base[code] = int(values[-1])
            stored[rows] = values


_CACHED_CALLS = 1 << 16
_AT_ONCE = 1024
"""Number of ranks with grammars that are expanded together."""


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

    def batches(self, ranks: range, piece: Piece, *, by_time: bool, call_sites: bool) -> Iterator[pa.RecordBatch]:
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
        for chunk in self._chunks(ranks, piece):
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
        piece = Piece()
        for chunk in self._chunks(ranks, piece):
            if chunk.signatures.rename_to.max(initial=-1) >= 0:
                # The renamed file may depend on earlier calls.
                piece = Piece()
                for _ in self.batches(ranks, piece, by_time=by_time, call_sites=False):
                    pass
                return piece
            self._note(chunk, piece)
        return piece

    def _chunks(self, ranks: range, piece: Piece) -> Iterator[Chunk]:
        with_calls = ranks.start + np.flatnonzero(self._tables.calls[ranks.start : ranks.stop] > 0)
        ahead = _Ahead(self._tables, with_calls)
        for rank in with_calls.tolist():
            yield from self._chunks_of(rank, piece, ahead)

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

    def _chunks_of(self, rank: int, piece: Piece, ahead: "_Ahead") -> Iterator[Chunk]:
        expected = int(self._tables.calls[rank])
        where = self._times.where(rank)
        expansion = times = None
        reason = f"{where} has no time stamps for them"
        try:
            expansion = self._expansion(rank, ahead)
            times = self._times.open(rank)
        except (TraceError, OSError) as error:
            reason = _reason(error, where)
        if expansion is None or times is None:
            piece.problems.append(f"rank {rank}: {counted(expected, 'call')} left out, {reason}")
            return
        signatures, expanding = expansion
        clock, origins = Clock(self._meta.resolution_s), self._origins
        from_first = self._meta.layout.name == "2.5g"
        running = RunningOffsets(from_first=from_first) if self._meta.intraprocess_patterns else None
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
                value = self._offsets(rank, signatures, ids, running)
                origin = None if origins is None else origins.of(rank, signatures.site[ids])
                yield Chunk(rank, signatures, ids, start, duration, value, origin)
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

    def _expansion(self, rank: int, ahead: "_Ahead") -> tuple[Signatures, Iterator[Int32s]] | None:
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

    def _offsets(self, rank: int, signatures: Signatures, ids: Int32s, running: RunningOffsets | None) -> Ints | None:
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
        self._ids: dict[int, Int32s] = {}

    def calls_of(self, rank: int) -> Int32s | None:
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
