"""Storage targets ranked by losses: columns agree with loops over each run."""

from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vani.centre.history.targets import ranked_targets
from vani.errors import InputError

TIMES = st.dictionaries(
    st.integers(0, 7), st.tuples(st.sampled_from([0.5, 1.0, 3.0]), st.floats(0.01, 50), st.floats(1, 1e9)), min_size=1
)
RUNS = st.lists(st.tuples(st.sampled_from(["/a", "/b"]), st.sampled_from(["x", "y"]), TIMES), max_size=12)


def rows(runs):
    return [
        (mount, app, "u", 4, f"{number}", json.dumps([[target, *sums] for target, sums in times.items()]))
        for number, (mount, app, times) in enumerate(runs)
    ]


def lost(runs):
    """Seconds lost by mount and target, and the run with the largest loss."""
    by_target = {}
    for mount, app, times in runs:
        alike = [other for m, a, other in runs if (m, a) == (mount, app)]
        sums = {
            target: [sum(own[target][at] for own in alike if target in own) for at in range(3)]
            for target in {target for own in alike for target in own}
        }
        if len(sums) < 4:
            continue
        usual_s, usual_bytes = (statistics.median(s[at] / s[0] for s in sums.values()) for at in (1, 2))
        for target, (files, seconds, moved) in times.items():
            more = max(0.0, seconds - files * usual_s * max(1.0, moved / files / usual_bytes))
            by_target.setdefault((mount, target), []).append(more)
    return by_target


@given(RUNS)
def test_loss_of_targets_equals_loops_over_their_runs(runs):
    expected = lost(runs)
    ranked = ranked_targets(rows(runs))
    assert {(row.mount, row.target): row.lost_s for row in ranked} == {
        key: pytest.approx(sum(some)) for key, some in expected.items()
    }
    assert [row.lost_s for row in ranked] == sorted((row.lost_s for row in ranked), reverse=True)
    assert all(row.runs == len(expected[row.mount, row.target]) for row in ranked)


def test_job_is_ranked_by_its_time_compared_with_similar_runs():
    even = dict.fromkeys(range(5), (1.0, 1.0, 1e6))
    runs = [("/a", "x", even | {3: (1.0, seconds, 1e6)}) for seconds in (2.0, 90.0, 5.0)]
    first, *_ = ranked_targets(rows(runs), "2")
    assert (first.target, first.lost_s, first.runs) == (3, 4.0, 1)
    with pytest.raises(InputError, match="no run of job 9"):
        ranked_targets(rows(runs), "9")


def test_the_jobs_that_lose_most_are_named():
    even = dict.fromkeys(range(5), (1.0, 1.0, 1e6))
    runs = [("/a", "x", even | {3: (1.0, seconds, 1e6)}) for seconds in (2.0, 90.0, 5.0, 1.0, 40.0)]
    assert ranked_targets(rows(runs))[0].jobs == ["1", "4", "2"]
    assert ranked_targets(rows(runs))[-1].jobs == []
