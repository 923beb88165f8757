"""The grammars that ranks share: a few that are kept decoded, or as many as there are ranks.

If there are many small ones, a few hundred are decoded at a time: once when the tables are read, and again when their
calls are needed. In between, only a few numbers per grammar are kept.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from vani.columns import Int32s, Ints
from vani.errors import TraceError
from vani.readers.files import readable
from vani.readers.recorder.grammar import Forest, Grammar, decode_forest, decode_grammar
from vani.readers.recorder.source import MAX_TABLE_BYTES, Source, inflate_frame

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
                    inflate_frame(content[at : at + size], where=self._where)
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
        self._visit = visit
        if threads > 1 and len(blocks) > 1:
            # Two threads halve the time, because numpy does most of the work and releases the GIL.
            with ThreadPoolExecutor(max_workers=threads) as pool:
                faults = list(pool.map(self._look, blocks))
        else:
            faults = [self._look(block) for block in blocks]
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

    def expanded(self, indices: Sequence[int]) -> dict[int, Int32s]:
        """Terminal ids of small grammars in order, by grammar number.

        Raises
        ------
        TraceError
            The trace changed after its tables were read.
        """
        ids, begins = decode_forest(self._read(indices), self._terminals, self._source.where(indices[0])).expanded()
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
        forest = decode_forest(self._read(small), self._terminals, self._source.where(index))
        return {g: forest.grammar(i) for i, g in enumerate(small)}

    def _look(self, block: range) -> list[str]:
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
        # If one of them is wrong, the loop below finds out which one, and why.
        with suppress(TraceError):
            if small:
                self._note(np.array(small), decode_forest([buffers[i] for i in small], self._terminals))
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
                self._visit(np.full(len(ids), index), ids, often)
                if self._few:
                    self._kept[index] = grammar
        return [problem for _, problem in sorted(problems)]

    def _too_much(self, index: int) -> str:
        fault = f"grammars are larger than the {self._most_bytes} bytes that Vani takes"
        return str(TraceError(fault, where=self._source.where(index)))

    def _note(self, indices: Ints, forest: Forest) -> None:
        self.calls[indices], self.lost[indices] = forest.calls, False
        self._small[indices] = forest.cost <= _SMALL_COST
        grammar, ids, often = forest.used
        with self._lock:
            self._visit(indices[grammar], ids, often)


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
