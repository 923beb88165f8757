"""Examining grammars together gives the same result as one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_grammar import TERMINALS, decoded, expanded_plainly, grammars

from tests.traces.recorder_writer import encode_rules
from vani.errors import TraceError
from vani.readers.recorder.grammar import decode_forest
from vani.readers.recorder.unique_grammars import UniqueGrammars

SETS = st.lists(grammars(), min_size=1, max_size=5)


class Bytes:
    """Grammars in memory; None cannot be read."""

    def __init__(self, buffers: list[bytes | None]) -> None:
        self.buffers = buffers
        self.sizes = np.array([len(b or b"") for b in buffers])

    def read(self, indices):
        for index in indices:
            found = self.buffers[index]
            yield TraceError("cannot be read", where=self.where(index)) if found is None else found

    def where(self, index: int) -> str:
        return f"{index}.cfg"


@given(rules=SETS)
def test_a_forest_is_its_grammars(rules):
    forest = decode_forest([encode_rules(r) for r in rules], TERMINALS)
    alone = [decoded(r) for r in rules]
    assert forest.calls.tolist() == [g.calls for g in alone]
    assert forest.symbols.tolist() == [g.symbols for g in alone]
    assert forest.cost.tolist() == [g.lengths.sum() for g in alone]
    assert list(zip(*(c.tolist() for c in forest.used), strict=True)) == [
        (i, terminal, often)
        for i, g in enumerate(alone)
        for terminal, often in zip(*(c.tolist() for c in g.used), strict=True)
    ]
    ids, begins = forest.expanded()
    for i, (grammar, plain) in enumerate(zip(alone, map(expanded_plainly, rules), strict=True)):
        assert ids[begins[i] : begins[i + 1]].tolist() == plain
        taken = forest.grammar(i)
        for name in ("bodies", "values", "exponents", "names", "lengths"):
            assert getattr(taken, name).tolist() == getattr(grammar, name).tolist(), name
        assert taken.start == grammar.start
        assert [level.tolist() for level in taken.levels] == [level.tolist() for level in grammar.levels]


@given(
    rules=SETS,
    which=st.integers(0, 4),
    at=st.integers(0, 60),
    value=st.integers(-60, 60),
    cut=st.integers(0, 3),
)
@pytest.mark.slow
def test_forest_with_a_refused_grammar_is_refused(rules, which, at, value, cut):
    buffers = [bytearray(encode_rules(r)) for r in rules]
    damaged = buffers[which % len(buffers)]
    ints = np.frombuffer(damaged, "<i4").copy()
    ints[at % len(ints)] = value
    damaged[:] = ints.tobytes()[: len(damaged) - cut]
    try:
        alone = [decode_one(bytes(b)) for b in buffers]
    except TraceError:
        with pytest.raises(TraceError):
            decode_forest([bytes(b) for b in buffers], TERMINALS)
        return
    forest = decode_forest([bytes(b) for b in buffers], TERMINALS)
    assert forest.calls.tolist() == [g.calls for g in alone]


def decode_one(buffer: bytes):
    from vani.readers.recorder.grammar import decode_grammar  # noqa: PLC0415

    return decode_grammar(buffer, terminals=TERMINALS, where="0.cfg")


@given(
    rules=st.lists(grammars() | st.none(), min_size=1, max_size=8),
    few=st.sampled_from([0, 100]),
    small=st.sampled_from([0, 60, 1 << 16]),
    held=st.sampled_from([0, 1 << 20]),
)
@pytest.mark.slow
def test_kept_and_decoded_grammars_are_equal(rules, few, small, held):
    totals = np.zeros(TERMINALS, np.int64)

    def visit(grammar, ids, often):
        assert len(grammar) == len(ids) == len(often)
        np.add.at(totals, ids, often)

    with pytest.MonkeyPatch.context() as patch:
        place = "vani.readers.recorder.unique_grammars."
        for name, value in {"FEW": few, "_BLOCK": 3, "_SMALL_BYTES": small, "_MAX_HELD": held}.items():
            patch.setattr(place + name, value)
        buffers = [None if r is None else encode_rules(r) for r in rules]
        found = UniqueGrammars(Bytes(buffers), len(rules), TERMINALS, visit, most_bytes=1 << 20, threads=2)
        plain = [None if r is None else expanded_plainly(r) for r in rules]
        assert found.lost.tolist() == [p is None for p in plain]
        assert found.calls.tolist() == [len(p or ()) for p in plain]
        assert (
            totals.tolist() == np.bincount([t for p in plain for t in p or ()], minlength=TERMINALS).tolist()
        )
        assert found.problems == [f"{i}.cfg: cannot be read" for i, p in enumerate(plain) if p is None]
        for i, sequence in [*enumerate(plain), *reversed(list(enumerate(plain)))]:
            grammar = found[i]
            assert (None if grammar is None else grammar.whole.tolist()) == sequence
        together = [i for i in range(len(rules)) if found.is_small(i)]
        if together:
            assert {i: ids.tolist() for i, ids in found.expanded(together).items()} == {
                i: plain[i] for i in together
            }


def test_damaged_grammar_is_named_and_left_out(monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.unique_grammars.FEW", 0)
    whole, loop = encode_rules({-1: [(0, 2)]}), encode_rules({-1: [(-1, 1)]})
    found = UniqueGrammars(
        Bytes([whole, loop, None, whole]), 6, TERMINALS, lambda *_: None, most_bytes=1 << 20, threads=1
    )
    assert found.calls.tolist() == [2, 0, 0, 2, 0, 0]
    assert found.lost.tolist() == [False, True, True, False, True, True]
    assert found.problems == ["1.cfg: a grammar rule contains itself", "2.cfg: cannot be read"]


def test_grammars_beyond_the_accepted_bytes_are_lost(monkeypatch):
    monkeypatch.setattr("vani.readers.recorder.unique_grammars.FEW", 0)
    buffers = [encode_rules({-1: [(0, i + 1)]}) for i in range(5)]
    found = UniqueGrammars(
        Bytes(buffers), 5, TERMINALS, lambda *_: None, most_bytes=3 * len(buffers[0]), threads=1
    )
    assert found.calls.tolist() == [1, 2, 3, 0, 0]
    assert found.problems == [
        f"{i}.cfg: grammars are larger than the 60 bytes that Vani takes" for i in (3, 4)
    ]
