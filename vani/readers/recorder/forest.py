"""Many small grammars at once, as arrays, because a hundred thousand objects would take more memory than a trace.

Concatenated grammars are one grammar with many start rules. They are checked together with the rules of
`decode_grammar`; if one is wrong, `decode_grammar` finds out which one, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vani.errors import TraceError
from vani.readers.recorder.grammar import Grammar, compact_names, heights_and_lengths, ragged

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Forest:
    """Checked, concatenated grammars.

    Attributes
    ----------
    first_rule
        Shape (grammars + 1,): grammar g owns rules `first_rule[g] .. first_rule[g + 1]`.
    bodies
        Shape (rules + 1,): rule i owns symbols `bodies[i] .. bodies[i + 1]`.
    values
        Shape (symbols,): a terminal id, or -1 - (index of a rule, counted over all grammars).
    exponents
        Shape (symbols,), >= 1.
    starts
        Shape (grammars,): start rules.
    levels, lengths
        Like those of `Grammar`, over all rules.
    """

    first_rule: Ints
    bodies: Ints
    values: Ints
    exponents: Ints
    starts: Ints
    levels: tuple[Ints, ...]
    lengths: Ints

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
        rules = len(self.lengths)
        times = np.zeros(rules, dtype=np.int64)
        times[self.starts] = 1
        weight = np.zeros(len(self.values), dtype=np.int64)
        for level in reversed(self.levels):
            used = level[times[level] > 0]
            count = self.bodies[used + 1] - self.bodies[used]
            symbols = ragged(self.bodies[used], count)
            often = np.repeat(times[used], count) * self.exponents[symbols]
            weight[symbols] = often
            values = self.values[symbols]
            is_rule = values < 0
            np.add.at(times, -1 - values[is_rule], often[is_rule])
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
        order = np.argsort(heights, kind="stable")
        cuts = np.cumsum(np.bincount(heights))[:-1]
        return Grammar(
            self.bodies[first : last + 1] - begin,
            values,
            self.exponents[begin:end],
            names,
            int(self.starts[index]) - first,
            tuple(np.split(order, cuts)),
            self.lengths[first:last],
        )

    def expanded(self) -> tuple[NDArray[np.int32], Ints]:
        """Terminal ids of all grammars: (ids, start of each grammar), the latter of shape (grammars + 1,).

        Every rule is expanded once, so check `cost` beforehand.
        """
        terminal = self.values >= 0
        place = np.cumsum(terminal) - 1
        terminals = int(terminal.sum())
        offsets = terminals + np.cumsum(self.lengths) - self.lengths
        arena = np.empty(terminals + int(self.lengths.sum()), dtype=np.int32)
        arena[:terminals] = self.values[terminal]
        for level in self.levels:
            symbols = ragged(self.bodies[level], self.bodies[level + 1] - self.bodies[level])
            values, often = self.values[symbols], self.exponents[symbols]
            is_rule = values < 0
            child = np.where(is_rule, -1 - values, 0)
            start = np.where(is_rule, offsets[child], place[symbols])
            length = np.where(is_rule, self.lengths[child], 1)
            if (often != 1).any():
                start, length = np.repeat(start, often), np.repeat(length, often)
            arena[ragged(offsets[level], self.lengths[level])] = arena[ragged(start, length)]
        calls = self.calls
        ids = arena[ragged(offsets[self.starts], calls)]
        return ids, np.concatenate(([0], np.cumsum(calls)))


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
    return Forest(first_rule, bodies, values, exponents, starts, levels, lengths)


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
