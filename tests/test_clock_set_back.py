"""A clock set back while a program runs (by NTP, for example) leaves a valid trace in every layout."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vani
from tests.traces.recorder_writer import Call, write_trace

BROKEN = Path(__file__).parent / "data" / "broken"
TICKS_PER_S = 10_000_000
LAYOUTS = ("2.3", "2.4", "2.5p", "2.5g", "3.0", "3.x-mt", "3.x-dat", "3.x-mt2", "3.x-dat2")

steps = st.one_of(st.integers(-20, 20), st.integers(-10 * TICKS_PER_S + 1, 10 * TICKS_PER_S))


def trace_of(folder: Path, layout: str, starts_by_rank: list[list[int]]) -> None:
    """A file per rank, opened and then written 4,096 bytes at a time; every call lasts 5 ticks."""
    ranks = []
    for rank, starts in enumerate(starts_by_rank):
        path = f"/s/{rank}"
        named = [("open", (path, "577", "438")), *[("write", (path, "%p", "4096"))] * (len(starts) - 1)]
        ranks.append(
            [Call(name, args, start=at, end=at + 5) for (name, args), at in zip(named, starts, strict=True)]
        )
    write_trace(folder, ranks, layout=layout)


def test_a_first_call_before_the_tracers_start_is_profiled():
    profile = vani.profile(BROKEN / "clock-back-10-ticks")
    assert profile.traces[0].repaired_times == 1 and profile.traces[0].complete
    assert profile.workflow.io.bytes.written == 8192
    assert profile.phases[0].start_s == 0.0


@pytest.mark.parametrize("back", [10, TICKS_PER_S], ids=["10-ticks", "1-s"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.sampled(6)
def test_a_second_call_before_the_first_is_repaired_once_and_the_run_is_as_long_as_its_calls(
    tmp_path, layout, back
):
    trace_of(tmp_path, layout, [[0, -back, 20 - back, 40 - back]])
    profile = vani.profile(tmp_path)
    assert profile.traces[0].repaired_times == 1 and profile.traces[0].problems == []
    assert profile.workflow.io.bytes.written == 3 * 4096
    assert profile.workflow.runtime_s == pytest.approx(max(back + 5, 45) / TICKS_PER_S)
    assert profile.workflow.io.footprint.written == 3 * 4096


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=6)
@given(ranks=st.lists(st.lists(steps, min_size=1, max_size=8), min_size=1, max_size=3))
@pytest.mark.sampled(3)
def test_steps_forward_and_back_are_profiled_with_each_step_back_counted(layout, ranks):
    starts = [[sum(gaps[: i + 1]) for i in range(len(gaps))] for gaps in ranks]
    with TemporaryDirectory() as folder:
        trace_of(Path(folder), layout, starts)
        profile = vani.profile(folder)
    back = sum(b < a for mine in starts for a, b in pairwise([0, *mine]))
    every = [at for mine in starts for at in mine]
    assert profile.traces[0].repaired_times == back and profile.traces[0].problems == []
    assert profile.workflow.io.bytes.written == 4096 * sum(len(mine) - 1 for mine in starts)
    assert profile.workflow.runtime_s == pytest.approx(
        (max(0, *(at + 5 for at in every)) - min(0, *every)) / TICKS_PER_S
    )
    assert profile.workflow.io.time_s.total <= 5 * len(every) / TICKS_PER_S + 1e-9


def test_trace_with_a_clock_set_back_may_begin_before_the_other(tmp_path):
    for name, starts in (("a", [0, 10, 20]), ("b", [0, -TICKS_PER_S, 10 - TICKS_PER_S])):
        trace_of(tmp_path / name, "3.0", [starts])
    profile = vani.profile(tmp_path / "a", tmp_path / "b")
    assert profile.workflow.runtime_s == pytest.approx(1.0, abs=1e-5)
    assert [app.runtime_s for app in profile.apps] == pytest.approx([25e-7, 1.0], abs=1e-5)
