"""`python -m benchmarks.plan_path`: plans of I/O paths compared with AIOT (IPDPS 2022), as tables.

They are table III on its testbed; Algorithm 1 next to a maximum flow on random machines; load balance for the jobs
that ran on TaihuLight at a time, next to its static map (needs `../shared/data/taihulight`); and how long plans of
the whole machine take. The demand of jobs is not public; the text marks demands that we assume.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from vani.centre import plan_path
from vani.centre.plan.path import path
from vani.centre.plan.path_layers import carried, greedy, maximum, network_of, room_for
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PathPlan, PathSettings
from vani.centre.plan.schema.snapshot import Snapshot

RAN = Path(__file__).resolve().parents[2] / "shared" / "data" / "taihulight" / "jobs_2018.csv"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "plan"
JOBS, NOW = EXAMPLES / "table-3-jobs.yaml", EXAMPLES / "table-3-now.yaml"

FORWARDING, STORAGE, PER_STORAGE = 240, 144, 3
NODES, PER_FORWARDING = 40_960, 512
PEAKS = {"iobw": 2.5e9, "iops": 3e5, "mdops": 2e4}
MOMENTS = ("2018-02-26T12:00", "2018-02-28T18:33", "2018-03-02T21:21", "2018-03-05T00:10", "2018-03-07T02:58")
SEED = 1


def machine(
    forwarding: int, storage: int, per_storage: int, loads: Any = None, reach: Any = None, target: float = 1e9
) -> Snapshot:
    """A machine whose forwarding nodes have TaihuLight's 2.5 GB/s; the other peaks are ours."""
    loads = np.zeros(forwarding + storage * per_storage) if loads is None else loads
    disk = {"iobw": target, "iops": 1e5}
    return Snapshot.model_validate(
        {
            "forwarding": [
                {"name": f"fwd{n}", "peak": PEAKS, "load": float(loads[n])} for n in range(forwarding)
            ],
            "storage": [
                {
                    "name": f"sn{n}",
                    "ost": list(range(n * per_storage, (n + 1) * per_storage)),
                    "peak": {"iobw": per_storage * target, "iops": per_storage * 1e5},
                }
                for n in range(storage)
            ],
            "ost": [
                {"index": n, "size": 1 << 45, "used": 0, "peak": disk, "load": float(loads[forwarding + n])}
                for n in range(storage * per_storage)
            ],
            "reach": reach,
        }
    )


def jobs_of(nodes: Sequence[int], rates: Sequence[float]) -> Jobs:
    """Jobs with these numbers of nodes and bytes per second; hosts are assigned consecutively."""
    first = np.concatenate([[0], np.cumsum(nodes)])
    return Jobs.model_validate(
        {
            "jobs": [
                {
                    "name": f"job{n}",
                    "nodes": int(count),
                    "hosts": f"n[{first[n]}-{first[n + 1] - 1}]" if count > 1 else f"n{first[n]}",
                    "demand": {"iobw": float(rate), "iops": float(rate) / 1e6, "mdops": float(count) / 10},
                }
                for n, (count, rate) in enumerate(zip(nodes, rates, strict=True))
            ]
        }
    )


def planned(jobs: Jobs, snapshot: Snapshot, **more: bool) -> PathPlan:
    """A plan that reads no files."""
    asked = {"exact": False, "pack": False} | more
    return path(jobs, snapshot, PathSettings(capacity="binding", metadata_share=None, **asked))


def unequal_reach(count: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Shares that Algorithm 1 and a maximum flow carry on random machines of limited reach, shape (count,) each."""
    random = np.random.default_rng(seed)
    found = np.zeros((2, count))
    for number in range(count):
        fwd, storage = int(random.integers(2, 9)), int(random.integers(2, 7))
        reach = {
            f"fwd{n}": [f"sn{k}" for k in np.flatnonzero(random.random(storage) < 0.5)] for n in range(fwd)
        }
        reach["fwd0"] = reach["fwd0"] or ["sn0"]
        loads = random.choice([0.0, 0.2, 0.5, 0.8], fwd + storage * 3)
        network = network_of(machine(fwd, storage, 3, loads, reach))
        demand = np.array([random.uniform(0.5, 1.5) * fwd * 1.2e9, 0.0, 0.0])
        room = room_for(network, demand)
        found[:, number] = carried(greedy(network, room, demand)), carried(maximum(network, room))
    return found[0], found[1]


def ran_at(moment: str) -> list[int]:
    """Nodes of the jobs that ran on TaihuLight at a time, in the order of their start."""
    then = datetime.fromisoformat(moment)
    with RAN.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    running = [
        (row["starttime"], int(row["nodenum"]))
        for row in rows
        if datetime.fromisoformat(row["starttime"]) <= then < datetime.fromisoformat(row["endtime"])
    ]
    return [nodes for _, nodes in sorted(running)]


def static_loads(nodes: Sequence[int], rates: Sequence[float]) -> np.ndarray:
    """Demand on each of 80 forwarding nodes over its peak, if compute node k uses forwarding node k // 512."""
    by_node = np.repeat(np.array(rates) / np.array(nodes), nodes)[:NODES]
    asked = np.bincount(
        np.arange(len(by_node)) // PER_FORWARDING, weights=by_node, minlength=NODES // PER_FORWARDING
    )
    return asked / PEAKS["iobw"]


def index(loads: np.ndarray) -> float:
    """Load-balance index of loads, which are capped at 1."""
    return float(np.minimum(loads, 1.0).std()) / 0.5


def print_table_3() -> None:
    """Five applications on four forwarding nodes."""
    print("Table III: testbed of section IV-C, OST 1 busy, OST 2 abnormal; demand figures are ours")
    for pack in (False, True):
        found = plan_path(JOBS, NOW, pack=pack)
        used = {flow.ost for job in found.jobs for flow in job.flows}
        most = max(load.after for layer in found.layers for load in layer.loads)
        users = {
            fwd: [job.name for job in found.jobs if fwd in {one.forwarding for one in job.map}]
            for fwd in ("fwd1", "fwd2", "fwd3", "fwd4")
        }
        print(f"  {'packed' if pack else 'Algorithm 1'}")
        print(f"    least share of a demand that is met: {min(job.met or 0 for job in found.jobs):.4f}")
        print(
            f"    OST 1 or 2 used: {'yes' if used & {1, 2} else 'no'}; largest load of a node used: {most:.3f}"
        )
        print(
            f"    jobs by forwarding node: {'; '.join(f'{fwd} {len(some)}' for fwd, some in users.items())}"
        )
        for layer in ("forwarding", "storage", "ost"):
            print(
                f"    balance index, {layer}: {getattr(found.before, layer):.3f} -> {getattr(found.after, layer):.3f}"
            )


def print_flows(count: int = 2000) -> None:
    """Algorithm 1 next to the maximum."""
    simple, most = unequal_reach(count)
    below = simple < most - 1e-6
    ratio = simple[most > 0] / most[most > 0]
    print(f"\nAlgorithm 1 / maximum flow on {count:,} random machines of limited reach")
    print(f"  below the maximum: {below.mean():.1%}; least {ratio.min():.2f}, mean {ratio.mean():.4f}")
    print(f"  above the maximum: {(simple > most + 1e-6).sum()}")


def print_balance() -> None:
    """Jobs of TaihuLight, with 80 forwarding nodes as in its daily use."""
    if not RAN.is_file():
        return
    print(
        "\nJobs that ran on TaihuLight, 80 forwarding nodes; each node asks for 0.1 to 30 MB/s, log-uniform (ours)"
    )
    print(
        "  time               jobs   nodes   static: index, not carried   Algorithm 1: index, not carried   "
        "packed: index"
    )
    random = np.random.default_rng(SEED)
    snapshot = machine(NODES // PER_FORWARDING, STORAGE, PER_STORAGE)
    for moment in MOMENTS:
        nodes = ran_at(moment)
        rates = np.array(nodes) * 10 ** random.uniform(5, np.log10(3e7), len(nodes))
        jobs = jobs_of(nodes, rates)
        static = static_loads(nodes, rates)
        lost = np.maximum(static - 1, 0).sum() / static.sum()
        spread, packed = planned(jobs, snapshot), planned(jobs, snapshot, pack=True)
        met = sum((job.met or 0) * rate for job, rate in zip(spread.jobs, rates, strict=True)) / rates.sum()
        print(
            f"  {moment}  {len(nodes):5} {sum(nodes):7,}   {index(static):13.3f} {lost:12.1%}   "
            f"{spread.after.forwarding:18.3f} {max(0.0, 1 - met):12.1%}   {packed.after.forwarding:13.3f}"
        )


def main(_: Sequence[str] = ()) -> None:
    """Print all tables."""
    print_table_3()
    print_flows()
    print_balance()


if __name__ == "__main__":
    main()
