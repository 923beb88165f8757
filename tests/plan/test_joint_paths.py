"""The best paths of all jobs at once, compared with every mapping, and plans compared with them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.plan_path import best_at_once, best_of_all, carried_of, instance, print_joint
from vani.centre.plan.path_layers import network_of


@pytest.mark.parametrize("seed", range(4))
def test_solver_finds_the_best_mapping_and_no_plan_exceeds_it(seed):
    snapshot, nodes, rates = instance(np.random.default_rng(seed), small=True)
    network = network_of(snapshot, {"iobw"})
    best = best_at_once(network, nodes, rates)
    assert best == pytest.approx(best_of_all(network, nodes, rates), abs=1e-6)
    assert carried_of(snapshot, nodes, rates).mean() <= best + 1e-6


def test_the_table_is_printed(capsys):
    print_joint(2)
    assert capsys.readouterr().out.count("mean share, best of six orders") == 2
