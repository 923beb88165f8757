"""`python -m benchmarks.write_time`: models of write times on writes to which they were not fitted.

The writes come from generated machines with known stages, OPRAEL's sweeps on the Tianhe prototype, and the 189
patterns of MareNostrum 4; the last two need `../shared/data`. Then follow the paper's printed values, and cases in
which no model can be good.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.write_time_limits import print_limits
from benchmarks.write_time_paper import print_paper
from tests.history.write_time_machines import CETUS, LARGE, LAWS, SMALL, TITAN, Machine, drawn, generated
from vani.centre.write_time.choice import choose, judge
from vani.centre.write_time.fit import with_paper_features
from vani.centre.write_time.methods import METHODS
from vani.centre.write_time.published import PUBLISHED
from vani.centre.write_time.samples import Samples

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GiB = 2.0**30


@dataclass(frozen=True)
class Case:
    """Samples, their scales, and which of them are used for fitting."""

    name: str
    samples: Samples
    scale: np.ndarray
    small: np.ndarray
    true: np.ndarray | None = None
    """True mean times, if known."""


def machines() -> Iterator[Case]:
    """Cetus and Titan under both laws: 1 to 128 nodes, then 200 to 512."""
    for machine in (CETUS, TITAN):
        for law in ("additive", "bottleneck"):
            small, _ = generated(machine, law, SMALL, 400, 1)
            large, true = generated(machine, law, LARGE, 160, 2)
            yield _of_machine(f"{machine.name}, {law}", machine, small, large, true)


def other_machines(count: int) -> Iterator[Case]:
    """Machines whose stages cost 0.4 to 2.5 times as much, independently; they were not used to design methods."""
    for machine in (CETUS, TITAN):
        for law in ("additive", "bottleneck"):
            for seed in range(21, 21 + count):
                factor = np.random.default_rng(seed)
                costs = {
                    name: cost * float(np.exp(factor.uniform(-0.9, 0.9)))
                    for name, cost in machine.stages.items()
                }
                drawn = Machine(machine.name, machine.start, costs)
                small, _ = generated(drawn, law, SMALL, 150, seed)
                large, true = generated(drawn, law, LARGE, 80, seed + 100)
                yield _of_machine(f"other {machine.name} {seed}, {law}", drawn, small, large, true)


def drawn_machines(count: int) -> Iterator[Case]:
    """Single writes on machines with seven laws, some of which no method knows; they were not used for intervals."""
    for law in LAWS:
        for seed in range(41, 41 + count):
            samples = drawn(law, seed, 80 + 40 * (seed % 5))
            nodes = samples.numbers["nodes"]
            small = nodes <= max(SMALL)
            yield Case(f"drawn {law} {seed}: 1-128 -> 200-512 nodes", samples, nodes, small)


def _of_machine(name: str, machine: Machine, small: Samples, large: Samples, true: np.ndarray) -> Case:
    parts = [with_paper_features(one, PUBLISHED[machine.name].pool) for one in (small, large)]
    whole = Samples(
        {name: np.concatenate([one.numbers[name] for one in parts]) for name in parts[0].numbers},
        {},
        np.concatenate([one.seconds for one in parts]),
    )
    nodes = np.concatenate([small.numbers["nodes"], large.numbers["nodes"]])
    return Case(f"{name}: 1-128 -> 200-512 nodes", whole, nodes, nodes <= max(SMALL), true)


def oprael() -> Iterator[Case]:
    """Writes of one shared file; those below 8 GiB fit into memory."""
    path = DATA / "oprael-tianhe-ior" / "oprael_ior_runs.csv"
    if not path.exists():
        return
    times: dict[tuple[float, ...], list[float]] = defaultdict(list)
    swept = defaultdict(set)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["op"] == "write" and row["sweep"] in ("ost", "process", "compute_node"):
                key = tuple(
                    float(row[name] or 1) for name in ("true_nodes", "procs", "file_gib", "stripe_count")
                )
                times[key].append(float(row["total_s"]))
                swept[row["sweep"]].add(key)
    keys = np.array(list(times))
    columns = dict(zip(("nodes", "processes", "bytes", "stripe_count"), keys.T, strict=True))
    columns["bytes"] = columns["bytes"] * GiB
    samples = Samples(columns, {}, np.array([np.mean(one) for one in times.values()]))
    yield Case(
        "Tianhe, all sweeps: <= 8 -> 16, 32 GiB", samples, columns["bytes"], columns["bytes"] <= 8.1 * GiB
    )
    among = np.array([tuple(key) in swept["process"] for key in keys.tolist()])
    processes = samples.only(among)
    count = processes.numbers["processes"]
    yield Case("Tianhe, processes: <= 8 -> 16, 32", processes, count, count <= 8)


def forge() -> Iterator[Case]:
    """The 189 patterns of MareNostrum 4: more nodes, and a fifth of the patterns."""
    path = DATA / "forge-mn4" / "forge_mn4_scenarios.csv"
    if not path.exists():
        return
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {
        ours: np.array([float(row[theirs]) for row in rows]) * unit
        for ours, theirs, unit in (
            ("nodes", "compute_nodes", 1), ("processes", "processes", 1), ("request", "request_kib", 1024),
            ("io_nodes", "io_nodes", 1),
        )
    }  # fmt: skip
    numbers["bytes"] = np.full(len(rows), GiB)
    words = {name: np.array([row[name] for row in rows]) for name in ("layout", "spatiality")}
    seconds = np.array([1024 / float(row["bw_mean"]) for row in rows])
    samples = Samples(numbers, words, seconds)
    yield Case("MareNostrum 4: 8, 16 -> 32 nodes", samples, numbers["nodes"], numbers["nodes"] < 32)
    names = [row["scenario"] for row in rows]
    left = set(np.random.default_rng(0).permutation(sorted(set(names)))[: len(set(names)) // 5].tolist())
    yield Case(
        "MareNostrum 4: a fifth of the patterns",
        samples,
        numbers["nodes"],
        np.array([one not in left for one in names]),
    )


def main() -> None:
    """Print a line per case and one per method."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.write_time", description=__doc__)
    parser.add_argument("--others", type=int, metavar="N", help="only N other machines of each kind")
    parser.add_argument("--drawn", type=int, metavar="N", help="only N machines of each of seven laws")
    asked = parser.parse_args()
    others = asked.others or asked.drawn
    real = [] if others else [*oprael(), *forge()]
    if asked.others:
        cases: Iterable[Case] = other_machines(asked.others)
    else:
        cases = drawn_machines(asked.drawn) if asked.drawn else [*real, *machines()]
    coverage = []
    for case in cases:
        train, test = case.samples.only(case.small), case.samples.only(~case.small)
        began = time.process_time()
        judged = [judge(name, train, case.scale[case.small], test) for name in METHODS]
        chosen = choose(train, case.scale[case.small])
        spent = time.process_time() - began
        ratios = test.seconds / chosen.predict(test)
        low, high = chosen.interval(test, case.scale[~case.small] / case.scale[case.small].max())
        print(f"\n{case.name}: {len(train):,} -> {len(test):,} writes ({spent:.0f} s)")
        for one in judged:
            print(f"  {one.method:<15} {100 * one.within(0.3):4.0f} ({100 * one.within(0.2):.0f})")
        right = np.abs(1 / ratios - 1)
        covered = ((test.seconds >= low) & (test.seconds <= high)).mean()
        coverage.append(covered)
        if case.true is not None:
            known = np.abs(case.true / test.seconds - 1)
            print(f"  the known mean  {100 * (known <= 0.3).mean():4.0f} ({100 * (known <= 0.2).mean():.0f})")
        print(
            f"  chosen: {chosen.method}, {100 * (right <= 0.3).mean():.0f} ({100 * (right <= 0.2).mean():.0f})"
        )
        print(
            f"  its interval, {np.median(low / chosen.predict(test)):.2f} to "
            f"{np.median(high / chosen.predict(test)):.2f}, contains {100 * covered:.0f} %"
        )
    shares = 100 * np.array(coverage)
    print(
        f"\nIntervals contain {shares.mean():.0f} % on average, {shares.min():.0f} % at least; 80 to 97 % in "
        f"{((shares >= 79.5) & (shares <= 97.5)).sum()} of {len(shares)} cases, less in {(shares < 79.5).sum()}"
    )
    if not others:
        print_paper()
        print_limits({case.name.split(",")[0].split(":")[0]: case.samples for case in real})


if __name__ == "__main__":
    main()
