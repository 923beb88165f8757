"""The benchmark of write times also prints costs of stages, the time of the search, and the limits."""

from __future__ import annotations

import pytest

pytest.importorskip("scipy")
pytest.importorskip("sklearn")

from benchmarks.data import DATA
from benchmarks.write_time import daily, io500, search_seconds, stage_parameters


@pytest.mark.slow
def test_stages_that_bind_are_found_within_a_twentieth():
    for name, ratios in stage_parameters():
        assert len(ratios) == 3, name
        for ratio in ratios.values():
            assert ratio == pytest.approx(1, abs=0.05), name


@pytest.mark.slow
def test_the_search_of_all_subsets_takes_no_more_than_half_a_minute():
    count, seconds = search_seconds()
    assert count >= 3_000
    assert seconds <= 30


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data")
def test_time_of_one_run_has_a_limit_known_to_intervals():
    for machine, file, least in (
        ("Edison", "edison_2017-02_2018-02.csv.gz", (0.86, 0.81)),
        ("Mira", "mira_2017-02_2017-10.csv.gz", (0.89, 0.86)),
    ):
        held = daily(machine, file)
        off = abs(1 / held.ratios - 1)
        assert (off <= 0.3).mean() >= least[0]
        assert (off <= 0.2).mean() >= least[1]
        assert 0.8 <= held.within.mean() <= 0.95
    held = io500()
    off = abs(1 / held.ratios - 1)
    assert 0.42 <= (off <= 0.3).mean() <= 0.6
    assert 0.8 <= held.within.mean() <= 0.95
