"""How the ranks of a trace are divided into parts, and the order in which these are processed."""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from traces.trace_generator import Workload, generate_trace

from vani.engine.cluster import open_executor
from vani.readers.open import open_trace
from vani.readers.trace_reader import Piece, TraceReader
from vani.store import write
from vani.store.write import LARGE_PART, PartTask, plan_parts

CALLS = st.lists(st.integers(0, 3 * LARGE_PART), min_size=1, max_size=60)


@example(calls=[0, LARGE_PART + 1], short_last=False)
@given(calls=CALLS, short_last=st.booleans())
def test_parts_have_about_a_million_calls_each(calls, short_last):
    parts = plan_parts(np.array(calls, np.int64), short_last=short_last)
    assert parts[0].start == 0
    assert parts[-1].stop == len(calls)
    assert all(one.stop == other.start and len(other) for one, other in pairwise(parts))
    for part in parts:
        # Ranks without calls are grouped with their neighbours.
        some = [count for count in calls[part.start : part.stop] if count]
        assert len(some) <= 1 or sum(some) <= LARGE_PART


def test_trace_of_up_to_a_million_calls_is_one_part():
    assert plan_parts(np.full(8, LARGE_PART // 8)) == [range(8)]
    assert len(plan_parts(np.full(8, LARGE_PART // 8 + 1))) == 8


def makespan(sizes: list[int], workers: int) -> int:
    """Time at which the last worker ends if each takes the next part when it is done with one."""
    done = [0] * workers
    for size in sizes:
        heapq.heapreplace(done, done[0] + size)
    return max(done)


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
@pytest.mark.parametrize(("ranks", "calls"), [(64, 300_000), (512, 100_000), (2_000, 10_000)])
def test_last_part_of_even_ranks_causes_little_waiting(ranks, calls, workers):
    parts = plan_parts(np.full(ranks, calls), short_last=True)
    sizes = [len(part) * calls for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert makespan(sizes, workers) <= ranks * calls / workers + max(calls, LARGE_PART // 8)


def test_long_parts_are_decoded_first_and_returned_in_rank_order(tmp_path, monkeypatch):
    generate_trace(tmp_path / "trace", Workload(calls=6_000, ranks=6, files=6, zlib_level=1))
    reader = open_trace(tmp_path / "trace")
    calls = np.array([10, 50, 20, 50, 40, 30])
    monkeypatch.setattr(type(reader), "calls_per_rank", lambda _: calls)
    begun: list[int] = []

    def told(task: PartTask, reader: TraceReader) -> Piece:
        begun.append(task.ranks.start)
        return Piece(records=int(calls[task.ranks.start]))

    tasks = [PartTask(range(rank, rank + 1), None) for rank in range(6)]
    pieces = write._pieces(reader, open_executor("synchronous"), told, tasks)
    assert begun == [1, 3, 4, 5, 2, 0]
    assert [piece.records for piece in pieces] == calls.tolist()


def test_calls_decoded_again_use_shrinking_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("vani.store.write.LARGE_PART", 8_000)
    generate_trace(tmp_path / "trace", Workload(calls=40_000, ranks=40, files=40, zlib_level=1))
    reader = open_trace(tmp_path / "trace")
    store = write.decode_on_demand(
        reader, version="0", executor=open_executor("synchronous"), scratch=tmp_path
    )
    ranks = [stop - start for start, stop in (part.ranks for part in store.manifest.parts)]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1] == 1
