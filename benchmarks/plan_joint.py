"""`python -m benchmarks.plan_joint`: paths of jobs one after the other compared with all at once, as tables.

`vani plan path` serves the jobs in the order of submission: each gets the best of what is left. The optimum for all
jobs at once is a mixed integer program (HiGHS): the most bytes, or the largest mean share of demands, which favours
small demands. On small machines a test compares it with every possible mapping.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import combinations_with_replacement, permutations, product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.plan_path import SEED, jobs_of, machine, planned
from vani.centre.plan.path_layers import Network, network_of
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.snapshot import Snapshot

COUNT = 60
ORDERS = 6
LESS = 1e-4
"""Difference of mean shares below which two plans count as equal."""


def instance(random: np.random.Generator, *, small: bool = False) -> tuple[Snapshot, list[int], list[float]]:
    """A machine of limited reach, and the compute nodes and bytes per second of its jobs."""
    forwarding, storage, jobs, most = (3, 2, 2, 3) if small else (8, 6, 5, 64)
    fwd, sns = int(random.integers(2, forwarding + 1)), int(random.integers(1, storage + 1))
    reach = {f"fwd{n}": [f"sn{k}" for k in np.flatnonzero(random.random(sns) < 0.5)] for n in range(fwd)}
    reach["fwd0"] = reach["fwd0"] or ["sn0"]
    snapshot = machine(fwd, sns, 2, random.choice([0.0, 0.2, 0.5, 0.8], fwd + sns * 2), reach)
    nodes = random.integers(1, most + 1, int(random.integers(2, jobs + 1)))
    rates = random.uniform(0.2, 1.5, len(nodes)) * fwd * 2.5e9 / len(nodes)
    return snapshot, nodes.tolist(), rates.tolist()


def best_at_once(
    network: Network,
    nodes: Sequence[int],
    rates: Sequence[float],
    counts: Sequence[Sequence[int]] | None = None,
    *,
    weights: Sequence[float] | None = None,
) -> float:
    """The largest mean of the carried shares, with equal weights by default.

    `counts` fixes the numbers of compute nodes by job and forwarding node.
    """
    weights = np.full(len(nodes), 1 / len(nodes)) if weights is None else np.asarray(weights)
    room = np.where(network.forwarding.usable, network.forwarding.room[:, 0], 0.0)
    targets = np.where(network.ost.usable, network.ost.room[:, 0], 0.0)
    behind = np.array(
        [
            min(float(free), float(targets[some].sum())) * usable
            for free, some, usable in zip(
                network.storage.room[:, 0], network.behind, network.storage.usable, strict=True
            )
        ]
    )
    fwd, jobs = len(room), len(nodes)
    pairs = [
        (job, n, int(node))
        for job in range(jobs)
        for n in range(fwd)
        for node in network.reach[network.groups[n]]
    ]
    width = jobs * fwd + len(pairs)
    all_nodes, own, of_forwarder, of_storage = (
        np.zeros((rows, width)) for rows in (jobs, jobs * fwd, fwd, len(behind))
    )
    for job, n in product(range(jobs), range(fwd)):
        all_nodes[job, job * fwd + n] = 1
        own[job * fwd + n, job * fwd + n] = -1 / nodes[job]
    for column, (job, n, node) in enumerate(pairs, start=jobs * fwd):
        # Flows are shares of the job's demand.
        own[job * fwd + n, column] = 1
        of_forwarder[n, column] = of_storage[node, column] = rates[job] / 1e9
    least, most = np.zeros(width), np.ones(width)
    most[: jobs * fwd] = np.repeat(nodes, fwd)
    if counts is not None:
        least[: jobs * fwd] = most[: jobs * fwd] = np.ravel(counts)
    answer = milp(
        np.concatenate([np.zeros(jobs * fwd), -weights[[job for job, *_ in pairs]]]),
        integrality=np.concatenate([np.ones(jobs * fwd), np.zeros(len(pairs))]),
        bounds=Bounds(least, most),
        constraints=[
            LinearConstraint(all_nodes, nodes, nodes),
            LinearConstraint(own, -np.inf, 0),
            LinearConstraint(of_forwarder, -np.inf, room / 1e9),
            LinearConstraint(of_storage, -np.inf, behind / 1e9),
        ],
        options={"node_limit": 20_000},
    )
    return float(-answer.fun)


def best_of_all(network: Network, nodes: Sequence[int], rates: Sequence[float]) -> float:
    """The same by trying every mapping of every job, for few compute nodes."""
    fwd = len(network.forwarding.names)
    ways = [
        [np.bincount(some, minlength=fwd) for some in combinations_with_replacement(range(fwd), count)]
        for count in nodes
    ]
    return max(best_at_once(network, nodes, rates, np.array(counts)) for counts in product(*ways))


def carried_of(snapshot: Snapshot, nodes: Sequence[int], rates: Sequence[float]) -> np.ndarray:
    """Shares that a plan carries by job, counting only bytes."""
    return np.array([job.met for job in planned(bytes_alone(nodes, rates), snapshot).jobs])


def bytes_alone(nodes: Sequence[int], rates: Sequence[float]) -> Jobs:
    """Jobs that demand bytes and no operations."""
    jobs = jobs_of(nodes, rates)
    return jobs.model_copy(
        update={
            "jobs": [
                job.model_copy(update={"demand": job.demand.model_copy(update={"iops": 0.0, "mdops": 0.0})})
                for job in jobs.jobs
            ]
        }
    )


def in_other_orders(
    snapshot: Snapshot, nodes: Sequence[int], rates: Sequence[float], random: np.random.Generator
) -> float:
    """The largest mean share of plans that serve the jobs in up to six orders."""
    orders = list(permutations(range(len(nodes))))
    some = [orders[n] for n in random.permutation(len(orders))[:ORDERS]]
    return max(
        float(carried_of(snapshot, [nodes[n] for n in one], [rates[n] for n in one]).mean()) for one in some
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_joint", description=__doc__)
    parser.add_argument(
        "--count", type=int, default=COUNT, help="instances of each kind (default: %(default)s)"
    )
    count = parser.parse_args(arguments).count
    random = np.random.default_rng(SEED)
    print(
        "Jobs one after the other over all at once, on random machines of limited reach, most asked for too much"
    )
    for title, small in (("2 jobs of up to 3 nodes", True), ("2 to 5 jobs of up to 64 nodes", False)):
        rows = []
        for _ in range(count):
            snapshot, nodes, rates = instance(random, small=small)
            network, parts = network_of(snapshot, {"iobw"}), np.array(rates) / sum(rates)
            best, most = (
                best_at_once(network, nodes, rates),
                best_at_once(network, nodes, rates, weights=parts),
            )
            if best > LESS:
                met = carried_of(snapshot, nodes, rates)
                other = in_other_orders(snapshot, nodes, rates, random)
                rows.append((met @ parts / most, met.mean() / best, other / best))
        found = np.array(rows)
        print(f"  {title}, {len(found)} instances")
        for name, ratio in zip(
            ("bytes", "mean share", "mean share, best of six orders"), found.T, strict=True
        ):
            print(
                f"    {name:31} mean {ratio.mean():.3f}, least {ratio.min():.2f}, below the best in "
                f"{(ratio < 1 - LESS).mean():.0%}, above in {(ratio > 1 + LESS).mean():.0%}"
            )


if __name__ == "__main__":
    main()
