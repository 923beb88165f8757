"""Links between processes: files that several of them wrote and read, and the bytes that flowed between them.

A flow shows which process read bytes of a file that which other process had written, from the extents of their calls.
A read sees the last previous writer of each byte, on the workload's clock. Uncertain writers count as
seen: calls merged over the run have only a first and a last time, and the ranks' clocks may
disagree. So a writer is excluded only if another process rewrote the byte after the writer's last write and before the
first of the reads.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

import numpy as np

from vani.analyzers.int_table import Factorized, IntTable, key_widths, pack, unpack
from vani.analyzers.measures.extents import NEVER, ExchangeCounts, ProcessExtents
from vani.calls import Kind
from vani.columns import Bools, Ints, UInt64s, distinct

_MAX_PIECES = 1 << 21
"""Maximum number of pieces that are examined; a piece is a range that the same calls write and read throughout."""



def _nothing() -> Ints:
    return np.empty(0, np.int64)


def spread(begin: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Row indices, each repeated `count` times, and consecutive numbers for each row, starting at `begin`."""
    row = np.repeat(np.arange(len(begin)), count)
    return row, np.arange(len(row)) + np.repeat(begin - (np.cumsum(count) - count), count)


def _joint(*columns: Ints) -> Ints:
    """Codes from 0 for rows of small numbers; equal rows share a code."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        numbers = Factorized.of(pack((numbers, column), key_widths(int(column.max(initial=0)) + 1))).codes
    return numbers


@dataclass(frozen=True, eq=False)
class Blocks:
    """Blocks in which each writer wrote data that each reader read; shapes (blocks,) and (members,)."""

    file: Ints = field(default_factory=_nothing)
    writer_block: Ints = field(default_factory=_nothing)
    """Ascending."""
    writer: Ints = field(default_factory=_nothing)
    reader_block: Ints = field(default_factory=_nothing)
    """Ascending."""
    reader: Ints = field(default_factory=_nothing)

    @staticmethod
    def of(file: Ints, writers: tuple[Ints, Ints], readers: tuple[Ints, Ints]) -> Blocks:
        """Blocks from (block, process) pairs in any order, merged as far as possible."""
        writers, readers = _distinct_pairs(*writers), _distinct_pairs(*readers)
        wrote, read = (np.bincount(of[0], minlength=len(file)) for of in (writers, readers))
        if int((wrote * read).sum()) <= len(writers[0]) + len(readers[0]):
            # A block for each pair of processes: a thousand alternating records then become one block per pair.
            first, second = spread((np.cumsum(read) - read)[writers[0]], read[writers[0]])
            writer, reader, file = writers[1][first], readers[1][second], file[writers[0][first]]
            representative = np.zeros(len(file), np.int64)
            alike = _joint(file, writer, reader)
            representative[alike] = np.arange(len(file))
            representative = representative[: int(alike.max(initial=-1)) + 1]
            number = np.arange(len(representative))
            return Blocks(file[representative], number, writer[representative], number, reader[representative])
        for _ in range(2):
            # Merge the writers of blocks with equal file and readers, then the readers of those with equal writers.
            alike = _joint(file, numbers_of_sets(len(file), *readers))
            file = file[np.unique(alike, return_index=True)[1]]
            readers, writers = (
                _distinct_pairs(alike[writers[0]], writers[1]),
                _distinct_pairs(alike[readers[0]], readers[1]),
            )
        return Blocks(file, *writers, *readers)

    def and_pairs(self, file: Ints, writer: Ints, reader: Ints) -> Blocks:
        """Add a block for each pair."""
        number = np.arange(len(self.file), len(self.file) + len(file))
        more = (file, number, writer, number, reader)
        return Blocks(
            *(np.concatenate([getattr(self, f.name), m]) for f, m in zip(fields(self), more, strict=True))
        )


@dataclass(frozen=True, eq=False)
class Flows:
    """Readers of bytes, and the processes that had written them."""

    blocks: Blocks = field(default_factory=Blocks)
    """A process that reads its own writes is both a writer and a reader."""
    unresolved: Ints = field(default_factory=_nothing)
    """Files with too many written and read pieces to examine."""
    in_doubt: bool = False
    """Whether the last writer of some bytes is uncertain, or whether it wrote before the read."""


def _distinct_pairs(block: Ints, process: Ints) -> tuple[Ints, Ints]:
    widths = key_widths(int(process.max(initial=0)) + 1)
    block, process = unpack(distinct(pack((block, process), widths)), widths)
    return block, process


def numbers_of_sets(blocks: int, block: Ints, process: Ints) -> Ints:
    """A number per block that identifies its set of processes: the sum of their mixed numbers."""
    total = np.zeros(blocks, np.uint64)
    np.add.at(total, block, _mixed(process))
    return Factorized.of(total.view(np.int64)).codes


def _mixed(*columns: Ints) -> UInt64s:
    """A pseudorandom number for each row (splitmix64)."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes + column.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
        hashes ^= hashes >> np.uint64(31)
    return hashes


@dataclass(frozen=True, eq=False)
class _Calls:
    """Writes, or reads: for each file and process, the pieces [begin, end), between two times."""

    file: Ints
    process: Ints
    begin: Ints
    end: Ints
    earliest: Ints
    latest: Ints

    def where(self, rows: Bools | Ints) -> _Calls:
        return _Calls(*(getattr(self, f.name)[rows] for f in fields(self)))

    @property
    def pieces(self) -> Ints:
        return self.end - self.begin


class _Budget:
    """Excludes the files with most pieces if there are too many to examine."""

    def __init__(self) -> None:
        self.over = _nothing()

    def within(self, file: Ints, pieces: Ints) -> Bools:
        """Mask of the rows that fit the budget."""
        if int(pieces.sum()) <= _MAX_PIECES:
            return np.ones(len(file), np.bool_)
        dense = Factorized.of(file)
        total = dense.sum(pieces)
        order = np.argsort(total, kind="stable")
        over = np.zeros(len(total), np.bool_)
        over[order] = np.cumsum(total[order]) > _MAX_PIECES
        self.over = distinct(self.over, dense.keys[over])
        within: Bools = ~over[dense.codes]
        return within


class _Written:
    """Writers of each piece, in the order of their last times."""

    def __init__(self, writes: _Calls, pieces: int) -> None:
        self.writes = writes
        self._late, late = np.unique(writes.latest, return_inverse=True)
        self._early, early = np.unique(writes.earliest, return_inverse=True)
        call, piece = spread(writes.begin, writes.pieces)
        # Sort by time within each piece; pieces mostly ascend already.
        order = np.argsort(self._key(piece, late[call]), kind="stable")
        self.call, piece = call[order], piece[order]
        self._begin = np.searchsorted(piece, np.arange(pieces + 1))
        self._apart = len(piece) < 2 or bool((piece[1:] != piece[:-1]).all())
        """Whether no piece was written twice."""
        self._keys = self._key(piece, late[self.call])
        # The time after which the calls so far had rewritten all bytes of the piece.
        lift = piece * len(self._early)
        self._rewritten = np.maximum.accumulate(early[self.call] + lift) - lift
        self._longest = int((writes.latest - writes.earliest).max(initial=0))
        self._late_of_file = distinct(self._key(writes.file, late))
        self._early_of_file = distinct(self._key(writes.file, early))

    def _key(self, group: Ints, rank: Ints) -> Ints:
        return pack((group, rank), key_widths(len(self._late) + len(self._early) + 1))

    def order(self, reads: _Calls) -> tuple[Ints, Ints]:
        """Reads of one file differ in which of its writes had ended, and which had begun."""
        over = np.searchsorted(self._late, reads.earliest, side="right")
        begun = np.searchsorted(self._early, reads.latest, side="right")
        return (
            np.searchsorted(self._late_of_file, self._key(reads.file, over)),
            np.searchsorted(self._early_of_file, self._key(reads.file, begun)),
        )

    def seen(self, piece: Ints, earliest: Ints, latest: Ints) -> tuple[Ints, Ints]:
        """Range of the piece's writes in `call` that a read between these times may have seen.

        Some of the writes may have begun after the read.
        """
        first, last = self._begin[piece], self._begin[piece + 1]
        if self._apart:
            return first, last

        def place(late: Ints) -> Ints:
            return np.searchsorted(self._keys, self._key(piece, late))

        over = place(np.searchsorted(self._late, earliest, side="right"))
        rewritten = self._early[self._rewritten[over - 1]]
        begin = np.where(over > first, place(np.searchsorted(self._late, rewritten)), first)
        return begin, place(np.searchsorted(self._late, latest + self._longest, side="right"))


def flows(extents: ProcessExtents, exchanges: ExchangeCounts, skew_ns: int = 0) -> Flows:
    """Find which processes read bytes that others had written.

    Parameters
    ----------
    exchanges
        Provides the times of merged extents.
    skew_ns
        Clock disagreement in ns.
    """
    process, file = extents.process.astype(np.int64), extents.file.astype(np.int64)
    writes, reads = extents.kind == Kind.WRITE, extents.kind == Kind.READ
    earliest, latest = _moments(extents, exchanges, writes)
    begin, end = _places(file, extents.start, extents.end)
    # Only a difference larger than the clocks' disagreement shows which of two calls came first.
    calls = _Calls(file, process, begin, end, earliest, latest + skew_ns)
    if extents.start_ns is not None or not len(file):
        return _flows(calls.where(writes), calls.where(reads))
    same, in_doubt, rest = _same(calls, writes)
    of_rest = _flows(calls.where(rest & writes), calls.where(rest & reads))
    return Flows(of_rest.blocks.and_pairs(*same), of_rest.unresolved, of_rest.in_doubt or in_doubt)


def _same(calls: _Calls, writes: Bools) -> tuple[tuple[Ints, Ints, Ints], bool, Bools]:
    """(file, writer, reader) where a process read all that one process wrote to a file, and nothing else.

    Only covers files without bytes that two processes wrote. It avoids examining every record if all processes write
    a file alternately and read their own or a neighbour's records. Also returns whether some of it is in doubt, and a
    mask of the remaining extents.
    """
    differs = [column[1:] != column[:-1] for column in (calls.process, calls.file, writes)]
    at = np.flatnonzero(np.append(True, np.logical_or.reduce(differs)))
    whole, is_write = calls.where(at), writes[at]
    written = calls.where(writes)
    # Sort starts and ends separately: two extents overlap if the next start precedes one of the ends so far. Places
    # are in file order.
    twice = np.sort(written.begin)[1:] < np.sort(written.end)[:-1]
    once = ~np.isin(whole.file, np.sort(written.file)[1:][twice])
    mixed = np.add.reduceat(_mixed(calls.begin, calls.end), at)
    code = _joint(whole.file, Factorized.of(mixed.view(np.int64)).codes)
    writer = np.full(len(at), -1)
    writer[code[once & is_write]] = np.flatnonzero(once & is_write)
    writer = writer[code]
    known = ~is_write & (writer >= 0)
    is_open = np.isin(whole.file, whole.file[~is_write & ~known])
    reader = np.flatnonzero(known & (whole.earliest[writer] <= whole.latest))
    rest = np.repeat(np.where(is_write, is_open, ~known), np.diff(np.append(at, len(writes))))
    writer = writer[reader]
    in_doubt = bool((whole.latest[writer] > whole.earliest[reader]).any())
    return (whole.file[reader], whole.process[writer], whole.process[reader]), in_doubt, rest


def _flows(writes: _Calls, reads: _Calls) -> Flows:
    # Between two neighbouring bounds, the same calls wrote all bytes.
    bounds = distinct(np.concatenate([writes.begin, writes.end]))
    if not len(bounds) or not len(reads.file):
        return Flows()
    writes = replace(writes, begin=np.searchsorted(bounds, writes.begin), end=np.searchsorted(bounds, writes.end))
    reads = replace(
        reads,
        begin=np.maximum(np.searchsorted(bounds, reads.begin, side="right") - 1, 0),
        end=np.searchsorted(bounds, reads.end),
    )
    return _matched(writes, reads.where(reads.end > reads.begin), len(bounds))


def _places(file: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Starts and ends as places in one order over all files."""
    low = int(start.min(initial=0))
    span = int(end.max(initial=0)) - low + 1
    if (int(file.max(initial=0)) + 1) * span < 1 << 62:
        lift = file * span - low
        return start + lift, end + lift
    ends, rank = np.unique(np.concatenate([start, end]), return_inverse=True)
    return file * len(ends) + rank[: len(file)], file * len(ends) + rank[len(file) :]


def _moments(extents: ProcessExtents, exchanges: ExchangeCounts, writes: Bools) -> tuple[Ints, Ints]:
    """Start times of the first and the last call of each extent."""
    if extents.start_ns is not None:
        return extents.start_ns, extents.start_ns
    sides = ((extents.process, extents.file), (exchanges.process, exchanges.file))
    widths = [1 + max(int(side[i].max(initial=0)) for side in sides) for i in (0, 1)]
    wanted, known = (pack(side, widths) for side in sides)
    table = IntTable(known, exchanges.columns)
    first, last = (
        np.where(writes, table.at(wanted, f"{which}_write"), table.at(wanted, f"{which}_read"))
        for which in ("first", "last")
    )
    return first, last


def _matched(writes: _Calls, reads: _Calls, pieces: int) -> Flows:
    budget = _Budget()
    writes = writes.where(budget.within(writes.file, writes.pieces))
    if not len(writes.file) or not len(reads.file):
        return Flows(unresolved=budget.over)
    written = _Written(writes, pieces)
    # Reads of the same pieces after the same writes see the same writers, so one read represents all of them.
    block = _joint(reads.begin, reads.pieces, *written.order(reads))
    representative = np.zeros(int(block.max()) + 1, np.int64)
    representative[block] = np.arange(len(block))
    alike = reads.where(representative)
    row, piece = spread(alike.begin, np.where(budget.within(alike.file, alike.pieces), alike.pieces, 0))
    begin, end = written.seen(piece, alike.earliest[row], alike.latest[row])
    some = budget.within(alike.file[row], end - begin)
    row, begin, end = row[some], begin[some], end[some]
    again, at = spread(begin, end - begin)
    row, call = row[again], written.call[at]
    before = writes.earliest[call] <= alike.latest[row]
    row, call = row[before], call[before]
    # A piece has several writers, or a write may have come after the read.
    several = len(row) > len(distinct(again[before]))
    in_doubt = several or bool((writes.latest[call] > alike.earliest[row]).any())
    number = np.full(len(representative), -1)
    seen = distinct(row)
    number[seen] = np.arange(len(seen))
    reader = number[block] >= 0
    blocks = Blocks.of(
        alike.file[seen], (number[row], writes.process[call]), (number[block[reader]], reads.process[reader])
    )
    return Flows(blocks, budget.over, in_doubt)


class Links:
    """Exchanges as arrays: one row per process and file, for files with several processes."""

    def __init__(
        self, exchanges: ExchangeCounts, extents: ProcessExtents, app_of_process: Ints, skew_ns: int
    ) -> None:
        # Other files link nothing.
        users = np.bincount(exchanges.file, minlength=1)
        rows = np.flatnonzero(users[exchanges.file] > 1)
        rows = rows[np.argsort(exchanges.file[rows], kind="stable")]
        self.process, self.file = exchanges.process[rows], exchanges.file[rows]
        self.columns = {name: column[rows] for name, column in exchanges.columns.items()}
        # A read that begins this shortly before a write may have seen it.
        self.columns["last_read"] = np.where(self["last_read"] > -NEVER, self["last_read"] + skew_ns, -NEVER)
        self.begins = np.append(True, self.file[1:] != self.file[:-1])[: len(self.file)]
        """Shape (rows,): start of each file's rows."""
        self.starts = np.flatnonzero(self.begins)
        self.app_of_process = app_of_process
        self.app = self.app_of_process[self.process]
        self.extents = extents
        flows_ = flows(extents, exchanges, skew_ns)
        self.blocks, self.unresolved, self.in_doubt = flows_.blocks, flows_.unresolved, flows_.in_doubt
        wrote, read = self["first_write"] != NEVER, self["last_read"] > -NEVER
        # If all calls of a file are considered, they may show what a single row's calls do not.
        hidden = np.isin(self.file, self.unresolved) | self.extents.given_up
        self.unplaced_writer = wrote & (hidden | self._any("unplaced_writes", "made"))
        self.unplaced_reader = read & (hidden | self._any("unplaced_reads") | self._only_looked)
        self.unsized_writer = self._any("unsized_writes", "made")
        self.unsized_reader = self._any("unsized_reads") | self._only_looked

    def __getitem__(self, column: str) -> Ints:
        return self.columns[column]

    def _any(self, *columns: str) -> Bools:
        is_any = np.zeros(len(self.file), np.bool_)
        for column in columns if len(self.file) else ():
            is_any |= self[column] > 0
        return is_any

    @property
    def _only_looked(self) -> Bools:
        return self._any("looked") & ~self._any("reads")
