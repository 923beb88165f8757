"""Writes on machines like Cetus and Titan with known true parameters: samples for models of write times.

Stage times add up, or only the slowest stage counts. Measured times scatter by 10 %, and 7 % of the writes meet a
busy system and take up to twice as long; a sample is the mean of repetitions that converge, as in Xie et al.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vani.centre.write_time.samples import CONFIDENCE, Samples, error_allowed

SMALL = (1, 2, 4, 8, 16, 32, 64, 128)
LARGE = (200, 256, 400, 512)
BURSTS = ((1, 5), (6, 25), (25, 100), (101, 250), (251, 500), (501, 1024), (1025, 2560))
LONG = ((2561, 5120), (5121, 7680), (7681, 10240))
NOISE, BUSY = 0.10, 0.07
REPETITIONS = 9


@dataclass(frozen=True)
class Machine:
    """Seconds per load of each stage, by the paper's name of the load; sizes in megabytes."""

    name: Literal["cetus", "titan"]
    start: float
    stages: dict[str, float]


CETUS = Machine(
    "cetus", 0.9,
    {"m*n": 2.6e-4, "m*K": 1 / 1500, "s_l*m*K": 1 / 1720, "s_b*m*K": 1 / 3600, "s_io*m*K": 1 / 1940,
     "m*n*K": 1 / 200e3},
)  # fmt: skip
TITAN = Machine(
    "titan", 1.8,
    {"m*n": 2.5e-4, "m*K": 1 / 1200, "s_r*m*K": 1 / 3400, "s_ost": 1 / 380, "m*n*K": 1 / 684e3},
)  # fmt: skip


def generated(
    machine: Machine, law: Literal["additive", "bottleneck"], scales: tuple[int, ...], count: int, seed: int
) -> tuple[Samples, np.ndarray]:
    """Samples of `count` patterns per scale that take more than 5 s and converge, with their true mean times.

    Returns
    -------
    Samples with the paper's columns, and times of shape (samples,).
    """
    from vani.centre.write_time.fit import with_paper_features  # noqa: PLC0415
    from vani.centre.write_time.published import PUBLISHED  # noqa: PLC0415

    random = np.random.default_rng(seed)
    nodes = np.repeat(np.array(scales, dtype=float), count * 3)
    bursts = [*BURSTS, *LONG]
    kind = np.where(
        nodes > 128,
        random.integers(len(BURSTS), size=len(nodes)),
        random.integers(len(bursts), size=len(nodes)),
    )
    low, high = (np.array([pair[end] for pair in bursts], dtype=float)[kind] for end in (0, 1))
    numbers = {
        "nodes": nodes,
        "processes_per_node": 2.0 ** random.integers(0, 5, len(nodes)),
        "bytes_per_process": np.round(random.uniform(low, high)) * 1e6,
        "stripe_count": np.round(2 ** random.uniform(0, 6, len(nodes))),
    }
    numbers |= _placed(machine, nodes, random)
    published = PUBLISHED[machine.name]
    columns = with_paper_features(Samples(numbers, {}, np.ones(len(nodes))), published.pool).numbers
    parts = np.stack([columns[name] * cost for name, cost in machine.stages.items()])
    true = machine.start + (parts.sum(axis=0) if law == "additive" else parts.max(axis=0))
    runs = true * np.exp(random.normal(0, NOISE, (REPETITIONS, len(true))))
    runs *= np.where(random.random(runs.shape) < BUSY, random.uniform(1.2, 2.0, runs.shape), 1.0)
    mean = runs.mean(axis=0)
    converged = 1.645 * runs.std(axis=0, ddof=1) / np.sqrt(REPETITIONS) <= 0.1 * mean
    keep = (mean > 5) & converged
    chosen = np.concatenate([np.flatnonzero(keep & (nodes == one))[:count] for one in scales])
    return Samples({name: column[chosen] for name, column in numbers.items()}, {}, mean[chosen]), true[chosen]


LAWS = ("bottleneck", "p-norm", "contended", "locks", "taper", "I/O nodes", "layouts")


def drawn(law: str, seed: int, count: int, large: int = 240) -> Samples:
    """Single writes on a machine whose bandwidths are drawn: `count` on 1 to 128 nodes, `large` on 200 to 512.

    The locations of nodes are unknown. Times scatter by 3 to 25 %. Some laws have a term that no method knows:
    contention between nodes, locks of shared stripes, a tapered network, steps of I/O nodes.

    Parameters
    ----------
    law
        One of `LAWS`; with any other, stage times add up.
    """
    random = np.random.default_rng([seed, 7])
    nodes = np.concatenate([random.choice(SMALL, count), random.choice(LARGE, large)]).astype(float)
    processes = nodes * 2.0 ** random.integers(0, 6, len(nodes))
    size = np.exp(random.uniform(np.log(16e6), np.log(4e9), len(nodes))) * processes
    stripes = np.round(2 ** random.uniform(0, 6, len(nodes)))
    shared = random.random(len(nodes)) < 0.5

    def between(low: float, high: float) -> float:
        return float(np.exp(random.uniform(np.log(low), np.log(high))))

    slower = between(1.2, 4)
    of_node, of_process, of_target = between(1e9, 8e9), between(0.3e9, 2e9), between(0.2e9, 1.5e9)
    of_all, of_io_node = between(20e9, 600e9), between(3e9, 20e9)
    open_s, crowd, start = between(1e-4, 2e-3), between(100, 800), between(0.3, 4)
    targets = float(2 ** random.integers(5, 9))
    if law == "layouts":
        used = np.where(shared, np.minimum(stripes, targets) / slower, np.minimum(stripes * processes, targets))
    else:
        used = np.minimum(stripes, targets) * np.minimum(nodes, targets / stripes).clip(1)
    parts = [size / nodes / of_node, size / processes / of_process, size / used / of_target]
    parts += [size / of_all, processes * open_s]
    if law == "I/O nodes":
        parts.append(size / np.ceil(nodes / 32) / of_io_node)
    power = {"bottleneck": np.inf, "p-norm": 2.0, "layouts": 3.0}.get(law, 1.0)
    true = start + np.linalg.norm(np.stack(parts), ord=power, axis=0)
    if law == "contended":
        true *= 1 + (nodes / crowd) ** between(0.7, 1.5)
    if law == "locks":
        true *= 1 + np.log2(np.maximum(processes / stripes, 1)) / between(3, 12)
    if law == "taper":
        true += size / of_all * np.log2(nodes + 1) / between(4, 12)
    busy = np.where(random.random(len(true)) < BUSY, random.uniform(1.2, 2, len(true)), 1.0)
    seconds = true * np.exp(random.normal(0, between(0.03, 0.25), len(true))) * busy
    numbers = {"nodes": nodes, "processes": processes, "bytes": size, "stripe_count": stripes}
    words = {"layout": np.where(shared, "shared", "own")} if law == "layouts" else {}
    return Samples(numbers, words, seconds)


PUBLISHED_LAWS = ("sum", "bottleneck", "p-norm", "contended")


@dataclass(frozen=True)
class DrawnMachine:
    """A machine like Cetus or Titan: each coefficient of table V times a random factor, and one of four laws."""

    name: Literal["cetus", "titan"]
    law: str
    seed: int

    def measured(self, writes: Iterator[tuple[int, int, float, int]], runs: int, seed: int) -> Samples:
        """Samples of writes (n, m, K, W), each repeated until it has converged, in `runs` runs of IOR altogether.

        Writes that take 5 s or less, or do not converge in 9 runs, count as runs but are left out.
        """
        random = np.random.default_rng([self.seed, seed])
        rows, means = [], []
        while runs > 0:
            columns = self._columns(*(np.array([float(figure)]) for figure in next(writes)), random)
            times = list(self._runs(float(self._true(columns)[0]), random))
            runs -= len(times)
            if len(times) < REPETITIONS and np.mean(times) > 5:
                rows.append(columns)
                means.append(np.mean(times))
        return Samples({name: np.concatenate([row[name] for row in rows]) for name in rows[0]}, {}, np.array(means))

    def tested(self, each: int = 60) -> Samples:
        """Writes of the paper's test set, with their true times."""
        random = np.random.default_rng([self.seed, 5])
        nodes = np.repeat(np.array(LARGE, dtype=float), each)
        low, high = (np.array([pair[end] for pair in BURSTS])[random.integers(7, size=len(nodes))] for end in (0, 1))
        size = np.round(random.uniform(np.minimum(low, high), np.maximum(low, high)))
        per_node, stripes = random.integers(1, 17, len(nodes)), np.round(2 ** random.uniform(0, 6, len(nodes)))
        columns = self._columns(nodes, per_node.astype(float), size, stripes, random)
        true = self._true(columns)
        return Samples({name: column[true > 5] for name, column in columns.items()}, {}, true[true > 5])

    def _columns(self, nodes, per_node, megabytes, stripes, random):
        from vani.centre.write_time.fit import with_paper_features  # noqa: PLC0415
        from vani.centre.write_time.published import PUBLISHED  # noqa: PLC0415

        numbers = {
            "nodes": nodes, "processes_per_node": per_node, "bytes_per_process": megabytes * 1e6, "stripe_count": stripes
        }
        numbers |= _placed(TITAN if self.name == "titan" else CETUS, nodes, random)
        return dict(with_paper_features(Samples(numbers, {}, np.ones(len(nodes))), PUBLISHED[self.name].pool).numbers)

    def _true(self, columns):
        from vani.centre.write_time.published import PUBLISHED  # noqa: PLC0415

        random = np.random.default_rng([self.seed, 11])
        costs = {name: cost for name, cost in PUBLISHED[self.name].coefficients.items() if cost > 0}
        factors = np.exp(random.normal(0, 0.7, len(costs)))
        start, crowd = PUBLISHED[self.name].intercept * np.exp(random.normal(0, 0.5)), random.uniform(100, 800)
        parts = np.stack([columns[name] * cost for name, cost in costs.items()]) * factors[:, None]
        power = {"bottleneck": np.inf, "p-norm": 3.0}.get(self.law, 1.0)
        true = start + np.linalg.norm(parts, ord=power, axis=0)
        return true * (1 + columns["n"] / crowd) if self.law == "contended" else true

    def _runs(self, true, random):
        """Times of the runs of one write, until their mean has converged."""
        noise = np.exp(np.random.default_rng([self.seed, 13]).uniform(np.log(0.03), np.log(0.25)))
        times = []
        while len(times) < REPETITIONS:
            times.append(true * np.exp(random.normal(0, noise)) * (random.uniform(1.2, 2) if random.random() < BUSY else 1))
            yield times[-1]
            if len(times) >= 3 and np.std(times, ddof=1) / len(times) ** 0.5 <= error_allowed(CONFIDENCE) * np.mean(times):
                return


def random_writes(random: np.random.Generator) -> Iterator[tuple[int, int, float, int]]:
    """Writes drawn uniformly from the ranges of tables III and IV."""
    while True:
        yield (
            int(random.integers(1, 129)), int(random.integers(1, 17)), float(random.integers(1, 10_241)),
            int(random.integers(1, 65)),
        )  # fmt: skip


def designed_writes(system: str, random: np.random.Generator) -> Iterator[tuple[int, int, float, int]]:
    """Writes of `vani model design` for a bundled machine, one scale after the other in random order."""
    from vani.centre.write_time.design import patterns  # noqa: PLC0415
    from vani.systems import load_system  # noqa: PLC0415

    machine = load_system(system)
    by_scale = {nodes: patterns(machine, machine.file_systems[0], nodes, random) for nodes in (16, 32, 64, 128)}
    while True:
        for nodes in random.permutation(list(by_scale)).tolist():
            per_node, size, stripes, _ = next(by_scale[nodes])
            yield nodes, per_node, size, max(1, stripes)


def _placed(machine: Machine, nodes: np.ndarray, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Largest groups and numbers of components, between packed and spread."""
    shares = {"titan": {"r": (172, 110)}, "cetus": {"io": (32, 128), "b": (64, 64), "l": (128, 32)}}[
        machine.name
    ]
    found = {}
    where = random.random(len(nodes))
    for name, (components, behind) in shares.items():
        packed, spread = np.minimum(nodes, behind), np.ceil(nodes / np.minimum(nodes, components))
        largest = np.round(np.exp(where * np.log(packed) + (1 - where) * np.log(spread)))
        found[f"s_{name}"] = largest
        found[f"n_{name}"] = np.minimum(components, np.ceil(nodes / largest))
    return found
