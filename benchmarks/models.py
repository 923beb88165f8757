"""`python -m benchmarks.models`: the contention model compared with measurements, as tables.

Tarazu's table 6 and the means of OPRAEL's sweeps are below. IO500's submissions are read from
`../shared/data/io500`, and left out if that is missing. With `--forwarding`, prints the loss from choosing I/O nodes
instead: `benchmarks.forwarding`.

With `--coverage`, prints whether ranges of expected gains contain the measured gains, on machines to which they were
not fitted. A point is a pair of single runs: what the model expects of the second over the first, and what was
measured. A range is a factor in either direction that covers nine in ten points (`vani/models/calibration.py`). It is
fitted to all machines except one, and judged on that one.

- tianhe: IOR writes of 8 to 32 GiB (OPRAEL) with one stripe count and with a higher one, repetition by repetition;
  expected by the contention model, if it explains the first run (`ANCHOR`);
- edison, mira: a benchmark on one file system and the next run of it, mostly the next day's (TOKIO-ABC); expected: 1;
- marenostrum4: a pattern with as many I/O nodes, a repetition and the next (FORGE); expected: 1.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final, TypeVar

import numpy as np

from benchmarks import forwarding as io_nodes
from benchmarks.data import DATA, Row, grouped, no_measurements, print_table, rows_of, run
from vani.models import contention
from vani.models.calibration import ANCHOR, SPREAD
from vani.models.contention import Burst, Path, advised_count, path_of, predict
from vani.systems import load_system
from vani.units import GiB, MiB

IO500 = DATA / "io500" / "io500_systems_2017_2019.csv"

TABLE_6 = (
    (128, 32, 7.9, 6.2),
    (128, 256, 38.4, 33.5),
    (128, 512, 54.3, 48.7),
    (128, 1024, 72.1, 69.9),
    (128, 2048, 90.8, 88.1),
    (128, 4096, 111.4, 105.6),
    (512, 1024, 76.5, 75.8),
    (512, 2048, 111.6, 110.5),
    (512, 4096, 132.5, 130.4),
)
"""Tarazu, table 6: file size in MB, nodes, GB/s on Titan, GB/s of the paper's simulator. One file per node."""


@dataclass(frozen=True)
class Measured:
    """Mean of ten writes of one shared file by IOR (OPRAEL, Tianhe prototype)."""

    nodes: int
    processes: int
    gib: int
    count: int
    mib_s: float

    @property
    def burst(self) -> Burst:
        # IOR's segment is one block per process, far larger than a 1 MiB stripe, so no two nodes share a
        # stripe.
        return Burst(bytes=self.gib * GiB, nodes=self.nodes, processes=self.processes, stripe_count=self.count)


# Files of 8, 16 and 32 GiB; smaller ones fit into memory.
_GIB = (8, 16, 32)
_BY_COUNT = {
    1: (685, 783, 648), 2: (1128, 1233, 1144), 4: (1632, 1818, 1942), 8: (2324, 2461, 2668), 16: (2993, 2655, 3010),
    32: (2956, 3517, 3584),
}  # fmt: skip
_BY_PROCESSES = {
    1: (318, 300, 310), 2: (402, 348, 334), 4: (423, 396, 370), 8: (412, 355, 340), 16: (439, 413, 365),
    32: (399, 384, 375),
}  # fmt: skip
_BY_NODES = {
    1: (435, 373, 374), 2: (529, 481, 484), 4: (757, 598, 545), 8: (778, 688, 639), 16: (597, 660, 676),
}  # fmt: skip


def _sweep(table: Mapping[int, Sequence[float]], of: Callable[[int], dict[str, int]]) -> list[Measured]:
    one = {"nodes": 1, "count": 1}
    return [
        Measured(gib=gib, mib_s=rate, **(one | of(number)))  # type: ignore[arg-type]
        for number, rates in table.items()
        for gib, rate in zip(_GIB, rates, strict=True)
    ]


OST = _sweep(_BY_COUNT, lambda count: {"nodes": 8, "processes": 128, "count": count})
PROCESS = _sweep(_BY_PROCESSES, lambda processes: {"processes": processes})
COMPUTE_NODE = _sweep(_BY_NODES, lambda nodes: {"nodes": nodes, "processes": 32 * nodes})


def titan_burst(file_mb: int, nodes: int) -> Burst:
    """A row of table 6: one file with the default of four stripes per node."""
    moved = file_mb * 1e6 * nodes
    return Burst(bytes=moved, nodes=nodes, processes=nodes, files=nodes, stripe_count=4, opens=nodes)


def path_of_system(name: str) -> Path:
    """The first file system of a bundled description."""
    system = load_system(name)
    path = path_of(system, system.file_systems[0])
    assert isinstance(path, Path)
    return path


def tianhe_path(*, whole: bool = True) -> Path:
    """The Tianhe prototype according to its description; without `whole`, excluding the stripe sweep."""
    path = path_of_system("tianhe-prototype")
    return path if whole else replace(path, whole=None)


Found = TypeVar("Found")

Point = tuple[Burst, float]
"""A burst, and its measured bytes per second."""


def fit(points: Sequence[Point], path: Path, names: Sequence[str]) -> Path:
    """The path with the best-fitting rates for `names`: non-negative least squares of relative times."""
    measured = np.array([burst.bytes / rate for burst, rate in points])
    ones: dict[str, Any] = dict.fromkeys(names, 1.0)
    free = replace(path, **ones)
    stage = {"target": "target", "client": "client", "process": "process", "metadata_per_s": "metadata"}
    unit = np.array([[predict(burst, free).stages[stage[name]] for name in names] for burst, _ in points])
    rest = np.array([predict(burst, free).seconds for burst, _ in points]) - unit.sum(axis=1)
    found, *_ = np.linalg.lstsq(unit / measured[:, None], 1 - rest / measured, rcond=None)
    if (found <= 0).any():
        raise ValueError(f"no rates above 0 fit: {dict(zip(names, found, strict=True))}")
    rates: dict[str, Any] = {name: float(1 / value) for name, value in zip(names, found, strict=True)}
    return replace(path, **rates)


def errors(points: Sequence[Point], path: Path) -> list[float]:
    """Predicted over measured bandwidth, minus 1."""
    return [burst.bytes / predict(burst, path).seconds / rate - 1 for burst, rate in points]


def left_out(points: Sequence[Point], path: Path, names: Sequence[str]) -> list[float]:
    """Error of each point when the rates are fitted to all others."""
    return [errors([one], fit([*points[:i], *points[i + 1 :]], path, names))[0] for i, one in enumerate(points)]


def mean_abs(values: Iterable[float]) -> float:
    return statistics.fmean(abs(value) for value in values)


TITAN_FITTED = ("metadata_per_s", "client", "target")
TABLE_6_POINTS: list[Point] = [(titan_burst(size, nodes), rate * 1e9) for size, nodes, rate, _ in TABLE_6]


def oprael_points(sweep: Iterable[Measured]) -> list[Point]:
    return [(one.burst, one.mib_s * MiB) for one in sweep]


@dataclass(frozen=True)
class Score:
    """Score of an advised count for one file size: share of the best rate, and targets over the fewest needed."""

    gib: int
    count: int
    reached: float
    over: float


def measured_at(gib: int, count: float) -> float:
    """MiB/s at a stripe count, interpolated by the logarithm of the count."""
    points = [(one.count, one.mib_s) for one in OST if one.gib == gib]
    return float(np.interp(math.log(count), [math.log(n) for n, _ in points], [rate for _, rate in points]))


def score(advise: Callable[[int], float]) -> list[Score]:
    """Judge a method of choosing the count from the size of the file in GiB."""
    found = []
    for gib in _GIB:
        rates = {one.count: one.mib_s for one in OST if one.gib == gib}
        best = max(rates.values())
        fewest = min(count for count, rate in rates.items() if rate >= 0.9 * best)
        count = advise(gib)
        found.append(Score(gib, round(count), measured_at(gib, count) / best, count / fewest))
    return found


def advised(path: Path, targets: int = 32) -> Callable[[int], float]:
    return lambda gib: advised_count(Burst(bytes=gib * GiB, nodes=8, processes=128), path, targets)


BASELINES: dict[str, Callable[[int], float]] = {
    "fixed 1": lambda _: 1,
    "fixed 4": lambda _: 4,
    "sqrt(size/128MiB)+1": lambda gib: math.sqrt(gib * GiB / (128 * MiB)) + 1,
    "all 32": lambda _: 32,
}

# Typical rates of a device in bytes per second, and of a network port: general knowledge.
DEVICES = {
    "nvme": 1.5e9, "optane": 2.0e9, "3dxp": 2.0e9, "ssd": 450e6, "pd": 100e6, "persistent": 100e6,
}  # fmt: skip
HDD = 150e6
PORTS = {
    "hdr": 25e9, "edr": 12.5e9, "opa": 12.5e9, "omni": 12.5e9, "fdr": 6.8e9, "aries": 10e9, "infiniband": 12.5e9,
    "40gb": 5e9, "25gb": 3.1e9, "16gb": 2e9, "100g": 12.5e9, "8x1": 1e9,
}  # fmt: skip
ETHERNET = 1.25e9
LOCKING = ("lustre", "gpfs")


@dataclass(frozen=True)
class Submission:
    """One row of IO500: its machine as the model represents it, and measured GB/s by phase and direction."""

    number: int
    kind: str
    nodes: int
    processes: int
    path: Path
    gb_s: dict[str, float]

    def burst(self, phase: str) -> Burst:
        moved = 1e9 * self.nodes
        if phase.startswith("ior_easy"):
            return Burst(bytes=moved, nodes=self.nodes, processes=self.processes, files=self.processes)
        per_node = max(1, self.processes // self.nodes)
        # Records of 47,008 bytes, with those of a node's neighbouring ranks next to each other.
        return Burst(
            bytes=moved, nodes=self.nodes, processes=self.processes, stripe_count=self.path.targets or 1,
            piece=47008 * per_node, stripe_size=max(MiB, 47008 * per_node + 1),
        )  # fmt: skip

    def predicted(self, phase: str) -> float:
        burst = self.burst(phase)
        return burst.bytes / predict(burst, self.path).seconds / 1e9


def read_io500(file: FilePath = IO500) -> list[Submission]:
    """Submissions that state their numbers of servers and devices."""
    return [one for row in rows_of(file) if (one := _submission(row)) is not None]


def _submission(row: dict[str, str]) -> Submission | None:
    def number(name: str) -> float:
        found = re.match(r"\d+(\.\d+)?", row[f"information_{name}"].strip())
        return float(found[0]) if found else 0.0

    nodes, processes = int(number("client_nodes")), int(number("client_total_procs"))
    servers, devices = int(number("ds_nodes")), int(number("ds_storage_devices"))
    if not nodes or not processes or not servers or not devices:
        return None
    if devices >= 4 * servers and devices % servers == 0:
        # The form does not state whether it counts one server or all; few have more than a shelf.
        devices //= servers
    kind, network = row["information_ds_storage_type"].lower(), row["information_ds_network"].lower()
    rate, port = _named_in(kind, DEVICES, HDD), _named_in(network.replace(" ", ""), PORTS, ETHERNET)
    # Ten disks form one target with the rate of eight (RAID 6).
    per_server = max(1, devices // 10) if rate == HDD else devices
    target = rate * 8 if rate == HDD else rate
    phases = ("ior_easy_write", "ior_hard_write")
    gb_s = {phase: float(row[phase]) for phase in phases if row[phase] not in {"", "0"}}
    name = _named_in(row["information_filesystem_type"].lower(), _KINDS, "other")
    path = Path(
        target=target, targets=per_server * servers, server=port if port < target * per_server else None,
        servers=servers, client=min(contention.CLIENT_RATE, port),
        lock_s=contention.LOCK_S if name in LOCKING else 0.0,
    )  # fmt: skip
    return Submission(int(float(row["id"])), name, nodes, processes, path, gb_s)


_KINDS = {
    "lustre": "lustre", "beegfs": "beegfs", "spectrum": "gpfs", "gpfs": "gpfs", "gridscaler": "gpfs", "weka": "weka",
    "nas": "nas", "nfs": "nas", "vast": "nas", "ceph": "ceph", "suse": "ceph", "ime": "ime",
}  # fmt: skip


def _named_in(text: str, table: Mapping[str, Found], otherwise: Found) -> Found:
    """The value of the first word of a table that a text contains."""
    return next((value for word, value in table.items() if word in text), otherwise)


def fit_lock(submissions: Iterable[Submission]) -> float:
    """The LOCK_S at which the median ratio of predicted to measured ior-hard writes on Lustre is 1."""
    rows = [one for one in submissions if one.kind == "lustre" and "ior_hard_write" in one.gb_s]

    def bias(lock_s: float) -> float:
        return statistics.median(
            math.log(replace(one, path=replace(one.path, lock_s=lock_s)).predicted("ior_hard_write"))
            - math.log(one.gb_s["ior_hard_write"])
            for one in rows
        )

    low, high = 1e-6, 10.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if bias(middle) > 0 else (low, middle)
    return low


def _print_tarazu() -> None:
    path = path_of_system("titan")
    fitted = fit(TABLE_6_POINTS, path, TITAN_FITTED)
    own, out = errors(TABLE_6_POINTS, path), left_out(TABLE_6_POINTS, path, TITAN_FITTED)
    rows = [
        (size, nodes, rate, simulator, f"{rate * (1 + error):.1f}", f"{error:+.1%}", f"{left:+.1%}")
        for (size, nodes, rate, simulator), error, left in zip(TABLE_6, own, out, strict=True)
    ]
    head = ("MB", "nodes", "measured", "simulator", "model", "error", "left out")
    print_table("Tarazu, table 6 (Titan, one file per node, GB/s)", head, rows)
    paper = mean_abs(simulator / rate - 1 for _, _, rate, simulator in TABLE_6)
    print(f"  mean error: model {mean_abs(own):.1%} (largest {max(map(abs, own)):.1%}), simulator {paper:.1%}")
    print(f"  leave one out: {mean_abs(out):.1%} (largest {max(map(abs, out)):.1%})")
    print("  fitted: " + ", ".join(f"{name} {getattr(fitted, name):.4g}" for name in TITAN_FITTED))


def _print_oprael() -> None:
    bare = tianhe_path(whole=False)
    fitted = fit(oprael_points([*PROCESS, *COMPUTE_NODE]), bare, ("process", "client", "target"))
    print("\nOPRAEL (Tianhe prototype, one shared file, writes of 8 GiB and more)")
    print(f"  fitted to `process` and `compute_node`: target {fitted.target:.4g}, client {fitted.client:.4g}, process "
          f"{fitted.process:.4g} bytes/s")  # fmt: skip
    at_all = [one for one in OST if one.count == 32]
    rest = statistics.fmean(1 / (one.mib_s * MiB) for one in at_all) - statistics.fmean(
        predict(one.burst, bare).seconds / one.burst.bytes for one in at_all
    )
    whole = 1 / (rest + 1 / (32 * bare.target))
    print(f"  max_bandwidth from the 32-target end of `ost`: {whole:.3g} bytes/s")
    rows = []
    for name, sweep in (("process", PROCESS), ("compute_node", COMPUTE_NODE), ("ost", OST)):
        for label, path in (("", tianhe_path()), (", nothing of `ost` known", bare)):
            found = errors(oprael_points(sweep), path)
            cells = (mean_abs(found), statistics.fmean(found), max(found, key=abs))
            rows.append((f"sweep {name}{label}", *(f"{cell:+.1%}" for cell in cells)))
    print_table("Errors", ("", "mean error", "mean", "worst"), rows)
    rows = []
    choices = {"model": advised(tianhe_path()), "model, nothing of `ost` known": advised(bare), **BASELINES}
    for name, advise in choices.items():
        scores = score(advise)
        reached = [one.reached for one in scores]
        counts, over = (f"{one.count}" for one in scores), (f"{one.over:.2g}" for one in scores)
        shares = (f"{statistics.fmean(reached):.0%}", f"{min(reached):.0%}")
        rows.append((name, *shares, "/".join(counts), "/".join(over)))
    title = "Stripe count advised on sweep `ost` (share of the best measured; targets over the fewest for 90 %)"
    print_table(title, ("", "mean", "worst", "targets", "of needed"), rows)


def _print_io500() -> None:
    if not IO500.exists():
        print(f"\nIO500: {IO500.name} is not there")
        return
    submissions = read_io500()
    even = [one for one in submissions if one.number % 2 == 0]
    groups: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for one in submissions:
        for phase, rate in one.gb_s.items():
            is_fitted = phase == "ior_hard_write" and one.kind == "lustre" and one in even
            groups[phase, f"{one.kind} (fitted)" if is_fitted else one.kind].append(one.predicted(phase) / rate)
    rows = []
    for (phase, kind), ratios in sorted(groups.items()):
        within = (f"{statistics.fmean(1 / k <= ratio <= k for ratio in ratios):.0%}" for k in (3, 10))
        rows.append((phase, kind, len(ratios), f"{statistics.median(ratios):.2f}", *within))
    title = f"IO500, 2017 to 2019: {len(submissions)} submissions that state servers and devices, predicted / measured"
    print_table(title, ("", "", "n", "median", "within 3x", "within 10x"), rows, left=2)
    lock_s = f"{fit_lock(even):.2g} s (in use: {contention.LOCK_S:.2g})"
    print(f"  LOCK_S fitted to ior-hard on Lustre, even ids: {lock_s}")


def main(*, coverage: bool = False, forwarding: bool = False) -> None:
    """Print everything, or the requested part."""
    if coverage:
        print_coverage()
    elif forwarding:
        io_nodes.main()
    else:
        _print_tarazu()
        _print_oprael()
        _print_io500()


NOMINAL: Final = 0.9
"""Share of points that a range should contain."""

# One in a hundred more, since the next machine is not among the measured ones (our choice).
_FITTED: Final = NOMINAL + 0.01

# Machines with runs repeated daily; others have few runs of a kind.
_MIN_REPEATS: Final = 20

Points = Mapping[str, Sequence[float]]
"""Logarithms of measured over expected speed-up, by machine."""


def points(data: FilePath = DATA) -> dict[str, list[float]]:
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


def print_coverage(data: FilePath = DATA) -> None:
    """The table of `python -m benchmarks.models --coverage`."""
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


def _tianhe(file: FilePath) -> Iterator[float]:
    def burst(row: Row) -> tuple[float, int] | None:
        # Smaller files fit into memory.
        known = row["sweep"] == "ost" and row["op"] == "write" and float(row["file_gib"]) >= 8
        return (float(row["file_gib"]), int(float(row["stripe_count"]))) if known else None

    runs = grouped(file, burst, lambda row: float(row["bw_mib_s"]))
    path = path_of_system("tianhe-prototype")
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


def _days(file: FilePath) -> Iterator[float]:
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


def _repetitions(file: FilePath) -> Iterator[float]:
    names = ("forwarders", "clients", "processes", "layout", "spatiality", "request")
    runs = grouped(file, lambda row: tuple(row[name] for name in names), lambda row: float(row["bandwidth"]))
    return (step for found in runs.values() for step in _steps(found))


def _steps(rates: Sequence[float]) -> Iterator[float]:
    return (math.log(after / before) for before, after in itertools.pairwise(rates))


if __name__ == "__main__":
    run(main)
