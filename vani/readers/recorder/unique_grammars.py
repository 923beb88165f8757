"""The grammars that ranks share: a few that are kept decoded, or as many as there are ranks.

Concatenated grammars are one grammar with many start rules. They are checked together with the rules of
`decode_grammar`; if one is wrong, `decode_grammar` finds out which one, and why.

If there are many small ones, a few hundred are decoded at a time: once when the tables are read, and again when their
calls are needed. In between, only a few numbers per grammar are kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vani.errors import TraceError
from vani.readers.files import readable
from vani.readers.recorder.grammar import (
    Grammar,
    Rules,
    compact_names,
    decode_grammar,
    heights_and_lengths,
    ragged,
)
from vani.readers.recorder.source import MAX_TABLE_BYTES, Source, inflate_frame, split_frames

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forest(Rules):
    """Checked, concatenated grammars; `values` are terminal ids or rules, counted over all grammars.

    Attributes
    ----------
    lengths
        Shape (rules,): number of calls that each rule describes.
    first_rule
        Shape (grammars + 1,): grammar g owns rules `first_rule[g] .. first_rule[g + 1]`.
    starts
        Shape (grammars,): start rules.
    """

    lengths: Ints
    first_rule: Ints
    starts: Ints

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def calls(self) -> Ints:
        """Number of calls that each grammar describes, shape (grammars,)."""
        return self.lengths[self.starts]

    @property
    def symbols(self) -> Ints:
        """Number of symbols in each grammar, shape (grammars,)."""
        return np.diff(self.bodies[self.first_rule])

    @property
    def cost(self) -> NDArray[np.float64]:
        """Total calls of each grammar's rules, which is the cost of expanding every rule once; shape (grammars,)."""
        return np.add.reduceat(self.lengths.astype(np.float64), self.first_rule[:-1])

    @cached_property
    def used(self) -> tuple[Ints, Ints, Ints]:
        """(grammar, terminal id, count) of all terminals that occur, sorted by grammar and id; shape (n,) each."""
        weight = self.weights(self.starts)
        rows = np.flatnonzero((self.values >= 0) & (weight > 0))
        owner = np.repeat(np.arange(len(self)), self.symbols)[rows]
        values, weight = self.values[rows], weight[rows]
        order = np.lexsort((values, owner))
        owner, values, weight = owner[order], values[order], weight[order]
        if not len(rows):
            return owner, values, weight
        starts = np.flatnonzero(np.append(True, (values[1:] != values[:-1]) | (owner[1:] != owner[:-1])))
        return owner[starts], values[starts], np.add.reduceat(weight, starts)

    @cached_property
    def _heights(self) -> NDArray[np.int32]:
        heights = np.empty(len(self.lengths), dtype=np.int32)
        for height, level in enumerate(self.levels):
            heights[level] = height
        return heights

    def grammar(self, index: int) -> Grammar:
        """One of the grammars by itself."""
        first, last = int(self.first_rule[index]), int(self.first_rule[index + 1])
        begin, end = int(self.bodies[first]), int(self.bodies[last])
        values = self.values[begin:end].copy()
        values[values < 0] += first
        names = compact_names(values)
        heights = self._heights[first:last]
        levels = np.split(np.argsort(heights, kind="stable"), np.cumsum(np.bincount(heights))[:-1])
        bodies, start = self.bodies[first : last + 1] - begin, int(self.starts[index]) - first
        return Grammar(bodies, values, self.exponents[begin:end], levels, self.lengths[first:last], names, start)

    def expanded(self) -> tuple[NDArray[np.int32], Ints]:
        """Terminal ids of all grammars: (ids, start of each grammar), the latter of shape (grammars + 1,).

        Every rule is expanded once, so check `cost` beforehand.
        """
        terminal = self.values >= 0
        terminals = int(terminal.sum())
        offsets = terminals + np.cumsum(self.lengths) - self.lengths
        arena = np.empty(terminals + int(self.lengths.sum()), dtype=np.int32)
        arena[:terminals] = self.values[terminal]
        every = np.ones(len(self.lengths), np.bool_)
        self.expand_into(arena, self.lengths, offsets, np.cumsum(terminal) - 1, every)
        ids = arena[ragged(offsets[self.starts], self.calls)]
        return ids, np.concatenate(([0], np.cumsum(self.calls)))


def decode_forest(buffers: Sequence[bytes | memoryview], terminals: int) -> Forest | None:
    """Decode and check grammars together; None if one of them violates the format.

    Parameters
    ----------
    buffers
        At least one buffer; see `decode_grammar`.
    terminals
        Number of entries in the call table that all of them refer to.
    """
    sizes = np.array([len(b) for b in buffers], dtype=np.int64)
    if (sizes % 4).any() or sizes.min() < 4:
        return None
    ints = np.frombuffer(b"".join(buffers), dtype="<i4")
    ends = np.cumsum(sizes // 4)
    split = _rules_of(ints, ends - sizes // 4, ends)
    if split is None:
        return None
    heads, owner, begins = split
    ids, counts = ints[heads].astype(np.int64), ints[heads + 1].astype(np.int64)
    # Ids are negative, and distinct within a grammar.
    key = owner << 32 | (ids & 0xFFFFFFFF)
    order = np.argsort(key)
    ordered = key[order]
    starts = np.flatnonzero(ids == -1)
    if (ordered[1:] == ordered[:-1]).any() or len(starts) != len(buffers):
        return None
    is_symbol = np.ones(len(ints), dtype=np.bool_)
    is_symbol[begins] = is_symbol[heads] = is_symbol[heads + 1] = False
    pairs = ints[is_symbol].reshape(-1, 2)
    values, exponents = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    if (exponents < 1).any() or (values >= terminals).any():
        return None
    negative = np.flatnonzero(values < 0)
    searched = np.repeat(owner, counts)[negative] << 32 | (values[negative] & 0xFFFFFFFF)
    places = np.searchsorted(ordered, searched)
    places[places == len(ordered)] = 0
    if (ordered[places] != searched).any():
        return None
    values[negative] = -1 - order[places]
    bodies = np.concatenate(([0], np.cumsum(counts)))
    try:
        levels, lengths = heights_and_lengths(bodies, values, exponents, "")
    except TraceError:
        return None
    # An empty expansion stays empty, so repeating it is pointless.
    exponents[negative] = np.where(lengths[-1 - values[negative]] == 0, 1, exponents[negative])
    first_rule = np.searchsorted(owner, np.arange(len(buffers) + 1))
    return Forest(bodies, values, exponents, levels, lengths, first_rule, starts)


def _rules_of(ints: NDArray[np.int32], begins: Ints, ends: Ints) -> tuple[Ints, Ints, Ints] | None:
    """Positions of all rules, the grammar of each, and the start of each grammar.

    A rule begins where the previous one ends, so one step finds the next rule of every grammar.
    """
    rules = ints[begins].astype(np.int64)
    if (rules < 1).any() or (rules > (ends - begins - 1) // 2).any():
        return None
    at = begins + 1
    active = np.arange(len(begins))
    heads, owners = [], []
    step = 0
    while len(active):
        position = at[active]
        if (position + 2 > ends[active]).any():
            return None
        ids, counts = ints[position], ints[position + 1].astype(np.int64)
        after = position + 2 + 2 * counts
        if (ids >= 0).any() or (counts < 0).any() or (after > ends[active]).any():
            return None
        heads.append(position)
        owners.append(active)
        at[active] = after
        step += 1
        active = active[rules[active] > step]
    if (at != ends).any():
        return None
    head, owner = np.concatenate(heads), np.concatenate(owners)
    order = np.argsort(head)
    return head[order], owner[order], begins


FEW = 256
"""Maximum number of grammars that are all kept decoded."""
_SMALL_BYTES = 1 << 16
_SMALL_COST = 1 << 15
"""Maximum calls of all rules of a grammar that is expanded together with others."""
_MAX_HELD, _OVERHEAD = 1 << 21, 512
"""Symbols of kept grammars if there are many; the overhead of an object counts as this many symbols."""
_BLOCK = 512
_BLOCK_BYTES = 1 << 22
Visit = Callable[[Ints, Ints, Ints], None]
"""Receives the terminals of some grammars: (grammar, terminal id, count), shape (n,) each."""


class GrammarFiles:
    """Encoded grammars, in one file each.

    Attributes
    ----------
    sizes
        Bytes of each grammar according to headers and directories; shape (grammars,).
    """

    sizes: Ints

    def __init__(self, source: Source, count: int) -> None:
        """`count` is the expected number of grammars."""
        self._source = source
        extents = (source.extent(f"{index}.cfg") for index in range(count))
        self.sizes = np.array([0 if e is None else e.length for e in extents], dtype=np.int64)

    def read(self, indices: Iterable[int]) -> Iterator[bytes | TraceError]:
        """The bytes of some grammars, in order."""
        for index in indices:
            try:
                yield self._source.read(f"{index}.cfg")
            except TraceError as error:
                yield error

    def where(self, index: int) -> str:
        """Name a grammar for messages."""
        return self._source.where(f"{index}.cfg")


class GrammarFrames(GrammarFiles):
    """Encoded grammars as concatenated frames in ug.cfg."""

    def __init__(self, source: Source, count: int, problems: list[str]) -> None:
        """Find the frames; `problems` is extended if there are fewer than `count`.

        Raises
        ------
        TraceError
            The file cannot be read.
        """
        content, self._where = memoryview(source.read("ug.cfg")), source.where("ug.cfg")
        places: list[tuple[int, int, int]] = []
        at = 0
        while at < len(content) and len(places) <= count:
            size = 16 + int.from_bytes(content[at : at + 8], "little")
            if at + size > len(content) or at + 16 > len(content):
                try:
                    split_frames(content[at : at + size], where=self._where)
                except TraceError as error:
                    problems.append(str(error))
                break
            places.append((at, size, min(int.from_bytes(content[at + 8 : at + 16], "little"), MAX_TABLE_BYTES)))
            at += size
        if len(places) != count:
            problems.append(f"{self._where}: contains {len(places)} complete grammars of {count}")
        extent = source.extent("ug.cfg")
        if extent is None:
            raise TraceError("is missing", where=self._where)
        self._extent = extent
        self._begins, self._lengths, self.sizes = np.array(places, np.int64).reshape(-1, 3).T

    def read(self, indices: Iterable[int]) -> Iterator[bytes | TraceError]:
        """See `GrammarFiles`."""
        with readable(self._where), self._extent.path.open("rb") as file:
            for index in indices:
                file.seek(self._extent.offset + int(self._begins[index]))
                frame = file.read(int(self._lengths[index]))
                try:
                    yield inflate_frame(frame, where=self.where(index))
                except TraceError as error:
                    yield error

    def where(self, index: int) -> str:
        """See `GrammarFiles`."""
        return f"{self._where} (grammar {index})"


class UniqueGrammars:
    """Grammars by number.

    Attributes
    ----------
    calls
        Shape (grammars,): calls of each, 0 if it is lost.
    lost
        Shape (grammars,): grammars that cannot be decoded.
problems
        Reasons why they are lost.
    """

    def __init__(
        self, source: GrammarFiles, count: int, terminals: int, visit: Visit, *, most_bytes: int, threads: int
    ) -> None:
        """Decode all grammars once.

        Parameters
        ----------
        count
            Expected number of grammars; those that `source` lacks are lost.
        terminals
            Number of entries in the call table.
        most_bytes
            Limit for all grammars together: for the decoded ones that are kept, or for the bytes that are decoded.
        threads
            Number of threads that decode grammars.
        """
        self._source, self._terminals = source, terminals
        self.calls = np.zeros(count, dtype=np.int64)
        self.lost = np.ones(count, dtype=np.bool_)
        self.problems: list[str] = []
        self._small = np.zeros(count, dtype=np.bool_)
        self._kept: OrderedDict[int, Grammar] = OrderedDict()
        """All grammars if there are few, otherwise those that were used last."""
        self._held = 0
        self._spent, self._most_bytes = 0, most_bytes
        self._lock = threading.Lock()
        sizes = source.sizes[:count]
        self._few = len(sizes) <= FEW
        blocks = _blocks(sizes, 1 if self._few else _BLOCK)

        def look(block: range) -> list[str]:
            return self._look(block, visit)

        if threads > 1 and len(blocks) > 1:
            # Two threads halve the time, because numpy does most of the work and releases the GIL.
            with ThreadPoolExecutor(max_workers=threads) as pool:
                faults = list(pool.map(look, blocks))
        else:
            faults = [look(block) for block in blocks]
        self.problems += [problem for some in faults for problem in some]

    def __len__(self) -> int:
        return len(self.calls)

    def __getitem__(self, index: int) -> Grammar | None:
        """A grammar; None if it is lost."""
        if self.lost[index]:
            return None
        with self._lock:
            if index not in self._kept:
                for number, grammar in self._decoded(index).items():
                    self._held += grammar.symbols + _OVERHEAD if number not in self._kept else 0
                    self._kept[number] = grammar
                while self._held > _MAX_HELD and len(self._kept) > 1:
                    number, dropped = self._kept.popitem(last=False)
                    if number == index:
                        self._kept[index] = dropped
                    else:
                        self._held -= dropped.symbols + _OVERHEAD
            elif not self._few:
                self._kept.move_to_end(index)
            return self._kept[index]

    def is_small(self, index: int) -> bool:
        """Whether the grammar is one of many and is best expanded together with others."""
        return bool(self._small[index])

    def expanded(self, indices: Sequence[int]) -> dict[int, NDArray[np.int32]]:
        """Terminal ids of small grammars in order, by grammar number.

        Raises
        ------
        TraceError
            The trace changed after its tables were read.
        """
        forest = decode_forest(self._read(indices), self._terminals)
        if forest is None:
            raise TraceError("was changed while it was read", where=self._source.where(indices[0]))
        ids, begins = forest.expanded()
        return {g: ids[begins[i] : begins[i + 1]] for i, g in enumerate(indices)}

    def _read(self, indices: Sequence[int]) -> list[bytes]:
        buffers = []
        for content in self._source.read(indices):
            if isinstance(content, TraceError):
                raise content
            buffers.append(content)
        return buffers

    def _decoded(self, index: int) -> dict[int, Grammar]:
        """The grammar, and if it is small, its neighbours."""
        if not self._small[index]:
            (buffer,) = self._read([index])
            grammar = decode_grammar(buffer, terminals=self._terminals, where=self._source.where(index))
            return {index: grammar}
        first = index // _BLOCK * _BLOCK
        small = (np.flatnonzero(self._small[first : first + _BLOCK]) + first).tolist()
        forest = decode_forest(self._read(small), self._terminals)
        if forest is None:
            raise TraceError("was changed while it was read", where=self._source.where(index))
        return {g: forest.grammar(i) for i, g in enumerate(small)}

    def _look(self, block: range, visit: Visit) -> list[str]:
        """Decode some grammars, record facts about each, and return their faults."""
        problems: list[tuple[int, str]] = []
        buffers: dict[int, bytes] = {}
        todo = iter(block)
        if self._spent <= self._most_bytes:
            for content in self._source.read(block):
                index = next(todo)
                if isinstance(content, TraceError):
                    problems.append((index, str(content)))
                    continue
                with self._lock:
                    self._spent += len(content)
                    if self._spent > self._most_bytes:
                        problems.append((index, self._too_much(index)))
                        break
                buffers[index] = content
        problems += [(index, self._too_much(index)) for index in todo]
        small = [i for i, b in buffers.items() if len(b) <= _SMALL_BYTES] if not self._few else []
        forest = decode_forest([buffers[i] for i in small], self._terminals) if small else None
        if forest is not None:
            self._note(np.array(small), forest, visit)
            buffers = {i: b for i, b in buffers.items() if len(b) > _SMALL_BYTES}
        for index, buffer in buffers.items():
            try:
                grammar = decode_grammar(buffer, terminals=self._terminals, where=self._source.where(index))
            except TraceError as error:
                problems.append((index, str(error)))
                continue
            self.calls[index], self.lost[index] = grammar.calls, False
            ids, often = grammar.used
            with self._lock:
                visit(np.full(len(ids), index), ids, often)
                if self._few:
                    self._kept[index] = grammar
        return [problem for _, problem in sorted(problems)]

    def _too_much(self, index: int) -> str:
        fault = f"grammars are larger than the {self._most_bytes} bytes that Vani takes"
        return str(TraceError(fault, where=self._source.where(index)))

    def _note(self, indices: Ints, forest: Forest, visit: Visit) -> None:
        self.calls[indices], self.lost[indices] = forest.calls, False
        self._small[indices] = forest.cost <= _SMALL_COST
        grammar, ids, often = forest.used
        with self._lock:
            visit(indices[grammar], ids, often)


def _blocks(sizes: Ints, most: int) -> list[range]:
    """Ranges of grammars that are decoded together."""
    blocks, begin, symbols = [], 0, 0
    for index, size in enumerate(sizes.tolist()):
        if index > begin and (index - begin >= most or symbols + size > _BLOCK_BYTES):
            blocks.append(range(begin, index))
            begin, symbols = index, 0
        symbols += size
    if begin < len(sizes):
        blocks.append(range(begin, len(sizes)))
    return blocks
