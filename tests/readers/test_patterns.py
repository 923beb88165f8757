"""Offsets stored as patterns: hand-worked groups and differences, and everything the writer can encode.

The writer and the slow decoder in `tests/traces/` implement the patterns of the format document, section 5.4.
Separate tests compare them with the resolved offsets of real traces.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from invented import examples
from reading import read_trace

from tests.traces.recorder_oracle import decode_trace
from tests.traces.recorder_writer import Call, write_trace
from vani.readers.recorder.batches import RunningOffsets
from vani.readers.signatures import NO_VALUE

LAYOUTS = ["2.5g", "3.0", "3.x-mt", "3.x-dat"]


def resolved(
    stored: list[int], *, from_first: bool, function: list[int] | None = None, cuts: tuple[int, ...] = ()
) -> list[int]:
    offsets = RunningOffsets(from_first=from_first)
    values, codes = np.array(stored, np.int64), np.array(function or [0] * len(stored), np.int8)
    for part, code in zip(np.split(values, list(cuts)), np.split(codes, list(cuts)), strict=True):
        offsets.resolve(code, part)
    return values.tolist()


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3)])
def test_numbers_in_3_0_are_differences_to_the_previous_call(cuts):
    assert resolved([100, 50, 50, -150], from_first=False, cuts=cuts) == [100, 150, 200, 50]


@pytest.mark.parametrize("cuts", [(), (1,), (2, 3)])
def test_numbers_in_2_5g_are_differences_to_the_first_call(cuts):
    assert resolved([100, 50, 50, -150], from_first=True, cuts=cuts) == [100, 150, 150, -50]


def test_every_function_counts_separately_and_other_calls_are_unaffected():
    assert resolved([10, 7, 1, 1, 3], from_first=False, function=[0, -1, 4, 0, 4]) == [10, 7, 1, 11, 4]


def test_call_without_a_number_is_skipped():
    assert resolved([10, NO_VALUE, 5], from_first=False) == [10, NO_VALUE, 15]
    assert resolved([NO_VALUE, 10, 5], from_first=True) == [NO_VALUE, 10, 15]


def pwrite(offset: int, tick: int) -> Call:
    return Call("pwrite", ("/s", "%p", "8", str(offset)), 0, 0, tick, tick + 1)


def pread(offset: int, tick: int) -> Call:
    return Call("pread", ("/s", "%p", "8", str(offset)), 0, 0, tick, tick + 1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_r_counts_ranks_with_equal_signatures(layout, tmp_path):
    # Rank 0 writes once, ranks 1 to 4 twice: r of rank 1 is 0. Steps of 100 and -10 make two lines.
    ranks = [[pwrite(7, 0)], *([pwrite(1000 + 100 * r, 0), pwrite(500 - 10 * r, 5)] for r in range(4))]
    write_trace(tmp_path, ranks, layout=layout, interprocess_patterns=True)
    assert b"100*r+1000" in _call_tables(tmp_path)
    offsets = read_trace(tmp_path).calls["offset"].to_pylist()
    assert offsets == [7, 1000, 500, 1100, 490, 1200, 480, 1300, 470]


def _call_tables(directory) -> bytes:
    return b"".join(decode_trace(directory).raw_tables)


# Two lines of ranks, random offsets, and both kinds of seeks.
OFFSETS = st.integers(0, 2**40) | st.integers(0, 6).map(lambda n: n * 4096)


@st.composite
def programs(draw) -> list[list[Call]]:
    ranks, steps = draw(st.integers(1, 6)), draw(st.integers(0, 5))
    calls: list[list[Call]] = [[] for _ in range(ranks)]
    for _ in range(steps):
        function, base, slope = (
            draw(st.sampled_from([pwrite, pread])),
            draw(OFFSETS),
            draw(st.integers(-4096, 4096)),
        )
        for rank, made in enumerate(calls):
            if draw(st.integers(0, 4)):
                made.append(function(base + slope * rank if base >= 2**15 else draw(OFFSETS), 2 * len(made)))
    return calls


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(60),
)
@given(
    calls=programs(),
    layout=st.sampled_from(LAYOUTS),
    interprocess=st.booleans(),
    inter=st.booleans(),
    intra=st.booleans(),
)
def test_offsets_are_restored_from_any_pattern(
    calls, layout, interprocess, inter, intra, tmp_path_factory
):
    if not any(calls):
        return
    directory = tmp_path_factory.mktemp("trace")
    inter = inter and interprocess
    write_trace(
        directory,
        calls,
        layout=layout,
        interprocess=interprocess,
        interprocess_patterns=inter,
        intraprocess_patterns=intra,
    )
    offsets = read_trace(directory).calls["offset"].to_pylist()
    # pread and pread64 are stored plainly nevertheless (a bug of the tracer that the writer reproduces).
    assert offsets == [int(c.args[3]) for rank in calls for c in rank]
