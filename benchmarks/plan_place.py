"""`python -m benchmarks.plan_place [place] [tarazu] [library]`: placements of files compared with Tarazu (Paul et al.).

- `place`: rows of tables 1, 2, 4 and 5, and the OST Cost on the testbed of seven servers with five OSTs of 10 GiB
  each. The cost is shown next to the minimum, which is proved by counting or by HiGHS over all ways to fill an OST,
  and next to the paper's LSA with simulated ranges. Sixteen files of 2 GiB that grow together are simulated four
  ways.
- `tarazu`: figures 7 and 21, bytes on OSTs and servers of the testbed; figure 22, bandwidth there; figure 23, that of
  three jobs of table 7 on up to 3,600 OSTs; figure 14, how a Darshan log becomes a workload (section 6.3). The paper
  prints few of the plotted values, and no rate of the testbed or of the clients, so only ratios can be compared.
- `library`: the time that the placement library adds to creating a file. A C program creates files with open(2) and
  closes them, with and without the library in turn, on a file system in memory and on a disk. A stand-in for
  liblustreapi creates files like the real one but contacts no server. Whether the added time matters depends on the
  cost of a file on Lustre, which is not measured here: the share is computed for a create of 1 ms, and the create
  time at which it is 1 % (AIOT's bound) is printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

import vani
from benchmarks.data import ROOT, print_parts, print_table
from tests.plan.published import PFL_1, PFL_2, PIECES, TARGET, compared, written_and_read
from vani.centre.placement_library.database import store
from vani.centre.placement_library.interactions import Interaction
from vani.centre.plan.place import place
from vani.centre.plan.placement.layouts import Writing, extents
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PlacePlan, PlaceSettings
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.simulate import Named, play_all, simulate
from vani.models.pfl import CONFIGURATION_1, CONFIGURATION_2, Component, Layout
from vani.schema.profile import Profile
from vani.systems import load_system
from vani.units import GiB

OSTS, SERVERS = 35, 7

LAYOUTS = {"non-PFL": Layout((Component(None, 8),)), "PFL-1": CONFIGURATION_1, "PFL-2": CONFIGURATION_2}
"""Tarazu, section 7.1.4."""

HACC_16, HACC_8 = round(11.7 * GiB / 16), round(14.3 * GiB / 8)
"""Bytes of a file of HACC-I/O with 16 and 8 processes (section 7.2.2)."""


@dataclass(frozen=True)
class Case:
    """Files by layout, and the paper's OST Costs; None if it prints none."""

    name: str
    files: tuple[tuple[int, int, str], ...]
    lsa: float | None = None
    tarazu: float | None = None


CASES = (
    Case("IOR 32 GB, non-PFL", ((16, 2 * GiB, "non-PFL"),), 1.56, 1.08),
    Case("IOR 32 GB, PFL-1", ((16, 2 * GiB, "PFL-1"),), 1.58, 1.08),
    Case("IOR 32 GB, PFL-2", ((16, 2 * GiB, "PFL-2"),), 1.50, 1.02),
    Case("IOR 128 GB, non-PFL", ((16, 8 * GiB, "non-PFL"),), 1.25, 1.10),
    Case("IOR 128 GB, PFL-1", ((16, 8 * GiB, "PFL-1"),)),
    Case("IOR 128 GB, PFL-2", ((16, 8 * GiB, "PFL-2"),)),
    Case("HACC 16 p, non-PFL", ((16, HACC_16, "non-PFL"),), 1.8, 1.2),
    Case("HACC 16 p, PFL-1", ((16, HACC_16, "PFL-1"),)),
    Case("HACC 16 p, PFL-2", ((16, HACC_16, "PFL-2"),)),
    Case("HACC 8 p, non-PFL", ((8, HACC_8, "non-PFL"),)),
    Case("HACC 8 p, PFL-1", ((8, HACC_8, "PFL-1"),)),
    Case("HACC 8 p, PFL-2", ((8, HACC_8, "PFL-2"),)),
    Case("IOR 64 GB PFL-1 + HACC 8 p PFL-2", ((8, 8 * GiB, "PFL-1"), (8, HACC_8, "PFL-2")), 1.46, 1.08),
    Case("IOR, one shared file of 8 GB", ((1, 8 * GiB, "non-PFL"),)),
)

TABLE_1 = (
    (1, 0, 134_217_728, 134_217_728, 1),
    (2, 134_217_728, 536_870_912, 134_217_728, 3),
    (3, 536_870_912, 2_147_483_648, 201_326_592, 8),
    (4, 2_147_483_648, 8_589_934_592, 402_653_184, 16),
)
"""Extent, start, end, stripe size and stripe count of each of two files of 8 GiB; table 4 adds the OSTs."""

TABLE_2 = (1, 0, 8_589_934_592, 1_073_741_824, 8)
"""The same without PFL; table 5 adds the OSTs."""


TABLE_4 = (
    "10", "24 29 34", "15 2 28 25 11 21 7 33", "14 23 16 30 1 6 4 26 32 20 12 31 22 35 5 17",
    "24", "13 9 29", "22 11 35 21 5 7 17 10", "14 23 16 30 1 6 15 4 26 2 32 20 12 28 31 25",
)  # fmt: skip
TABLE_5 = ("30 20 5 1 22 35 14 23", "20 19 1 9 29 2 33 18")
"""OSTs of the extents of both files, as printed."""


_SETTINGS = PlaceSettings.model_validate({
    "method": "balanced", "past_weight": 1.0, "ceiling": 1.0, "cpu_weight": 0.5, "memory_weight": 0.5,
    "turn": "going-on", "window": 0.17, "seed": 0, "seeds": 5,
})  # fmt: skip


def cost_of_lists(lists: Sequence[str], layout: str) -> float:
    """OST Cost of two files of 8 GiB on lists of OSTs, which the paper numbers from 1."""
    held = np.zeros(OSTS)
    requests = requests_of(Case("", ((2, 8 * GiB, layout),)), as_printed=True)
    for one, stripes in zip(lists, requests, strict=True):
        np.add.at(held, np.array(one.split(), dtype=int) - 1, np.array(stripes, dtype=float))
    return float(held.max() / held.mean())


def tarazu_machine(first: int = 0) -> Snapshot:
    """The empty testbed; tables 4 and 5 number OSTs from 1."""
    servers = [{"name": f"oss{n}", "cpu": 0.2, "memory": 0.3} for n in range(SERVERS)]
    targets = [
        {"index": n + first, "oss": f"oss{n // (OSTS // SERVERS)}", "size": 10 * GiB, "used": 0} for n in range(OSTS)
    ]
    return Snapshot.model_validate({"oss": servers, "ost": targets})


def jobs_of(case: Case) -> Jobs:
    """A job per kind of file."""
    jobs = []
    for number, (count, size, layout) in enumerate(case.files):
        options = "-c 8" if layout == "non-PFL" else LAYOUTS[layout].to_options()
        creations = [
            {"path": f"/mnt/lustre/{number}/test.{rank}", "size": size, "rank": rank, "layout": options}
            for rank in range(count)
        ]
        jobs.append({"name": f"job{number}", "nodes": 1, "creations": creations})
    return Jobs.model_validate({"jobs": jobs})


@cache
def planned(case: Case, method: str = "balanced", *, seeds: int = 5, first: int = 0) -> PlacePlan:
    """A plan for a case on the empty testbed, whose OSTs may be filled completely."""
    settings = _SETTINGS.model_copy(update={"method": method, "seeds": seeds})
    return place(jobs_of(case), tarazu_machine(first), settings)


def requests_of(case: Case, *, as_printed: bool = False) -> list[tuple[int, ...]]:
    """Bytes by stripe of every extent of every file."""
    return [
        one.stripes
        for count, size, layout in case.files
        for _ in range(count)
        for one in extents(LAYOUTS[layout], size, OSTS, None if as_printed else Writing())
    ]


def proved_least(requests: Sequence[Sequence[int]], targets: int = OSTS) -> float:
    """The minimum OST Cost on equal, empty targets: HiGHS over all ways to fill one up to a level.

    Only the counts of each size enforce that stripes of a request need distinct targets, so this is a lower bound;
    if a placement reaches it, it is the minimum.
    """
    counts = Counter(size for one in requests for size in one if size)
    sizes = sorted(counts, reverse=True)
    most = [min(counts[size], sum(size in one for one in requests)) for size in sizes]
    mean = sum(counts.elements()) / targets
    ways = _ways(sizes, most, max(*sizes, 2 * mean))
    held = ways @ np.array(sizes)
    levels = np.unique(held[held >= mean * (1 - 1e-12)])
    low, high = 0, len(levels) - 1
    while low < high:
        middle = (low + high) // 2
        if _fills(ways[held <= levels[middle]], [counts[size] for size in sizes], targets):
            high = middle
        else:
            low = middle + 1
    return float(levels[low] / mean)


def _ways(sizes: Sequence[int], most: Sequence[int], limit: float) -> np.ndarray:
    ranges = [range(min(top, int(limit // size)) + 1) for size, top in zip(sizes, most, strict=True)]
    every = np.array(list(product(*ranges)))
    return every[every @ np.array(sizes) <= limit]


def _fills(ways: np.ndarray, counts: Sequence[int], targets: int) -> bool:
    number, wanted = len(ways), np.array([*counts, targets])
    constraints = LinearConstraint(np.vstack([ways.T, np.ones(number)]), wanted, wanted)
    found = milp(np.zeros(number), constraints=constraints, integrality=np.ones(number), bounds=Bounds(0, targets))
    return bool(found.status == 0)


def print_tables() -> None:
    """Tables 1, 2, 4 and 5 for the first file: ours, and the paper's figures if they differ."""
    for title, layout, paper, lists in (
        ("Tables 1 and 4 (PFL configuration 1)", "PFL-1", TABLE_1, TABLE_4),
        ("Tables 2 and 5 (non-PFL)", "non-PFL", (TABLE_2,), TABLE_5),
    ):
        case = Case(title, ((2, 8 * GiB, layout),))
        plan = planned(case, "tarazu", first=1)
        print(f"{title}: extent, start, end, stripe size (as set), stripes, OSTs")
        for one, row in zip(plan.files[0].extents, paper, strict=True):
            found = (one.number, one.start, one.end, one.stripe_size, one.stripe_count)
            equal = "as in the paper" if found == row else f"paper {row}"
            print(f"  {one.number} {one.start:,} {one.end:,} {one.stripe_size:,} ({one.set_stripe_size:,}) "
                  f"{one.stripe_count}  {' '.join(map(str, one.osts))}  {equal}")  # fmt: skip
        print("  OST Cost of both files on the OSTs that the paper prints, which follow from loads that it does not: "
              f"{cost_of_lists(lists, layout):.3f}; balanced {planned(case).after.ost_cost:.3f}, algorithm 1 on idle "
              f"servers {plan.after.ost_cost:.3f}")  # fmt: skip


def print_costs(seeds: int = 200) -> None:
    """OST Cost by case, next to the minimum and the paper's."""
    rows = []
    for case in CASES:
        plan = planned(case, seeds=seeds)
        cost = plan.after.ost_cost or 0.0
        least = proved_least(requests_of(case)) if len(case.files) == 1 else plan.least or 0.0
        rules = {one.rule: one.ost_cost for one in plan.allocator}
        rows.append((
            case.name, f"{cost:.4f}", f"{least:.4f}{'=' if cost <= least * (1 + 1e-9) else '<'}",
            f"({case.tarazu:.2f})" if case.tarazu else "",
            f"{planned(case, 'tarazu', seeds=1).after.ost_cost or 0.0:.2f}",
            f"({case.lsa:.2f})" if case.lsa else "", f"{rules['going-on'].median:.2f}",
            *(_range(rules[rule], ".2f") for rule in ("random-start", "by-space")),
        ))  # fmt: skip
    head = ("", "balanced", "least", "(Tarazu's)", "algorithm 1", "LSA: (paper)", "going on", "random start",
            "by free space")  # fmt: skip
    print_table("OST Cost on 7 x 5 OSTs (paper)", head, rows)


def _range(some: Any, form: str, scale: float = 1.0) -> str:
    """The median of an allocator's costs over seeds, and their range."""
    low, median, high = (format(one * scale, form) for one in (some.low, some.median, some.high))
    return f"{median} ({low} to {high})"


def sixteen_files() -> dict[str, float]:
    """Simulated seconds of sixteen processes that each write 2 GiB on 8 of 35 OSTs of 1.2 GB/s, four ways.

    The ways are one contiguous piece per OST in ascending order, as in earlier plans; the same OSTs in the order of
    today's plan; Lustre without a plan; and today's plan with the stripe size that it chooses.
    """
    (job,) = jobs_of(Case("", ((16, 2 * GiB, "non-PFL"),))).jobs
    machine = {"snapshot": "now", "target": 1.2e9, "node": 1e11, "process": 1e10}
    seconds = {}
    for name, layout, is_planned, ascending in (
        ("pieces of 256 MiB, OSTs ascending", "-c 8 -S 256M", True, True),
        ("pieces of 256 MiB, OSTs of the plan", "-c 8 -S 256M", True, False),
        ("pieces of 256 MiB, no plan", "-c 8 -S 256M", False, False),
        ("stripes of 4 MiB, OSTs of the plan", "-c 8", True, False),
    ):
        creations = [creation.model_copy(update={"layout": layout}) for creation in job.creations]
        jobs = Jobs(jobs=[job.model_copy(update={"processes": 16, "creations": creations})])
        plan = place(jobs, tarazu_machine(), _SETTINGS)
        for extent in (extent for file in plan.files for extent in file.extents if ascending):
            extent.osts.sort()
        scenario = Scenario.model_validate({"machine": machine, "jobs": "jobs", "plans": ["plan"] * is_planned})
        plans = {"plan": plan.model_copy(update={"pin": True})} if is_planned else {}
        named = Named(snapshots={"now": tarazu_machine()}, plans=plans, jobs=jobs)
        seconds[name] = float(play_all(scenario, named)[0].makespans[0])
    return seconds


def print_placements() -> None:
    """Tables 1 to 5, OST Cost, and the seconds of sixteen files, four ways."""
    print_tables()
    print_costs()
    rows = [(name, f"{seconds:.2f} s") for name, seconds in sixteen_files().items()]
    title = "Sixteen files of 2 GiB on 8 of 35 OSTs each, OST Cost 1.094 in all four"
    print_table(title, ("", "simulated"), rows)

LOGS = sorted((ROOT / "tests" / "data" / "darshan").glob("*.darshan"))
"""Logs of Darshan 3 with calls (DXT) or heat maps, which show phases."""
STRIPES_BY_LAYOUT: dict[str, int | str] = {"N": 8, "C1": PFL_1, "C2": PFL_2}
TABLE_7 = {
    "genomicPrediction": (128, 110.6e9, 80.2e9), "E3SM": (256, 100.8e9, 150.3e9), "cosmoFlow": (64, 250.6e9, 52.4e9),
}  # fmt: skip
"""Compute nodes, bytes read and bytes written of each job."""
SCALES = (160, 800, 3600)
FIGURE_23 = 3.34 / 2.1
"""Read bandwidth with Tarazu over that with LSA, 3,600 OSTs, PFL configuration 1: the only printed value."""


def print_utilisation() -> None:
    """Figures 7 and 21: shares of OSTs and servers that the files fill."""
    rows = []
    for case in CASES:
        if "PFL-2" in case.name or len(case.files) > 1 or "shared" in case.name:
            continue
        plan = planned(case, seeds=200)
        (count, size, _), = case.files  # fmt: skip
        mean = count * size / (OSTS * 10 * GiB)
        rules = {one.rule: one for one in plan.allocator}
        lsa = _range(rules["random-start"].ost_cost, ".1%", mean)
        rows.append((case.name, f"{mean:.1%}", lsa, f"{(plan.after.ost_cost or 0) * mean:.1%}"))
    title = "Figure 7: part of an OST that is filled, 35 OSTs of 10 GiB"
    print_table(title, ("", "mean", "fullest with LSA", "fullest balanced"), rows)
    rows = []
    for case in CASES:
        if case.name in {"IOR 32 GB, PFL-1", "IOR 128 GB, PFL-1"}:
            plan = planned(case, seeds=200)
            rules = {one.rule: one.oss_cost for one in plan.allocator}
            lsa = (_range(rules[rule], ".3f") for rule in ("going-on", "random-start"))
            rows.append((case.name, *lsa, f"{plan.after.oss_cost:.3f}"))
    title = "Figure 21: bytes of the fullest server over the mean, 7 servers, PFL configuration 1"
    print_table(title, ("", "LSA going-on", "LSA random-start", "balanced"), rows)


_WAYS = tuple(f"{name} {way}" for name in STRIPES_BY_LAYOUT for way in ("read", "write"))


def print_bandwidth() -> None:
    """Figure 22: bandwidth with balanced targets over that with LSA, for two programs and three layouts."""
    testbed, seeds = load_system("tarazu-testbed"), range(1, 11)
    rows = []
    for pieces in PIECES:
        for program, moved in (("IOR, 32 GB", 32.0 * GiB), ("HACC-I/O, 16 p", float(16 * HACC_16))):
            for sharing, files in (("FPP", None), ("SSF", 1)):
                cells = []
                for layout in STRIPES_BY_LAYOUT.values():
                    job = written_and_read("job", moved, layout, processes=16, nodes=2, files=files)
                    found = compared(testbed, [job], pieces=pieces, policy="random_start", seeds=seeds)
                    cells += [_ratios(some) for some in (found.read, found.write)]
                rows.append((pieces, program, sharing, *cells))
    title = f"Figure 22: balanced over LSA, median (range over {len(seeds)} seeds)"
    print_table(f"{title}; paper: reads up to 1.43, writes down to 0.90", ("pieces", "", "", *_WAYS), rows, left=3)


def _ratios(some: np.ndarray) -> str:
    return f"{np.median(some):.2f} ({some.min():.2f} to {some.max():.2f})"


def jobs_of_table_7(layout: int | str) -> list[dict]:
    """The three jobs, with one process per node that reads one file of its own and writes another."""
    return [
        {"name": name, "nodes": nodes, "phases": [
            {"operation": operation, "bytes": moved, "layout": layout, "opens": 0, "file_set": file_set}
            for operation, moved, file_set in (("read", read, "input"), ("write", written, "output"))
        ]}
        for name, (nodes, read, written) in TABLE_7.items()
    ]  # fmt: skip


def print_scales(scales: Sequence[int] = SCALES) -> None:
    """Figure 23: the jobs of table 7 at once on increasing numbers of OSTs."""
    testbed, seeds = load_system("tarazu-testbed"), (1, 2, 3)
    clients = sum(nodes for nodes, *_ in TABLE_7.values())
    rows = []
    for title, more in (("OSTs hold back", {}), ("clients hold back, too", {"node": 3.34e9 / clients})):
        for count in scales:
            machine = {"target": TARGET, "targets": count, "servers": count // 8, "target_size": 10 * GiB} | more
            cells = []
            for layout in STRIPES_BY_LAYOUT.values():
                found = compared(
                    testbed, jobs_of_table_7(layout), pieces="in_turn", policy="random_start", seeds=seeds,
                    rates=machine, tolerance=0.02,
                )  # fmt: skip
                cells += [f"{np.median(some):.2f}" for some in (found.read, found.write)]
            rows.append((title, f"{count:,}", *cells))
    title = f"Figure 23: the jobs of table 7 at once; balanced over LSA (median of {len(seeds)} seeds)"
    print_table(title, ("", "OSTs", *_WAYS), rows)
    print(f"  the point that is printed: 3,600 OSTs, C1, read {FIGURE_23:.2f}; when each call took place, the files "
          f"and all rates are ours; clients: 3.34 GB/s over {clients}")  # fmt: skip


def end_of(profile: Profile) -> tuple[float, float]:
    """Seconds until a run ends on a machine that hardly slows it down, and the bytes that it moves."""
    machine = {"targets": 8, "target": 1e9, "process": 2e9}
    scenario = Scenario.model_validate({"machine": machine, "workload": [{"name": "run", "profile": "log"}]})
    (outcome,) = simulate(scenario, Named(profiles={"log": profile})).outcomes
    return outcome.makespan_s or 0.0, sum(job.bytes for job in outcome.jobs)


def print_figures() -> None:
    """Figures 7, 21 to 23, and figure 14: logs as workloads by the times of their files, next to their phases."""
    print_utilisation()
    print_bandwidth()
    print_scales()
    rows = []
    for log in LOGS:
        profile = vani.profile(log)
        end, moved = end_of(profile.model_copy(update={"phases": None}))
        total, runtime = profile.workflow.io.bytes.total, profile.workflow.runtime_s or 0
        by_phases = f"{end_of(profile)[0]:.3f} s" if profile.phases else "unknown"
        rows.append((log.stem, f"{total:,}", f"{moved:,.0f}", f"{runtime:.3f} s", f"{end:.3f} s", by_phases))
    print_table(
        "Figure 14, section 6.3: Darshan logs as workloads, bytes and idle time spread over the time of each file",
        ("", "bytes", "played", "runtime", "ends: by files", "by phases"), rows,
    )  # fmt: skip



ROW = Interaction("/", None, 1, 0, None, 1 << 20, 4, None, (0, 1, 2, 3))
LUSTRE_CREATE_S = 1e-3
"""Approximate time of a create with one stripe on an idle Lustre; more stripes take longer."""
BOUND = 0.01


def _nanoseconds(built: Any, work: Path, prefix: str, files: int, env: dict[str, str]) -> tuple[int, int]:
    """Elapsed and processor time per file."""
    done = subprocess.run(
        [built.calls, work, "timed", prefix, str(files)], env=env, capture_output=True, text=True, check=True
    )
    for path in work.iterdir():
        path.unlink()
    wall, busy = map(int, done.stdout.split())
    return wall, busy


def measure(built: Any, place: Path, files: int, repeats: int, rows: int) -> None:
    """Print a table for one file system, and for a database of this many files."""
    with tempfile.TemporaryDirectory(prefix="vani-", dir=place) as name:
        work, database = Path(name) / "work", Path(name) / "place.sqlite"
        work.mkdir()
        names = [f"{work}/in.{i}" for i in range(files)] + [f"/lustre/run/file.{i}" for i in range(rows - files)]
        store([replace(ROW, file=one) for one in names], str(database))
        bare = dict(os.environ)
        under = {k: v for k, v in built.environment(database, Path(), Path()).items() if k != "STANDIN_LOG"}
        under["VANI_PLACE_LOG"] = ""
        cases = {
            "without the library": ("in", bare),
            "loaded, no VANI_PLACE_DB": ("in", {**bare, "LD_PRELOAD": str(built.library)}),
            "file not in the database": ("out", under),
            "file in the database, placed": ("in", under),
        }
        took: dict[str, list[tuple[int, int]]] = {label: [] for label in cases}
        for _ in range(repeats):
            for label, (prefix, env) in cases.items():
                took[label].append(_nanoseconds(built, work, prefix, files, env))
        base = [busy for _, busy in took["without the library"]]
        lines = []
        for label, both in took.items():
            low, middle, high = (one / 1e3 for one in statistics.quantiles([wall for wall, _ in both], n=4))
            busy = [one for _, one in both]
            # Differences of processor time between neighbouring measurements, which excludes other load on
            # the machine.
            more = statistics.median(one - other for one, other in zip(busy, base, strict=True)) / 1e9
            cells = (f"{more * 1e6:.1f}", f"{more / LUSTRE_CREATE_S:.2%}", f"{more / BOUND * 1e6:.0f} us")
            lines.append((
                label, f"{middle:.1f}", f"{low:.1f} - {high:.1f}", f"{statistics.median(busy) / 1e3:.1f}",
                *(cells if busy != base else ("", "", "")),
            ))  # fmt: skip
        print_table(
            f"{place}: {files:,} files, database of {rows:,} files, {repeats} times in turn, us a file",
            ("", "clock", "quartiles", "processor", "added", "of 1 ms", "1 % from"), lines,
        )  # fmt: skip


def print_library() -> None:
    """The time that the placement library adds, in memory and on a disk."""
    # Modules of the tests of the library find each other by name.
    sys.path.insert(0, str(ROOT / "tests" / "preload"))
    from building import build, missing  # noqa: PLC0415

    if (why := missing()) is not None:
        print(f"not measured: {why}")
        return
    with tempfile.TemporaryDirectory(prefix="vani-") as name:
        built = build(Path(name))
        measure(built, Path("/dev/shm"), 5000, 15, 10_000)
        measure(built, Path("/dev/shm"), 5000, 15, 200_000)
        # A journal makes a file on a disk a hundred times as expensive.
        measure(built, Path("/var/tmp"), 200, 15, 10_000)


PARTS = {"place": print_placements, "tarazu": print_figures, "library": print_library}


if __name__ == "__main__":
    print_parts(PARTS)
