"""`python -m benchmarks.plan_path [path] [joint] [aiot]`: plans of I/O paths compared with AIOT (IPDPS 2022).

- `path`: table III on its testbed; Algorithm 1 next to a maximum flow on random machines; load balance for the jobs
  that ran on TaihuLight at a time, next to its static map (needs `../shared/data/taihulight`). The demand of jobs is
  not public; the text marks demands that we assume.
- `joint`: paths of jobs one after the other next to all at once. `vani plan path` serves the jobs in the order of
  submission: each gets the best of what is left. The optimum for all jobs at once is a mixed integer program (HiGHS):
  the most bytes, or the largest mean share of demands, which favours small demands. On small machines a test compares
  it with every possible mapping.
- `aiot`: figures 12 to 16, as far as models and the simulator can compute them. The paper prints one or two values of
  each; the rates of its forwarding nodes, targets and metadata servers are not public. This computes what the printed
  values imply, how the equations and the plans do on the same case, and the cost of remapping if Vani itself writes
  the map.
"""

from __future__ import annotations

import tempfile
from collections import Counter, OrderedDict
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from benchmarks.data import DATA, ROOT, print_parts, print_table, rows_of, seconds
from vani.atomic import write_text
from vani.centre import plan_path
from vani.centre.plan.path import path
from vani.centre.plan.path_layers import Network, carried, greedy, maximum, network_of, room_for
from vani.centre.plan.path_mapping import MAX_METADATA
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PathPlan, PathSettings
from vani.centre.plan.schema.scenario import Scenario
from vani.centre.plan.schema.snapshot import Snapshot
from vani.centre.plan.simulate.simulate import Named, simulate
from vani.centre.plan.text.paths import path_to_map
from vani.models.forwarding import prefetch_chunk
from vani.units import GiB, KiB, MiB

RAN = DATA / "taihulight" / "jobs_2018.csv"
JOBS, NOW = (ROOT / "examples" / "plan" / name for name in ("table-3-jobs.yaml", "table-3-now.yaml"))

FORWARDING, STORAGE, PER_STORAGE = 240, 144, 3
NODES, PER_FORWARDING = 40_960, 512
PEAKS = {"iobw": 2.5e9, "iops": 3e5, "mdops": 2e4}
MOMENTS = ("2018-02-26T12:00", "2018-02-28T18:33", "2018-03-02T21:21", "2018-03-05T00:10", "2018-03-07T02:58")
SEED = 1


def machine(
    forwarding: int, storage: int, per_storage: int, loads: Any = None, reach: Any = None, target: float = 1e9
) -> Snapshot:
    """A machine whose forwarding nodes have TaihuLight's 2.5 GB/s; the other peaks are ours."""
    loads = [0.0] * (forwarding + storage * per_storage) if loads is None else [float(load) for load in loads]
    disk, node = {"iobw": target, "iops": 1e5}, {"iobw": per_storage * target, "iops": per_storage * 1e5}
    behind = [list(range(n * per_storage, (n + 1) * per_storage)) for n in range(storage)]
    return Snapshot.model_validate({
        "forwarding": [{"name": f"fwd{n}", "peak": PEAKS, "load": loads[n]} for n in range(forwarding)],
        "storage": [{"name": f"sn{n}", "ost": osts, "peak": node} for n, osts in enumerate(behind)],
        "ost": [
            {"index": n, "size": 1 << 45, "used": 0, "peak": disk, "load": load}
            for n, load in enumerate(loads[forwarding:])
        ],
        "reach": reach,
    })  # fmt: skip


def limited(random: np.random.Generator, fwd: int, storage: int, per_storage: int) -> Snapshot:
    """A machine whose forwarding nodes each reach about half of the storage nodes, all loaded at random."""
    reach = {f"fwd{n}": [f"sn{k}" for k in np.flatnonzero(random.random(storage) < 0.5)] for n in range(fwd)}
    reach["fwd0"] = reach["fwd0"] or ["sn0"]
    loads = random.choice([0.0, 0.2, 0.5, 0.8], fwd + storage * per_storage)
    return machine(fwd, storage, per_storage, loads, reach)


def jobs_of(nodes: Sequence[int], rates: Sequence[float], *, bytes_alone: bool = False) -> Jobs:
    """Jobs with these numbers of nodes and bytes per second; hosts are assigned consecutively."""
    first = np.concatenate([[0], np.cumsum(nodes)])
    jobs = []
    for n, (count, rate) in enumerate(zip(nodes, rates, strict=True)):
        hosts = f"n[{first[n]}-{first[n + 1] - 1}]" if count > 1 else f"n{first[n]}"
        operations = (0.0, 0.0) if bytes_alone else (float(rate) / 1e6, float(count) / 10)
        demand = dict(zip(("iobw", "iops", "mdops"), (float(rate), *operations), strict=True))
        jobs.append({"name": f"job{n}", "nodes": int(count), "hosts": hosts, "demand": demand})
    return Jobs.model_validate({"jobs": jobs})


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
        network = network_of(limited(random, fwd, storage, 3))
        demand = np.array([random.uniform(0.5, 1.5) * fwd * 1.2e9, 0.0, 0.0])
        room = room_for(network, demand)
        found[:, number] = carried(greedy(network, room, demand)), carried(maximum(network, room))
    return found[0], found[1]


def ran_at(moment: str) -> list[int]:
    """Nodes of the jobs that ran on TaihuLight at a time, in the order of their start."""
    then = datetime.fromisoformat(moment)
    running = [
        (row["starttime"], int(row["nodenum"]))
        for row in rows_of(RAN)
        if datetime.fromisoformat(row["starttime"]) <= then < datetime.fromisoformat(row["endtime"])
    ]
    return [nodes for _, nodes in sorted(running)]


def static_loads(nodes: Sequence[int], rates: Sequence[float]) -> np.ndarray:
    """Demand on each of 80 forwarding nodes over its peak, if compute node k uses forwarding node k // 512."""
    by_node = np.repeat(np.array(rates) / np.array(nodes), nodes)[:NODES]
    forwarder = np.arange(len(by_node)) // PER_FORWARDING
    asked = np.bincount(forwarder, weights=by_node, minlength=NODES // PER_FORWARDING)
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
        users = Counter(fwd for job in found.jobs for fwd in {one.forwarding for one in job.map})
        counts = "; ".join(f"{fwd} {users[fwd]}" for fwd in ("fwd1", "fwd2", "fwd3", "fwd4"))
        print(f"  {'packed' if pack else 'Algorithm 1'}")
        print(f"    least share of a demand that is met: {min(job.met or 0 for job in found.jobs):.4f}")
        print(f"    OST 1 or 2 used: {'yes' if used & {1, 2} else 'no'}; largest load of a node used: {most:.3f}")
        print(f"    jobs by forwarding node: {counts}")
        for layer in ("forwarding", "storage", "ost"):
            before, after = (getattr(state, layer) for state in (found.before, found.after))
            print(f"    balance index, {layer}: {before:.3f} -> {after:.3f}")


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
    random = np.random.default_rng(SEED)
    snapshot = machine(NODES // PER_FORWARDING, STORAGE, PER_STORAGE)
    rows = []
    for moment in MOMENTS:
        nodes = ran_at(moment)
        rates = np.array(nodes) * 10 ** random.uniform(5, np.log10(3e7), len(nodes))
        jobs = jobs_of(nodes, rates)
        static = static_loads(nodes, rates)
        lost = np.maximum(static - 1, 0).sum() / static.sum()
        spread, packed = planned(jobs, snapshot), planned(jobs, snapshot, pack=True)
        met = sum((job.met or 0) * rate for job, rate in zip(spread.jobs, rates, strict=True)) / rates.sum()
        rows.append((
            moment, len(nodes), f"{sum(nodes):,}", f"{index(static):.3f}", f"{lost:.1%}",
            f"{spread.after.forwarding:.3f}", f"{max(0.0, 1 - met):.1%}", f"{packed.after.forwarding:.3f}",
        ))  # fmt: skip
    print_table(
        "Jobs that ran on TaihuLight, 80 forwarding nodes; each node asks for 0.1 to 30 MB/s, log-uniform (ours)",
        ("time", "jobs", "nodes", "static: index", "not carried", "Algorithm 1: index", "not carried",
         "packed: index"), rows,
    )  # fmt: skip


def print_paths() -> None:
    """Table III, Algorithm 1 next to the maximum flow, and the balance of TaihuLight's jobs."""
    print_table_3()
    print_flows()
    print_balance()
ORDERS = 6
LESS = 1e-4
"""Difference of mean shares below which two plans count as equal."""


def instance(random: np.random.Generator, *, small: bool = False) -> tuple[Snapshot, list[int], list[float]]:
    """A machine of limited reach, and the compute nodes and bytes per second of its jobs."""
    forwarding, storage, jobs, most = (3, 2, 2, 3) if small else (8, 6, 5, 64)
    fwd, sns = int(random.integers(2, forwarding + 1)), int(random.integers(1, storage + 1))
    snapshot = limited(random, fwd, sns, 2)
    nodes = random.integers(1, most + 1, int(random.integers(2, jobs + 1)))
    rates = random.uniform(0.2, 1.5, len(nodes)) * fwd * 2.5e9 / len(nodes)
    return snapshot, nodes.tolist(), rates.tolist()


def best_at_once(
    network: Network,
    nodes: Sequence[int],
    rates: Sequence[float],
    counts: Sequence[Sequence[int]] | None = None,
    *,
    weights: Sequence[float] | None = None,
) -> float:
    """The largest mean of the carried shares, with equal weights by default.

    `counts` fixes the numbers of compute nodes by job and forwarding node.
    """
    weights = np.full(len(nodes), 1 / len(nodes)) if weights is None else np.asarray(weights)
    room = np.where(network.forwarding.usable, network.forwarding.room[:, 0], 0.0)
    targets = np.where(network.ost.usable, network.ost.room[:, 0], 0.0)
    reachable = np.array([targets[some].sum() for some in network.behind])
    behind = np.minimum(network.storage.room[:, 0], reachable) * network.storage.usable
    fwd, jobs = len(room), len(nodes)
    pairs = [
        (job, n, int(node))
        for job, n in product(range(jobs), range(fwd))
        for node in network.reach[network.groups[n]]
    ]
    width = jobs * fwd + len(pairs)
    all_nodes, own, of_forwarder, of_storage = (
        np.zeros((rows, width)) for rows in (jobs, jobs * fwd, fwd, len(behind))
    )
    for job, n in product(range(jobs), range(fwd)):
        all_nodes[job, job * fwd + n] = 1
        own[job * fwd + n, job * fwd + n] = -1 / nodes[job]
    for column, (job, n, node) in enumerate(pairs, start=jobs * fwd):
        # Flows are shares of the job's demand.
        own[job * fwd + n, column] = 1
        of_forwarder[n, column] = of_storage[node, column] = rates[job] / 1e9
    least, most = np.zeros(width), np.ones(width)
    most[: jobs * fwd] = np.repeat(nodes, fwd)
    if counts is not None:
        least[: jobs * fwd] = most[: jobs * fwd] = np.ravel(counts)
    answer = milp(
        np.concatenate([np.zeros(jobs * fwd), -weights[[job for job, *_ in pairs]]]),
        integrality=np.repeat([1, 0], [jobs * fwd, len(pairs)]),
        bounds=Bounds(least, most),
        constraints=[
            LinearConstraint(all_nodes, nodes, nodes),
            LinearConstraint(own, -np.inf, 0),
            LinearConstraint(of_forwarder, -np.inf, room / 1e9),
            LinearConstraint(of_storage, -np.inf, behind / 1e9),
        ],
        options={"node_limit": 20_000},
    )
    return float(-answer.fun)


def carried_of(snapshot: Snapshot, nodes: Sequence[int], rates: Sequence[float]) -> np.ndarray:
    """Shares that a plan carries by job, counting only bytes."""
    return np.array([job.met for job in planned(jobs_of(nodes, rates, bytes_alone=True), snapshot).jobs])


def print_joint(count: int = 60) -> None:
    """Plans next to the best of all jobs at once, in this many instances of each kind."""
    random = np.random.default_rng(SEED)
    print("Jobs one after the other over all at once, on random machines of limited reach, most asked for too much")
    for title, small in (("2 jobs of up to 3 nodes", True), ("2 to 5 jobs of up to 64 nodes", False)):
        rows = []
        for _ in range(count):
            snapshot, nodes, rates = instance(random, small=small)
            network, parts = network_of(snapshot, {"iobw"}), np.array(rates) / sum(rates)
            best, most = (best_at_once(network, nodes, rates, weights=weights) for weights in (None, parts))
            if best > LESS:
                met = carried_of(snapshot, nodes, rates)
                orders = list(permutations(range(len(nodes))))
                other = max(
                    carried_of(snapshot, [nodes[k] for k in orders[n]], [rates[k] for k in orders[n]]).mean()
                    for n in random.permutation(len(orders))[:ORDERS]
                )
                rows.append((met @ parts / most, met.mean() / best, other / best))
        names = ("bytes", "mean share", "mean share, best of six orders")
        cells = [
            (name, f"{ratio.mean():.3f}", f"{ratio.min():.2f}", f"{(ratio < 1 - LESS).mean():.0%}",
             f"{(ratio > 1 + LESS).mean():.0%}")
            for name, ratio in zip(names, np.array(rows).T, strict=True)
        ]  # fmt: skip
        print_table(f"{title}, {len(rows)} instances", ("", "mean", "least", "below the best", "above"), cells)

FIGURE_12 = (2.0, 0.05)
"""Speed-up of Macdrp, and slowdown of Quantum."""
FIGURE_14 = 0.10
FIGURE_15 = (0.15, 0.06, 0.5)
"""Gain of small reads, gain of FlameD, and the minimum share of its time that is I/O."""
REMAPPED = (512, 2048, 8192, 40_960)
"""Compute nodes of one job."""


def shares(metadata: float, data: float, metadata_share: float) -> tuple[float, float]:
    """The shares that a forwarding node serves of two jobs' demands, with P the metadata's part of the turns.

    A turn that its own kind does not use goes to the other. P = 1 means metadata first, LWFS' default.
    """
    served = min(metadata, max(metadata_share, 1 - data))
    return served, min(data, 1 - served)


def implied() -> tuple[float, float]:
    """Quantum's demand on the forwarding node, and P, that give both values of figure 12.

    Macdrp demands more than it gets in both cases: (1 - P) / (1 - u) = gain, u / P = 1 + slowdown.
    """
    gain, slowdown = FIGURE_12
    asked = (gain - 1) / (gain - 1 / (1 + slowdown))
    return asked, asked / (1 + slowdown)


def read_ahead(files: int, request: int, chunk: int, buffer: int, size: int) -> tuple[float, int]:
    """Bytes fetched over bytes read, and number of fetches, when all files are read in turn.

    A read outside the buffer fetches the chunk that contains it, and evicts the least recently used chunk.
    """
    kept: OrderedDict[tuple[int, int], None] = OrderedDict()
    room, fetches = buffer // chunk, 0
    for place in range(0, size, request):
        for file in range(files):
            key = file, place // chunk
            if key in kept:
                kept.move_to_end(key)
                continue
            fetches += 1
            kept[key] = None
            if len(kept) > room:
                kept.popitem(last=False)
    return fetches * chunk / (files * size), fetches


def simulated(machine_: dict, phase: dict, layouts: dict[str, object]) -> dict[str, float]:
    """Seconds of one job of 64 processes on 16 nodes, by layout of its files."""
    scenario = Scenario.model_validate({
        "machine": machine_, "placement": {"policy": "round_robin"},
        "workload": [{"name": "job", "nodes": 16, "processes": 64, "phases": [phase]}],
        "variants": [{"name": name, "layout": layout} for name, layout in layouts.items()],
    })  # fmt: skip
    return {one.name: one.makespan_s or 0.0 for one in simulate(scenario, Named()).outcomes}


def print_requests() -> None:
    """Figure 12: two jobs on one forwarding node."""
    asked, share = implied()
    gain, slowdown = FIGURE_12
    first, split = shares(asked, 1.0, 1.0), shares(asked, 1.0, MAX_METADATA)
    paper = f"{gain:g} times as fast, {slowdown:.0%} slower"
    print(f"Figure 12: Macdrp and Quantum on one forwarding node (paper: {paper})")
    print(f"  both values hold if Quantum asks for {asked:.1%} of the node and P is {share:.3f}; neither is printed")
    print(f"  with the largest P of plans, {MAX_METADATA:g}: Macdrp {split[1] / first[1]:.2f} times as fast, Quantum "
          f"{first[0] / split[0] - 1:.1%} slower")  # fmt: skip


def print_read_ahead() -> None:
    """Figure 13: chunk sizes of the prefetch buffer around the result of equation 2."""
    files, request, buffer, size = 256, 256 * KiB, GiB, 32 * MiB
    best = int(prefetch_chunk(buffer, 1, files))
    rows = []
    for chunk in (best // 4, best // 2, best, 2 * best, 4 * best):
        more, fetches = read_ahead(files, request, chunk, buffer, size)
        rows.append((f"{chunk / MiB:g} MiB", f"{more:.1f}", f"{fetches:,}"))
    print_table(
        f"Figure 13: {files} files read by turns through one forwarding node with a buffer of 1 GiB; equation 2: "
        f"chunks of {best / MiB:g} MiB", ("chunks", "bytes fetched for a byte read", "fetches"), rows,
    )  # fmt: skip


def print_stripes() -> None:
    """Figure 14: 64 processes that write one file."""
    plan = plan_path(JOBS, NOW)
    (count,) = (job.stripe_count for job in plan.jobs if job.name == "Grapes")
    times = simulated(
        {"targets": 12, "target": 1e9, "process": 1e9},
        {"operation": "write", "bytes": 64e9, "files": 1, "opens": 0, "order": "strided"},
        {"one": 1, "planned": count},
    )
    faster = times["one"] / times["planned"]
    part = (1 - 1 / (1 + FIGURE_14)) / (1 - 1 / faster)
    print(
        f"\nFigure 14: one file of 64 processes on {count} OSTs, not 1, is written {faster:.1f} times as fast; a run "
        f"is {FIGURE_14:.0%} faster (paper) if {part:.0%} of its time was that write"
    )


def print_small_files() -> None:
    """Figure 15: small files on the metadata target."""
    small, whole, part = FIGURE_15
    print(
        f"\nFigure 15: reads of small files that are {small:.0%} faster make a run of {part:.0%} I/O "
        f"{1 / (1 - part * (1 - 1 / (1 + small))) - 1:.1%} faster (paper about {whole:.0%}, with more than {part:.0%})"
    )
    print(
        "  simulated, rates ours: 6,400 files, 20,000 opens per second, 12 OSTs of 1 GB/s; bytes on the metadata "
        "target pass the network alone, so that gains are upper bounds"
    )
    for kib in (64, 256, 1024):
        times = simulated(
            {"targets": 12, "target": 1e9, "process": 2e9, "node": 2.5e9, "metadata": 20_000},
            {"operation": "read", "bytes": 6400.0 * kib * KiB, "files": 6400, "opens": 6400},
            {"OST": 1, "MDT": f"-E {kib}K -L mdt -E -1 -c 1"},
        )
        print(f"    files of {kib:5} KiB: {times['OST'] / times['MDT'] - 1:.0%} faster with Data-on-MDT")


def print_remapping(repeats: int = 5) -> None:
    """Figure 16: the cost of searching a path and writing the map of all compute nodes of a job."""
    snapshot = machine(80, STORAGE, PER_STORAGE)
    rows = []
    with tempfile.TemporaryDirectory(prefix="vani-") as name:
        for nodes in REMAPPED:
            jobs = jobs_of([nodes], [nodes * 1e6])
            search = np.median(seconds(partial(planned, jobs, snapshot), repeats))
            plan = planned(jobs, snapshot)
            write = np.median(seconds(lambda plan=plan: write_text(Path(name) / "map", path_to_map(plan)), repeats))
            each = f"{write / nodes * 1e6:.2f} us"
            rows.append((f"{nodes:,}", f"{search * 1e3:.1f} ms", f"{write * 1e3:.1f} ms", each))
    print_table(
        f"Figure 16: processor time of one job's remapping (median), to all {NODES:,} nodes of TaihuLight; a job's "
        "dispatch time is not printed in the paper", ("nodes", "search", "map written in", "for a node"), rows,
    )  # fmt: skip


def print_figures() -> None:
    """Figures 12 to 16."""
    print_requests()
    print_read_ahead()
    print_stripes()
    print_small_files()
    print_remapping()


PARTS = {"path": print_paths, "joint": print_joint, "aiot": print_figures}


if __name__ == "__main__":
    print_parts(PARTS)
