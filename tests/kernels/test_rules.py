"""Grammars are decoded in C as with numpy; errors are reported by numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from switched import needs_kernels, numpy_alone

from tests.traces.recorder_writer import compress_sequence, encode_rules
from vani.errors import TraceError
from vani.kernels import times_used
from vani.readers.recorder.grammar import decode_grammar, decoded

pytestmark = needs_kernels


def told(buffer: bytes, terminals: int) -> object:
    """All values of a decoded grammar, or the reason why it is invalid."""
    try:
        found = decode_grammar(buffer, terminals=terminals, where="")
    except TraceError as error:
        return str(error)
    names = ("bodies", "values", "exponents", "names", "lengths")
    columns = [*(getattr(found, name) for name in names), *found.levels, *found.used]
    return [column.tolist() for column in columns], found.start


@given(
    sequence=st.lists(st.integers(0, 8), max_size=120),
    changes=st.lists(
        st.tuples(st.integers(0, 500), st.integers(-9, 12) | st.sampled_from([2**31 - 1, -(2**31), 1 << 20])),
        max_size=3,
    ),
    cut=st.sampled_from([0, 0, 0, 4, 8, 12]),
    terminals=st.sampled_from([9, 9, 5, 0, 5000]),
)
def test_damaged_grammar_gives_the_result_of_numpy(sequence, changes, cut, terminals):
    ints = np.frombuffer(encode_rules(compress_sequence(sequence)), "<i4").copy()
    for at, value in changes:
        ints[at % len(ints)] = value
    buffer = ints.tobytes()[: 4 * len(ints) - cut]
    with numpy_alone():
        plain = told(buffer, terminals)
    assert told(buffer, terminals) == plain


def test_unaligned_memory_is_not_passed_to_c():
    buffer = encode_rules({-1: [(-2, 2), (3, 1)], -2: [(0, 1), (1, 2)]})
    shifted = memoryview(b"?" + buffer)[1:]
    before = times_used().get("rules", (0, 0))
    assert decode_grammar(shifted, terminals=4, where="").whole.tolist() == [0, 1, 1, 0, 1, 1, 3]
    assert times_used()["rules"] == (before[0] + 1, before[1])


def test_chain_through_all_rules_needs_no_recursion():
    rules = {-1 - i: [(-2 - i, 1)] for i in range(5000)} | {-5001: [(2, 3)]}
    found = decoded(np.frombuffer(encode_rules(rules), "<i4"), terminals=3, most_calls=100)
    assert found is not None
    assert (len(found.levels), found.lengths.tolist()) == (5001, [3] * 5001)
    back = rules | {-5001: [(-1, 1)]}
    assert decoded(np.frombuffer(encode_rules(back), "<i4"), terminals=3, most_calls=100) is None


@pytest.mark.parametrize("most", [8, 9])
def test_impossible_number_of_calls_is_left_to_numpy(most):
    stored = np.frombuffer(encode_rules({-1: [(-2, 3)], -2: [(0, 1), (1, 2)]}), "<i4")
    assert (decoded(stored, terminals=2, most_calls=most) is None) == (most < 9)
