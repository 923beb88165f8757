"""Cases in which no model of write times can be good: a single run's time, another machine, few submissions.

From `../shared/data`: the daily probes of TOKIO-ABC, submissions to IO500; and each machine of the other cases
predicted from the others.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vani.centre.history.daily import LAST, usual_range
from vani.centre.write_time.choice import judge
from vani.centre.write_time.methods import METHODS
from vani.centre.write_time.samples import Samples
from vani.errors import InputError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FIRST = 0.7
"""Share of a benchmark's runs, in order of time, that precedes the predicted ones."""
LEAST_RUNS = 20


@dataclass(frozen=True)
class Held:
    """Measured over predicted times, shape (writes,), and a 90 % interval made without them.

    Parameters
    ----------
    within
        Whether each ratio is in its interval.
    """

    name: str
    ratios: np.ndarray
    within: np.ndarray

    def __str__(self) -> str:
        off = np.abs(1 / self.ratios - 1)
        return (
            f"{self.name}: {len(off):,} writes, {100 * (off <= 0.3).mean():.0f} ({100 * (off <= 0.2).mean():.0f}); "
            f"its interval holds {100 * self.within.mean():.0f} %"
        )


def daily(machine: str, file: str) -> Held | None:
    """Predict the last 30 % of each benchmark's runs from earlier ones, like `vani history daily`.

    The time is that of the slowest process.
    """
    path = DATA / "tokio-abc" / file
    if not path.exists():
        return None
    series: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            written, read, rate, start = (
                float(row[name] or "nan")
                for name in (
                    "darshan_tot_bytes_written_posix", "darshan_tot_bytes_read_posix",
                    "darshan_agg_perf_by_slowest_posix", "darshan_start_time",
                )
            )  # fmt: skip
            way = "write" if written > read else "read"
            shared = "shared" if float(row[f"darshan_biggest_{way}_api_files"] or 0) < 10 else "own files"
            if rate > 0 and np.isfinite(start):
                kind = (row["app"], row["_file_system"], way, shared, row["darshan_nprocs"])
                series[kind].append((start, (written + read) / 2**20 / rate))
    ratios: list[float] = []
    within: list[bool] = []
    for runs in series.values():
        if len(runs) < LEAST_RUNS:
            continue
        seconds = np.array([one for _, one in sorted(runs)])
        for at in range(int(FIRST * len(seconds)), len(seconds)):
            ratio = seconds[at] / np.median(seconds[at - LAST : at])
            low, high = usual_range(seconds[:at])
            ratios.append(ratio)
            within.append(low <= ratio <= high)
    return Held(f"{machine}, same benchmark daily", np.array(ratios), np.array(within))


def io500() -> Held | None:
    """Predict a system's largest number of nodes from the next smaller one; the interval comes from other systems."""
    path = DATA / "io500" / "io500_ior_runs.csv"
    if not path.exists():
        return None
    systems: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            tasks, per_node = float(row["tasks"] or 0), float(row["clients_per_node"] or 0)
            nodes = float(row["nodes"] or 0) or (tasks / per_node if per_node else 0.0)
            rate = float(row["bw_mib_s"] or 0) * 2**20
            if row["op"] == "write" and min(tasks, nodes, rate) > 0:
                key = (row["institution"], row["system"], row["fs"], row["phase"])
                systems[key].append((nodes, tasks, rate))
    ratios = [ratio for rows in systems.values() for ratio in _largest(np.array(rows))]
    logs = np.log(ratios)
    bounds = [np.quantile(np.delete(logs, n), [0.05, 0.95]) for n in range(len(logs))]
    within = np.array([low <= one <= high for one, (low, high) in zip(logs, bounds, strict=True)])
    return Held("IO500, largest number of nodes of a system", np.array(ratios), within)


def _largest(rows: np.ndarray) -> list[float]:
    """Measured over predicted times at the largest number of nodes, by the median rate at the next smaller one."""
    nodes, _, rates = rows.T
    fewer = nodes[nodes < nodes.max()]
    if not len(fewer):
        return []
    return (np.median(rates[nodes == fewer.max()]) / rates[nodes == nodes.max()]).tolist()


def transferred(machines: dict[str, Samples]) -> Iterator[tuple[str, str, float]]:
    """From one machine to one that was never measured: names, and the largest share within 30 % of any method."""
    for here, train in machines.items():
        for there, test in machines.items():
            shared = [name for name in train.numbers if name in test.numbers]
            if here == there:
                continue
            small, large = (
                Samples({name: one.numbers[name] for name in shared}, {}, one.seconds)
                for one in (train, test)
            )
            found = []
            for method in METHODS:
                try:
                    found.append(judge(method, small, small.numbers["nodes"], large).within(0.3))
                except InputError:
                    continue
            yield here, there, max(found)


def print_limits(machines: dict[str, Samples]) -> None:
    """Print all cases."""
    print("\nLimits:")
    for held in (
        daily("Edison", "edison_2017-02_2018-02.csv.gz"),
        daily("Mira", "mira_2017-02_2017-10.csv.gz"),
        io500(),
    ):
        if held is not None:
            print(f"  {held}")
    for here, there, share in transferred(machines):
        print(f"  fitted to {here}, asked for {there}: at most {100 * share:.0f} within 30 %, by any method")
