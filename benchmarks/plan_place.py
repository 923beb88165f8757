"""`python -m benchmarks.plan_place`: placements of files compared with Tarazu (Paul et al.), as tables.

They are rows of tables 1, 2, 4 and 5, and the OST Cost on the testbed of seven servers with five OSTs of 10 GiB
each. The cost is shown next to the minimum, which is proved by counting or by HiGHS over all ways to fill an OST,
and next to the paper's LSA with simulated ranges. Last come sixteen files of 2 GiB that grow together, simulated
four ways.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from vani.centre.plan.place import place
from vani.centre.plan.placement.layouts import Writing, extents
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PlacePlan, PlaceSettings
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.simulate import Named, play_all
from vani.models.pfl import Component, Layout
from vani.models.tarazu_layout import CONFIGURATION_1, CONFIGURATION_2
from vani.units import GiB

OSTS, SERVERS = 35, 7

LAYOUTS = {
    "non-PFL": "-c 8",
    "PFL-1": CONFIGURATION_1.to_options(),
    "PFL-2": CONFIGURATION_2.to_options(),
}
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


_SETTINGS = PlaceSettings.model_validate(
    {
        "method": "balanced", "past_weight": 1.0, "ceiling": 1.0, "cpu_weight": 0.5, "memory_weight": 0.5,
        "turn": "going-on", "window": 0.17, "seed": 0, "seeds": 5,
    }
)  # fmt: skip


def cost_of_lists(lists: Sequence[str], layout: str) -> float:
    """OST Cost of two files of 8 GiB on lists of OSTs, which the paper numbers from 1."""
    held = np.zeros(OSTS)
    requests = requests_of(Case("", ((2, 8 * GiB, layout),)), as_printed=True)
    for one, stripes in zip(lists, requests, strict=True):
        np.add.at(held, np.array(one.split(), dtype=int) - 1, np.array(stripes, dtype=float))
    return float(held.max() / held.mean())


def tarazu_machine(first: int = 0) -> Snapshot:
    """The empty testbed; tables 4 and 5 number OSTs from 1."""
    each = OSTS // SERVERS
    return Snapshot.model_validate(
        {
            "oss": [{"name": f"oss{n}", "cpu": 0.2, "memory": 0.3} for n in range(SERVERS)],
            "ost": [
                {"index": n + first, "oss": f"oss{n // each}", "size": 10 * GiB, "used": 0}
                for n in range(OSTS)
            ],
        }
    )


def jobs_of(case: Case) -> Jobs:
    """A job per kind of file."""
    return Jobs.model_validate(
        {
            "jobs": [
                {
                    "name": f"job{number}",
                    "nodes": 1,
                    "creations": [
                        {
                            "path": f"/mnt/lustre/{number}/test.{rank}",
                            "size": size,
                            "rank": rank,
                            "layout": LAYOUTS[layout],
                        }
                        for rank in range(count)
                    ],
                }
                for number, (count, size, layout) in enumerate(case.files)
            ]
        }
    )


def planned(case: Case, method: str = "balanced", *, seeds: int = 5, first: int = 0) -> PlacePlan:
    """A plan for a case on the empty testbed, whose OSTs may be filled completely."""
    settings = _SETTINGS.model_copy(update={"method": method, "seeds": seeds})
    return place(jobs_of(case), tarazu_machine(first), settings)


def requests_of(case: Case, *, as_printed: bool = False) -> list[tuple[int, ...]]:
    """Bytes by stripe of every extent of every file."""
    layouts = {"non-PFL": Layout((Component(None, 8),)), "PFL-1": CONFIGURATION_1, "PFL-2": CONFIGURATION_2}
    return [
        one.stripes
        for count, size, layout in case.files
        for _ in range(count)
        for one in extents(layouts[layout], size, OSTS, None if as_printed else Writing())
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
    every = np.vstack([ways.T, np.ones(len(ways))])
    wanted = np.array([*counts, targets])
    found = milp(
        np.zeros(len(ways)),
        constraints=LinearConstraint(every, wanted, wanted),
        integrality=np.ones(len(ways)),
        bounds=Bounds(0, targets),
    )
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
            print(
                f"  {one.number} {one.start:,} {one.end:,} {one.stripe_size:,} ({one.set_stripe_size:,}) "
                f"{one.stripe_count}  {' '.join(map(str, one.osts))}  {equal}"
            )
        print(
            f"  OST Cost of both files on the OSTs that the paper prints, which follow from loads that it does not: "
            f"{cost_of_lists(lists, layout):.3f}; balanced {planned(case).after.ost_cost:.3f}, algorithm 1 on idle "
            f"servers {plan.after.ost_cost:.3f}"
        )


def print_costs(seeds: int = 200) -> None:
    """OST Cost by case, next to the minimum and the paper's."""
    print("\nOST Cost on 7 x 5 OSTs (paper)")
    print(
        f"  {'':33} balanced  least     Tarazu's  algorithm 1  LSA: paper   going on  random start          "
        "by free space"
    )
    for case in CASES:
        plan = planned(case, seeds=seeds)
        cost = plan.after.ost_cost or 0.0
        least = proved_least(requests_of(case)) if len(case.files) == 1 else plan.least or 0.0
        literal = planned(case, "tarazu", seeds=1).after.ost_cost or 0.0
        shown = [f"{cost:8.4f}", f"{least:8.4f}{'=' if cost <= least * (1 + 1e-9) else '<'}"]
        shown.append(f"({case.tarazu:.2f})" if case.tarazu else "")
        rules = {one.rule: one.ost_cost for one in plan.allocator}
        ranges = [
            f"{rules[rule].median:.2f} ({rules[rule].low:.2f}-{rules[rule].high:.2f})"
            for rule in ("random-start", "by-space")
        ]
        print(
            f"  {case.name:33} {shown[0]} {shown[1]:10} {shown[2]:9} {literal:10.2f}   "
            f"{f'({case.lsa:.2f})' if case.lsa else '':11} {rules['going-on'].median:8.2f}   "
            f"{ranges[0]:20}  {ranges[1]}"
        )


def sixteen_files() -> dict[str, float]:
    """Simulated seconds of sixteen processes that each write 2 GiB on 8 of 35 OSTs of 1.2 GB/s, four ways.

    The ways are one contiguous piece per OST in ascending order, as in earlier plans; the same OSTs in the order of
    today's plan; Lustre without a plan; and today's plan with the stripe size that it chooses.
    """
    case = Case("", ((16, 2 * GiB, "non-PFL"),))
    seconds = {}
    for name, layout, is_planned, ascending in (
        ("pieces of 256 MiB, OSTs ascending", "-c 8 -S 256M", True, True),
        ("pieces of 256 MiB, OSTs of the plan", "-c 8 -S 256M", True, False),
        ("pieces of 256 MiB, no plan", "-c 8 -S 256M", False, False),
        ("stripes of 4 MiB, OSTs of the plan", "-c 8", True, False),
    ):
        job = jobs_of(case).jobs[0]
        creations = [creation.model_copy(update={"layout": layout}) for creation in job.creations]
        jobs = Jobs(jobs=[job.model_copy(update={"processes": 16, "creations": creations})])
        plan = place(jobs, tarazu_machine(), _SETTINGS)
        if ascending:
            for file in plan.files:
                for extent in file.extents:
                    extent.osts.sort()
        machine = {"snapshot": "now", "target": 1.2e9, "node": 1e11, "process": 1e10}
        scenario = Scenario.model_validate({"machine": machine, "jobs": "jobs", "plans": ["plan"] * is_planned})
        named = Named(snapshots={"now": tarazu_machine()}, plans={"plan": plan} if is_planned else {}, jobs=jobs)
        seconds[name] = float(play_all(scenario, named)[0].makespans[0])
    return seconds


def print_sixteen_files() -> None:
    """Seconds of the sixteen files, four ways."""
    print("\nSixteen files of 2 GiB on 8 of 35 OSTs each, OST Cost 1.094 in all four: simulated seconds")
    for name, seconds in sixteen_files().items():
        print(f"  {name:36} {seconds:.2f} s")


def main(_: Sequence[str] = ()) -> None:
    """Print all tables."""
    print_tables()
    print_costs()
    print_sixteen_files()


if __name__ == "__main__":
    main()
