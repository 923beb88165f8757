"""Positions and ends beyond 1 EiB are unknown, with a problem, whether kernels or numpy follow them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from switched import needs_kernels, numpy_alone

import vani
from tests.traces.recorder_writer import Call, write_trace
from vani.readers import open_trace
from vani.readers.signatures import MAX_OFFSET
from vani.readers.trace_reader import Piece

CASE = Path(__file__).resolve().parents[1] / "data" / "cases" / "seek-end-2pow60"
PROBLEM = "positions in files go beyond 1 EiB"

FAR = st.sampled_from([0, 1, -1, 1 << 20, 1 << 40, 1 << 55, 1 << 58, 1 << 60, -(1 << 55), (1 << 62), (1 << 63) - 1])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from([1, 4096])),
        st.tuples(st.just("read"), st.sampled_from([1, 4096])),
        st.tuples(st.just("pwrite"), FAR),
        st.tuples(st.just("ftruncate"), FAR),
        st.tuples(st.sampled_from(["lseek 0", "lseek 1", "lseek 2"]), FAR),
        st.tuples(st.just("open"), st.sampled_from([66, 578, 1090])),
    ),
    min_size=1,
    max_size=60,
)


def trace_of(steps, folder: Path) -> Path:
    calls = [("open", ("/s/f", "578", "420"))]
    for name, value in steps:
        function, _, whence = name.partition(" ")
        arguments = {
            "write": ("/s/f", "%p", str(value)),
            "read": ("/s/f", "%p", str(value)),
            "pwrite": ("/s/f", "%p", "8", str(value)),
            "ftruncate": ("/s/f", str(value)),
            "lseek": ("/s/f", str(value), whence),
            "open": ("/s/f", str(value), "420"),
        }[function]
        calls.append((function, arguments))
    rows = [Call(f, arguments, start=1000 * i, end=1000 * i + 400) for i, (f, arguments) in enumerate(calls)]
    write_trace(folder, [rows], layout="2.5p")
    return folder


def offsets(trace: Path) -> tuple[list[int | None], list[str]]:
    piece = Piece()
    reader = open_trace(trace)
    return [o for batch in reader.batches(range(1), piece) for o in batch["offset"].to_pylist()], piece.problems


@pytest.mark.slow
@needs_kernels
@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_kernels_and_numpy_follow_extreme_seeks_alike_within_the_bound(steps, tmp_path_factory):
    trace = trace_of(steps, tmp_path_factory.mktemp("seeks") / "trace")
    compiled = offsets(trace)
    with numpy_alone():
        assert offsets(trace) == compiled
    places, problems = compiled
    resized = {i + 1 for i, (name, _) in enumerate(steps) if name in ("ftruncate", "pwrite")}
    assert all(o is None or 0 <= o < MAX_OFFSET or i in resized for i, o in enumerate(places))
    # Exact integers: the position and the end as the operating system has them.
    position = end = 0
    lost = False
    for place, (name, value) in zip(places[1:], steps, strict=True):
        if lost:
            break
        if name == "write":
            assert place == position
            position += value
            end = max(end, position)
        elif name.startswith("lseek"):
            position = value + {"0": 0, "1": position, "2": end}[name[-1]]
            assert place == (position if 0 <= position < MAX_OFFSET else None)
        else:
            break
        lost = not 0 <= position < MAX_OFFSET or end >= MAX_OFFSET
        if lost and position >= 0 and abs(value) < MAX_OFFSET:
            assert any(text.startswith(PROBLEM) for text in problems)


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "numpy"])
def test_three_hundred_seeks_beyond_the_end_leave_the_size_unknown(kernels):
    # Formerly size 9187343239835812095 with kernels and 4575657221408424063 with numpy, and no problem.
    if kernels:
        profile = vani.profile(CASE)
    else:
        with numpy_alone():
            profile = vani.profile(CASE)
    (trace,), (file,) = profile.traces, profile.files
    assert not trace.complete
    assert any(text.startswith(PROBLEM) for text in trace.problems)
    assert file.size is None
    assert file.io.footprint.written == 31
