"""Pairs of a writer and a reader: their number, the number of their files, and their pattern."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.flows import numbers_of_sets, spread
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.keys import pack, unpack
from vani.distinct import distinct

MOST_EDGES = 2_000_000
MOST_PAIRS = 1 << 26
"""Maximum number of pairs of a writer and a reader of one file that are examined."""
_AT_ONCE = 1 << 20
Pattern = Literal["none", "one_to_many", "many_to_one", "neighbour", "all_to_all", "irregular"]

Ints = NDArray[np.int64]


def pairs(writer: Ints, reader: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pairs with equal keys, as indices into two ascending arrays, about a million at a time."""
    begin = np.searchsorted(reader, writer)
    count = np.searchsorted(reader, writer, side="right") - begin
    upto = np.cumsum(count)
    at = 0
    while at < len(writer):
        done = int(upto[at - 1]) if at else 0
        stop = max(at + 1, int(np.searchsorted(upto, done + _AT_ONCE, side="right")))
        first, second = spread(begin[at:stop], count[at:stop])
        yield first + at, second
        at = stop


@dataclass(frozen=True, eq=False)
class Graph:
    """Summary of the pairs of processes."""

    edges: int
    by_extents: int
    files: int
    pattern: Pattern
    cut: bool = False


def all_to_all(writer: tuple[Ints, Ints], reader: tuple[Ints, Ints], file: Ints) -> Graph | None:
    """The graph of blocks that all have the same members; None if they differ.

    It avoids examining pairs, of which thousands of processes have millions. Takes (block, process) pairs of each side
    with ascending blocks, and the `file` of each block.
    """
    written = distinct(writer[0])
    both = written[np.isin(written, distinct(reader[0]), assume_unique=True)]
    if not len(both):
        return Graph(0, 0, 0, "none")
    sides = []
    for block, process in (writer, reader):
        in_both = np.isin(block, both)
        numbers = numbers_of_sets(len(both), np.searchsorted(both, block[in_both]), process[in_both])
        if (numbers != numbers[0]).any():
            return None
        sides.append(np.sort(process[block == both[0]]))
    writers, readers = sides
    # Exclude processes with only themselves on the other side.
    if len(readers) == 1:
        writers = np.setdiff1d(writers, readers)
    if len(writers) == 1:
        readers = np.setdiff1d(readers, writers)
    edges = len(writers) * len(readers) - len(np.intersect1d(writers, readers, assume_unique=True))
    files = len(distinct(file[both])) if edges else 0
    return Graph(edges, edges, files, _pattern_of_all(writers, readers) if edges else "none")


def _pattern_of_all(writers: Ints, readers: Ints) -> Pattern:
    if len(writers) == 1:
        return "one_to_many"
    return "many_to_one" if len(readers) == 1 else "all_to_all"


class Edges:
    """Dependencies: pairs of processes, or with `by_file` triples of both processes and a file."""

    def __init__(self, processes: int, files: int, *, by_file: bool = False) -> None:
        self._widths = (processes, processes)
        self._with_file = (processes**2, files)
        self._by_file = by_file
        self._table = IntTable()
        self._seen = 0
        self._linked = np.zeros(files, np.bool_)
        self.cut = False
        """Whether there are more than are counted."""

    def add(self, writer: Ints, reader: Ints, file: Ints, by_extents: bool) -> None:
        """Add pairs, some of which may have been added before."""
        self._seen += len(writer)
        if self._seen > MOST_PAIRS:
            self.cut = True
            return
        others = writer != reader
        writer, reader, file = writer[others], reader[others], file[others]
        self._linked[file] = True
        key = pack((writer, reader), self._widths)
        key = pack((key, file), self._with_file) if self._by_file else key
        new = group(key, {"by_extents": np.full(len(key), by_extents, np.int64)}, {"by_extents": "max"})
        self._table = IntTable.merged([self._table, new], {"by_extents": "max"})
        if len(self._table) > MOST_EDGES:
            self._table = self._table.where(np.arange(MOST_EDGES))
            self.cut = True

    def graph(self) -> Graph:
        edges = self.pairs()
        pattern = _pattern(*unpack(edges.keys, self._widths))
        by_extents = int(edges["by_extents"].sum()) if len(edges) else 0
        return Graph(len(edges), by_extents, int(self._linked.sum()), pattern, self.cut)

    def pairs(self) -> IntTable:
        """Table by keys of writer and reader: `files` (only with `by_file`), and the `by_extents` among them."""
        table = self._table
        if not len(table) or not self._by_file:
            return table
        files = {"files": np.ones(len(table), np.int64), "by_extents": table["by_extents"]}
        return group(unpack(table.keys, self._with_file)[0], files)


def _pattern(writer: Ints, reader: Ints) -> Pattern:
    if not len(writer):
        return "none"
    writers, readers = distinct(writer), distinct(reader)
    both = np.intersect1d(writers, readers, assume_unique=True)
    if len(writers) == 1 or len(readers) == 1 or len(writer) == len(writers) * len(readers) - len(both):
        return _pattern_of_all(writers, readers)
    everyone = distinct(writers, readers)
    distances = (reader - writer) % int(everyone[-1] - everyone[0] + 1)
    return "neighbour" if (distances == distances[0]).all() else "irregular"
