"""Who called whom: random call trees of several threads, cut into batches anywhere.

The test makes the trees, so it knows the calls around each call in advance.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vani.calls import Flag, Layer
from vani.readers.nesting import Nesting


@dataclass(frozen=True)
class Made:
    """One call and the layers of the calls around it, outermost first."""

    rank: int
    thread: int
    layer: Layer
    around: tuple[Layer, ...] = ()
    start: int = 0
    end: int = 0


LAYERS = st.sampled_from([Layer.POSIX, Layer.STDIO, Layer.MPIIO, Layer.HDF5, Layer.NETCDF])
TREES = st.recursive(
    st.tuples(LAYERS, st.just(())),
    lambda inner: st.tuples(LAYERS, st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)


def recorded(tree: tuple, rank: int, thread: int, around: tuple[Layer, ...] = ()) -> list[Made]:
    """Outer calls before the calls they made (format document, section 5.3)."""
    layer, inner = tree
    calls = [Made(rank, thread, layer, around)]
    for call in inner:
        calls += recorded(call, rank, thread, (*around, layer))
    return calls


@st.composite
def runs(draw) -> list[Made]:
    """Ranks one after the other; the threads of each alternate between outermost calls."""
    calls: list[Made] = []
    for rank in range(draw(st.integers(1, 3))):
        for tree in draw(st.lists(TREES, max_size=6)):
            calls += recorded(tree, rank, draw(st.sampled_from([0, 7, 2**31 - 1])))
    return calls


def resolved(calls: list[Made], cuts: list[int], *, by_time: bool = False) -> list[tuple[int, int, bool]]:
    """(via, within, nested) of every call."""
    nesting, found = Nesting(by_time=by_time), []
    for part in np.split(np.arange(len(calls)), sorted(cut % (len(calls) + 1) for cut in cuts)):
        if not len(part):
            continue
        batch = [calls[i] for i in part]
        flags = np.zeros(len(batch), np.int16)
        depth = [0 if by_time else len(c.around) for c in batch]
        start = np.array([c.start for c in batch], np.int64)
        via, within = nesting.resolve(
            np.array([c.rank for c in batch], np.int32), np.array([c.thread for c in batch], np.int32),
            np.array(depth, np.int8), np.array([c.layer for c in batch], np.int8),
            start, np.array([c.end for c in batch], np.int64) - start, flags,
        )  # fmt: skip
        found += zip(via.tolist(), within.tolist(), ((flags & Flag.NESTED) != 0).tolist(), strict=True)
    return found


def expected(call: Made) -> tuple[int, int, bool]:
    chain = (*call.around, call.layer)
    file_system = (Layer.POSIX, Layer.STDIO)
    nested = call.layer in file_system and any(layer in file_system for layer in call.around)
    return chain[0], sum(1 << layer for layer in set(chain)), nested


@given(calls=runs(), cuts=st.lists(st.integers(0, 100), max_size=6))
def test_each_call_knows_the_calls_around_it_however_batches_are_cut(calls, cuts):
    assert resolved(calls, cuts) == [expected(call) for call in calls]


@given(calls=runs())
def test_calls_may_come_one_at_a_time(calls):
    assert resolved(calls, list(range(len(calls)))) == [expected(call) for call in calls]


def test_batch_with_only_outermost_calls_is_remembered_for_later_batches():
    # H5Dwrite, then in the next batch the pwrite it made.
    calls = [Made(0, 0, Layer.HDF5), Made(0, 0, Layer.POSIX, (Layer.HDF5,))]
    assert resolved(calls, [1])[1] == (Layer.HDF5, 1 << Layer.HDF5 | 1 << Layer.POSIX, False)


def test_a_call_made_on_another_thread_is_not_inside():
    calls = [Made(0, 1, Layer.HDF5), Made(0, 2, Layer.POSIX), Made(0, 1, Layer.POSIX, (Layer.HDF5,))]
    assert [via for via, _, _ in resolved(calls, [])] == [Layer.HDF5, Layer.POSIX, Layer.HDF5]


def test_nested_call_without_a_parent_counts_as_outermost():
    # After a truncated beginning or a damaged grammar, the pwrite of depth 2 has nothing around it.
    nesting = Nesting(by_time=False)
    via, _ = nesting.resolve(
        np.zeros(2, np.int32), np.zeros(2, np.int32), np.array([2, 127], np.int8), np.array([0, 0], np.int8),
        np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int16),
    )  # fmt: skip
    assert via.tolist() == [Layer.POSIX, Layer.POSIX]


def test_call_without_depth_belongs_to_the_enclosing_library_call():
    calls = [
        Made(0, 0, Layer.POSIX, (), 0, 5),
        Made(0, 0, Layer.HDF5, (), 10, 50),
        Made(0, 0, Layer.MPIIO, (Layer.HDF5,), 20, 40),
        Made(0, 0, Layer.POSIX, (Layer.HDF5, Layer.MPIIO), 25, 30),
        Made(0, 0, Layer.POSIX, (Layer.HDF5,), 41, 45),
        Made(0, 0, Layer.POSIX, (), 60, 70),
        Made(1, 0, Layer.POSIX, (), 25, 30),
    ]
    for cuts in ([], [2], [3, 4], list(range(7))):
        assert resolved(calls, cuts, by_time=True) == [expected(call) for call in calls]
