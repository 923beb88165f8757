"""The next run and the conclusion of `vani tune`, with a simulated timer: true times with seeded noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from vani.schema.tuned import Candidate, RunIO, Setting, Tuned, TunedRun
from vani.tune.search import ERROR_RATE, fitted, next_candidates, not_worth_a_run, result_of

SETTINGS = [Setting(layout="-c 8"), Setting(hints={"cb_nodes": "8"}), Setting(environment={"TMPDIR": "/dev/shm"})]


def session(candidates: int = 2, **more) -> Tuned:
    return Tuned(
        version="1", begun="2026-03-03T00:00:00+00:00", host="n1", command=["a"], data="/d", fresh="subfolder",
        **{"most_runs": 5, **more},
        candidates=[Candidate(rule="R", name="r", reason="", expected=None, setting=SETTINGS[i]) for i in range(candidates)],
    )  # fmt: skip


def simulated(tuned: Tuned, seconds: Callable[[list[int]], float], outcome=lambda candidates: "ended") -> Tuned:
    """Carry out a session; `seconds` gives the time of a run with these candidates."""
    while (candidates := next_candidates(tuned)) is not None:
        run = TunedRun(
            number=len(tuned.runs) + 1, candidates=candidates, folder="f",
            outcome=outcome(candidates), seconds=seconds(candidates),
        )  # fmt: skip
        tuned = tuned.model_copy(update={"runs": [*tuned.runs, run]})
    return tuned.model_copy(update={"result": result_of(tuned)})


def noisy(factors: dict[int, float], noise: float, seed: int) -> Callable[[list[int]], float]:
    """100 s unchanged, reduced by a factor for each candidate."""
    random = np.random.default_rng(seed)
    return lambda candidates: 100 / np.prod([factors.get(i, 1) for i in candidates]) * np.exp(random.normal(0, noise))


def test_setting_is_added_to_helpful_ones_and_runs_alternate():
    tuned = simulated(session(most_runs=7), noisy({0: 1.4, 1: 1.1}, 0.01, seed=1))
    assert [run.candidates for run in tuned.runs][:4] == [[], [0], [0, 1], []]
    assert (tuned.result.verdict, tuned.result.candidates) == ("proven", [0, 1])
    assert tuned.result.low < 1.54 < tuned.result.high
    assert min(tuned.result.as_is_runs, tuned.result.best_runs) >= 2


def test_null_member_of_a_package_is_dropped():
    sessions = [simulated(session(3, most_runs=9), noisy({0: 1.5}, 0.05, seed)).result for seed in range(20)]
    assert [result.verdict for result in sessions] == ["proven"] * 20
    assert sum(result.candidates != [0] for result in sessions) <= 2


def test_one_of_two_values_of_a_setting_is_proven():
    tuned = session(2, most_runs=9)
    layouts = [Setting(layout="-c 4"), Setting(layout="-c 8")]
    both = [known.model_copy(update={"setting": layout}) for known, layout in zip(tuned.candidates, layouts, strict=True)]
    tuned = simulated(tuned.model_copy(update={"candidates": both}), noisy({0: 1.3, 1: 2}, 0.02, seed=3))
    assert not any(len(run.candidates) > 1 for run in tuned.runs)
    assert tuned.result.candidates == [1]


@pytest.mark.parametrize("faster", [0, 1])
def test_faster_of_two_values_is_repeated_and_proven_within_five_runs(faster):
    tuned = session(2, most_runs=5)
    layouts = [Setting(layout="-c 4"), Setting(layout="-c 8")]
    both = [known.model_copy(update={"setting": layout}) for known, layout in zip(tuned.candidates, layouts, strict=True)]
    times = noisy({faster: 4, 1 - faster: 2}, 0.02, seed=3)
    tuned = simulated(tuned.model_copy(update={"candidates": both}), times)
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], [], [faster]]
    assert (tuned.result.verdict, tuned.result.candidates) == ("proven", [faster])


def test_values_of_a_setting_that_are_equally_fast_do_not_hide_each_other():
    tuned = session(3, most_runs=9)
    layouts = [Setting(layout=f"-c {count}") for count in (2, 4, 8)]
    values = [known.model_copy(update={"setting": layout}) for known, layout in zip(tuned.candidates, layouts, strict=True)]
    # As measured on CephFS.
    times = iter([3.2, 1.4, 1.4, 1.4, 3.2, 1.3, 1.6, 1.4, 1.2])
    tuned = simulated(tuned.model_copy(update={"candidates": values}), lambda candidates: next(times))
    assert tuned.result.verdict == "proven"
    assert tuned.result.low > 1.5


def test_setting_that_no_rule_recommends_is_not_added_to_a_large_gain():
    tuned = session(3, most_runs=9)
    trials = [tuned.candidates[0], *(item.model_copy(update={"rule": "trial"}) for item in tuned.candidates[1:])]
    tuned = tuned.model_copy(update={"candidates": trials})
    large = simulated(tuned, noisy({0: 1.5}, 0.05, seed=4))
    assert {tuple(run.candidates) for run in large.runs} == {(), (0,)}
    assert (large.result.verdict, large.result.candidates) == ("proven", [0])
    none = simulated(tuned, noisy({}, 0.01, seed=4))
    assert {(), (0,), (1,), (2,)} <= {tuple(run.candidates) for run in none.runs}


def test_undecided_result_names_the_setting_that_was_repeated():
    tuned = session(2, most_runs=5)
    layouts = [Setting(layout="-c 4"), Setting(layout="-c 8")]
    both = [known.model_copy(update={"setting": layout}) for known, layout in zip(tuned.candidates, layouts, strict=True)]
    times = iter([3.6, 2.1, 1.7, 4.7, 3.3])
    tuned = simulated(tuned.model_copy(update={"candidates": both}), lambda candidates: next(times))
    assert (tuned.result.verdict, tuned.result.candidates) == ("not_proven", [1])
    assert "the noise is too large" in tuned.result.why


def test_combination_that_fails_is_not_run_again():
    tuned = simulated(
        session(3, most_runs=9), noisy({0: 1.5, 1: 1.5}, 0.02, seed=4),
        lambda candidates: "failed" if {0, 1} <= set(candidates) else "ended",
    )  # fmt: skip
    assert sum({0, 1} <= set(run.candidates) for run in tuned.runs) == 1
    assert tuned.result.candidates == [0]


def test_settings_that_do_not_help_are_not_combined():
    tuned = simulated(session(), noisy({0: 0.8, 1: 1.3}, 0.01, seed=2))
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], [], [1]]
    assert tuned.result.candidates == [1]


def test_no_setting_helps_is_a_result():
    tuned = simulated(session(), noisy({0: 0.9, 1: 0.7}, 0.01, seed=3))
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], []]
    assert (tuned.result.verdict, tuned.result.candidates) == ("nothing_helps", [])
    assert 0 < tuned.result.noise < 0.05


@pytest.mark.parametrize("runs", [5, 9])
@pytest.mark.slow
def test_noise_of_20_percent_gives_no_false_winner(runs):
    # 50 sessions of the size, and 350 more that make the rate itself visible.
    false = [
        simulated(session(candidates=3, most_runs=runs), noisy({}, 0.2, seed)).result.verdict == "proven"
        for seed in range(400)
    ]
    # Binomial: a rate of 5 % gives more than 5 of 50 in 4 %, more than 29 of 400 in 2 % of all cases.
    assert sum(false[:50]) <= 5
    assert sum(false) <= 29, sum(false) / 400
    assert ERROR_RATE == 0.05


def test_a_real_gain_is_found_in_noise_with_a_larger_budget():
    verdicts = [simulated(session(most_runs=12), noisy({0: 2.0}, 0.1, seed)).result.verdict for seed in range(50)]
    assert verdicts.count("proven") >= 45


def test_setting_that_makes_the_program_fail_is_dropped():
    tuned = simulated(
        session(), noisy({0: 2, 1: 1.5}, 0.01, seed=4), lambda candidates: "failed" if 0 in candidates else "ended"
    )
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], [], [1]]
    assert tuned.result.candidates == [1]


def test_program_that_fails_unchanged_ends_the_session():
    tuned = simulated(session(), lambda candidates: 1.0, lambda candidates: "not_verified")
    assert len(tuned.runs) == 1
    assert tuned.result.verdict == "unfinished"


@pytest.mark.parametrize("runs", range(1, 12))
def test_no_session_uses_more_runs_than_its_budget(runs):
    for seed in range(10):
        tuned = simulated(session(candidates=3, most_runs=runs), noisy({0: 1.1, 2: 1.05}, 0.1, seed))
        assert len(tuned.runs) <= runs
        if runs < 4:
            assert tuned.result.verdict != "proven"


def test_a_budget_of_seconds_is_not_exceeded():
    tuned = simulated(session(most_runs=None, most_seconds=520), noisy({0: 1.4}, 0.01, seed=5))
    assert 4 <= len(tuned.runs) <= 5
    assert sum(run.seconds for run in tuned.runs) <= 520


def test_budget_in_node_hours_becomes_seconds_once_nodes_are_known():
    budget = {"most_runs": None, "most_node_hours": 2.0, "nodes": 14}
    tuned = simulated(session(**budget), noisy({0: 1.4}, 0.01, seed=5))
    assert 4 <= len(tuned.runs) <= 5
    assert sum(run.seconds for run in tuned.runs) <= 2 * 3600 / 14


def with_io(tuned: Tuned, seconds: float, most_s: float | None, seed: int = 7) -> Tuned:
    """A session whose first run took 100 s, with I/O of `seconds`; then others of 70 s."""
    io = RunIO(source="recorder", read_s=0, write_s=seconds, metadata_s=0, most_s=most_s)
    first = TunedRun(number=1, candidates=[], folder="f", outcome="ended", seconds=100.0, io_s=seconds, io=io)
    return simulated(tuned.model_copy(update={"runs": [first]}), noisy({0: 1.4, 1: 1.1}, 0.01, seed))


def test_a_run_with_next_to_no_io_ends_the_session():
    tuned = with_io(session(), 1.0, 1.9)
    assert len(tuned.runs) == 1
    assert (tuned.result.verdict, tuned.result.candidates) == ("nothing_to_gain", [])
    assert "1.9 s of 100 s at most" in tuned.result.why
    # Unobserved I/O, or a lower bound, does not end the session.
    assert with_io(session(), 1.0, None).result.verdict == "proven"
    assert with_io(session(), 1.0, 3.0).result.verdict == "proven"


def test_setting_that_is_expected_to_save_under_2_percent_is_left_out():
    first = session().candidates[0].model_copy(update={"most_saved_s": 1.9})
    tuned = session().model_copy(update={"candidates": [first, session().candidates[1]]})
    simulation = noisy({0: 1.005, 1: 1.3}, 0.01, seed=8)
    assert [run.candidates for run in simulated(tuned, simulation).runs] == [[], [1], [], [1]]
    left_out = not_worth_a_run(simulated(tuned, simulation))
    assert [item.rule for item in left_out] == ["R"]
    assert "-c 8 is expected to save at most 1.9 s" in left_out[0].why
    more = tuned.model_copy(update={"candidates": [first.model_copy(update={"most_saved_s": 2.1})]})
    assert [0] in [run.candidates for run in simulated(more, simulation).runs]
    alone = tuned.model_copy(update={"candidates": [first]})
    assert simulated(alone, simulation).result.verdict == "nothing_helps"


@given(
    before=st.lists(st.floats(1, 100), min_size=2, max_size=6, unique=True),
    after=st.lists(st.floats(1, 100), min_size=2, max_size=6, unique=True),
    error_rate=st.floats(0.001, 0.2),
)
def test_interval_of_one_setting_matches_students_test(before, after, error_rate):
    interval = stats.ttest_ind(np.log(before), np.log(after)).confidence_interval(1 - 2 * error_rate)
    fit = fitted([*(((), seconds) for seconds in before), *(((0,), seconds) for seconds in after)], (0,))
    assert np.log(fit.interval([0], error_rate)[1:]) == pytest.approx([interval.low, interval.high], rel=1e-6, abs=1e-6)


def test_runs_that_took_the_same_time_have_no_deviation():
    fit = fitted([((), 2.0), ((), 2.0), ((0,), 1.0), ((0,), 1.0)], (0,))
    assert fit.interval([0], 0.05) == pytest.approx((2, 2, 2))


def test_interrupted_runs_do_not_count():
    tuned = session()
    lost = TunedRun(number=1, candidates=[], folder="f", outcome="interrupted")
    tuned = simulated(tuned.model_copy(update={"runs": [lost]}), noisy({0: 1.4}, 0.01, seed=6))
    assert len(tuned.runs) == 6
    assert tuned.result.verdict == "proven"
