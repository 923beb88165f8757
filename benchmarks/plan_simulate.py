"""`python -m benchmarks.plan_simulate`: simulations compared with linear programs, measurements and exact runs.

`--fast` leaves out the large run, and table 6 at 2,048 nodes and more.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.data import print_table, run
from tests.plan.linear_programs import largest_difference, random_usage
from tests.plan.published import (
    LOCK_S,
    PIECES,
    STAGES,
    Point,
    locked_writes,
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
    jobs = []
    for number in range(100):
        start, size = float(random.uniform(0, 60)), float(random.uniform(1e9, 3e10) * processes)
        phase = {"operation": "write", "bytes": size, "layout": 8, "opens": 0}
        job = {"name": f"job-{number}", "nodes": max(1, processes // 8), "processes": processes}
        jobs.append(job | {"start_s": start, "phases": [phase]})
    machine = {
        "node": 12e9, "io_nodes": 450, "io_node": 20e9, "servers": 450, "server": 6e9, "targets": OSTS,
        "target": 0.8e9, "metadata": 5e4,
    }  # fmt: skip
    return Scenario.model_validate({"machine": machine, "workload": jobs, "placement": {"policy": "random"}})


def simulated(scenario: Scenario, tolerance: float | None) -> tuple[SimulatedRun, float]:
    """One run, and its processor time in seconds."""
    begin = time.process_time()
    (_, found), = play(scenario, Variant(name="crowd"), Named(), tolerance=tolerance).runs  # fmt: skip
    return found, time.process_time() - begin


def fitted() -> tuple[np.ndarray, float, float]:
    """Rates that fit table 6 if stages overlap, by the formula behind it: metadata, node, target.

    T = nodes / metadata + max(a file through its node, the fullest target). Also returns the mean error of the fit,
    and that of each point with the rates fitted to the eight others.
    """
    from scipy.optimize import minimize  # noqa: PLC0415

    rows = np.array(published()["table_6"]["rows"], dtype=float)
    random = np.random.default_rng(0)
    fullest = {
        nodes: np.mean([
            np.bincount(random.random((int(nodes), 1008)).argpartition(4, axis=1)[:, :4].ravel()).max()
            for _ in range(5)
        ])
        for nodes in set(rows[:, 1])
    }  # fmt: skip

    def errors(logs: np.ndarray, some: np.ndarray) -> np.ndarray:
        metadata, node, target = np.exp(logs)
        moved, nodes, measured = some[:, 0] * 1e6, some[:, 1], some[:, 2] * 1e9
        on_target = np.array([fullest[n] for n in nodes]) * moved / 4 / target
        return nodes * moved / (nodes / metadata + np.maximum(moved / node, on_target)) / measured - 1

    def fit(some: np.ndarray) -> np.ndarray:
        starts = ((4050, 640e6, 379e6), (8000, 400e6, 260e6), (6000, 260e6, 300e6))
        options = {"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9}
        tried = [
            minimize(
                lambda logs: np.abs(errors(logs, some)).mean(), np.log(start), method="Nelder-Mead", options=options
            )
            for start in starts
        ]
        return min(tried, key=lambda one: one.fun).x

    best = fit(rows)
    left_out = [errors(fit(np.delete(rows, n, axis=0)), rows[n : n + 1]) for n in range(len(rows))]
    return np.exp(best), float(np.abs(errors(best, rows)).mean()), float(np.abs(left_out).mean())


def print_rates() -> None:
    """Progressive filling next to a sequence of linear programs."""
    worst = max(largest_difference(*random_usage(seed)) for seed in range(NETWORKS))
    print(
        f"{NETWORKS} random networks: rates differ from linear programs (HiGHS) by {worst:.1e} of the largest at most"
    )


def print_points(title: str, columns: dict[str, list[Point]], other: str = "") -> None:
    """Measured and simulated bandwidth, a row for each point."""
    first = next(iter(columns.values()))
    rows = [
        (points[0].name, f"{points[0].measured / 1e9:.2f}",
         *(f"{point.simulated / 1e9:.2f} ({point.error:+.1%})" for point in points),
         *([f"{points[0].other / 1e9:.2f} ({points[0].other_error:+.1%})"] if other else []))
        for points in zip(*columns.values(), strict=True)
    ]  # fmt: skip
    means = [*map(mean_error, columns.values()), *([mean_error(first, other=True)] if other else [])]
    rows.append(("mean error", "", *(f"{mean:.1%}" for mean in means)))
    print_table(f"{title}, GB/s", ("", "measured", *columns, *([other] if other else [])), rows)


def print_ratios() -> None:
    """Section 6.4 of Tarazu for three interpretations of its LSA, and for other bottlenecks."""
    testbed = load_system("tarazu-testbed")
    cases = [(pieces, policy, "", {}) for pieces in PIECES for policy in POLICIES]
    cases += [
        (pieces, "random_start", name, {"rates": rates})
        for name, rates in OTHER_BOTTLENECKS.items()
        for pieces in PIECES
    ]
    rows = []
    for pieces, policy, name, more in cases:
        found = read_ratios(testbed, pieces=pieces, policy=policy, **more)
        some = (found.read,) if more else (found.read, found.write, found.ost_cost)
        cells = [f"{one.min():.2f} to {one.max():.2f} ({np.median(one):.2f})" for one in some]
        rows.append((pieces, policy, *cells, *[""] * (3 - len(cells)), name))
    title = "Tarazu, section 6.4: balanced over LSA, range and median over 30 seeds (paper: read 1.43, write 0.93)"
    print_table(title, ("pieces", "LSA", "read", "write", "OST Cost", ""), rows, left=2)
    write = locked_writes(testbed, LOCK_S)
    print(
        f"  One shared file per job, written from two nodes with locks of {1e3 * LOCK_S:g} ms: write "
        f"{write.min():.2f} to {write.max():.2f}; both placements have the same objects, and so the same locks."
    )


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
        print(f"  10,000 flows, tolerance {TOLERANCE:.1%}: {found.events:,} events, {seconds:.1f} s (at most 60)")


def main(*, fast: bool = False) -> None:
    """Print all tables."""
    print_rates()
    most = 1024 if fast else 4096
    titan, tianhe = load_system("titan"), load_system("tianhe-prototype")
    table = {name: table_6(titan, stages=name, most_nodes=most) for name in STAGES}
    print_points("Tarazu, table 6 (Titan), means of 3 seeds", table, "the paper's")
    (metadata, node, target), mean, left_out = fitted()
    print(
        f"  overlapped, fitted by formula: {metadata:,.0f} opens/s, node {node / 1e6:.1f} MB/s, target "
        f"{target / 1e6:.1f} MB/s; mean error {mean:.1%}, {left_out:.1%} with each point left out of the fit"
    )
    sweep = {name: oprael(tianhe, stages=name) for name in STAGES}
    print_points("OPRAEL, stripe sweep (Tianhe prototype)", sweep)
    print_ratios()
    print_tolerance(fast=fast)


if __name__ == "__main__":
    run(main)
