"""The order of calls, as a Sequitur-style grammar over signature ids (format document, section 5.2).

Nothing here recurses or loops over calls. `Grammar.calls` gives the number of calls before anything is expanded, so
that a kilobyte that claims 2^60 calls is refused instead of allocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.distinct import distinct
from vani.errors import TraceError
from vani.kernels import available, call, dtype_of, note
from vani.units import counted, format_number

_ARENA = 1 << 22
"""Number of expanded symbols kept at a time (16 MiB as int32)."""
_MAX_DEPTH = 128
"""Maximum depth that the kernel walks: no program produces deeper grammars, and descending through more levels per call
is too slow."""
_SHORT = 1 << 10
"""Calls of the rules that the kernel keeps expanded, up to `_ARENA` in all, from which longer rules are built."""
_MAX_CALLS = 1 << 38
"""Maximum calls of one process: their time stamps alone take 2 TiB. Sums over ten million processes fit 64 bits."""
MAX_GRAMMAR_BYTES = 1 << 26
"""Largest grammar that is decoded (8 million symbols); real ones have a few MB, decoding takes 10 to 20 times that."""

Ints = NDArray[np.int64]


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

    def expand_into(self, arena: NDArray[np.int32], lengths: Ints, offsets: Ints, places: Ints, chosen: Any) -> None:
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
    def whole(self) -> NDArray[np.int32]:
        """All terminal ids in order, cached: for small grammars that many ranks share."""
        pieces = list(self.expand(_ARENA))
        self.__dict__.pop("_arena", None)
        return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int32), *pieces])

    def expand(self, rows: int) -> Iterator[NDArray[np.int32]]:
        """Yield the terminal ids in order, in arrays of `rows` (the last one may be shorter)."""
        done = 0
        for ids in self.walked(rows):
            yield ids
            done += len(ids)
        if done < self.calls:
            yield from islice(self._expanded(rows), done // rows, None)

    def walked(self, rows: int) -> Iterator[NDArray[np.int32]]:
        """Yield the same from the kernel, which may end early."""
        if not available():
            return
        if len(self.levels) > _MAX_DEPTH:
            note("grammar", used=False)
            return
        order, offsets, size = self._short_rules()
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

    def _short_rules(self) -> tuple[Ints, Ints, int]:
        """Short rules by height; start of each rule's ids, -1 for others; and the number of ids of all of them."""
        lengths = self.lengths
        short = (lengths > 0) & (lengths <= _SHORT)
        # A rule is at least as long as those that it uses, so all rules up to a length include these.
        ids_up_to = np.cumsum(np.bincount(lengths[short]) * np.arange(int(lengths[short].max(initial=-1)) + 1))
        short &= lengths < np.searchsorted(ids_up_to, _ARENA, side="right")
        short[self.start] = False
        order = np.concatenate([level[short[level]] for level in self.levels])
        ends = np.cumsum(lengths[order])
        offsets = np.full(len(lengths), -1)
        offsets[order] = ends - lengths[order]
        return order, offsets, int(ends[-1]) if len(ends) else 0

    def _expanded(self, rows: int) -> Iterator[NDArray[np.int32]]:
        """Yield the same, computed with numpy."""
        waiting: list[NDArray[np.int32]] = []
        waiting_calls = 0
        for piece in self._pieces(rows):
            at = 0
            while waiting_calls + len(piece) - at >= rows:
                waiting.append(piece[at : at + rows - waiting_calls])
                at += rows - waiting_calls
                yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                waiting, waiting_calls = [], 0
            if at < len(piece):
                waiting.append(piece[at:])
                waiting_calls += len(piece) - at
        # Thousands of grammars are expanded one after the other, so do not keep their arenas.
        self.__dict__.pop("_arena", None)
        if waiting:
            yield waiting[0] if len(waiting) == 1 else np.concatenate(waiting)

    def _pieces(self, rows: int) -> Iterator[NDArray[np.int32]]:
        """Yield the terminal ids in order, in arrays of any length up to `rows` or the arena's length."""
        limit, offsets, arena = self._arena
        # The first and last symbol of what is left of a rule, and how often its first symbol was repeated.
        stack = [(int(self.bodies[self.start]), int(self.bodies[self.start + 1]), 1)]
        lengths = self.lengths
        values, exponents = self.values, self.exponents
        # Rules below the limit are in the arena; only the others are walked symbol by symbol.
        length = np.ones(len(values), dtype=np.int64)
        is_rule = values < 0
        length[is_rule] = lengths[-1 - values[is_rule]]
        source = np.where(is_rule, 0, values)
        source[is_rule] = offsets[-1 - values[is_rule]]
        walked = np.flatnonzero(is_rule & (length > limit))
        heavy = np.flatnonzero(length * np.minimum(exponents, rows + 1) > rows)
        stops = distinct(walked, heavy)
        total = length * np.where(is_rule & (length > limit), 1, np.minimum(exponents, rows + 1))
        reach = np.concatenate(([0], np.cumsum(np.where(np.isin(np.arange(len(values)), stops), 0, total))))
        while stack:
            at, end, again = stack.pop()
            if at == end:
                continue
            first = np.searchsorted(stops, at)
            stop = int(stops[first]) if first < len(stops) and stops[first] < end else end
            if stop == at:
                value, exponent = int(values[at]), int(exponents[at])
                if value < 0 and lengths[-1 - value] > limit:
                    rule = -1 - value
                    stack.append((at, end, again + 1) if exponent > again else (at + 1, end, 1))
                    stack.append((int(self.bodies[rule]), int(self.bodies[rule + 1]), 1))
                    continue
                piece = arena[source[at] : source[at] + length[at]]
                per = max(1, rows // len(piece)) if len(piece) else exponent
                tiled = np.tile(piece, min(per, exponent))
                for done in range(0, exponent, per):
                    yield tiled[: min(per, exponent - done) * len(piece)]
                stack.append((at + 1, end, 1))
                continue
            upto = int(np.searchsorted(reach, reach[at] + rows, side="right")) - 1
            upto = min(max(upto, at + 1), stop)
            part = slice(at, upto)
            often = exponents[part]
            if (often == 1).all():
                yield arena[ragged(source[part], length[part])]
            else:
                yield arena[ragged(np.repeat(source[part], often), np.repeat(length[part], often))]
            stack.append((upto, end, 1))

    @cached_property
    def _arena(self) -> tuple[int, Ints, NDArray[np.int32]]:
        """Expand every rule up to a length once: (that length, offset of each rule, ids); terminals come first."""
        terminals = len(self.names)
        ordered = np.sort(self.lengths)
        fits = int(np.searchsorted(np.cumsum(np.minimum(ordered, _ARENA + 1)), _ARENA, side="right"))
        limit = int(ordered[fits - 1]) if fits else 0
        if fits < len(ordered) and ordered[fits] == limit:
            limit -= 1
        small = self.lengths <= limit
        # The start rule is not needed in the arena, unless an unused rule names it.
        small[self.start] &= (self.values == -1 - self.start).any()
        sizes = np.where(small, self.lengths, 0)
        offsets = terminals + np.cumsum(sizes) - sizes
        arena = np.empty(terminals + int(sizes.sum()), dtype=np.int32)
        arena[:terminals] = self.names
        self.expand_into(arena, self.lengths, offsets, self.values, small)
        return limit, offsets, arena


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
        raise TraceError(
            f"grammar of {counted(len(buffer), 'byte')} is not a list of 4-byte integers", where=where
        )
    if len(buffer) > MAX_GRAMMAR_BYTES:
        raise TraceError(
            f"grammar of {counted(len(buffer), 'byte')}, Vani takes up to {MAX_GRAMMAR_BYTES:,}", where=where
        )
    ints = np.frombuffer(buffer, dtype="<i4")
    read = decoded(ints.astype(np.int32, copy=False), terminals=terminals, most_calls=_MAX_CALLS)
    if read is not None:
        return read
    ids, counts, pairs = _split(ints, where)
    if len(distinct(ids)) != len(ids):
        raise TraceError("grammar defines a rule twice", where=where)
    start = np.flatnonzero(ids == -1)
    if not len(start):
        raise TraceError("grammar has no start rule", where=where)
    values = pairs[:, 0].astype(np.int64)
    exponents = pairs[:, 1].astype(np.int64)
    if (exponents < 1).any():
        raise TraceError(f"grammar repeats a symbol {counted(int(exponents.min()), 'time')}", where=where)
    if (values >= terminals).any():
        raise TraceError(
            f"grammar names call signature {int(values.max())}, but the call table has {terminals}",
            where=where,
        )
    nested = np.flatnonzero(values < 0)
    named = values[nested]
    if len(nested):
        rule = _index_of(ids, named)
        wrong = np.flatnonzero(ids[rule] != named)
        if len(wrong):
            raise TraceError(
                f"grammar uses rule {int(named[wrong[0]])}, which it does not define", where=where
            )
        values[nested] = -1 - rule
    bodies = np.concatenate(([0], np.cumsum(counts)))
    levels, lengths = heights_and_lengths(bodies, values, exponents, where)
    # An empty expansion stays empty, so repeating it is pointless.
    exponents[nested[lengths[-1 - values[nested]] == 0]] = 1
    names = compact_names(values)
    return Grammar(bodies, values, exponents, levels, lengths, names, int(start[0]))


def decoded(stored: NDArray[np.int32], *, terminals: int, most_calls: int) -> Grammar | None:
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


def _split(ints: NDArray[Any], where: str) -> tuple[Ints, Ints, NDArray[Any]]:
    """Find a grammar's rules: (ids, number of symbols of each, (value, exponent) of all symbols)."""
    rules = int(ints[0])
    if not 1 <= rules <= (len(ints) - 1) // 2:
        raise TraceError(
            f"grammar of {counted(len(ints), 'integer')} claims {counted(rules, 'rule')}", where=where
        )
    # A rule begins with (id, number of symbols), so everything after the first integer comes in pairs.
    pairs = ints[1 : 1 + (len(ints) - 1) // 2 * 2].reshape(-1, 2)
    # Walking a memoryview is several times faster than numpy scalars, and builds no list of all integers.
    walk = np.ascontiguousarray(pairs[:, 1], np.int32).data
    heads = [0]
    at = 0
    with suppress(IndexError):
        for _ in range(rules):
            at += 1 + walk[at]
            heads.append(at)
    begins = np.array(heads, dtype=np.int64)
    inside = begins[np.logical_and.accumulate((begins >= 0) & (begins < len(pairs)))][:rules]
    ids, counts = pairs[inside, 0].astype(np.int64), pairs[inside, 1].astype(np.int64)
    wrong = np.flatnonzero((ids >= 0) | (counts < 0) | (inside + 1 + counts > len(pairs)))
    if len(wrong):
        index = int(wrong[0])
        raise TraceError(
            f"grammar rule {index} (id {ids[index]}) claims {counts[index]} symbols", where=where
        )
    if len(inside) < rules:
        raise TraceError(f"grammar ends within rule {len(inside)} of {rules}", where=where)
    left = len(ints) - 1 - 2 * at
    if left:
        raise TraceError(f"grammar has {counted(left, 'integer')} too many", where=where)
    is_symbol = np.ones(len(pairs), dtype=np.bool_)
    is_symbol[inside] = False
    return ids, counts, pairs[is_symbol]


def _index_of(ids: Ints, searched: Ints) -> Ints:
    """Find each of `searched` in `ids` (all negative); returns any index for those that are absent."""
    deepest = -int(ids.min())
    if deepest > 16 * len(ids) + 1024:
        ordered = np.argsort(ids)
        place = np.searchsorted(ids[ordered], searched)
        place[place == len(ids)] = 0
        return ordered[place]
    table = np.zeros(deepest + 1, dtype=np.int64)
    table[-ids] = np.arange(len(ids))
    return table[np.minimum(-searched, deepest)]


def heights_and_lengths(
    bodies: Ints, values: Ints, exponents: Ints, where: str
) -> tuple[tuple[Ints, ...], Ints]:
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
