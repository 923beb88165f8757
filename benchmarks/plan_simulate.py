"""`python -m benchmarks.plan_simulate`: simulations compared with linear programs, measurements and exact runs.

`--fast` leaves out the large run, and table 6 at 2,048 nodes and more.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np

from tests.plan.linear_programs import largest_difference, random_usage
from tests.plan.published import (
    PIECES,
    STAGES,
    Point,
    mean_error,
    oprael,
    published,
    read_ratios,
    table_6,
)
from vani.centre.plan.schema.scenario import Scenario, Variant
from vani.centre.plan.simulate.events import SimulatedRun
from vani.centre.plan.simulate.simulate import TOLERANCE, Named, play
from vani.systems import load_system

NETWORKS = 300
POLICIES = ("random_start", "random", "round_robin")
OSTS = 3600
OTHER_BOTTLENECKS = {
    "servers hold back, not targets": {"server": 612e6 / 7},
    "the two client nodes hold back, too": {"target": 50e6, "node": 306e6},
}
"""Other possible bottlenecks of the testbed in section 6.4, whose rates are not published."""


def crowd(flows: int, seed: int = 1) -> Scenario:
    """A hundred jobs that start within a minute and write one file per process to eight of 3,600 targets."""
    random = np.random.default_rng(seed)
    processes = flows // 100
    jobs = [
        {
            "name": f"job-{number}",
            "nodes": max(1, processes // 8),
            "processes": processes,
            "start_s": float(random.uniform(0, 60)),
            "phases": [
                {
                    "operation": "write",
                    "bytes": float(random.uniform(1e9, 3e10) * processes),
                    "layout": 8,
                    "opens": 0,
                }
            ],
        }
        for number in range(100)
    ]
    machine = {
        "node": 12e9,
        "io_nodes": 450,
        "io_node": 20e9,
        "servers": 450,
        "server": 6e9,
        "targets": OSTS,
        "target": 0.8e9,
        "metadata": 5e4,
    }
    return Scenario.model_validate({"machine": machine, "workload": jobs, "placement": {"policy": "random"}})


def simulated(scenario: Scenario, tolerance: float | None) -> tuple[SimulatedRun, float]:
    """One run, and its processor time in seconds."""
    begin = time.process_time()
    (_, found), = play(scenario, Variant(name="crowd"), Named(), tolerance=tolerance).runs  # fmt: skip
    return found, time.process_time() - begin


def fitted() -> tuple[tuple[float, float, float], float, float]:
    """Rates that fit table 6 if stages overlap, by the formula behind it: metadata, node, target.

    T = nodes / metadata + max(a file through its node, the fullest target). Also returns the mean error of the fit,
    and that of each point with the rates fitted to the eight others.
    """
    from scipy.optimize import minimize  # noqa: PLC0415

    rows = published()["table_6"]["rows"]
    random = np.random.default_rng(0)
    fullest = {
        nodes: np.mean(
            [
                np.bincount(random.random((nodes, 1008)).argpartition(4, axis=1)[:, :4].ravel()).max()
                for _ in range(5)
            ]
        )
        for nodes in {row[1] for row in rows}
    }

    def errors(logs: Sequence[float], some: Sequence[Sequence[float]]) -> list[float]:
        metadata, node, target = np.exp(logs)
        found = []
        for size, nodes, measured, _ in some:
            seconds = nodes / metadata + max(size * 1e6 / node, fullest[nodes] * size * 1e6 / 4 / target)
            found.append(nodes * size * 1e6 / seconds / 1e9 / measured - 1)
        return found

    def fit(some: Sequence[Sequence[float]]) -> np.ndarray:
        starts = ((4050, 640e6, 379e6), (8000, 400e6, 260e6), (6000, 260e6, 300e6))
        tried = [
            minimize(
                lambda logs: float(np.mean(np.abs(errors(logs, some)))),
                np.log(start),
                method="Nelder-Mead",
                options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9},
            )
            for start in starts
        ]
        return min(tried, key=lambda one: one.fun).x

    best = fit(rows)
    left_out = [errors(fit([*rows[:n], *rows[n + 1 :]]), [row])[0] for n, row in enumerate(rows)]
    metadata, node, target = np.exp(best)
    return (
        (float(metadata), float(node), float(target)),
        float(np.mean(np.abs(errors(best, rows)))),
        float(np.mean(np.abs(left_out))),
    )


def print_rates() -> None:
    """Progressive filling next to a sequence of linear programs."""
    worst = max(largest_difference(*random_usage(seed)) for seed in range(NETWORKS))
    print(
        f"{NETWORKS} random networks: rates differ from linear programs (HiGHS) by {worst:.1e} of the largest at most"
    )


def print_points(title: str, columns: dict[str, list[Point]], other: str) -> None:
    """Measured and simulated bandwidth, a row for each point."""
    first = next(iter(columns.values()))
    print(f"\n{title}, GB/s\n  {'':20} measured  " + "  ".join(f"{name:>18}" for name in (*columns, other)))
    for number, point in enumerate(first):
        cells = [
            f"{some[number].simulated / 1e9:9.2f} ({some[number].error:+6.1%})" for some in columns.values()
        ]
        cells.append(f"{point.other / 1e9:9.2f} ({point.other_error:+6.1%})")
        print(f"  {point.name:20} {point.measured / 1e9:8.2f}  " + "  ".join(f"{cell:>18}" for cell in cells))
    means = [mean_error(some) for some in columns.values()] + [mean_error(first, other=True)]
    print(f"  {'mean error':20} {'':8}  " + "  ".join(f"{mean:>18.1%}" for mean in means))


def print_ratios() -> None:
    """Section 6.4 of Tarazu for three interpretations of its LSA."""
    testbed = load_system("tarazu-testbed")
    print(
        "\nTarazu, section 6.4: balanced over LSA, range and median over 30 seeds (paper: read 1.43, write 0.93)"
    )
    for pieces in PIECES:
        for policy in POLICIES:
            found = read_ratios(testbed, pieces=pieces, policy=policy)
            cells = [
                f"{name} {some.min():.2f} to {some.max():.2f} ({np.median(some):.2f})"
                for name, some in (("read", found.read), ("write", found.write), ("OST Cost", found.ost_cost))
            ]
            print(f"  pieces {pieces:10}  LSA {policy:12}  " + "   ".join(cells))
    for name, rates in OTHER_BOTTLENECKS.items():
        for pieces in PIECES:
            found = read_ratios(testbed, pieces=pieces, policy="random_start", rates=rates)
            low, middle, high = np.quantile(found.read, [0, 0.5, 1])
            print(
                f"  pieces {pieces:10}  LSA random_start  read {low:.2f} to {high:.2f} ({middle:.2f})   {name}"
            )
    print("  Writes: locks of many writers on a small testbed are no part of a fluid.")


def print_tolerance(*, fast: bool) -> None:
    """End times with a tolerance next to exact ones, and the processor time of the largest run."""
    print(f"\nFlows on {OSTS:,} OSTs")
    exact, seconds = simulated(crowd(1000), 0.0)
    print(f"   1,000 flows, exact: {exact.events:,} events, {seconds:.1f} s")
    for tolerance in (TOLERANCE, 2 * TOLERANCE):
        near, seconds = simulated(crowd(1000), tolerance)
        off = np.abs(near.flow_end / exact.flow_end - 1)
        print(
            f"   1,000 flows, tolerance {tolerance:.1%}: {near.events:,} events, {seconds:.1f} s, ends differ by "
            f"{off.max():.2%} at most, {off.mean():.3%} in the mean"
        )
    if not fast:
        found, seconds = simulated(crowd(10_000), None)
        print(
            f"  10,000 flows, tolerance {TOLERANCE:.1%}: {found.events:,} events, {seconds:.1f} s (at most 60)"
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_simulate", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave out what takes minutes")
    fast = parser.parse_args(arguments).fast
    print_rates()
    titan, tianhe = load_system("titan"), load_system("tianhe-prototype")
    most = 1024 if fast else 4096
    print_points(
        "Tarazu, table 6 (Titan), means of 3 seeds",
        {name: table_6(titan, stages=name, most_nodes=most) for name in STAGES},
        "the paper's",
    )
    rates, mean, left_out = fitted()
    print(
        f"  overlapped, fitted by formula: {rates[0]:,.0f} opens/s, node {rates[1] / 1e6:.1f} MB/s, target "
        f"{rates[2] / 1e6:.1f} MB/s; mean error {mean:.1%}, {left_out:.1%} with each point left out of the fit"
    )
    print_points(
        "OPRAEL, stripe sweep (Tianhe prototype)",
        {name: oprael(tianhe, stages=name) for name in STAGES},
        "contention model",
    )
    print_ratios()
    print_tolerance(fast=fast)


if __name__ == "__main__":
    main()
