"""The papers as plain functions: their own examples, and one line for invalid figures."""

from __future__ import annotations

import doctest
import importlib
import itertools
import math
import pkgutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vani.centre.papers
from tests.traces.recorder_writer import Call, write_trace
from vani.centre.papers import aiot, mckp, tarazu, vani_profile, xie
from vani.centre.prediction.creations.predictors import PREDICTORS
from vani.centre.prediction.creations.series import Creations
from vani.errors import InputError

GiB = 1 << 30
MACHINE = {
    "compute": [4],
    "forwarding": [(1.0, 1.0, 1.0, 0.0), (1.0, 1.0, 1.0, 0.0)],
    "storage": [(2.0, 2.0, math.nan)],
    "ost": [(1.0, 1.0, 0.0), (1.0, 1.0, 0.5)],
    "behind": [(0, 1)],
}


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(vani.centre.papers.__path__)])
def test_the_examples_of_the_papers_run(name):
    module = importlib.import_module(f"vani.centre.papers.{name}")
    result = doctest.testmod(module)
    assert result.failed == 0
    assert result.attempted or name == "figures"


curves = st.lists(
    st.lists(st.tuples(st.integers(0, 6), st.floats(0, 1e6, width=32)), min_size=1, max_size=3), min_size=1, max_size=4
)


@settings(deadline=None)  # other load on the machine must not fail the knapsack
@given(curves, st.integers(0, 12))
def test_the_knapsack_is_the_best_of_all_choices(items, pool):
    possible = [some for some in itertools.product(*items) if sum(w for w, _ in some) <= pool]
    if not possible:
        with pytest.raises(InputError, match="need"):
            mckp(items, pool)
        return
    best = mckp(items, pool)
    assert sum(best.w) <= pool
    assert all(item in some for item, some in zip(zip(best.w, best.p, strict=True), items, strict=True))
    assert sum(best.p) == pytest.approx(max(sum(p for _, p in some) for some in possible), rel=1e-12)


def test_arrays_do_as_lists_do():
    curve = [(0, 2.5), (2, 7.25)]
    assert mckp([np.array(curve)], np.int64(2)) == mckp([curve], 2) == ([2], [7.25])
    assert tarazu([(GiB, 2)], np.array([(GiB, GiB)] * 3)) == tarazu([(GiB, 2)], [(GiB, GiB)] * 3)


def test_tarazu_as_printed_piles_up_stripes_on_the_cheapest_target():
    osts = [(10 * GiB, 10 * GiB)] * 3
    assert tarazu([(GiB, 1)] * 3, osts, as_printed=True).ost_cost == pytest.approx(3.0)
    assert tarazu([(GiB, 1)] * 3, osts).ost_cost == pytest.approx(1.0)
    loaded = tarazu([(GiB, 1)], osts, oss=[0, 0, 1], oss_load=[0.5, 0.1], as_printed=True)
    assert loaded.extents[0].osts == [2]
    full = tarazu([(GiB, 2)], [(GiB, 0), (GiB, 0)])
    assert (full.extents[0].osts, full.ost_cost) == ([], None)


def test_equation_1_as_printed_sees_no_operations():
    assert aiot([(0.5, 4.0, 0.0)], MACHINE).carried == [pytest.approx(0.375)]
    assert aiot([(0.5, 4.0, 0.0)], MACHINE, as_printed=True).carried == [pytest.approx(1.0)]


def test_abnormal_and_unreachable_nodes_carry_nothing():
    forwarding = [(1.0, 1.0, 1.0, math.nan), (1.0, 1.0, 1.0, 0.0)]
    flows = aiot([(0.5, 0.0, 0.0)], MACHINE | {"forwarding": forwarding}).flows
    assert {flow.forwarding for flow in flows} == {1}
    flows = aiot([(0.5, 0.0, 0.0)], MACHINE | {"reach": [(0,), ()]}).flows
    assert {flow.forwarding for flow in flows} == {0}


def test_write_times_have_the_shape_of_the_arguments():
    times = xie("titan", np.array([[16], [128]]), 8, [100, 500, 1000])
    assert times.packed.shape == times.spread.shape == (2, 3)
    assert times.packed[1, 1] == xie("titan", 128, 8, 500).packed
    assert np.all(times.packed > times.spread)


def test_tables_of_a_profile_have_a_value_or_a_reason():
    demo = Path(vani.__file__).parent / "demo" / "ior-shared-file-8r"
    tables = vani_profile(vani.profile(demo))
    assert list(tables.values) == ["II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI"]
    assert tables.values["III"]["I/O amount"] == 2 << 27
    assert tables.values["IX"]["Dir"] is None
    assert "--system" in tables.unknown["storage.shared.dir"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mckp([], 3), "curves: is empty"),
        (lambda: mckp([[(1, math.nan)]], 3), r"curves\[0\]\[0\]: p is nan; give 0 to 1e18"),
        (lambda: mckp([[(1.5, 2)]], 3), r"curves\[0\]\[0\]: w: is 1.5; give a whole number"),
        (lambda: mckp([[1, 2]], 3), r"curves\[0\]: has the shape \(2,\); give rows of w, p"),
        (lambda: mckp([[(4, 1)], [(1, 1)]], 3), "pool: is 3; the applications need 5 I/O nodes at least"),
        (lambda: mckp([[(1, 1)]], "many"), "pool: is 'many'; give a whole number"),
        (lambda: mckp([[(10**9, 1)]], 10**9), "more than can be solved; give a smaller pool"),
        (lambda: tarazu([], [(1, 1)]), "files: is empty"),
        (lambda: tarazu([5], [(1, 1)]), r"files\[0\]: is not a pair; give \(bytes, stripeCount\)"),
        (lambda: tarazu([(5, 0)], [(1, 1)]), r"files\[0\]: stripeCount: is 0"),
        (lambda: tarazu([(5, [(None, 1), (9, 1)])], [(1, 1)]), r"files: jobs\[0\]"),
        (lambda: tarazu([(5, 1)], [(1, 2)]), r"osts\[0\]: has 2 of 1 bytes available"),
        (lambda: tarazu([(5, 1)], [(9, 9)], oss=[0, 1]), "oss: has 2 entries; give one for each of 1 OSTs"),
        (lambda: tarazu([(5, 1)], [(9, 9)], oss=[1], oss_load=[0]), "oss_load: has no load"),
        (lambda: aiot([(1, 1)], MACHINE), r"demand: has the shape \(1, 2\); give rows of IOBW, IOPS, MDOPS"),
        (lambda: aiot([(1, 1, 1)], MACHINE | {"osts": []}), "topology: has no 'osts'; did you mean 'ost'"),
        (lambda: aiot([(1, 1, 1)], {}), "topology: has no 'compute'; add it"),
        (lambda: aiot([(1, 1, 1)] * 2, MACHINE), "topology: compute: has 1 entries; give one for each of 2 jobs"),
        (lambda: aiot([(1, 1, 1)], MACHINE | {"behind": [(0, 2)]}), "topology: behind: is 2"),
        (lambda: aiot([(1, 1, 1)], MACHINE | {"behind": 3}), "topology: behind: is not a list"),
        (lambda: aiot([(1, 1, 1)], MACHINE | {"compute": 3}), "topology: compute: is not a list"),
        (lambda: xie("summit", 1, 1, 1), "system: is 'summit'; known are cetus, titan"),
        (lambda: xie("cetus", 1, 1, 1, 4), "W: is given; leave it out"),
        (lambda: xie("titan", 0, 1, 1), "n: is 0; give whole numbers above 0"),
        (lambda: xie("titan", [1, 2], [1, 2, 3], 1), "n, m, K, W: have the shapes"),
        (lambda: vani_profile("/nowhere/at/all"), "no such file"),
    ],
)  # fmt: skip
def test_invalid_figures_are_refused_with_a_message(call, said):
    with pytest.raises(InputError, match=said):
        call()


@pytest.mark.parametrize(("changing", "right"), [(0, 1.0), (1, 0.875)])
def test_markov_chain_predicts_ior_as_tarazu_describes_it(changing, right):
    """Section 5.5.1 prints 95.5 % for IOR, without the sequence; runs of IOR create files of one size for each rank.

    If one of eight ranks writes a random size each time, its sizes cannot be predicted, and the others still are.
    """
    random = np.random.default_rng(62)

    def run() -> Creations:
        ranks = np.tile(np.arange(8), 16)
        sizes = np.where(ranks < changing, random.integers(1, 1 << 40, len(ranks)), 1 << 30)
        return Creations(sizes, ranks, np.zeros(len(ranks), np.int64))

    past, following = [run() for _ in range(6)], run()
    nothing = Creations(*(np.empty(0, np.int64) for _ in range(3)))
    foreseen = PREDICTORS["markov"].predict(past, nothing, None)
    order = np.lexsort((following.nth, following.ranks))
    expected = foreseen.sizes[np.argsort(foreseen.ranks, kind="stable")]
    assert np.mean(np.abs(expected / following.sizes[order] - 1) <= 0.01) == right


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [32, 256])
def test_generated_traces_of_cosmoflow_s_nodes_are_profiled(tmp_path, nodes):
    """Figure 7 scales 32 to 256 nodes, with four processes on each, over the same files."""
    processes, files = 4 * nodes, 4_096

    def calls(rank: int) -> list[Call]:
        own = range(rank, files, processes)
        steps = [step for file in own for step in (
            ("open", (f"/p/gpfs1/data/{file:05}.h5", "0", "438")),
            ("pread", (f"/p/gpfs1/data/{file:05}.h5", "%p", "4096", "0")),
            ("close", (f"/p/gpfs1/data/{file:05}.h5",)),
        )]
        return [Call(name, args, start=1000 * at, end=1000 * at + 400) for at, (name, args) in enumerate(steps)]

    write_trace(tmp_path / "cosmoflow", [calls(rank) for rank in range(processes)], layout="3.0")
    profile = vani.profile(tmp_path / "cosmoflow")
    assert profile.workflow.processes == processes
    assert (profile.workflow.io.ops.read, profile.workflow.io.bytes.read) == (files, 4096 * files)
    assert (profile.workflow.files.total, profile.workflow.files.shared) == (files, 0)
