"""Grammars are walked in C as numpy expands them; those with false counts are left to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from switched import needs_kernels, numpy_alone

from tests.traces.recorder_writer import compress_sequence, encode_rules
from vani.readers.recorder import grammar as kernel
from vani.readers.recorder.grammar import Grammar, decode_grammar

pytestmark = needs_kernels


def columns(rules: dict[int, list[tuple[int, int]]]) -> dict:
    found = decode_grammar(encode_rules(rules), terminals=9, where="")
    names = ("bodies", "lengths", "values", "exponents", "names", "start", "levels")
    return {name: getattr(found, name) for name in names}


def walked(grammar: dict, rows: int = 3) -> list[int]:
    return [terminal for piece in Grammar(**grammar).walked(rows) for terminal in piece.tolist()]


@given(
    sequence=st.lists(st.integers(0, 8), max_size=200),
    rows=st.integers(1, 50),
    short=st.sampled_from([0, 3, 1 << 10]),
    arena=st.sampled_from([0, 10, 1 << 22]),
)
def test_sequence_is_restored_however_little_is_stored(sequence, rows, short, arena):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_SHORT", short)
        patch.setattr(kernel, "_ARENA", arena)
        assert walked(columns(compress_sequence(sequence)), rows) == sequence


def test_a_piece_may_end_within_a_repetition():
    # By hand: (0 1 1) four times, twice, and a last 2.
    grammar = columns({-1: [(-2, 2), (2, 1)], -2: [(-3, 4)], -3: [(0, 1), (1, 2)]})
    for rows in range(1, 27):
        assert walked(grammar, rows) == [0, 1, 1] * 8 + [2]


def test_a_deep_grammar_is_left_to_numpy():
    rules = {-1 - i: [(-2 - i, 1), (3, 1)] for i in range(200)} | {-201: [(4, 1)]}
    assert walked(columns(rules)) == []
    found = decode_grammar(encode_rules(rules), terminals=9, where="")
    assert found.whole.tolist() == [4] + [3] * 200


def test_claims_of_a_rule_about_itself_are_checked():
    grammar = columns({-1: [(-2, 2), (-3, 3)], -2: [(0, 3)], -3: [(-2, 1), (1, 1)]})
    assert walked(grammar) == [0] * 6 + [0, 0, 0, 1] * 3
    lies = [
        ("lengths", 1, 2),
        ("lengths", 1, 4),
        ("lengths", 2, 1),
        ("lengths", 0, 19),
        ("bodies", 1, -4),
        ("bodies", 3, 1 << 40),
        ("values", 0, -9),
        ("values", 2, 77),
        ("values", 3, -1 << 62),
        ("exponents", 2, 1 << 60),
        ("exponents", 2, -1),
        ("names", 0, 1 << 40),
    ]
    for name, at, value in lies:
        changed = {**grammar, name: grammar[name].copy()}
        changed[name][at] = value
        # At most a prefix of the possible output; numpy continues after it.
        assert len(walked(changed)) < changed["lengths"][0]


def test_numpy_continues_at_the_stop_of_the_kernel(monkeypatch):
    rules = {-1: [(i % 9, 2) for i in range(30)]}
    found = decode_grammar(encode_rules(rules), terminals=9, where="")
    with numpy_alone():
        plain = [piece.tolist() for piece in found.expand(7)]
    whole = Grammar.walked
    monkeypatch.setattr(Grammar, "walked", lambda self, rows: list(whole(self, rows))[:2])
    assert [piece.tolist() for piece in found.expand(7)] == plain
    assert np.concatenate(plain).tolist() == [i % 9 for i in range(30) for _ in range(2)]
