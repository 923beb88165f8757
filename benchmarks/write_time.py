"""`python -m benchmarks.write_time`: models of write times on writes to which they were not fitted.

The writes come from generated machines with known stages, OPRAEL's sweeps on the Tianhe prototype, and the 189
patterns of MareNostrum 4; the last two need `../shared/data`. Then follow the values that Xie et al. (IPDPS 2019)
print next to the bundled ones, the time of their search, and cases in which no model can be good: a single run's time
(the daily probes of TOKIO-ABC), few submissions (IO500), and each machine predicted from the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.data import DATA, Row, grouped, print_table, rows_of, run
from tests.history.write_time_machines import CETUS, LARGE, LAWS, SMALL, TITAN, Machine, drawn, generated
from vani.centre.history.daily import LAST, usual_range
from vani.centre.write_time.choice import choose, judge
from vani.centre.write_time.fit import with_paper_features
from vani.centre.write_time.methods import METHODS, search
from vani.centre.write_time.published import PUBLISHED, Groups, Write
from vani.centre.write_time.samples import Samples
from vani.errors import InputError
from vani.units import GiB

PRINTED = {
    "cetus": {"small": (97.12, 98.56), "medium": (65.56, 85.56), "unconverged": (41.84, 60.2)},
    "titan": {"small": (98.61, 99.65), "medium": (96.10, 98.2), "unconverged": (19.15, 25.53)},
}
"""Table VI: percentage off by at most 20 and 30 %."""

ABOVE_30 = {"cetus": 11.1, "titan": 6.29}
"""Section IV-D: percentage of all samples that are off by more."""

_BINDS = 0.01
"""Minimum share of the samples in which a stage takes most time for it to bind."""


def table_v() -> Iterator[tuple[str, float, float]]:
    """Name, seconds computed by hand from the printed coefficients, and seconds as bundled."""
    skew, mk = 110 * 8 * 500, 8 * 500
    by_hand = (
        1.7826 + 3.485e-4 * 500 - 0.010 * 2 + 2.91e-4 * skew + 8.963e-5 * (5 * 500 / 4) + 1.463e-6 * 128 * mk
        + 2.116e-4 * mk + 9.315e-11 * mk * skew + 1.925e-10 * skew * 144
    )  # fmt: skip
    terms = PUBLISHED["titan"].terms(Write(128, 8, 500.0, 4), {"router": Groups(110, 2)})
    yield "Titan, 128 x 8 x 500 MB, 4 stripes, packed", by_hand, sum(term.seconds for term in terms)
    skew, bursts = 64 * 16 * 100, 64 * 16
    by_hand = (
        0.902 + 0.0864 * 16 + 5.812e-4 * skew + 4.301e-5 * skew + 2.646e-4 * bursts + 0.0022 * 1600
        + 2.535e-4 * bursts * 13 + 5.167e-4 * skew + 3.238e-6 * bursts * 13 + 5.958e-13 * skew * skew
        + 2.97e-10 * skew * bursts * 13
    )  # fmt: skip
    groups = dict.fromkeys(("I/O node", "bridge", "link"), Groups(64, 1))
    terms = PUBLISHED["cetus"].terms(Write(64, 16, 100.0), groups)
    yield "Cetus, 64 x 16 x 100 MB, behind one of each", by_hand, sum(term.seconds for term in terms)


def table_vi() -> Iterator[tuple[str, str, float, float]]:
    """Machine, set, and percentages within 20 and 30 % from the bundled counts."""
    for system, model in PUBLISHED.items():
        for one in model.tested:
            yield system, one.name, 100 * one.within_20 / one.writes, 100 * one.within_30 / one.writes


def above_30(system: str) -> float:
    """Percentage of all tested samples that are off by more than 30 %, from the counts."""
    tested = PUBLISHED[system].tested
    return 100 * (1 - sum(one.within_30 for one in tested) / sum(one.writes for one in tested))


def stage_parameters() -> Iterator[tuple[str, dict[str, float]]]:
    """For generated machines, the fitted over the true costs of binding stages.

    Mean measured times are above the true ones by the mean of the noise, which a sum of squares follows. The
    slowest stage is fitted robustly, which follows the median.
    """
    for machine in (CETUS, TITAN):
        for law in ("additive", "bottleneck"):
            samples, true = generated(machine, law, SMALL, 400, 1)
            columns = with_paper_features(samples, PUBLISHED[machine.name].pool)
            method = "stage_sum" if law == "additive" else "bottleneck"
            noise = float((samples.seconds / true).mean()) if law == "additive" else 1.0
            fitted = METHODS[method].fit(columns, samples.numbers["nodes"], {})["coefficients"]
            parts = np.stack([columns.numbers[name] * cost for name, cost in machine.stages.items()])
            slowest = np.bincount(parts.argmax(axis=0), minlength=len(parts)) / parts.shape[1]
            binding = zip(machine.stages.items(), slowest, strict=True)
            ratios = {n: fitted.get(n, 0.0) / (cost * noise) for (n, cost), share in binding if share >= _BINDS}
            yield f"{machine.name}, {law}", ratios


def search_seconds() -> tuple[int, float]:
    """Number of samples, and seconds for the exact paths of all 255 subsets of eight scales."""
    samples, _ = generated(CETUS, "additive", SMALL, 400, 1)
    columns = with_paper_features(samples, PUBLISHED["cetus"].pool)
    began = time.perf_counter()
    search(columns, samples.numbers["nodes"], {}, relative=False)
    return len(samples), time.perf_counter() - began


def print_paper() -> None:
    """Print all comparisons."""
    print("\nTable V by hand and as bundled:")
    for name, hand, bundled in table_v():
        print(f"  {name}: {hand:.4f} s, {bundled:.4f} s (apart by {abs(bundled / hand - 1):.0e})")
    print("\nTable VI from its counts (printed in brackets), within 20 and 30 %:")
    for system, name, within_20, within_30 in table_vi():
        p20, p30 = PRINTED[system][name]
        print(f"  {system} {name:<12} {within_20:.2f} ({p20:g})  {within_30:.2f} ({p30:g})")
    for system, printed in ABOVE_30.items():
        print(f"  {system} off by more than 30 %: {above_30(system):.2f} ({printed:g})")
    print("\nCosts of stages that bind, fitted over true:")
    for name, ratios in stage_parameters():
        print(f"  {name}: {', '.join(f'{stage} {ratio:.3f}' for stage, ratio in ratios.items())}")
    count, seconds = search_seconds()
    print(f"\nLasso, exact paths of 255 subsets, {count:,} samples: {seconds:.1f} s")
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
    names = ("tot_bytes_written", "tot_bytes_read", "agg_perf_by_slowest")

    def figures(row: Row) -> list[float]:
        """Bytes written and read, MiB/s, and the start."""
        return [float(row[name] or "nan") for name in (*(f"darshan_{n}_posix" for n in names), "darshan_start_time")]

    def kind(row: Row) -> tuple[str, ...] | None:
        written, read, rate, start = figures(row)
        way = "write" if written > read else "read"
        shared = "shared" if float(row[f"darshan_biggest_{way}_api_files"] or 0) < 10 else "own files"
        known = rate > 0 and np.isfinite(start)
        return (row["app"], row["_file_system"], way, shared, row["darshan_nprocs"]) if known else None

    def timed(row: Row) -> tuple[float, float]:
        written, read, rate, start = figures(row)
        return start, (written + read) / 2**20 / rate

    ratios: list[float] = []
    within: list[bool] = []
    for runs in grouped(path, kind, timed).values():
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

    def figures(row: Row) -> tuple[float, float, float]:
        """Nodes, tasks, and bytes per second."""
        tasks, per_node = float(row["tasks"] or 0), float(row["clients_per_node"] or 0)
        nodes = float(row["nodes"] or 0) or (tasks / per_node if per_node else 0.0)
        return nodes, tasks, float(row["bw_mib_s"] or 0) * 2**20

    def system(row: Row) -> tuple[str, ...] | None:
        is_known = row["op"] == "write" and min(figures(row)) > 0
        return (row["institution"], row["system"], row["fs"], row["phase"]) if is_known else None

    ratios = [ratio for rows in grouped(path, system, figures).values() for ratio in _largest(np.array(rows))]
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
            if here == there:
                continue
            shared = train.numbers.keys() & test.numbers.keys()
            small, large = (
                Samples({name: one.numbers[name] for name in sorted(shared)}, {}, one.seconds) for one in (train, test)
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
    edison, mira = daily("Edison", "edison_2017-02_2018-02.csv.gz"), daily("Mira", "mira_2017-02_2017-10.csv.gz")
    for held in (edison, mira, io500()):
        if held is not None:
            print(f"  {held}")
    for here, there, share in transferred(machines):
        print(f"  fitted to {here}, asked for {there}: at most {100 * share:.0f} within 30 %, by any method")


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
    numbers = {name: np.concatenate([one.numbers[name] for one in parts]) for name in parts[0].numbers}
    whole = Samples(numbers, {}, np.concatenate([one.seconds for one in parts]))
    nodes = np.concatenate([small.numbers["nodes"], large.numbers["nodes"]])
    return Case(f"{name}: 1-128 -> 200-512 nodes", whole, nodes, nodes <= max(SMALL), true)


def oprael() -> Iterator[Case]:
    """Writes of one shared file; those below 8 GiB fit into memory."""
    path = DATA / "oprael-tianhe-ior" / "oprael_ior_runs.csv"
    if not path.exists():
        return

    def write(row: Row) -> tuple[float, ...] | None:
        if row["op"] != "write" or row["sweep"] not in ("ost", "process", "compute_node"):
            return None
        return tuple(float(row[name] or 1) for name in ("true_nodes", "procs", "file_gib", "stripe_count"))

    runs = grouped(path, write, lambda row: (row["sweep"], float(row["total_s"])))
    columns = dict(zip(("nodes", "processes", "bytes", "stripe_count"), np.array(list(runs)).T, strict=True))
    columns["bytes"] = columns["bytes"] * GiB
    samples = Samples(columns, {}, np.array([np.mean([seconds for _, seconds in some]) for some in runs.values()]))
    moved = columns["bytes"]
    yield Case("Tianhe, all sweeps: <= 8 -> 16, 32 GiB", samples, moved, moved <= 8.1 * GiB)
    processes = samples.only(np.array(["process" in dict(some) for some in runs.values()]))
    count = processes.numbers["processes"]
    yield Case("Tianhe, processes: <= 8 -> 16, 32", processes, count, count <= 8)


def forge() -> Iterator[Case]:
    """The 189 patterns of MareNostrum 4: more nodes, and a fifth of the patterns."""
    path = DATA / "forge-mn4" / "forge_mn4_scenarios.csv"
    if not path.exists():
        return
    rows = list(rows_of(path))
    columns = {"nodes": "compute_nodes", "processes": "processes", "request": "request_kib", "io_nodes": "io_nodes"}
    numbers = {ours: np.array([float(row[theirs]) for row in rows]) for ours, theirs in columns.items()}
    numbers["request"] *= 1024
    numbers["bytes"] = np.full(len(rows), float(GiB))
    words = {name: np.array([row[name] for row in rows]) for name in ("layout", "spatiality")}
    samples = Samples(numbers, words, np.array([1024 / float(row["bw_mean"]) for row in rows]))
    nodes = numbers["nodes"]
    yield Case("MareNostrum 4: 8, 16 -> 32 nodes", samples, nodes, nodes < 32)
    names = sorted({row["scenario"] for row in rows})
    left = set(np.random.default_rng(0).permutation(names)[: len(names) // 5].tolist())
    known = np.array([row["scenario"] not in left for row in rows])
    yield Case("MareNostrum 4: a fifth of the patterns", samples, nodes, known)


def judge_case(case: Case) -> float:
    """Print how well each method and the chosen one predict a case; return the coverage of the interval."""
    train, test = case.samples.only(case.small), case.samples.only(~case.small)
    began = time.process_time()
    judged = [judge(name, train, case.scale[case.small], test) for name in METHODS]
    chosen = choose(train, case.scale[case.small])
    spent = time.process_time() - began
    predicted = chosen.predict(test)
    low, high = chosen.interval(test, case.scale[~case.small] / case.scale[case.small].max())
    off = {f"chosen: {chosen.method}": np.abs(predicted / test.seconds - 1)}
    if case.true is not None:
        off = {"the known mean": np.abs(case.true / test.seconds - 1)} | off
    rows = [(one.method, one.within(0.3), one.within(0.2)) for one in judged]
    rows += [(name, (some <= 0.3).mean(), (some <= 0.2).mean()) for name, some in off.items()]
    title = f"{case.name}: {len(train):,} -> {len(test):,} writes ({spent:.0f} s), percentage within 30 and 20 %"
    print_table(title, ("", "30", "20"), [(name, f"{100 * a:.0f}", f"{100 * b:.0f}") for name, a, b in rows])
    covered = float(((test.seconds >= low) & (test.seconds <= high)).mean())
    bounds = " to ".join(f"{np.median(bound / predicted):.2f}" for bound in (low, high))
    print(f"  its interval, {bounds}, contains {100 * covered:.0f} %")
    return covered


def main(*, drawn: int = 0) -> None:
    """Print a table per case, then the paper's values and the limits; or only `drawn` machines of each law."""
    real = [] if drawn else [*oprael(), *forge()]
    cases = drawn_machines(drawn) if drawn else [*real, *machines()]
    shares = 100 * np.array([judge_case(case) for case in cases])
    print(
        f"\nIntervals contain {shares.mean():.0f} % on average, {shares.min():.0f} % at least; 80 to 97 % in "
        f"{((shares >= 79.5) & (shares <= 97.5)).sum()} of {len(shares)} cases, less in {(shares < 79.5).sum()}"
    )
    if not drawn:
        print_paper()
        print_limits({case.name.split(",")[0].split(":")[0]: case.samples for case in real})


if __name__ == "__main__":
    run(main)
