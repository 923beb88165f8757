"""Similar phases are one row, which gives the times of each."""

from __future__ import annotations

import pytest

from vani.schema.profile import Phase
from vani.schema.profile.workload import Repeats


def phase(count: int) -> Phase:
    # Only the fields that determine the times of repetitions.
    return Phase.model_construct(
        start_s=1.0, end_s=11.0, runtime_s=2.0, repeats=Repeats(count=count, period_s=None)
    )


def test_repetitions_are_equally_long_and_evenly_spaced():
    assert phase(2).spans == [(1.0, 2.0), (10.0, 11.0)]


@pytest.mark.parametrize("count", [1, 100_001, 2**62])
def test_single_or_indistinguishable_repetitions_are_one_span(count):
    assert phase(count).spans == [(1.0, 11.0)]
