"""What `vani tune` runs next and concludes, with a simulated timer: true times with noise, drawn by a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vani.schema.tuned import Candidate, Setting, Tuned, TunedRun
from vani.tune.search import ERROR_RATE, next_candidates, result_of

SETTINGS = [Setting(layout="-c 8"), Setting(hints={"cb_nodes": "8"}), Setting(environment={"TMPDIR": "/dev/shm"})]


def session(candidates: int = 2, **more) -> Tuned:
    return Tuned(
        version="1", begun="2026-03-03T00:00:00+00:00", host="n1", command=["a"], data="/d", fresh="subfolder",
        **{"most_runs": 5, **more},
        candidates=[Candidate(rule="R", name="r", reason="", expected=None, setting=SETTINGS[i]) for i in range(candidates)],
    )  # fmt: skip


def simulated(tuned: Tuned, seconds: Callable[[list[int]], float], outcome=lambda candidates: "ended") -> Tuned:
    """Carry a session out; `seconds` is the time of a run with these candidates."""
    while (candidates := next_candidates(tuned)) is not None:
        run = TunedRun(
            number=len(tuned.runs) + 1, candidates=candidates, folder="f",
            outcome=outcome(candidates), seconds=seconds(candidates),
        )  # fmt: skip
        tuned = tuned.model_copy(update={"runs": [*tuned.runs, run]})
    return tuned.model_copy(update={"result": result_of(tuned)})


def noisy(factors: dict[int, float], noise: float, seed: int) -> Callable[[list[int]], float]:
    """100 s as it is, less by a factor for each candidate."""
    random = np.random.default_rng(seed)
    return lambda candidates: 100 / np.prod([factors.get(i, 1) for i in candidates]) * np.exp(random.normal(0, noise))


def test_a_setting_is_added_to_what_helped_and_both_are_repeated_in_turn():
    tuned = simulated(session(), noisy({0: 1.4, 1: 1.1}, 0.01, seed=1))
    assert [run.candidates for run in tuned.runs] == [[], [0], [0, 1], [], [0, 1]]
    assert tuned.result.verdict == "proven"
    assert tuned.result.low < 1.54 < tuned.result.high
    assert (tuned.result.as_is_runs, tuned.result.best_runs) == (2, 2)


def test_what_does_not_help_is_not_combined():
    tuned = simulated(session(), noisy({0: 0.8, 1: 1.3}, 0.01, seed=2))
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], [], [1]]
    assert tuned.result.candidates == [1]


def test_no_setting_helps_is_a_result():
    tuned = simulated(session(), noisy({0: 0.9, 1: 0.7}, 0.01, seed=3))
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], []]
    assert (tuned.result.verdict, tuned.result.candidates) == ("nothing_helps", [])
    assert 0 < tuned.result.noise < 0.05


@pytest.mark.parametrize("runs", [5, 9])
def test_noise_of_20_percent_makes_no_false_winner(runs):
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


def test_a_setting_under_which_the_program_fails_is_dropped():
    tuned = simulated(
        session(), noisy({0: 2, 1: 1.5}, 0.01, seed=4), lambda candidates: "failed" if 0 in candidates else "ended"
    )
    assert [run.candidates for run in tuned.runs] == [[], [0], [1], [], [1]]
    assert tuned.result.candidates == [1]


def test_a_program_that_fails_as_it_is_ends_the_session():
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
    assert len(tuned.runs) == 5
    assert sum(run.seconds for run in tuned.runs) <= 520


def test_interrupted_runs_count_for_nothing():
    tuned = session()
    lost = TunedRun(number=1, candidates=[], folder="f", outcome="interrupted")
    tuned = simulated(tuned.model_copy(update={"runs": [lost]}), noisy({0: 1.4}, 0.01, seed=6))
    assert len(tuned.runs) == 6
    assert tuned.result.verdict == "proven"
