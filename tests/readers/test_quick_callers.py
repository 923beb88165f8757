"""Callers determined on the grammar agree with expanding it and examining every call.

Grammars are random, unlike a tracer's: rules in several contexts, repeated, empty or unused ones, and depths that
no run has.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.recorder_writer import encode_rules
from vani.calls import Flag, Layer
from vani.errors import TraceError
from vani.readers.nesting import Nesting
from vani.readers.recorder import occurrences
from vani.readers.recorder.grammar import Grammar, decode_grammar
from vani.readers.recorder.occurrences import Callers

LAYERS = [Layer.POSIX, Layer.STDIO, Layer.MPIIO, Layer.HDF5, Layer.MPI]
SIGNATURES = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0, 7]), st.sampled_from(LAYERS)), min_size=1, max_size=6
)


@st.composite
def grammars(draw, signatures: int) -> Grammar:
    """Rules -1 (the start), -2, ..., each of which may use those with smaller numbers."""
    rules: dict[int, list[tuple[int, int]]] = {}
    count = draw(st.integers(1, 5))
    for rule in range(-count, 0):
        usable = [*range(signatures), *range(-count, rule)]
        symbol = st.tuples(st.sampled_from(usable), st.integers(1, 3))
        rules[rule] = draw(st.lists(symbol, max_size=5))
    return decode_grammar(encode_rules(rules), terminals=signatures, where="test")


@st.composite
def traces(draw):
    """Grammars with the columns of their signatures: (depth, thread, layer) each."""
    made = []
    for _ in range(draw(st.integers(1, 3))):
        signatures = draw(SIGNATURES)
        columns = tuple(
            np.array(column, dtype)
            for column, dtype in zip(zip(*signatures, strict=True), (np.int8, np.int32, np.int8), strict=True)
        )
        made.append((draw(grammars(len(signatures))), *columns))
    return made


def expanded(number, grammar, depth, thread, layer, cuts) -> Counter:
    """(grammar, signature, via, within, nested) of every call, examined one after the other."""
    ids = grammar.whole
    nesting, found = Nesting(by_time=False), Counter()
    for part in np.split(ids, sorted(cut % (len(ids) + 1) for cut in cuts)):
        if not len(part):
            continue
        flags, times = np.zeros(len(part), np.int16), np.zeros(len(part), np.int64)
        rank = np.zeros(len(part), np.int32)
        via, within = nesting.resolve(rank, thread[part], depth[part], layer[part], times, times, flags)
        rows = zip(part.tolist(), via.tolist(), within.tolist(), (flags & Flag.NESTED).tolist(), strict=True)
        found.update((number, call, v, w, bool(n)) for call, v, w, n in rows)
    return found


@given(traces(), st.lists(st.integers(0, 1000), max_size=3))
def test_counts_are_those_of_the_expanded_calls(made, cuts):
    resolver = Callers()
    wanted: Counter = Counter()
    for number, (grammar, depth, thread, layer) in enumerate(made, start=3):
        names = grammar.names
        resolver.add(number, grammar, depth[names], thread[names], layer[names])
        if grammar.calls:
            wanted += expanded(number, grammar, depth, thread, layer, cuts)
    found = resolver.resolve("test")
    rows = zip(
        *(
            column.tolist()
            for column in (found.group, found.terminal, found.via, found.within, found.nested)
        ),
        strict=True,
    )
    counted: Counter = Counter()
    for row, often in zip(rows, found.often.tolist(), strict=True):
        counted[row] += often
    assert counted == wanted


def test_rule_used_under_two_libraries_counts_for_each():
    # HDF5 write, pwrite below it; MPI-IO write, pwrite below it: the same pwrite, in a rule of its own.
    grammar = decode_grammar(
        encode_rules({-1: [(0, 1), (-2, 5), (1, 1), (-2, 7)], -2: [(2, 1)]}), terminals=3, where="test"
    )
    resolver = Callers()
    depth, thread = np.array([0, 0, 1], np.int8), np.zeros(3, np.int32)
    resolver.add(0, grammar, depth, thread, np.array([Layer.HDF5, Layer.MPIIO, Layer.POSIX], np.int8))
    found = resolver.resolve("test")
    assert sorted(zip(found.terminal.tolist(), found.via.tolist(), found.often.tolist(), strict=True)) == [
        (0, Layer.HDF5, 1),
        (1, Layer.MPIIO, 1),
        (2, Layer.MPIIO, 7),
        (2, Layer.HDF5, 5),
    ]


def test_billion_repetitions_are_resolved_quickly():
    # Every repetition except the first sees the state that the previous one left.
    grammar = decode_grammar(
        encode_rules({-1: [(-2, 10**6)], -2: [(-3, 10**3)], -3: [(1, 1), (0, 1)]}), terminals=2, where="test"
    )
    resolver = Callers()
    resolver.add(
        0,
        grammar,
        np.array([0, 1], np.int8),
        np.zeros(2, np.int32),
        np.array([Layer.STDIO, Layer.POSIX], np.int8),
    )
    found = resolver.resolve("test")
    rows = sorted(zip(found.terminal.tolist(), found.nested.tolist(), found.often.tolist(), strict=True))
    assert rows == [(0, False, 10**9), (1, False, 1), (1, True, 10**9 - 1)]


def test_too_many_expanded_rules_are_refused(monkeypatch):
    monkeypatch.setattr(occurrences, "_MAX_GROWTH", 0)
    monkeypatch.setattr(occurrences, "_FREE_SYMBOLS", 3)
    resolver = Callers()
    grammar = decode_grammar(encode_rules({-1: [(0, 1), (1, 1), (0, 1), (1, 1)]}), terminals=2, where="test")
    resolver.add(0, grammar, np.array([0, 1], np.int8), np.zeros(2, np.int32), np.zeros(2, np.int8))
    with pytest.raises(TraceError, match="profile without --quick"):
        resolver.resolve("/trace")
