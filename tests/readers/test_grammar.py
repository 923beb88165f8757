"""Grammars: expanded like a slow, plain expansion, and refused before they cost memory or time.

Expected sequences come from `expanded_plainly` below, a recursion over Python lists, and from counts by hand.
"""

import struct
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from switched import numpy_alone

from tests.traces.recorder_writer import compress_sequence, encode_rules
from vani.errors import TraceError
from vani.readers.recorder.grammar import MAX_GRAMMAR_BYTES, Grammar, decode_grammar

TERMINALS = 6
SECONDS = 20.0
"""Processor time that no case may exceed on a slow machine; none takes more than about 6 s on two cores."""


def decoded(rules: dict[int, list[tuple[int, int]]], *, terminals: int = TERMINALS) -> Grammar:
    buffer = encode_rules(rules)
    # With the kernel, and without.
    with numpy_alone():
        plain = told(lambda: decode_grammar(buffer, terminals=terminals, where="0.cfg"))
    assert told(lambda: decode_grammar(buffer, terminals=terminals, where="0.cfg")) == plain
    return decode_grammar(buffer, terminals=terminals, where="0.cfg")


def told(decode: Callable[[], Grammar]) -> object:
    """All values of a decoded grammar, or the reason why it is invalid."""
    try:
        grammar = decode()
    except TraceError as error:
        return str(error)
    names = ("bodies", "values", "exponents", "names", "lengths")
    columns = [*(getattr(grammar, name) for name in names), *grammar.levels, *grammar.used]
    return [column.tolist() for column in columns], grammar.start


def expanded(grammar: Grammar, *, rows: int = 1 << 18) -> list[int]:
    pieces = list(grammar.expand(rows))
    assert all(0 < len(piece) <= rows for piece in pieces)
    # With the kernel, and without.
    with numpy_alone():
        plain = list(grammar.expand(rows))
    assert [piece.tolist() for piece in pieces] == [piece.tolist() for piece in plain]
    return [terminal for piece in pieces for terminal in piece.tolist()]


def expanded_plainly(rules: dict[int, list[tuple[int, int]]], rule: int = -1) -> list[int]:
    sequence: list[int] = []
    for value, exponent in rules[rule]:
        sequence += (expanded_plainly(rules, value) if value < 0 else [value]) * exponent
    return sequence


@st.composite
def grammars(draw) -> dict[int, list[tuple[int, int]]]:
    """Rules that name only later ones, in any order and with any ids; some are unused, some are empty."""
    count = draw(st.integers(1, 6))
    ids = [-1, *draw(st.lists(st.integers(-50, -2), min_size=count - 1, max_size=count - 1, unique=True))]
    rules = {}
    for place, rule in enumerate(ids):
        later = st.sampled_from(ids[place + 1 :]) if ids[place + 1 :] else st.nothing()
        value = st.integers(0, TERMINALS - 1) | later
        rules[rule] = draw(st.lists(st.tuples(value, st.integers(1, 4)), max_size=4))
    return {rule: rules[rule] for rule in draw(st.permutations(ids))}


@given(rules=grammars(), rows=st.integers(1, 40))
def test_grammar_expansion_equals_a_plain_recursion(rules, rows):
    grammar, plain = decoded(rules), expanded_plainly(rules)
    assert expanded(grammar, rows=rows) == plain
    assert grammar.calls == len(plain)
    assert grammar.occurrences(TERMINALS).tolist() == np.bincount(plain, minlength=TERMINALS).tolist()
    assert grammar.terminals.tolist() == sorted(set(plain))


@given(rules=grammars(), rows=st.integers(1, 40), arena=st.integers(0, 30))
def test_rules_too_long_to_keep_are_walked_with_the_same_result(rules, rows, arena):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vani.readers.recorder.grammar._ARENA", arena)
        assert expanded(decoded(rules), rows=rows) == expanded_plainly(rules)


@given(sequence=st.lists(st.integers(0, TERMINALS - 1), max_size=300))
def test_compressed_sequence_is_restored(sequence):
    assert expanded(decoded(compress_sequence(sequence)), rows=64) == sequence


def test_a_rank_without_calls_has_an_empty_start_rule():
    grammar = decoded({-1: []})
    assert (grammar.calls, expanded(grammar), grammar.terminals.tolist()) == (0, [], [])


def test_all_pieces_but_the_last_are_full():
    # 3 + 40,000 x 5 calls in pieces of 1,000: 200 full ones and 3 calls.
    grammar = decoded({-1: [(5, 3), (-2, 40_000)], -2: [(0, 1), (1, 2), (-3, 1)], -3: [(2, 1), (3, 1)]})
    assert [len(piece) for piece in grammar.expand(1000)] == [1000] * 200 + [3]


def test_terminal_with_two_billion_repetitions_is_counted_without_expansion():
    grammar = decoded({-1: [(0, 2**31 - 1), (1, 1)]})
    assert grammar.calls == 2**31
    assert grammar.occurrences(2).tolist() == [2**31 - 1, 1]
    first = next(grammar.expand(1000))
    assert first.tolist() == [0] * 1000


def test_long_start_rule_is_expanded_in_bounded_pieces():
    # 100 x 200,000 calls: more than the 2^22 that are stored, with exponents that each fit into a piece.
    grammar = decoded({-1: [(i % 4, 200_000) for i in range(100)]})
    lengths = [len(piece) for piece in grammar.expand(1 << 18)]
    assert max(lengths) == 1 << 18 and sum(lengths) == 20_000_000


def test_a_rule_of_two_million_calls_repeated_is_cut_into_pieces():
    grammar = decoded({-1: [(-2, 3), (5, 1)], -2: [(0, 1_000_000), (1, 1_000_000)]})
    pieces = list(grammar.expand(1 << 18))
    assert {len(piece) for piece in pieces[:-1]} == {1 << 18}
    everything = np.concatenate(pieces)
    # By hand: 3 times a million zeros and a million ones, then one 5.
    assert len(everything) == 6_000_001 and everything[-1] == 5
    assert np.flatnonzero(np.diff(everything)).tolist() == [k * 1_000_000 - 1 for k in range(1, 6)] + [
        5_999_999
    ]


def test_rule_longer_than_the_arena_is_repeated_by_its_exponent():
    rules = {-1: [(-2, 3)], -2: [(0, 3_000_000), (-3, 1)], -3: [(1, 3_000_000), (2, 1)]}
    total = np.zeros(TERMINALS, dtype=np.int64)
    for piece in decoded(rules).expand(1 << 18):
        total += np.bincount(piece, minlength=TERMINALS)
    assert total.tolist() == [9_000_000, 9_000_000, 3, 0, 0, 0]


def test_empty_rule_is_not_repeated():
    # Written out, the repeats alone would take 16 GiB.
    grammar = decoded({-1: [(-2, 2**31 - 1), (3, 2), (-3, 2**31 - 1)], -2: [], -3: [(-2, 2**31 - 1)]})
    assert expanded(grammar) == [3, 3]


def test_an_unused_rule_may_name_the_start_rule():
    assert expanded(decoded({-1: [(0, 1), (1, 5)], -2: [(-1, 3)]})) == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("exponent", [2, 3, 2**31 - 1])
def test_a_grammar_that_claims_2_to_the_60_calls_is_refused(exponent):
    levels = 62
    rules = {-k: [(-k - 1, exponent)] for k in range(1, levels)} | {-levels: [(0, 1)]}
    started = time.process_time()
    with pytest.raises(TraceError, match=r"claims .* calls of one process"):
        decoded(rules)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    "rules",
    [
        {-1: [(-1, 1)]},
        {-1: [(-2, 1)], -2: [(-3, 1)], -3: [(0, 1), (-2, 1)]},
        {-1: [(0, 1)], -2: [(-3, 1)], -3: [(-2, 1)]},
    ],
    ids=["start in itself", "a loop below the start", "a loop that nobody uses"],
)
def test_a_grammar_that_loops_is_refused(rules):
    with pytest.raises(TraceError, match="contains itself"):
        decoded(rules)


@pytest.mark.parametrize("depth", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("call", [[], [(1, 1)]], ids=["chain", "tower"])
@pytest.mark.sampled(1)
def test_deeply_nested_rules_are_expanded_in_bounded_time(call, depth):
    rules = {-1: [(-2, 1)], **{-k: [(-k - 1, 1), *call] for k in range(2, depth)}, -depth: [(0, 1)]}
    started = time.process_time()
    grammar = decode_grammar(encode_rules(rules), terminals=TERMINALS, where="0.cfg")
    # The kernel leaves so deep a grammar to numpy.
    assert np.concatenate(list(grammar.expand(1 << 18))).tolist() == [0] + [1] * (len(call) * (depth - 2))
    assert grammar.occurrences(2).tolist() == [1, len(call) * (depth - 2)]
    assert time.process_time() - started < SECONDS


def ints(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}i", *numbers)


@pytest.mark.parametrize(
    ("buffer", "message"),
    [
        (b"", "not a list of 4-byte integers"),
        (ints(1, -1, 0)[:-1], "not a list of 4-byte integers"),
        (ints(0), "claims 0 rules"),
        (ints(-5, -1, 0), "claims -5 rules"),
        (ints(2**31 - 1, -1, 0), "claims 2,147,483,647 rules"),
        (ints(2, -1, 1, 0, 1), "ends within rule 1 of 2"),
        (ints(1, -1, 2, 0, 1), "claims 2 symbols"),
        (ints(1, -1, -1, 0, 1), "claims -1 symbols"),
        (ints(1, -1, 2**31 - 1, 0, 1), "claims 2147483647 symbols"),
        (ints(1, 0, 1, 0, 1), "id 0"),
        (ints(1, -1, 1, 0, 1, 7), "1 integer too many"),
        (ints(2, -1, 0, -1, 0), "defines a rule twice"),
        (ints(1, -2, 1, 0, 1), "no start rule"),
        (ints(1, -1, 1, 0, 0), "repeats a symbol 0 times"),
        (ints(1, -1, 1, 0, -3), "repeats a symbol -3 times"),
        (ints(1, -1, 1, TERMINALS, 1), "names call signature 6"),
        (ints(1, -1, 1, -9, 1), "uses rule -9"),
        (ints(1, -1, 1, -(2**31), 1), "uses rule -2147483648"),
        (ints(2, -(2**31), 0, -1, 1, -5, 1), "uses rule -5"),
    ],
)
def test_grammar_that_violates_the_format_is_refused(buffer, message):
    with pytest.raises(TraceError, match=message) as refused:
        decode_grammar(buffer, terminals=TERMINALS, where="0.cfg")
    assert str(refused.value).startswith("0.cfg: ")


def test_a_grammar_with_the_least_possible_rule_id_is_read():
    assert expanded(decoded({-1: [(-(2**31), 2)], -(2**31): [(4, 1)]})) == [4, 4]


def test_grammar_too_large_for_memory_is_refused_without_reading_it():
    with pytest.raises(TraceError, match="Vani takes up to"):
        decode_grammar(bytes(MAX_GRAMMAR_BYTES + 4), terminals=1, where="0.cfg")


@given(rules=grammars(), at=st.integers(0, 200), data=st.data())
def test_changed_grammar_is_read_or_refused(rules, at, data):
    buffer = encode_rules(rules)
    at %= len(buffer)
    changed = bytearray(buffer)
    changed[at] = data.draw(st.integers(0, 255))
    for damaged in (buffer[:at], bytes(changed)):
        try:
            grammar = decode_grammar(damaged, terminals=TERMINALS, where="0.cfg")
        except TraceError:
            continue
        assert grammar.occurrences(TERMINALS).sum() == grammar.calls
        if grammar.calls < 10_000:
            assert len(expanded(grammar)) == grammar.calls
