"""With many calls on few places, each measure gives the same result with kernels, without, and with both in turn."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from switched import needs_kernels, numpy_alone

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "analyzers"))
from dense_calls import dense_trace, findings_of
from plain_results import plain

from vani.analyzers.batch import Batch
from vani.analyzers.measures.access_pattern import AccessPattern
from vani.analyzers.measures.survey import Survey
from vani.analyzers.passes.measure_workload import all_measures
from vani.kernels import times_used
from vani.readers.trace_reader import Piece

pytestmark = needs_kernels


def compare(measure: Any, seed: int, rows_per_batch: int, **size: int) -> None:
    trace = dense_trace(seed, rows_per_batch, **size)
    context, findings = findings_of(trace, seed)
    batches = list(trace.batches(range(trace.ranks), Piece()))
    chance = np.random.default_rng([seed, 2])

    def found(by_numpy: float) -> Any:
        known = None if isinstance(measure, Survey) else findings
        collector = measure.chunk(context, known)
        for calls in batches:
            if chance.random() < by_numpy:
                with numpy_alone():
                    collector.add(Batch(context, calls, known))
            else:
                collector.add(Batch(context, calls, known))
        return plain(measure.combine([collector.result()]))

    expected = found(by_numpy=1)
    assert found(by_numpy=0) == expected
    if len(batches) > 1:
        assert found(by_numpy=0.5) == expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows_per_batch", "runs", "most"), [(1, 6, 40), (2, 8, 60), (5, 10, 100), (30, 25, 200), (1000, 40, 200)]
)
def test_streams_are_the_same(rows_per_batch, runs, most):
    used, declined = times_used().get("pattern", (0, 0))
    for seed in range(runs):
        compare(AccessPattern(), seed, rows_per_batch, most=most)
    assert times_used()["pattern"][0] > used
    assert times_used()["pattern"][1] == declined


@pytest.mark.parametrize("measure", [Survey(), *all_measures()], ids=lambda measure: measure.name)
@pytest.mark.sampled(6)
def test_each_measure_is_the_same(measure):
    if measure.name == "io_time":
        pytest.skip("whether processes run calls at the same time is what the survey finds")
    for seed in range(50, 54):
        compare(measure, seed, 25)
