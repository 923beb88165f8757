"""The comparison of `vani tune` with other searches."""

from __future__ import annotations

import pytest

from benchmarks.stripes import MeasuredRun
from benchmarks.tune_rivals import best_of_optuna, on_sweep, rows_of

CASES = [
    {"vani tune": 1.0, "-c 1": 0.5, "-c all": 0.96},
    {"vani tune": 0.9, "-c 1": 1.0, "-c all": 0.6},
]


def test_of_fixed_rules_only_the_best_on_average_is_shown():
    assert rows_of(CASES) == {"vani tune": (0.95, 1), "best fixed rule (-c all)": (0.78, 1)}


def test_optuna_spends_five_runs_of_which_the_first_is_as_it_is():
    pytest.importorskip("optuna")
    costs = []

    def cost(count):
        costs.append(count)
        return abs(count - 3)

    best = best_of_optuna(lambda trial: trial.suggest_int("count", 0, 9), cost, 99.0, None, seed=1)
    assert len(costs) == 4
    assert best == min(costs, key=lambda count: abs(count - 3))


def test_sweep_judges_every_way_by_its_measured_rates():
    pytest.importorskip("optuna")
    rates = {1: 100.0, 2: 200.0, 4: 400.0, 8: 300.0}
    measured = MeasuredRun("a", "b", "independent", 1 << 36, 128, 8, 8, "mpiio", rates)
    shares = on_sweep(measured, seed=1)
    assert (shares["as it is"], shares["-c 4"], shares["-c all"]) == (0.25, 1.0, 0.75)
    assert shares["vani tune"] == max(shares["as it is"], shares["advice alone"], shares["-c all"])
    # Four counts in five runs: all are tried.
    assert shares["random search"] == 1.0
