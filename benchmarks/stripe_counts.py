"""What LUS002 recommends for runs of which bandwidths were measured by stripe count, and what of the best that gives.

Runs are those of OPRAEL on the Tianhe prototype: IOR, independent writes of one shared file by 128 processes on 8
nodes, nothing flushed; BTIO, collective writes through PnetCDF by 64 processes. The rule is asked as for a user's run:
a profile, the machine's description, a default of one stripe. Bandwidth at counts between the measured ones is
interpolated by the logarithm of the count; of BTIO, points with stripes above `LARGEST` are left out, since few targets
hold such a file whatever its count. The rule's thresholds for files that fit the nodes' memory and for collective calls
come from these very runs: other machines have to confirm them.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.advisors.builders import profile, shared
from vani.advisors.judge import judge
from vani.schema.advice import ProfileRef, SystemRef
from vani.systems import load_system
from vani.units import GiB, MiB

__all__ = ["Run", "print_counts", "recommended", "runs"]

DATA: Final = Path(__file__).resolve().parents[2] / "shared" / "data"

LARGEST: Final = 16 * MiB

FIXED: Final = (1, 4, 8, 16, 32)


@dataclass(frozen=True)
class Run:
    """A run, and its mean bandwidth in MiB/s by stripe count."""

    name: str
    bytes: int
    collective: bool
    measured: Mapping[int, float]

    def reached(self, count: int) -> float:
        """Share of the best measured bandwidth at a count."""
        counts = sorted(self.measured)
        rates = [self.measured[n] for n in counts]
        return float(np.interp(math.log(count), [math.log(n) for n in counts], rates)) / max(rates)


def runs(data: Path = DATA) -> list[Run]:
    """All measured runs of more than one stripe count."""
    return [
        *_ior(data / "oprael-tianhe-ior" / "oprael_ior_runs.csv"),
        *_btio(data / "oprael-btio" / "points.csv"),
    ]


def recommended(run: Run) -> int:
    """The stripe count of the advice, or the default of one where there is none."""
    tianhe = load_system("tianhe-prototype")
    disk = tianhe.file_systems[0].model_copy(
        update={"stripe_count": 1, "stripe_size": MiB, "mounts": ["/lustre"]}
    )
    system = tianhe.model_copy(update={"file_systems": [disk]})
    many = 64 if run.collective else 128
    seconds = run.bytes / MiB / run.measured[1]
    common: dict[str, Any] = {
        "processes": many,
        "written": run.bytes,
        "busy_s": seconds,
        "time_s": seconds * many,
    }
    if run.collective:
        file = shared("/lustre/out", **common, writers=1, interface="pnetcdf", transfer=4 * MiB)
        layers = [{"layer": layer, "collective_share": 1.0} for layer in ("pnetcdf", "mpiio")]
    else:
        file, layers = shared("/lustre/out", **common), []
    nodes = None if run.collective else 8
    asked = profile(
        [file],
        processes=many,
        nodes=nodes,
        interfaces=layers,
        runtime_s=2 * seconds,
        slowest_s=seconds,
        busy_s=seconds,
    )
    advice = judge(
        asked,
        system,
        profile_ref=ProfileRef(path=None, sha256=""),
        system_ref=SystemRef(name=None, sha256=""),
        select=["LUS002"],
    )
    return next((int(one.recommended["stripe_count"]) for one in advice.recommendations), 1)  # type: ignore[arg-type]


def print_counts(data: Path = DATA) -> None:
    """The table of `python -m benchmarks.models --stripes`."""
    if not data.exists():
        print(f"No measurements: {data.name} is not beside the repository")
        return
    print("Stripe counts of LUS002 on measured runs (share of the best measured bandwidth)")
    print("  run              advised   reached   " + "   ".join(f"fixed {n:<2}" for n in FIXED))
    shares: defaultdict[str, list[float]] = defaultdict(list)
    for run in runs(data):
        count = recommended(run)
        shares["advised"].append(run.reached(count))
        for fixed in FIXED:
            shares[str(fixed)].append(run.reached(fixed))
        row = "   ".join(f"{run.reached(n):<8.0%}" for n in FIXED)
        print(f"  {run.name:<16} {count:<9} {run.reached(count):<9.0%} {row}")
    means = "   ".join(f"{statistics.fmean(shares[str(n)]):<8.0%}" for n in FIXED)
    print(f"  mean                       {statistics.fmean(shares['advised']):<9.0%} {means}")
    worst = "   ".join(f"{min(shares[str(n)]):<8.0%}" for n in FIXED)
    print(f"  worst                      {min(shares['advised']):<9.0%} {worst}")


def _ior(file: Path) -> Iterator[Run]:
    found: defaultdict[int, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if row["sweep"] == "ost" and row["op"] == "write":
                found[int(float(row["file_gib"]))][int(float(row["stripe_count"]))].append(
                    float(row["bw_mib_s"])
                )
    for gib, by_count in sorted(found.items()):
        means = {count: statistics.fmean(rates) for count, rates in by_count.items()}
        yield Run(f"ior {gib} GiB", gib * GiB, collective=False, measured=means)


def _btio(file: Path) -> Iterator[Run]:
    found: defaultdict[float, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    with file.open(encoding="utf-8") as text:
        for row in csv.DictReader(text):
            if int(row["stripe_size_bytes"]) <= LARGEST:
                found[float(row["total_mib"])][int(row["stripe_count"])].append(float(row["bandwidth_mib_s"]))
    for mib, by_count in sorted(found.items()):
        means = {count: statistics.fmean(rates) for count, rates in by_count.items()}
        if len(means) > 1:
            yield Run(f"btio {mib:.0f} MiB", int(mib * MiB), collective=True, measured=means)
