"""Drawn file systems and jobs, on which plans of OSTs are compared with Lustre's own allocator."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from vani.centre.plan.place import place
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PlaceSettings
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.simulate import Named, play_all
from vani.units import GiB, MiB

CHOSEN = range(24)
"""Seeds with which rules and thresholds were chosen; others judge."""
LAYOUTS = (1, 1, 2, 4, 8, "-E 128M -c 1 -E 512M -c 3 -E -1 -c 8", "-E 64M -c 1 -E -1 -c 4")


class Judged(NamedTuple):
    """A plan on a drawn machine: whether it is worth pinning, and Lustre's times over its own.

    `default` is applied by default: without OSTs unless they are worth pinning. `forced` has the plan's OSTs in any case.
    """

    pin: bool
    default: float
    forced: float


def drawn(seed: int, most_files: int = 64) -> tuple[Snapshot, Jobs, dict]:
    """A file system with uneven targets, the jobs that write to it, and the machine to simulate both."""
    draw = random.Random(seed)
    servers, each = draw.choice([2, 4, 7]), draw.choice([2, 4, 5])
    full, spread = draw.uniform(0.05, 0.85), draw.choice([0.01, 0.03, 0.1, 0.2])
    has_peaks, has_loads = draw.random() < 0.5, draw.random() < 0.4
    targets = []
    for index in range(servers * each):
        size = draw.choice([1, 1, 1, 2]) << 40
        target = {"index": index, "oss": f"s{index // each}", "size": size}
        target["used"] = int(min(0.97, max(0.0, draw.gauss(full, spread))) * size)
        target |= {"peak": {"iobw": draw.choice([5e8, 5e8, 1e9])}} if has_peaks else {}
        target |= {"load": min(1.0, max(0.0, draw.gauss(0.2, 0.2)))} if has_loads else {}
        target |= {"state": "degraded"} if draw.random() < 0.04 else {}
        targets.append(target)
    jobs = []
    for number in range(draw.choice([1, 1, 2, 3])):
        processes = draw.choice([4, 8, 16, 32])
        size, layout = draw.choice([64 * MiB, 512 * MiB, 2 * GiB, 8 * GiB]), draw.choice(LAYOUTS)
        is_uneven = draw.random() < 0.3
        creations = [
            {"path": f"/l/{number}/{file}", "size": int(size * (draw.uniform(0.3, 2) if is_uneven else 1)),
             "rank": file % processes, "layout": layout}
            for file in range(min(most_files, draw.choice([processes, processes, 2 * processes])))
        ]  # fmt: skip
        nodes = max(1, processes // draw.choice([1, 4, 8]))
        jobs.append({"name": f"j{number}", "nodes": nodes, "processes": processes, "creations": creations})
    oss = [{"name": f"s{number}"} for number in range(servers)]
    rate = {} if has_peaks else {"target": draw.choice([2e8, 5e8, 1e9])}
    return (
        Snapshot.model_validate({"oss": oss, "ost": targets}),
        Jobs.model_validate({"jobs": jobs}),
        {"snapshot": "now", **rate},
    )


def judged(seed: int, most_files: int = 64) -> Judged:
    """Plan for drawn jobs, and simulate the plan and Lustre's round robin (median of five starts) independently."""
    snapshot, jobs, machine = drawn(seed, most_files)
    plan = place(jobs, snapshot, PlaceSettings.of(seeds=5))
    scenario = {
        "machine": machine, "jobs": "jobs", "seeds": [101, 102, 103, 104, 105],
        "variants": [
            {"name": "in turn", "placement": {"policy": "round_robin"}},
            {"name": "as planned", "placement": {"policy": "round_robin"}, "plans": ["plan"]},
            {"name": "forced", "plans": ["forced"]},
        ],
    }  # fmt: skip
    plans = {"plan": plan, "forced": plan.model_copy(update={"pin": True})}
    played = play_all(
        Scenario.model_validate(scenario), Named(snapshots={"now": snapshot}, plans=plans, jobs=jobs), tolerance=0.005
    )
    usual, default, forced = (float(np.median(variant.makespans)) for variant in played)
    return Judged(plan.pin, usual / default, usual / forced)
