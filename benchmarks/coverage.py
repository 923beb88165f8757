"""Whether ranges of expected gains contain the measured gains, on machines to which they were not fitted.

A point is a pair of single runs: what the model expects of the second over the first, and what was measured. A
range is a factor in either direction that covers nine in ten points (`vani/models/calibration.py`). It is fitted to
all machines except one, and judged on that one.

- tianhe: IOR writes of 8 to 32 GiB (OPRAEL) with one stripe count and with a higher one, repetition by repetition;
  expected by the contention model, if it explains the first run (`ANCHOR`);
- edison, mira: a benchmark on one file system and the next run of it, mostly the next day's (TOKIO-ABC); expected: 1;
- marenostrum4: a pattern with as many I/O nodes, a repetition and the next (FORGE); expected: 1.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from vani.models.calibration import ANCHOR, SPREAD
from vani.models.contention import Burst, path_of, predict
from vani.models.contention import Path as IOPath
from vani.systems import load_system
from vani.units import GiB, MiB

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"

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
    """The table of `python -m benchmarks.models --coverage`."""
    if not data.exists():
        print(f"No measurements: {data.name} is not beside the repository")
        return
    machines = points(data)
    print(f"Ranges of expected gains, nominal {NOMINAL:.0%}, fitted to the other machines")
    print("  machine        points   factor   within   above   below   median measured / expected")
    for name, (wide, within, above, below) in coverage(machines).items():
        middle = math.exp(float(np.median(machines[name])))
        shares = f"{within:<8.1%} {above:<7.1%} {below:<7.1%}"
        print(f"  {name:<14} {len(machines[name]):<8} {wide:<8.2f} {shares} {middle:.2f}")
    print(f"  factor of all machines: {factor(machines):.2f} (in use: {SPREAD})")


def _tianhe(file: Path) -> Iterator[float]:
    runs: defaultdict[tuple[float, int], list[float]] = defaultdict(list)
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            # Smaller files fit into memory.
            if row["sweep"] == "ost" and row["op"] == "write" and float(row["file_gib"]) >= 8:
                runs[float(row["file_gib"]), int(float(row["stripe_count"]))].append(float(row["bw_mib_s"]))
    system = load_system("tianhe-prototype")
    path = path_of(system, system.file_systems[0])
    assert isinstance(path, IOPath)
    for (gib, before), (same, after) in itertools.combinations(sorted(runs), 2):
        if gib != same:
            continue
        old, new = (
            predict(Burst(bytes=gib * GiB, nodes=8, processes=128, stripe_count=count), path).seconds
            for count in (before, after)
        )
        for one, other in zip(runs[gib, before], runs[gib, after], strict=True):
            if 1 / ANCHOR <= old / (gib * GiB / (one * MiB)) <= ANCHOR:
                yield math.log(other / one) - math.log(old / new)


def _days(file: Path) -> Iterator[float]:
    runs: defaultdict[tuple[object, ...], list[tuple[float, float]]] = defaultdict(list)
    with gzip.open(file, "rt", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            rate = float(row["darshan_agg_perf_by_slowest_posix"] or 0)
            if rate > 0:
                # Runs with bytes within a tenth belong to the same benchmark.
                moved = (
                    round(math.log1p(float(row[f"darshan_tot_bytes_{way}_posix"] or 0)) / math.log(1.1))
                    for way in ("read", "written")
                )
                files = (row[f"darshan_biggest_{way}_api_files"] for way in ("read", "write"))
                key = (row["_file_system"], row["app"], row["darshan_nprocs"], *moved, *files)
                runs[key].append((float(row["darshan_start_time"]), rate))
    for found in runs.values():
        if len(found) >= _MIN_REPEATS:
            yield from _steps([rate for _, rate in sorted(found)])


def _repetitions(file: Path) -> Iterator[float]:
    names = ("forwarders", "clients", "processes", "layout", "spatiality", "request")
    runs: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            runs[tuple(row[name] for name in names)].append(float(row["bandwidth"]))
    for found in runs.values():
        yield from _steps(found)


def _steps(rates: Sequence[float]) -> Iterator[float]:
    return (math.log(after / before) for before, after in itertools.pairwise(rates))
