"""The best paths of all jobs at once, compared with every mapping, and plans compared with them."""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from benchmarks.plan_path import best_at_once, carried_of, instance, print_joint
from vani.centre.plan.path_layers import network_of


def best_of_all(network, nodes, rates):
    """The best by trying every mapping of every job, for few compute nodes."""
    fwd = len(network.forwarding.names)
    ways = [
        [np.bincount(some, minlength=fwd) for some in combinations_with_replacement(range(fwd), count)]
        for count in nodes
    ]
    return max(best_at_once(network, nodes, rates, np.array(counts)) for counts in product(*ways))


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
