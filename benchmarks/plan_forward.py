"""`python -m benchmarks.plan_forward`: plans of I/O nodes compared with Bez et al., IPDPS 2021, as tables.

They are table 4 from the paper's printed points, the 10,000 sets of 16 patterns of section 3.2 from the bundled
measurements of MareNostrum 4, the queue of section 5.3, and the time that a plan takes. The variant with the best
repetitions needs `../shared/data/forge-mn4`, and is left out without it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from benchmarks import plan_replay
from vani.centre import plan_forward
from vani.centre.plan.io_node_shares import Items, nearest_legal, optima, rounded
from vani.centre.plan.schema.jobs import Jobs
from vani.models.forwarding import measured
from vani.units import MiB

RUNS = Path(__file__).resolve().parents[2] / "shared" / "data" / "forge-mn4" / "forge_mn4_scenarios.csv"
SIX_JOBS = Path(__file__).resolve().parents[1] / "examples" / "plan" / "six-jobs.yaml"

COUNTS = (0, 1, 2, 4, 8)
"""Numbers of I/O nodes of every pattern; all have 8, 16 or 32 nodes, which are divisible by each of these."""
POOLS = tuple(range(8, 129, 8))
SETS, SIZE, SEED = 10_000, 16, 1

TABLE_4 = {
    "static": ({"BT-C": 1, "BT-D": 2, "IOR-MPI": 1, "POSIX-L": 2, "MAD": 1, "S3D": 2}, 1478.0),
    "mckp": ({"BT-C": 0, "BT-D": 1, "IOR-MPI": 8, "POSIX-L": 2, "MAD": 0, "S3D": 0}, 6791.9),
}
"""I/O nodes by job, and the sum of bandwidths in MB/s."""
OVER_STATIC = {24: 5.11, 56: 3.11, 64: 2.7, 128: 1.6}
"""Medians of MCKP / STATIC by pool, from figure 3 and its text."""
RANGES = {24: (1.03, 15.06), 56: (1.0408, 8.3922)}
"""Minimum and maximum of that ratio by pool, from the text of section 3.2."""
FIGURE_1 = {
    "A": (32, 1536, "fpp", "contiguous", 1024), "B": (32, 1536, "fpp", "contiguous", 128),
    "C": (32, 1536, "shared", "contiguous", 1024), "D": (16, 192, "shared", "strided", 128),
    "E": (8, 192, "shared", "strided", 1024), "F": (16, 384, "shared", "contiguous", 128),
    "G": (32, 384, "shared", "strided", 512), "H": (8, 384, "shared", "contiguous", 4096),
}  # fmt: skip
"""Table 2: nodes, processes, layout, order and request size in KiB of each pattern in figure 1."""


@dataclass(frozen=True)
class Study:
    """Bandwidths of the sets, each of shape (sets,) or (pools, sets), in the unit of the curves."""

    zero: np.ndarray
    one: np.ndarray
    oracle: np.ndarray
    mckp: np.ndarray
    static: np.ndarray
    process: np.ndarray
    over: np.ndarray
    """Share of sets in which STATIC assigns more than the pool, by pool."""
    rounded_over: np.ndarray
    """The same for its numbers before rounding to the nearest legal one."""

    @property
    def over_static(self) -> np.ndarray:
        """MCKP / STATIC, shape (pools, sets)."""
        return self.mckp / self.static

    @property
    def reaches_oracle(self) -> int:
        """The first pool of the grid with which the median set reaches the bandwidth of ORACLE."""
        # Rates are solved in whole bytes per second.
        reached = np.median(self.mckp / self.oracle, axis=1) > 1 - 1e-6
        return POOLS[int(np.argmax(reached))]


def study(
    curves: np.ndarray,
    nodes: Sequence[int],
    sets: int = SETS,
    seed: int = SEED,
    processes: Sequence[int] | None = None,
) -> Study:
    """Draw sets of patterns and share every pool among them; `curves` has a row per pattern and a column per count.

    Without `processes`, PROCESS equals STATIC.
    """
    processes = nodes if processes is None else processes
    random = np.random.default_rng(seed)
    drawn = [random.choice(len(curves), SIZE, replace=False) for _ in range(sets)]
    weights = np.array(COUNTS)
    items = [Items(weights, np.round(row).astype(np.int64)) for row in curves]
    best = curves.max(axis=1)
    mckp, static, process, over, rounded_over = (np.zeros((len(POOLS), sets)) for _ in range(5))
    for number, one in enumerate(drawn):
        values = optima([items[n] for n in one], POOLS[-1]).values
        mckp[:, number] = values[list(POOLS)]
        total, all_processes = sum(nodes[n] for n in one), sum(processes[n] for n in one)
        for row, pool in enumerate(POOLS):
            process[row, number] = sum(
                curves[n, COUNTS.index(_share(pool, processes[n], all_processes)[1])] for n in one
            )
            shares = [_share(pool, nodes[n], total) for n in one]
            static[row, number] = sum(
                curves[n, COUNTS.index(legal)] for n, (_, legal) in zip(one, shares, strict=True)
            )
            rounded_over[row, number] = sum(share for share, _ in shares) > pool
            over[row, number] = sum(legal for _, legal in shares) > pool
    return Study(
        np.array([curves[one, 0].sum() for one in drawn]),
        np.array([curves[one, 1].sum() for one in drawn]),
        np.array([best[one].sum() for one in drawn]),
        mckp,
        static,
        process,
        over.mean(axis=1),
        rounded_over.mean(axis=1),
    )


_SHARES: dict[tuple[int, int, int], tuple[int, int]] = {}


def _share(pool: int, nodes: int, total: int) -> tuple[int, int]:
    """STATIC's number, rounded and legal, as in `vani plan forward`; cached, since sets are similar."""
    key = (pool, nodes, total)
    if key not in _SHARES:
        share = rounded(Fraction(pool * nodes, total), "half-up")
        _SHARES[key] = share, nearest_legal(share, COUNTS)
    return _SHARES[key]


def means() -> tuple[np.ndarray, list[int]]:
    """Means over repetitions in bytes per second, and compute nodes, of the 189 patterns."""
    return (
        np.array([[one.curve[n].mean for n in COUNTS] for one in measured()]),
        [one.pattern.nodes for one in measured()],
    )


def best_repetitions() -> tuple[np.ndarray, list[int]] | None:
    """The same for the best repetition of each; None without the single runs."""
    if not RUNS.is_file():
        return None
    found: dict[str, dict[int, float]] = {}
    nodes: dict[str, int] = {}
    with RUNS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["scenario"], {})[int(row["io_nodes"])] = float(row["bw_max"]) * MiB
            nodes[row["scenario"]] = int(row["compute_nodes"])
    return np.array([[curve[n] for n in COUNTS] for curve in found.values()]), list(nodes.values())


def best_over_mean() -> dict[int, float]:
    """Median over patterns of the best repetition relative to the mean, by number of I/O nodes."""
    found: dict[int, list[float]] = {}
    with RUNS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(int(row["io_nodes"]), []).append(float(row["bw_max"]) / float(row["bw_mean"]))
    return {n: statistics.median(found[n]) for n in COUNTS}


def random_jobs(count: int, pool: int, seed: int = SEED) -> list[Items]:
    """Classes of jobs with a power of two of nodes, each with all legal numbers up to the pool."""
    random = np.random.default_rng(seed)
    weights = np.array([0, *(1 << n for n in range(pool.bit_length()))])
    return [Items(weights, random.integers(1, 10**10, len(weights))) for _ in range(count)]


def solver_seconds(jobs: int = 512, pool: int = 256, repeat: int = 9) -> float:
    """Median time to compute the optimum of every pool up to `pool`, with the choice of each job."""
    classes = random_jobs(jobs, pool)
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        optima(classes, pool).at(pool)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def print_table_4() -> None:
    """Print six jobs on 12 I/O nodes, ours next to the paper's."""
    jobs = Jobs.load(SIX_JOBS)
    plans = {
        policy: plan_forward(jobs, io_nodes=12, policy=policy) for policy in ("static", "process", "mckp")
    }
    print("Table 4: 12 I/O nodes, number: MB/s (paper)")
    for number, job in enumerate(jobs.jobs):
        cells = []
        for policy, found in plans.items():
            got = found.jobs[number]
            paper = f" ({TABLE_4[policy][0][job.name]})" if policy in TABLE_4 else ""
            cells.append(f"{policy} {got.io_nodes}{paper}: {(got.bandwidth or 0) / 1e6:,.1f}")
        print(f"  {job.name:8} " + "   ".join(cells))
    best = plans["mckp"].after.bandwidth
    for policy, found in plans.items():
        paper = f" (paper {TABLE_4[policy][1]:,.1f})" if policy in TABLE_4 else ""
        total = found.after.bandwidth
        print(f"  {policy:8} {total / 1e6:8,.1f}{paper}, mckp is {best / total:.2f} times that")


def print_figure_1() -> None:
    """Print bandwidths of the eight patterns of table 2, which the figure plots without numbers."""
    print("\nFigure 1, table 2: GB/s by I/O nodes, mean of repetitions and (their standard deviation)")
    for name, (nodes, processes, layout, order, kib) in FIGURE_1.items():
        (curve,) = (
            one.curve
            for one in measured()
            if (one.pattern.nodes, one.pattern.processes, one.pattern.layout, one.pattern.request)
            == (nodes, processes, layout, kib << 10)
            and (layout == "fpp" or one.pattern.order == order)
        )
        best = max(COUNTS, key=lambda n: curve[n].mean)
        cells = (f"{n}: {curve[n].mean / 1e9:.2f} ({curve[n].deviation / 1e9:.2f})" for n in COUNTS)
        print(f"  {name}  {'   '.join(cells)}   best with {best}")


def print_figure_2(found: Study) -> None:
    """Print medians of the sums of bandwidths, which the figure plots without numbers."""
    print("  figure 2: medians over the sets, GB/s (STATIC is SIZE: all nodes of a set are the system's)")
    print("  pool     ZERO      ONE   STATIC  PROCESS     MCKP   ORACLE")
    for row, pool in enumerate(POOLS):
        sums = (found.zero, found.one, found.static[row], found.process[row], found.mckp[row], found.oracle)
        print(f"  {pool:4} " + " ".join(f"{np.median(some) / 1e9:8.2f}" for some in sums))


def print_study(
    title: str, curves: np.ndarray, nodes: Sequence[int], sets: int, processes: Sequence[int] | None = None
) -> None:
    """Print section 3.2 and figures 2 and 3 for one variant of the measurements."""
    best = Counter(COUNTS[n] for n in curves.argmax(axis=1))
    print(f"\n{title}; best number of I/O nodes: " + ", ".join(f"{n}: {best[n]}" for n in COUNTS))
    found = study(curves, nodes, sets, processes=processes)
    gain = found.oracle / found.zero - 1
    print(f"  ONE is {1 - np.median(found.one / found.zero):.2%} slower than ZERO (paper 82.11 %)")
    print(
        f"  ORACLE is {np.median(gain):.2%} faster than ZERO, {gain.min():.2%} to {gain.max():.2%} "
        "(paper 25.63 %, 0.83 % to 121.68 %)"
    )
    print(f"  the median set reaches ORACLE at {found.reaches_oracle} I/O nodes (paper 56)")
    ratio = found.over_static
    medians = np.median(ratio, axis=1)
    print(f"  MCKP / STATIC is largest at {POOLS[int(medians.argmax())]} I/O nodes (paper 24)")
    for pool, (low, high) in RANGES.items():
        ours = ratio[POOLS.index(pool)]
        print(
            f"  figure 3: with {pool} I/O nodes {ours.min():.2f} to {ours.max():.2f} times "
            f"(paper {low:.2f} to {high:.2f})"
        )
    print(f"  mean over all pools {ratio.mean():.2f} (paper 2.6), most {ratio.max():.2f} (paper 23.75)")
    least = ratio.min()
    print(f"  it is {least:.4f} at least, {'never' if least >= 1 else 'sometimes'} below 1 (paper: never)")
    apart = [medians[POOLS.index(pool)] / paper - 1 for pool, paper in OVER_STATIC.items()]
    print(
        "  its medians differ from the paper's by "
        + ", ".join(f"{one:+.1%} at {pool}" for pool, one in zip(OVER_STATIC, apart, strict=True))
        + " (at most 8 %)"
    )
    over = found.rounded_over[POOLS.index(24) :]
    print(
        f"  rounded shares by size exceed the pool in {over.min():.0%} to {over.max():.0%} of the sets from 24 on"
    )
    print(
        "  pool   MCKP / STATIC: median (paper)    least     most   STATIC exceeds the pool (before legal numbers)"
    )
    for row, pool in enumerate(POOLS):
        paper = f"({OVER_STATIC[pool]:.2f})" if pool in OVER_STATIC else ""
        print(
            f"  {pool:4}   {medians[row]:21.2f} {paper:7} {ratio[row].min():8.2f} {ratio[row].max():8.2f}"
            f"   {found.over[row]:.0%} ({found.rounded_over[row]:.0%})"
        )
    if processes is not None:
        print_figure_2(found)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plan_forward", description=__doc__)
    parser.add_argument("--sets", type=int, default=SETS, help="sets of 16 patterns (default: %(default)s)")
    asked = parser.parse_args(arguments)
    print_table_4()
    print_figure_1()
    processes = [one.pattern.processes for one in measured()]
    print_study("Means of repetitions", *means(), asked.sets, processes)
    runs = best_repetitions()
    if runs is not None:
        print_study("Best repetitions (misleading)", *runs, asked.sets)
        print(
            "  misleading: the best repetition is "
            + ", ".join(f"{times:.2f} times the mean with {n}" for n, times in best_over_mean().items())
            + " I/O nodes, in the median; direct access scatters most, and a best run is no run to reckon with"
        )
    print()
    plan_replay.main()
    print(
        f"\n512 jobs, 256 I/O nodes: {solver_seconds() * 1e3:.1f} ms (at most 50; the paper's solver 2.7 s)"
    )


if __name__ == "__main__":
    main()
