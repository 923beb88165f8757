"""`python -m benchmarks.plan_forward`: plans of I/O nodes compared with Bez et al., IPDPS 2021, as tables.

They are table 4 from the paper's printed points, the 10,000 sets of 16 patterns of section 3.2 from the bundled
measurements of MareNostrum 4, the queue of section 5.3, and the time that a plan takes. The variant with the best
repetitions needs `../shared/data/forge-mn4`, and is left out without it. The paper prints few bandwidths of its
queue, so its sums cannot be reproduced: the queue is replayed with curves of MareNostrum 4, whose ratio is shown
next to the paper's.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from benchmarks.data import DATA, ROOT, grouped, print_table, run, seconds
from vani.centre import plan_forward, plan_replay
from vani.centre.plan.io_node_shares import Items, nearest_legal, optima, rounded
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import ReplayPlan
from vani.models.forwarding import measured
from vani.units import MiB

RUNS = DATA / "forge-mn4" / "forge_mn4_scenarios.csv"
SIX_JOBS, QUEUE = (ROOT / "examples" / "plan" / name for name in ("six-jobs.yaml", "queue.yaml"))

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
    random = np.random.default_rng(seed)
    drawn = np.array([random.choice(len(curves), SIZE, replace=False) for _ in range(sets)])
    items = [Items(np.array(COUNTS), np.round(row).astype(np.int64)) for row in curves]
    mckp = np.array([optima([items[n] for n in one], POOLS[-1]).values[list(POOLS)] for one in drawn]).T

    def shared_by(weights: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bandwidths, rounded numbers and legal numbers of sets in each pool, if jobs share by weights."""
        weighed = np.array(weights)[drawn]
        numbers = np.array([
            [[_share(pool, int(own), int(one.sum())) for own in one] for one in weighed] for pool in POOLS
        ])  # fmt: skip
        legal = numbers[..., 1]
        columns = np.searchsorted(COUNTS, legal)
        return curves[drawn, columns].sum(axis=2), numbers[..., 0].sum(axis=2), legal.sum(axis=2)

    static, rounded_numbers, legal = shared_by(nodes)
    process = static if processes is None else shared_by(processes)[0]
    pools = np.array(POOLS)[:, None]
    best = curves.max(axis=1)
    return Study(
        curves[drawn, 0].sum(axis=1), curves[drawn, 1].sum(axis=1), best[drawn].sum(axis=1), mckp, static, process,
        (legal > pools).mean(axis=1), (rounded_numbers > pools).mean(axis=1),
    )  # fmt: skip


@cache
def _share(pool: int, nodes: int, total: int) -> tuple[int, int]:
    """STATIC's number, rounded and legal, as in `vani plan forward`; cached, since sets are similar."""
    share = rounded(Fraction(pool * nodes, total), "half-up")
    return share, nearest_legal(share, COUNTS)


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
    curves = grouped(RUNS, lambda row: row["scenario"], lambda row: (int(row["io_nodes"]), float(row["bw_max"]) * MiB))
    nodes = grouped(RUNS, lambda row: row["scenario"], lambda row: int(row["compute_nodes"]))
    return np.array([[dict(curve)[n] for n in COUNTS] for curve in curves.values()]), [n for n, *_ in nodes.values()]


def best_over_mean() -> dict[int, float]:
    """Median over patterns of the best repetition relative to the mean, by number of I/O nodes."""
    found = grouped(RUNS, lambda row: int(row["io_nodes"]), lambda row: float(row["bw_max"]) / float(row["bw_mean"]))
    return {n: statistics.median(found[n]) for n in COUNTS}


def solver_seconds(jobs: int = 512, pool: int = 256, repeat: int = 9) -> float:
    """Median time to compute the optimum of every pool up to `pool`, with the choice of each job.

    Jobs have a power of two of nodes, and all legal numbers up to the pool.
    """
    random = np.random.default_rng(SEED)
    weights = np.array([0, *(1 << n for n in range(pool.bit_length()))])
    classes = [Items(weights, random.integers(1, 10**10, len(weights))) for _ in range(jobs)]
    return statistics.median(seconds(lambda: optima(classes, pool).at(pool), repeat))


def print_table_4() -> None:
    """Print six jobs on 12 I/O nodes, ours next to the paper's."""
    jobs = Jobs.load(SIX_JOBS)
    plans = {policy: plan_forward(jobs, io_nodes=12, policy=policy) for policy in ("static", "process", "mckp")}
    rows = []
    for number, job in enumerate(jobs.jobs):
        got = [(TABLE_4.get(policy), found.jobs[number]) for policy, found in plans.items()]
        rows.append((job.name, *(
            f"{one.io_nodes}{f' ({paper[0][job.name]})' if paper else ''}: {(one.bandwidth or 0) / 1e6:,.1f}"
            for paper, one in got
        )))  # fmt: skip
    print_table("Table 4: 12 I/O nodes, number (paper): MB/s", ("", *plans), rows)
    best = plans["mckp"].after.bandwidth
    for policy, found in plans.items():
        paper = f" (paper {TABLE_4[policy][1]:,.1f})" if policy in TABLE_4 else ""
        total = found.after.bandwidth
        print(f"  {policy:8} {total / 1e6:8,.1f}{paper}, mckp is {best / total:.2f} times that")


def print_figure_1() -> None:
    """Print bandwidths of the eight patterns of table 2, which the figure plots without numbers."""
    rows = []
    for name, (nodes, processes, layout, order, kib) in FIGURE_1.items():
        (curve,) = (
            one.curve
            for one in measured()
            if (one.pattern.nodes, one.pattern.processes, one.pattern.layout, one.pattern.request)
            == (nodes, processes, layout, kib << 10)
            and (layout == "fpp" or one.pattern.order == order)
        )
        cells = (f"{curve[n].mean / 1e9:.2f} ({curve[n].deviation / 1e9:.2f})" for n in COUNTS)
        rows.append((name, *cells, max(COUNTS, key=lambda n: curve[n].mean)))
    title = "Figure 1, table 2: GB/s by I/O nodes, mean of repetitions and (their standard deviation)"
    print_table(title, ("", *COUNTS, "best with"), rows)


def print_figure_2(found: Study) -> None:
    """Print medians of the sums of bandwidths, which the figure plots without numbers."""
    rows = []
    for row, pool in enumerate(POOLS):
        sums = (found.zero, found.one, found.static[row], found.process[row], found.mckp[row], found.oracle)
        rows.append((pool, *(f"{np.median(some) / 1e9:.2f}" for some in sums)))
    title = "Figure 2: medians over the sets, GB/s (STATIC is SIZE: all nodes of a set are the system's)"
    print_table(title, ("pool", "ZERO", "ONE", "STATIC", "PROCESS", "MCKP", "ORACLE"), rows)


def print_study(
    title: str, curves: np.ndarray, nodes: Sequence[int], sets: int, processes: Sequence[int] | None = None
) -> None:
    """Print section 3.2 and figures 2 and 3 for one variant of the measurements."""
    best = Counter(COUNTS[n] for n in curves.argmax(axis=1))
    print(f"\n{title}; best number of I/O nodes: " + ", ".join(f"{n}: {best[n]}" for n in COUNTS))
    found = study(curves, nodes, sets, processes=processes)
    gain, ratio = found.oracle / found.zero - 1, found.over_static
    medians = np.median(ratio, axis=1)
    apart = (f"{medians[POOLS.index(pool)] / paper - 1:+.1%} at {pool}" for pool, paper in OVER_STATIC.items())
    over = found.rounded_over[POOLS.index(24) :]
    rows = [
        ("ONE is slower than ZERO", f"{1 - np.median(found.one / found.zero):.2%}", "82.11 %"),
        ("ORACLE is faster than ZERO", f"{np.median(gain):.2%}, {gain.min():.2%} to {gain.max():.2%}",
         "25.63 %, 0.83 % to 121.68 %"),
        ("I/O nodes with which the median set reaches ORACLE", found.reaches_oracle, "56"),
        ("I/O nodes with which MCKP / STATIC is largest", POOLS[int(medians.argmax())], "24"),
        *((f"figure 3: MCKP / STATIC with {pool} I/O nodes",
           f"{ratio[POOLS.index(pool)].min():.2f} to {ratio[POOLS.index(pool)].max():.2f}", f"{low:.2f} to {high:.2f}")
          for pool, (low, high) in RANGES.items()),
        ("its mean over all pools, and the most", f"{ratio.mean():.2f}, {ratio.max():.2f}", "2.6, 23.75"),
        ("its least", f"{ratio.min():.4f}", "never below 1"),
        ("its medians differ from the paper's by", ", ".join(apart), "at most 8 %"),
        ("sets from 24 on whose rounded shares by size exceed the pool", f"{over.min():.0%} to {over.max():.0%}", ""),
    ]  # fmt: skip
    print_table("Section 3.2", ("", "here", "paper"), rows)
    rows = [
        (pool, f"{medians[row]:.2f}", f"({OVER_STATIC[pool]:.2f})" if pool in OVER_STATIC else "",
         f"{ratio[row].min():.2f}", f"{ratio[row].max():.2f}",
         f"{found.over[row]:.0%} ({found.rounded_over[row]:.0%})")
        for row, pool in enumerate(POOLS)
    ]  # fmt: skip
    head = ("pool", "median", "(paper)", "least", "most", "STATIC exceeds the pool (before legal numbers)")
    print_table("MCKP / STATIC", head, rows)
    if processes is not None:
        print_figure_2(found)


def main(*, sets: int = SETS) -> None:
    """Print all tables, with this many sets of patterns."""
    print_table_4()
    print_figure_1()
    print_study("Means of repetitions", *means(), sets, [one.pattern.processes for one in measured()])
    runs = best_repetitions()
    if runs is not None:
        print_study("Best repetitions (misleading)", *runs, sets)
        times = ", ".join(f"{times:.2f} times the mean with {n}" for n, times in best_over_mean().items())
        print(f"  misleading: the best repetition is {times} I/O nodes, in the median; direct access scatters most")
    print_queue()
    print(f"\n512 jobs, 256 I/O nodes: {solver_seconds() * 1e3:.1f} ms (at most 50; the paper's solver 2.7 s)")
NODES, IO_NODES, POLL_S = 96, 12, 10.0

PAPER_STATIC, PAPER_MCKP = 8.41e9, 16.02e9
"""Sums of bandwidths of the queue."""
PAPER_NUMBERS = {"HACC": 1, "POSIX-L": 8}
"""Numbers of I/O nodes that STATIC assigns."""
PAPER_POSIX_L = (0.097, 1963.9e6, {"table 4": 411.9e6, "SIZE in section 5.3": 180.5e6}, 391.7e6)
"""Share of its time with 8 I/O nodes, bandwidth with 8, two printed values for 2, and its overall bandwidth."""


def replay_of_queue(**more: object) -> ReplayPlan:
    """The queue of section 5.3 without direct access, with the nearest patterns of MareNostrum 4."""
    asked = {"nodes": NODES, "poll": POLL_S, "direct": False, "estimate": "nearest", "compare": True} | more
    return plan_replay(QUEUE, io_nodes=IO_NODES, **asked)  # type: ignore[arg-type]


def numbers_of_first_job(gap_s: float = 0.05) -> list[int]:
    """Successive numbers of I/O nodes that MCKP gives HACC, if jobs start `gap_s` seconds apart."""
    queue = Jobs.load(QUEUE)
    later = [job.model_copy(update={"submit_s": n * gap_s}) for n, job in enumerate(queue.jobs)]
    found = plan_replay(
        queue.model_copy(update={"jobs": later}), io_nodes=IO_NODES, nodes=NODES, direct=False, estimate="nearest"
    )
    return [part.io_nodes for part in found.jobs[0].periods]


def posix_l_bounds() -> tuple[float, float]:
    """Bandwidth of a job with 8 I/O nodes for 9.7 % of its time and 2 for the rest, by both values printed for 2."""
    part, with_8, with_2, _ = PAPER_POSIX_L
    least, most = sorted(part * with_8 + (1 - part) * one for one in with_2.values())
    return least, most


def print_queue() -> None:
    """Print the queue of section 5.3, ours next to the paper's."""
    found = replay_of_queue()
    print(f"\nSection 5.3: {len(found.jobs)} jobs, {NODES} nodes, {IO_NODES} I/O nodes, no direct access")
    at_once = [one for one in found.jobs if one.start_s == 0]
    print(f"  the first {len(at_once)} begin at once on {sum(one.nodes for one in at_once)} nodes, and "
          f"{found.jobs[len(at_once)].name} waits: whatever the bandwidths")  # fmt: skip
    for one in replay_of_queue(policy="static", compare=False).jobs:
        if one.name in PAPER_NUMBERS:
            print(f"  STATIC gives {one.name} {one.periods[0].io_nodes} I/O nodes (paper {PAPER_NUMBERS[one.name]})")
    numbers = ", then ".join(map(str, numbers_of_first_job()))
    print(f"  MCKP gives HACC {numbers} as others begin (paper 8, then 4)")
    least, most = (bound / 1e6 for bound in posix_l_bounds())
    print(f"  POSIX-L, 8 I/O nodes for 9.7 % of its time, then 2: {least:.1f} to {most:.1f} MB/s by what is printed "
          f"for 2 (paper {PAPER_POSIX_L[-1] / 1e6:.1f})")  # fmt: skip
    paper = {"static": f"{PAPER_STATIC / 1e9:.2f}", "mckp": f"{PAPER_MCKP / 1e9:.2f}"}
    rows = [
        (one.policy, one.reason or "", "", "", "", "") if one.bandwidth is None or one.makespan_s is None else
        (one.policy, f"{one.bandwidth / 1e9:.2f}", paper.get(one.policy, ""), f"{one.makespan_s:,.0f}",
         one.io_nodes, one.changes)
        for one in found.compared
    ]  # fmt: skip
    print_table(
        "Section 5.3 with curves of MareNostrum 4, nearest patterns (paper: its own curves, not published)",
        ("", "GB/s", "paper", "seconds", "I/O nodes at most", "changes"), rows,
    )  # fmt: skip
    ratio = found.expected.speedup if found.expected is not None else None
    print(f"  MCKP / STATIC {ratio:.2f} (paper {PAPER_MCKP / PAPER_STATIC:.2f})")
    seen = replay_of_queue(poll=0.0, compare=False).after.bandwidth or 0
    print(f"  a mapping seen at once and not every {POLL_S:g} s: {seen / (found.after.bandwidth or 1) - 1:+.2%}")


if __name__ == "__main__":
    run(main)
