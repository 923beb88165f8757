"""`python -m benchmarks.models`: whether ranges of expected gains contain the measured gains on other machines.

A point is a pair of single runs with the same setting, the second over the first; the expected gain is 1. A range is a
factor in either direction that covers nine in ten points (`vani/models/calibration.py`). It is fitted to all machines
except one, and judged on that one.

- tianhe: an IOR write of 8 to 32 GiB and the next repetition (OPRAEL);
- edison, mira: a benchmark on one file system and the next run of it, mostly the next day's (TOKIO-ABC);
- marenostrum4: a pattern with as many I/O nodes, a repetition and the next (FORGE).

With `--forwarding`, prints the loss from choosing I/O nodes instead: `benchmarks.forwarding`.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks import forwarding as io_nodes
from benchmarks.data import DATA, Row, grouped, no_measurements, print_table, run
from vani.models.calibration import SPREAD

NOMINAL: Final = 0.9
"""Share of points that a range should contain."""

# One in a hundred more, since the next machine is not among the measured ones (our choice).
_FITTED: Final = NOMINAL + 0.01

# Machines with runs repeated daily; others have few runs of a kind.
_MIN_REPEATS: Final = 20

Points = Mapping[str, Sequence[float]]
"""Logarithms of measured over expected speed-up, by machine."""


def points(data: Path = DATA) -> dict[str, list[float]]:
    """The points of all machines with measurements in `data`."""
    return {
        "tianhe": list(_tianhe(data / "oprael-tianhe-ior" / "oprael_ior_runs.csv")),
        "edison": list(_days(data / "tokio-abc" / "edison_2017-02_2018-02.csv.gz")),
        "mira": list(_days(data / "tokio-abc" / "mira_2017-02_2017-10.csv.gz")),
        "marenostrum4": list(_repetitions(data / "forge-mn4" / "forge_mn4_runs.csv")),
    }


def factor(machines: Points) -> float:
    """The factor in either direction that covers nine of ten points: the median of the machines' own factors."""
    return math.exp(statistics.median(float(np.quantile(np.abs(one), _FITTED)) for one in machines.values()))


def coverage(machines: Points) -> dict[str, tuple[float, float, float, float]]:
    """Factor fitted to all other machines, and shares of points within, above and below that range, by machine."""
    found = {}
    for name, own in machines.items():
        wide = factor({other: theirs for other, theirs in machines.items() if other != name})
        logs, limit = np.asarray(own), math.log(wide)
        above, below = float((logs > limit).mean()), float((logs < -limit).mean())
        found[name] = (wide, 1 - above - below, above, below)
    return found


def print_coverage(data: Path = DATA) -> None:
    """The table of `python -m benchmarks.models`."""
    if no_measurements():
        return
    machines = points(data)
    rows = []
    for name, (wide, *shares) in coverage(machines).items():
        middle = math.exp(float(np.median(machines[name])))
        rows.append((name, len(machines[name]), f"{wide:.2f}", *(f"{one:.1%}" for one in shares), f"{middle:.2f}"))
    print_table(
        f"Ranges of expected gains, nominal {NOMINAL:.0%}, fitted to the other machines",
        ("machine", "points", "factor", "within", "above", "below", "median measured / expected"), rows,
    )  # fmt: skip
    print(f"  factor of all machines: {factor(machines):.2f} (in use: {SPREAD})")


def _tianhe(file: Path) -> Iterator[float]:
    def setting(row: Row) -> tuple[object, ...] | None:
        # Smaller files fit into memory.
        known = row["sweep"] == "ost" and row["op"] == "write" and float(row["file_gib"]) >= 8
        return (row["file_gib"], row["stripe_count"]) if known else None

    runs = grouped(file, setting, lambda row: float(row["bw_mib_s"]))
    return (step for repetitions in runs.values() for step in _steps(repetitions))


def _days(file: Path) -> Iterator[float]:
    def rate(row: Row) -> float:
        return float(row["darshan_agg_perf_by_slowest_posix"] or 0)

    def benchmark(row: Row) -> tuple[object, ...] | None:
        # Runs with bytes within a tenth belong to the same benchmark.
        moved = (
            round(math.log1p(float(row[f"darshan_tot_bytes_{way}_posix"] or 0)) / math.log(1.1))
            for way in ("read", "written")
        )
        files = (row[f"darshan_biggest_{way}_api_files"] for way in ("read", "write"))
        return (row["_file_system"], row["app"], row["darshan_nprocs"], *moved, *files) if rate(row) > 0 else None

    for found in grouped(file, benchmark, lambda row: (float(row["darshan_start_time"]), rate(row))).values():
        if len(found) >= _MIN_REPEATS:
            yield from _steps([one for _, one in sorted(found)])


def _repetitions(file: Path) -> Iterator[float]:
    names = ("forwarders", "clients", "processes", "layout", "spatiality", "request")
    runs = grouped(file, lambda row: tuple(row[name] for name in names), lambda row: float(row["bandwidth"]))
    return (step for found in runs.values() for step in _steps(found))


def _steps(rates: Sequence[float]) -> Iterator[float]:
    return (math.log(after / before) for before, after in itertools.pairwise(rates))


def main(*, forwarding: bool = False) -> None:
    """Print the ranges, or the loss from choosing I/O nodes."""
    show = io_nodes.main if forwarding else print_coverage
    show()


if __name__ == "__main__":
    run(main)
