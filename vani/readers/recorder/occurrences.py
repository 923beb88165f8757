"""Occurrences of each call and their nesting, found on the grammars without expanding them or reading time stamps.

Nesting of calls, found without expanding the grammar.

The library calls around a call depend on what was recorded before it: a call of depth d + 1 belongs to the
nearest preceding call of depth d on the same thread (see `nesting`). A grammar rule may be used inside
different calls, so rules are distinguished by the call around their beginning. Only the layers of that call and
of those around it matter. There are few combinations of layers, so few rules need several variants.

There is one pass per depth (and thread). It first finds each rule's last call of depth d, from the leaves up, and then
the call before each use of a rule, from the start down. Each step handles all rules of one height in all grammars.

In traces without depths but with known origins, there is one pass per library instead.

Processes that share a grammar cost nothing extra.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from vani.calls import OCCURRENCES, Flag, Layer, Occurrences
from vani.columns import Bools, Int8s, Int16s, Int32s, Ints, Numbers, distinct, merged, to_arrow
from vani.errors import TraceError
from vani.readers.nesting import LIBRARIES, made_by_library, outermost, unsurrounded
from vani.readers.recorder.grammar import Grammar, Rules
from vani.readers.signatures import NO_VALUE, Signatures

_NONE, _ANY = -1, -2
"""Surroundings of a rule: none, or any (no call in the rule depends on them)."""
_MAX_GROWTH = 16
_FREE_SYMBOLS = 1 << 20


class Counted(NamedTuple):
    """How often each signature of each grammar, or group of ranks, occurs within the same layers; shape (n,) each.

    `via` is the layer of the outermost call around, `within` has a bit for the own layer and each one around it, and
    `nested` means that a file-system call is around it. `via` and `within` are -1 if only times could show them.
    """

    group: Ints
    terminal: Ints
    via: Int8s
    within: Int16s
    nested: Bools
    often: Ints


@dataclass
class _Calls:
    """Signatures of all grammars, distinguished by the calls around them; shape (n,) each."""

    grammar: Ints
    terminal: Ints
    depth: Ints
    thread: Ints
    layer: Int8s
    origin: Int8s
    via: Int8s
    within: Int16s
    inside: Bools

    def take(self, rows: Ints) -> "_Calls":
        return _Calls(*(getattr(self, name)[rows] for name in _Calls.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class _Rules(Rules):
    """Concatenated grammars: values >= 0 are positions in `_Calls`."""

    starts: Ints


class Callers:
    """Collects grammars, then finds the calls around all of their calls."""

    def __init__(self, *, by_origin: bool = False) -> None:
        """`by_origin`: no depth is stored, so the libraries that made the calls decide."""
        self._by_origin = by_origin
        self._grammars: list[Grammar] = []
        self._numbers: list[int] = []
        self._columns: list[tuple[Numbers, ...]] = []
        self.symbols = 0

    def __len__(self) -> int:
        return len(self._grammars)

    def add(
        self, number: int, grammar: Grammar, depth: Int8s, thread: Int32s, layer: Int8s, origin: Int8s | None = None
    ) -> None:
        """Add one grammar; the columns correspond to its `names`; see `call_sites.Origins.of` for `origin`."""
        if origin is None:
            origin = np.full(len(layer), -1, np.int8)
        self._grammars.append(grammar)
        self._numbers.append(number)
        self._columns.append((depth, thread, layer, origin))
        self.symbols += grammar.symbols

    def resolve(self, where: str) -> Counted:
        """Find the calls around every call, and count.

        Raises
        ------
        TraceError
            Rules are used in so many surroundings that distinguishing them would take too much memory.
        """
        calls, rules = self._joined()
        most = _MAX_GROWTH * len(rules.values) + _FREE_SYMBOLS
        deepest = int(calls.depth.max(initial=0))
        # Resolve outer calls before the calls inside them.
        for level in reversed(LIBRARIES) if self._by_origin else range(1, deepest + 1):
            target, _ = self._level(calls, level)
            for thread in distinct(calls.thread[target]).tolist():
                target, around = self._level(calls, level)
                of_thread = calls.thread == thread
                rules, calls = _resolve(rules, calls, target & of_thread, np.flatnonzero(around & of_thread))
                if len(rules.values) > most:
                    raise TraceError(
                        "calls are nested in too many ways to derive from the grammar",
                        where=where,
                        todo="profile without --quick",
                    )
        count, terminal = np.zeros(len(calls.terminal), np.int64), rules.values >= 0
        np.add.at(count, rules.values[terminal], rules.weights(rules.starts)[terminal])
        used = np.flatnonzero(count)
        own = calls.take(used)
        fs = own.layer <= Layer.STDIO
        return Counted(own.grammar, own.terminal, own.via, own.within, own.inside & fs, count[used])

    def _level(self, calls: _Calls, level: int) -> tuple[Bools, Bools]:
        """Masks of calls inside calls of the next level up, and of those outer calls."""
        if self._by_origin:
            return (calls.origin == level) & (calls.layer < level), calls.layer == level
        return calls.depth == level, calls.depth == level - 1

    def _joined(self) -> tuple[_Calls, _Rules]:
        sizes = np.array([(len(g.names), len(g.bodies) - 1, len(g.values)) for g in self._grammars], np.int64).T
        first_node, first_rule, first_symbol = np.cumsum(sizes, axis=1) - sizes
        nodes = sizes[0]
        values = [
            np.where(g.values >= 0, g.values + n, g.values - r)
            for g, n, r in zip(self._grammars, first_node.tolist(), first_rule.tolist(), strict=True)
        ]
        levels: list[list[Ints]] = []
        for grammar, first in zip(self._grammars, first_rule.tolist(), strict=True):
            while len(levels) < len(grammar.levels):
                levels.append([])
            for height, level in enumerate(grammar.levels):
                levels[height].append(level + first)
        bodies = [g.bodies[:-1] + s for g, s in zip(self._grammars, first_symbol.tolist(), strict=True)]
        rules = _Rules(
            np.append(np.concatenate(bodies), sizes[2].sum()),
            np.concatenate(values),
            np.concatenate([g.exponents for g in self._grammars]),
            [np.concatenate(level) for level in levels],
            np.array([g.start for g in self._grammars]) + first_rule,
        )
        depth, thread, layer, origin = (np.concatenate([columns[i] for columns in self._columns]) for i in range(4))
        # Threads are numbered within their grammar, so that threads of different processes share passes.
        owner = np.repeat(np.arange(len(nodes)), nodes)
        key = owner << 32 | thread.astype(np.int64)
        distinct, code = np.unique(key, return_inverse=True)
        begins = np.searchsorted(distinct, np.arange(len(nodes)) << 32)
        layer = layer.astype(np.int8)
        via, within = unsurrounded(layer, origin)
        if self._by_origin:
            known = (origin == Layer.USER) | made_by_library(layer, origin)
            # Calls of unknown origin would need times, except in processes without library calls.
            library = (layer >= Layer.MPIIO) & (layer <= Layer.NETCDF)
            known |= np.bincount(owner[library], minlength=len(nodes))[owner] == 0
            via, within = np.where(known, via, np.int8(-1)), np.where(known, within, np.int16(-1))
        calls = _Calls(
            grammar=np.repeat(np.array(self._numbers, dtype=np.int64), nodes),
            terminal=np.concatenate([g.names for g in self._grammars]),
            depth=depth.astype(np.int64),
            thread=code - begins[owner],
            layer=layer,
            origin=origin,
            via=via,
            within=within,
            inside=np.zeros(len(layer), np.bool_),
        )
        return calls, rules


def _before(mark: Ints, first: Ints) -> Ints:
    """Position of the nearest mark (>= 0) before each symbol within its rule, -1 if there is none.

    `first` is the start position of each symbol's rule.
    """
    at = np.maximum.accumulate(np.where(mark >= 0, np.arange(len(mark)), -1))
    nearest = np.empty(len(mark), np.int64)
    nearest[:1] = -1
    nearest[1:] = at[:-1]
    nearest[nearest < first] = -1
    return nearest


def _resolve(rules: _Rules, calls: _Calls, target: Bools, marks: Ints) -> tuple[_Rules, _Calls]:
    """Resolve the calls in `target`: each belongs to the nearest preceding call in `marks`, which are resolved."""
    around = (
        calls.via[marks].astype(np.int64) + 1 << 32
        | (calls.within[marks].astype(np.int64) & 0x7FFF) << 1
        | (calls.inside[marks] | (calls.layer[marks] <= Layer.STDIO))
    )
    states, state = np.unique(around, return_inverse=True)
    # There may be rules without any call: the extra last entries serve them.
    mark, target = np.full(len(calls.depth) + 1, _NONE), np.append(target, False)
    mark[marks] = state
    last, exposed = _summaries(rules, mark, target)
    width = len(states) + 2
    keys, bodies = _specialised(rules, mark, target, last, exposed, width)
    return _rebuilt(rules, calls, keys, bodies, states, width)


def _summaries(rules: _Rules, mark: Ints, target: Bools) -> tuple[Ints, Bools]:
    """State after each rule (-1: unchanged), and whether the rule depends on the state before it."""
    count = len(rules.bodies) - 1
    last = np.full(count, _NONE)
    exposed = np.zeros(count, np.bool_)
    for level in rules.levels:
        symbols, lengths = rules.symbols_of(level)
        begins = np.cumsum(lengths) - lengths
        if not len(symbols):
            continue
        values = rules.values[symbols]
        is_rule = values < 0
        child = np.where(is_rule, -1 - values, 0)
        state = np.where(is_rule, last[child], mark[np.maximum(values, 0)])
        depends = np.where(is_rule, exposed[child], target[np.maximum(values, 0)])
        before = _before(state, np.repeat(begins, lengths))
        full = lengths > 0
        heads = begins[full]
        exposed[level[full]] = np.logical_or.reduceat(depends & (before < 0), heads)
        ends = heads + lengths[full] - 1
        final = np.where(state[ends] >= 0, ends, before[ends])
        last[level[full]] = np.where(final >= 0, state[np.maximum(final, 0)], _NONE)
    return last, exposed


def _specialised(
    rules: _Rules, mark: Ints, target: Bools, last: Ints, exposed: Bools, width: int
) -> tuple[list[Ints], list[tuple[Ints, Ints, Ints, Ints]]]:
    """Rules distinguished by their surroundings, level by level from the start down.

    Returns
    -------
    keys
        Per level: rule * width + surrounding state + 2, ascending.
    bodies
        Per level: (symbols of each rule, value, key, exponent). The key is -1 for terminals that do not depend on
        their surroundings, (state + 2) for those that do, and the rule's key for rules.
    """
    waiting: list[list[Ints]] = [[] for _ in rules.levels]

    def use(rule: Ints, state: Ints) -> Ints:
        key = rule * width + np.where(exposed[rule], state, _ANY) + 2
        used = distinct(key)
        heights = rules.heights[used // width]
        for level_height in distinct(heights).tolist():
            waiting[level_height].append(used[heights == level_height])
        return key

    use(rules.starts, np.full(len(rules.starts), _NONE))
    keys: list[Ints] = [np.empty(0, np.int64)] * len(rules.levels)
    bodies: list[tuple[Ints, Ints, Ints, Ints]] = [(keys[0],) * 4] * len(rules.levels)
    for number in reversed(range(len(rules.levels))):
        if not waiting[number]:
            continue
        key = distinct(np.concatenate(waiting[number]))
        rule, outer = key // width, key % width - 2
        symbols, lengths = rules.symbols_of(rule)
        begins = np.cumsum(lengths) - lengths
        owner = np.repeat(np.arange(len(rule)), lengths)
        values, exponents = rules.values[symbols], rules.exponents[symbols]
        is_rule = values < 0
        child = np.where(is_rule, -1 - values, 0)
        state_here = np.where(is_rule, last[child], mark[np.maximum(values, 0)])
        before = _before(state_here, begins[owner])
        state = np.where(before >= 0, state_here[np.maximum(before, 0)], outer[owner])
        # A rule that depends on its surroundings and changes them follows itself from its second repetition on.
        again = is_rule & (exponents > 1)
        again[again] = exposed[child[again]] & (last[child[again]] >= 0)
        again[again] = last[child[again]] != state[again]
        if again.any():
            copies = 1 + again
            rows = np.repeat(np.arange(len(values)), copies)
            second = np.zeros(len(rows), np.bool_)
            second[np.cumsum(copies)[again] - 1] = True
            twice = again[rows]
            state = np.where(second, last[child[rows]], state[rows])
            exponents = np.where(second, exponents[rows] - 1, np.where(twice, 1, exponents[rows]))
            values, is_rule, child, owner = values[rows], is_rule[rows], child[rows], owner[rows]
        key_of_symbol = np.full(len(values), -1)
        depends = np.flatnonzero(~is_rule & target[np.maximum(values, 0)])
        key_of_symbol[depends] = state[depends] + 2
        key_of_symbol[is_rule] = use(child[is_rule], state[is_rule])
        keys[number] = key
        bodies[number] = (np.bincount(owner, minlength=len(key)), values, key_of_symbol, exponents)
    return keys, bodies


def _rebuilt(
    rules: _Rules,
    calls: _Calls,
    keys: list[Ints],
    bodies: list[tuple[Ints, Ints, Ints, Ints]],
    states: Ints,
    width: int,
) -> tuple[_Rules, _Calls]:
    sizes = [len(key) for key in keys]
    first = np.cumsum([0, *sizes])
    levels = [np.arange(a, b) for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)]
    every = np.concatenate(keys)
    order = np.argsort(every)
    lengths, values, key_of_symbol, exponents = (np.concatenate([body[i] for body in bodies]) for i in range(4))
    is_rule = values < 0
    renumbered = np.empty(len(values), np.int64)
    renumbered[is_rule] = -1 - order[np.searchsorted(every, key_of_symbol[is_rule], sorter=order)]
    node = values[~is_rule] * width + np.maximum(key_of_symbol[~is_rule], 0)
    distinct, code = np.unique(node, return_inverse=True)
    renumbered[~is_rule] = code
    refined = calls.take(distinct // width)
    state = distinct % width - 2
    rows = np.flatnonzero(state >= 0)
    around = states[state[rows]]
    via, within = (around >> 32).astype(np.int8) - np.int8(1), (around >> 1 & 0x7FFF).astype(np.int16)
    refined.via[rows] = outermost(refined.via[rows], via, refined.layer[rows], refined.origin[rows])
    refined.within[rows] = np.where(via < 0, np.int16(-1), refined.within[rows] | within)
    refined.inside[rows] = (around & 1).astype(np.bool_)
    key = rules.starts * width
    # A start rule is inside no call, or does not depend on its surroundings.
    at = np.searchsorted(every, key + 1, sorter=order)
    at[at == len(every)] = 0
    starts = np.where(every[order[at]] == key + 1, order[at], -1)
    other = np.flatnonzero(starts < 0)
    starts[other] = order[np.searchsorted(every, key[other], sorter=order)]
    return _Rules(np.append(0, np.cumsum(lengths)), renumbered, exponents, levels, starts), refined


_ROWS = 1 << 19
"""Rows of a batch, and grammar symbols that are examined together."""

TablesOf = Callable[[int], "tuple[Signatures, Grammar] | None"]
OriginsOf = Callable[[int, Int32s], "Int8s | None"]


def occurrences(
    group_of_rank: Ints, of_rank: TablesOf, *, by_time: bool, where: str, origins: OriginsOf | None = None
) -> Occurrences:
    """Count the calls of a trace.

    Parameters
    ----------
    group_of_rank
        Shape (ranks,): ranks in one group share their tables and origins; -1 for ranks without calls.
    of_rank
        Returns a rank's signatures and grammar.
    by_time
        No depth is stored: nesting follows from origins, or only from time intervals where origins are unknown.
    origins
        Returns the origins of a rank's calls, given their call sites, see `call_sites.Origins.of`; None if unknown.
    where
        Place that errors name.
    """
    return Occurrences(
        group_of_rank, lambda: merged(_batches(group_of_rank, of_rank, by_time, origins, where), rows=_ROWS)
    )


def _batches(
    group_of_rank: Ints, of_rank: TablesOf, by_time: bool, origins: OriginsOf | None, where: str
) -> Iterator[pa.RecordBatch]:
    shared: Signatures | None = None
    waiting: list[Counted] = []
    rows = 0
    nested = Callers(by_origin=by_time)
    used = np.flatnonzero(group_of_rank >= 0)
    groups, first = np.unique(group_of_rank[used], return_index=True)
    for group, rank in zip(groups.tolist(), used[first].tolist(), strict=True):
        tables = of_rank(rank)
        if tables is None:
            continue
        signatures, grammar = tables
        if signatures is not shared or rows + nested.symbols > _ROWS:
            yield from _put_out(shared, waiting, nested, where)
            waiting, rows, nested, shared = [], 0, Callers(by_origin=by_time), signatures
        ids, count = grammar.used
        names = grammar.names
        origin = None if origins is None else origins(rank, signatures.site[names])
        if origin is not None or (not by_time and signatures.depth[ids].any()):
            depth, thread, layer = signatures.depth[names], signatures.thread[names], signatures.layer[names]
            nested.add(group, grammar, depth, thread, layer, origin)
        else:
            waiting.append(_flat(group, signatures, ids, count, by_time=by_time))
            rows += len(ids)
    yield from _put_out(shared, waiting, nested, where)


def _flat(group: int, signatures: Signatures, ids: Ints, count: Ints, *, by_time: bool) -> Counted:
    """Calls that are inside no call, or inside an unknown one."""
    layer = signatures.layer[ids]
    via, within = layer, (np.int16(1) << layer.astype(np.int16)).astype(np.int16)
    if by_time and ((layer >= Layer.MPIIO) & (layer <= Layer.NETCDF)).any():
        unknown = layer <= Layer.STDIO
        via, within = np.where(unknown, np.int8(-1), via), np.where(unknown, np.int16(-1), within)
    return Counted(np.full(len(ids), group), ids, via, within, np.zeros(len(ids), np.bool_), count)


def _put_out(
    signatures: Signatures | None, waiting: list[Counted], nested: Callers, where: str
) -> Iterator[pa.RecordBatch]:
    if len(nested):
        waiting = [*waiting, nested.resolve(where)]
    if signatures is None or not waiting:
        return
    rows = Counted(*(np.concatenate(columns) for columns in zip(*waiting, strict=True)))
    ids = rows.terminal
    flags = signatures.flags[ids] | np.where(rows.nested, Flag.NESTED, 0).astype(np.int16)
    file, rename_to, size = signatures.file[ids], signatures.rename_to[ids], signatures.bytes[ids]
    columns = [
        to_arrow(rows.group.astype(np.int32)),
        to_arrow(signatures.func[ids]),
        to_arrow(signatures.layer[ids]),
        to_arrow(signatures.kind[ids]),
        to_arrow(rows.via, rows.via < 0),
        to_arrow(rows.within, rows.within < 0),
        to_arrow(flags),
        to_arrow(file, file < 0),
        to_arrow(rename_to, rename_to < 0),
        to_arrow(size, size == NO_VALUE),
        to_arrow(rows.often),
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=OCCURRENCES)
