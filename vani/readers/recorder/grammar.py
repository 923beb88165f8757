"""The order of calls, as a Sequitur-style grammar over signature ids (format document, section 5.2).

Nothing here recurses or loops over calls. `Grammar.calls` gives the number of calls before anything is expanded, so
that a kilobyte that claims 2^60 calls is refused instead of allocated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from vani.columns import Floats, Int32s, Ints
from vani.errors import TraceError
from vani.kernels import available, call, dtype_of, note
from vani.units import counted, format_number

_ARENA = 1 << 22
"""Number of expanded symbols kept at a time (16 MiB as int32)."""
_MAX_DEPTH = 128
"""Maximum depth that the kernel walks: no program produces deeper grammars, and descending through more levels per call
is too slow."""
_SHORT = 1 << 10
"""Calls of the rules that are kept expanded, up to `_ARENA` in all, from which longer rules are built."""
_MAX_CALLS = 1 << 38
"""Maximum calls of one process: their time stamps alone take 2 TiB. Sums over ten million processes fit 64 bits."""
MAX_GRAMMAR_BYTES = 1 << 26
"""Largest grammar that is decoded (8 million symbols); real ones have a few MB, decoding takes 10 to 20 times that."""


def ragged(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate the ranges `starts[i] .. starts[i] + lengths[i]`; shape (sum of lengths,)."""
    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    indices: Ints = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - lengths), lengths)
    return indices


@dataclass(frozen=True, eq=False)
class Rules:
    """Rules of one or several grammars: every symbol is a terminal or an existing rule, and no rule contains itself.

    Attributes
    ----------
    bodies
        Shape (rules + 1,): rule i owns symbols `bodies[i] .. bodies[i + 1]`.
    values
        Shape (symbols,): a number >= 0 for a terminal, or -1 - (index of a rule).
    exponents
        Shape (symbols,): number of consecutive repetitions of a symbol, >= 1.
    levels
        Rules by height: a rule's symbols are terminals and rules of earlier levels.
    """

    bodies: Ints
    values: Ints
    exponents: Ints
    levels: Sequence[Ints]

    @cached_property
    def heights(self) -> Int32s:
        """The level of each rule, shape (rules,)."""
        heights = np.empty(len(self.bodies) - 1, dtype=np.int32)
        for height, level in enumerate(self.levels):
            heights[level] = height
        return heights

    def symbols_of(self, rules: Ints) -> tuple[Ints, Ints]:
        """Positions of the symbols of some rules, rule by rule, and the number of symbols of each."""
        counts = self.bodies[rules + 1] - self.bodies[rules]
        return ragged(self.bodies[rules], counts), counts

    def weights(self, starts: int | Ints) -> Ints:
        """How often each symbol occurs, shape (symbols,), if the start rules occur once: as often as its rule does."""
        times = np.zeros(len(self.bodies) - 1, dtype=np.int64)
        times[starts] = 1
        weights = np.zeros(len(self.values), dtype=np.int64)
        for level in reversed(self.levels):
            used = level[times[level] > 0]
            symbols, counts = self.symbols_of(used)
            weights[symbols] = often = np.repeat(times[used], counts) * self.exponents[symbols]
            values = self.values[symbols]
            is_rule = values < 0
            np.add.at(times, -1 - values[is_rule], often[is_rule])
        return weights

    def expand_into(self, arena: Int32s, lengths: Ints, offsets: Ints, places: Ints, chosen: Any) -> None:
        """Write the terminals of some rules to their places in `arena`, which has the terminals already.

        Parameters
        ----------
        lengths, offsets
            Shape (rules,): number of terminals of each rule, and where they begin.
        places
            Shape (symbols,): place of each terminal.
        chosen
            Shape (rules,): whether a rule is written; the rules that it uses must be, too.
        """
        for level in self.levels:
            rules = level[chosen[level]]
            if not len(rules):
                continue
            symbols, _ = self.symbols_of(rules)
            values, often = self.values[symbols], self.exponents[symbols]
            is_rule = values < 0
            child = np.where(is_rule, -1 - values, 0)
            start = np.where(is_rule, offsets[child], places[symbols])
            length = np.where(is_rule, lengths[child], 1)
            if (often != 1).any():
                start, length = np.repeat(start, often), np.repeat(length, often)
            arena[ragged(offsets[rules], lengths[rules])] = arena[ragged(start, length)]


@dataclass(frozen=True, eq=False)
class Grammar(Rules):
    """A checked grammar.

    Attributes
    ----------
    lengths
        Shape (rules,): number of calls that each rule describes.
    names
        Terminal ids, ascending: all that occur, and possibly others; `values` are positions in them.
    start
        Index of the start rule.
    """

    lengths: Ints
    names: Ints
    start: int

    @property
    def calls(self) -> int:
        """Number of calls that the grammar describes."""
        return int(self.lengths[self.start])

    @property
    def symbols(self) -> int:
        """Number of symbols in all rules, which is the size of the grammar, not of its expansion."""
        return len(self.values)

    @property
    def terminals(self) -> Ints:
        """Distinct terminal ids that occur in calls, sorted."""
        return self.used[0]

    def occurrences(self, terminals: int) -> Ints:
        """Count the occurrences of each terminal id, shape (terminals,), without expanding anything."""
        counts = np.zeros(terminals, dtype=np.int64)
        ids, often = self.used
        counts[ids] = often
        return counts

    @cached_property
    def used(self) -> tuple[Ints, Ints]:
        """Terminal ids that occur, ascending, and their counts.

        Each of thousands of grammars over one large call table uses only a few signatures.
        """
        times = np.zeros(len(self.bodies) - 1, np.uint64)
        times[self.start] = 1
        out = call(
            "rules_used",
            bodies=self.bodies,
            values=self.values,
            exponents=self.exponents,
            order=np.concatenate(self.levels),
            rules=len(times),
            names=len(self.names),
            times=times,
        )
        if out is None:
            counts, terminal = np.zeros(len(self.names), dtype=np.int64), self.values >= 0
            np.add.at(counts, self.values[terminal], self.weights(self.start)[terminal])
        else:
            counts = out["counts"].view(np.int64)
        occurring = np.flatnonzero(counts)
        return self.names[occurring], counts[occurring]

    @cached_property
    def whole(self) -> Int32s:
        """All terminal ids in order, cached: for small grammars that many ranks share."""
        pieces = list(self.expand(_ARENA))
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int32), *pieces])

    def expand(self, rows: int) -> Iterator[Int32s]:
        """Yield the terminal ids in order, in arrays of `rows` (the last one may be shorter)."""
        done = 0
        for ids in self.walked(rows):
            yield ids
            done += len(ids)
        if done < self.calls:
            yield from islice(self._expanded(rows), done // rows, None)

    def walked(self, rows: int) -> Iterator[Int32s]:
        """Yield the same from the kernel, which may end early."""
        if not available():
            return
        if len(self.levels) > _MAX_DEPTH:
            note("grammar", used=False)
            return
        order, offsets, size = self._short_rules(_SHORT)
        names = ("bodies", "lengths", "values", "exponents")
        grammar = {name: getattr(self, name) for name in names} | {"name": self.names, "offsets": offsets}
        expanded = call("grammar_arena", **grammar, order=order, arena_ids=size)
        if expanded is None:
            return
        places, depth = np.zeros(len(self.levels), dtype_of("grammar", "places")), np.full(1, -1)
        left = self.calls
        while left > 0:
            wanted = min(rows, left)
            state = {"arena": expanded["arena"], "places": places, "depth": depth}
            out = call("grammar", **grammar, **state, start=self.start, rows=wanted)
            if out is None or len(out["ids"]) < wanted:
                return
            left -= wanted
            yield out["ids"]

    def _short_rules(self, most: int) -> tuple[Ints, Ints, int]:
        """Rules of up to `most` calls, by height; start of the ids of each rule, -1 for others; number of all ids."""
        lengths = self.lengths
        short = (lengths > 0) & (lengths <= most)
        # A rule is at least as long as those that it uses, so all rules up to a length include these.
        ids_up_to = np.cumsum(np.bincount(lengths[short]) * np.arange(int(lengths[short].max(initial=-1)) + 1))
        short &= lengths < np.searchsorted(ids_up_to, _ARENA, side="right")
        short[self.start] = False
        order = np.concatenate([level[short[level]] for level in self.levels])
        ends = np.cumsum(lengths[order])
        offsets = np.full(len(lengths), -1)
        offsets[order] = ends - lengths[order]
        return order, offsets, int(ends[-1]) if len(ends) else 0

    def _expanded(self, rows: int) -> Iterator[Int32s]:
        """Yield the same, computed with numpy."""
        waiting: list[Int32s] = []
        calls = 0
        for piece in self._pieces(rows):
            waiting.append(piece)
            calls += len(piece)
            if calls >= rows:
                joined = np.concatenate(waiting)
                yield joined[:rows]
                waiting, calls = [joined[rows:]], calls - rows
        if calls:
            yield np.concatenate(waiting)

    def _pieces(self, rows: int) -> Iterator[Int32s]:
        """Yield the terminal ids in order, in arrays of up to `rows`: runs of symbols between long rules."""
        order, offsets, size = self._short_rules(max(_SHORT, rows // 8))
        terminals = len(self.names)
        offsets[order] += terminals
        arena = np.empty(terminals + size, dtype=np.int32)
        arena[:terminals] = self.names
        self.expand_into(arena, self.lengths, offsets, self.values, offsets >= 0)
        is_rule = self.values < 0
        child = np.where(is_rule, -1 - self.values, 0)
        length = np.where(is_rule, self.lengths[child], 1)
        source = np.where(is_rule, offsets[child], self.values)
        long = np.append(np.flatnonzero((source < 0) & (length > 0)), len(length))
        # Symbols from the first up to the last, and how often they follow each other.
        stack = [(*self.bodies[self.start : self.start + 2].tolist(), 1)]
        while stack:
            at, end, times = stack.pop()
            if times > 1:
                stack.append((at, end, times - 1))
            stop = min(int(long[np.searchsorted(long, at)]), end)
            if at < stop:
                yield from _run(arena, source[at:stop], length[at:stop], self.exponents[at:stop], rows)
            if stop < end:
                rule = int(child[stop])
                stack.append((stop + 1, end, 1))
                stack.append((*self.bodies[rule : rule + 2].tolist(), int(self.exponents[stop])))


def _run(arena: Int32s, source: Ints, length: Ints, exponents: Ints, rows: int) -> Iterator[Int32s]:
    """Yield the ids of symbols, each the `length` ids from `source` in the arena, repeated; `rows` at a time."""
    ends = np.cumsum(length * exponents)
    begins = ends - length * exponents
    for first in range(0, int(ends[-1]), rows):
        last = min(first + rows, int(ends[-1]))
        used = np.flatnonzero((ends > first) & (begins < last) & (length > 0))
        # Whole repetitions, from the one with the first call up to the one with the last.
        skipped = np.maximum(0, first - begins[used]) // length[used]
        times = np.minimum(exponents[used], -((begins[used] - last) // length[used])) - skipped
        ids = arena[ragged(np.repeat(source[used], times), np.repeat(length[used], times))]
        at = first - int(begins[used[0]] + skipped[0] * length[used[0]])
        yield ids[at : at + last - first]


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
    def cost(self) -> Floats:
        """Total calls of each grammar's rules, which is the cost of expanding every rule once; shape (grammars,)."""
        return np.add.reduceat(self.lengths.astype(np.float64), self.first_rule[:-1])

    @cached_property
    def used(self) -> tuple[Ints, Ints, Ints]:
        """(grammar, terminal id, count) of all terminals that occur, sorted by grammar and id; shape (n,) each."""
        weight = self.weights(self.starts)
        rows = np.flatnonzero((self.values >= 0) & (weight > 0))
        owner = np.repeat(np.arange(len(self)), self.symbols)[rows]
        pairs, place = np.unique(owner << 32 | self.values[rows], return_inverse=True)
        counts = np.zeros(len(pairs), np.int64)
        np.add.at(counts, place, weight[rows])
        return pairs >> 32, pairs & 0xFFFFFFFF, counts

    def grammar(self, index: int) -> Grammar:
        """One of the grammars by itself."""
        first, last = int(self.first_rule[index]), int(self.first_rule[index + 1])
        begin, end = int(self.bodies[first]), int(self.bodies[last])
        values = self.values[begin:end].copy()
        values[values < 0] += first
        names = compact_names(values)
        heights = self.heights[first:last]
        levels = np.split(np.argsort(heights, kind="stable"), np.cumsum(np.bincount(heights))[:-1])
        bodies, start = self.bodies[first : last + 1] - begin, int(self.starts[index]) - first
        return Grammar(bodies, values, self.exponents[begin:end], levels, self.lengths[first:last], names, start)

    def expanded(self) -> tuple[Int32s, Ints]:
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


def decode_grammar(buffer: bytes | memoryview, *, terminals: int, where: str) -> Grammar:
    """Decode and check one grammar.

    Parameters
    ----------
    buffer
        Number of rules, then for each rule its id, number of symbols and (value, exponent) pairs; 4-byte integers.
    terminals
        Number of entries in the call table that the grammar refers to.
    where
        Place that errors name.

    Raises
    ------
    TraceError
        The length is wrong or too large, a rule or terminal is unknown, rules form a cycle, or more than 2^38 calls are
        claimed.
    """
    if len(buffer) % 4 or len(buffer) < 4:
        raise TraceError(f"grammar of {counted(len(buffer), 'byte')} is not a list of 4-byte integers", where=where)
    if len(buffer) > MAX_GRAMMAR_BYTES:
        raise TraceError(
            f"grammar of {counted(len(buffer), 'byte')}, Vani takes up to {MAX_GRAMMAR_BYTES:,}", where=where
        )
    read = decoded(np.frombuffer(buffer, dtype="<i4"), terminals=terminals, most_calls=_MAX_CALLS)
    return decode_forest([buffer], terminals, where).grammar(0) if read is None else read


def decoded(stored: Int32s, *, terminals: int, most_calls: int) -> Grammar | None:
    """Decode a grammar with the kernel; None if numpy must do it, for example because an integer is wrong.

    Parameters
    ----------
    terminals
        Number of entries in the call table.
    most_calls
        Maximum number of calls of a rule.
    """
    measured = call("rules_measure", stored=stored)
    if measured is None:
        return None
    sizes = dict(zip(("rules", "symbols", "deepest"), measured["sizes"].tolist(), strict=True))
    out = call("rules", stored=stored, terminals=terminals, most_calls=most_calls, **sizes)
    if out is None:
        return None
    start, heights, highest = out["summary"].tolist()
    order, level, values = out["order"], out["level"], out["values"]
    levels = tuple(order[level[i] : level[i + 1]] for i in range(heights))
    names = compact_names(values, highest)
    return Grammar(out["bodies"], values, out["exponents"], levels, out["lengths"], names, start)


def compact_names(values: Ints, highest: int | None = None) -> Ints:
    """Renumber the terminals in `values` in place, and return their ids; `highest` is the highest id, if known.

    Each of thousands of grammars over one large call table uses only a few signatures; arrays over all of them would
    take more memory than the trace.
    """
    highest = int(values.max(initial=-1)) if highest is None else highest
    if highest < 4 * len(values):
        return np.arange(highest + 1, dtype=np.int64)
    terminal = values >= 0
    names, values[terminal] = np.unique(values[terminal], return_inverse=True)
    return names


def heights_and_lengths(bodies: Ints, values: Ints, exponents: Ints, where: str) -> tuple[tuple[Ints, ...], Ints]:
    """Order the rules from the leaves up, and count the calls that each describes.

    Returns
    -------
    levels
        Rules by height: a rule's symbols are terminals and rules of earlier levels.
    lengths
        Shape (rules,).
    """
    rules = len(bodies) - 1
    # Terminals first: a few million exponents below 2^31 do not overflow.
    upto = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.where(values < 0, 0, exponents), out=upto[1:])
    # Floats are exact up to the refused numbers, and do not overflow at 64 bits.
    lengths = (upto[bodies[1:]] - upto[bodies[:-1]]).astype(np.float64)
    owner = np.repeat(np.arange(rules, dtype=np.int32), np.diff(bodies))
    nested = np.flatnonzero(values < 0)
    child, parent, times = (-1 - values[nested]).astype(np.int32), owner[nested], exponents[nested]
    # numpy uses radix sort for 16-bit keys, which is several times faster than its sort of wider ones.
    by_child = np.argsort(child.astype(np.uint16) if rules < 1 << 16 else child, kind="stable")
    child, parent, times = child[by_child], parent[by_child], times[by_child].astype(np.float64)
    uses = np.searchsorted(child, np.arange(rules + 1))
    waiting = np.bincount(parent, minlength=rules)
    last_place = np.zeros(rules, dtype=np.int64)
    levels = []
    ready = np.flatnonzero(waiting == 0)
    done = 0
    while len(ready):
        levels.append(ready)
        done += len(ready)
        most = lengths[ready].max()
        if most > _MAX_CALLS:
            raise TraceError(f"grammar claims {format_number(most)} calls of one process", where=where)
        edges = ragged(uses[ready], uses[ready + 1] - uses[ready])
        above = parent[edges]
        np.add.at(lengths, above, lengths[child[edges]] * times[edges])
        np.subtract.at(waiting, above, 1)
        ready = above[waiting[above] == 0]
        # Each rule once: with repeated indices, the last assignment counts.
        last_place[ready] = np.arange(len(ready))
        ready = np.sort(ready[last_place[ready] == np.arange(len(ready))])
    if done < rules:
        raise TraceError("a grammar rule contains itself", where=where)
    return tuple(levels), lengths.astype(np.int64)


def decode_forest(buffers: Sequence[bytes | memoryview], terminals: int, where: str = "") -> Forest:
    """Decode and check grammars together.

    Parameters
    ----------
    buffers
        At least one buffer; see `decode_grammar`.
    terminals
        Number of entries in the call table that all of them refer to.
    where
        Place that errors name. They describe the fault of a single grammar; of several, one of them has it.

    Raises
    ------
    TraceError
        See `decode_grammar`.
    """
    sizes = np.array([len(b) for b in buffers], dtype=np.int64)
    if (sizes % 4).any() or sizes.min() < 4:
        raise TraceError(f"grammar of {counted(int(sizes[0]), 'byte')} is not a list of 4-byte integers", where=where)
    ints = np.frombuffer(b"".join(buffers), dtype="<i4")
    ends = np.cumsum(sizes // 4)
    heads, owner = _rules_of(ints, ends - sizes // 4, ends, where)
    ids, counts = ints[heads].astype(np.int64), ints[heads + 1].astype(np.int64)
    # Ids are negative, and distinct within a grammar.
    key = owner << 32 | (ids & 0xFFFFFFFF)
    order = np.argsort(key)
    ordered = key[order]
    starts = np.flatnonzero(ids == -1)
    if (ordered[1:] == ordered[:-1]).any():
        raise TraceError("grammar defines a rule twice", where=where)
    if len(starts) != len(buffers):
        raise TraceError("grammar has no start rule", where=where)
    is_symbol = np.ones(len(ints), dtype=np.bool_)
    is_symbol[ends - sizes // 4] = is_symbol[heads] = is_symbol[heads + 1] = False
    pairs = ints[is_symbol].reshape(-1, 2)
    values, exponents = pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64)
    if (exponents < 1).any():
        raise TraceError(f"grammar repeats a symbol {counted(int(exponents.min()), 'time')}", where=where)
    if (values >= terminals).any():
        what = f"grammar names call signature {values.max()}, but the call table has {terminals}"
        raise TraceError(what, where=where)
    negative = np.flatnonzero(values < 0)
    searched = np.repeat(owner, counts)[negative] << 32 | (values[negative] & 0xFFFFFFFF)
    places = np.searchsorted(ordered, searched)
    places[places == len(ordered)] = 0
    if len(wrong := negative[ordered[places] != searched]):
        raise TraceError(f"grammar uses rule {values[wrong[0]]}, which it does not define", where=where)
    values[negative] = -1 - order[places]
    bodies = np.concatenate(([0], np.cumsum(counts)))
    levels, lengths = heights_and_lengths(bodies, values, exponents, where)
    # An empty expansion stays empty, so repeating it is pointless.
    exponents[negative[lengths[-1 - values[negative]] == 0]] = 1
    first_rule = np.searchsorted(owner, np.arange(len(buffers) + 1))
    return Forest(bodies, values, exponents, levels, lengths, first_rule, starts)


def _rules_of(ints: Int32s, begins: Ints, ends: Ints, where: str) -> tuple[Ints, Ints]:
    """Positions of all rules, and the grammar of each. A rule begins where the previous one ends."""
    heads: list[int] = []
    rules_of: list[int] = []
    # Walking a memoryview is several times faster than numpy scalars, and builds no list of all integers.
    walk = ints.astype(np.int32, copy=False).data
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        rules, at = walk[begin], begin + 1
        if not 1 <= rules <= (end - at) // 2:
            what = f"grammar of {counted(end - begin, 'integer')} claims {counted(rules, 'rule')}"
            raise TraceError(what, where=where)
        for index in range(rules):
            if at + 2 > end:
                raise TraceError(f"grammar ends within rule {index} of {rules}", where=where)
            name, symbols = walk[at], walk[at + 1]
            heads.append(at)
            at += 2 + 2 * symbols
            if name >= 0 or symbols < 0 or at > end:
                raise TraceError(f"grammar rule {index} (id {name}) claims {symbols} symbols", where=where)
        if at < end:
            raise TraceError(f"grammar has {counted(end - at, 'integer')} too many", where=where)
        rules_of.append(rules)
    return np.array(heads, np.int64), np.repeat(np.arange(len(rules_of)), rules_of)
