"""Measured runs by stripe count, from the sweeps next to the repository.

- tianhe: IOR, independent writes of one shared file by 128 processes on 8 nodes, nothing flushed; BTIO, collective
  writes through PnetCDF by 64 processes, nodes not known (both OPRAEL). Of BTIO, points with stripes above
  `LARGEST` are left out, since few targets contain such a file whatever its count.
- archer, mahti, perlmutter, mi250x: `stripe-sweeps.csv`, whose README lists what cannot be trusted.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import numpy as np

from vani.units import GiB, MiB

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"

LARGEST: Final = 16 * MiB

Kind = Literal["collective", "independent", "file per process", "reads"]


@dataclass(frozen=True)
class Run:
    """A run, and its bandwidth in MiB/s by stripe count.

    `nodes` is None if it is not stated; `targets` are those of the file system; `reads` are of shared files.
    """

    machine: str
    name: str
    kind: Kind
    bytes: int
    processes: int
    nodes: int | None
    targets: int
    interface: str
    measured: Mapping[int, float] = field(hash=False)

    def rate(self, count: int) -> float:
        """MiB/s at a count, interpolated by the logarithm of the count.

        Below the smallest measured count it is proportional to the count, which is the worst case; above the
        largest it is constant.
        """
        counts = sorted(self.measured)
        rates = [self.measured[n] for n in counts]
        inside = float(np.interp(math.log(count), [math.log(n) for n in counts], rates))
        return inside * min(1.0, count / counts[0])

    def reached(self, count: int) -> float:
        """Share of the best measured bandwidth at a count."""
        return self.rate(count) / max(self.measured.values())


def runs(data: Path = DATA) -> list[Run]:
    """All measured runs with more than one stripe count."""
    return [
        *_ior(data / "oprael-tianhe-ior" / "oprael_ior_runs.csv"),
        *_btio(data / "oprael-btio" / "points.csv"),
        *_sweeps(data / "stripe-sweeps" / "stripe-sweeps.csv"),
    ]


def _ior(file: Path) -> Iterator[Run]:
    rates: defaultdict[int, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if row["sweep"] == "ost" and row["op"] == "write":
                rates[int(float(row["file_gib"]))][int(float(row["stripe_count"]))].append(
                    float(row["bw_mib_s"])
                )
    for gib, by_count in sorted(rates.items()):
        means = {count: statistics.fmean(repeated) for count, repeated in by_count.items()}
        yield Run("tianhe", f"ior {gib} GiB", "independent", gib * GiB, 128, 8, 32, "mpiio", means)


def _btio(file: Path) -> Iterator[Run]:
    rates: defaultdict[float, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if int(row["stripe_size_bytes"]) <= LARGEST:
                rates[float(row["total_mib"])][int(row["stripe_count"])].append(float(row["bandwidth_mib_s"]))
    for mib, by_count in sorted(rates.items()):
        means = {count: statistics.fmean(repeated) for count, repeated in by_count.items()}
        if len(means) > 1:
            yield Run(
                "tianhe", f"btio {mib:.0f} MiB", "collective", int(mib * MiB), 64, None, 32, "pnetcdf", means
            )


def _sweeps(file: Path) -> Iterator[Run]:
    rows: defaultdict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            rows[row["set"], row["machine"], row["label"], row["stripe_size"]].append(row)
    for (name, machine, label, size), same in rows.items():
        first, targets = same[0], int(same[0]["targets_of_machine"])
        counts = {
            targets if row["stripe_count"] == "-1" else int(row["stripe_count"]): float(row["MiB_s"])
            for row in same
        }
        if len(counts) > 1:
            stripes = f", {int(size) // MiB} MiB stripes" if size else ""
            yield Run(
                machine.lower(),
                f"{name} {label}{stripes}",
                _kind(first),
                int(first["bytes"]),
                int(first["processes"]),
                int(first["nodes"]),
                targets,
                first["interface"],
                counts,
            )


def _kind(row: Mapping[str, str]) -> Kind:
    if "per-process" in row["set"]:
        return "file per process"
    if row["set"].endswith("-read"):
        return "reads"
    return "collective" if row["collective"] == "true" else "independent"
