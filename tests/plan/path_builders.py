"""Snapshots and jobs for path plans, and a maximum flow computed by independent code."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations_with_replacement, count
from pathlib import Path
from typing import Any

import networkx as nx
from hypothesis import strategies as st

from vani.centre.plan.path import path
from vani.centre.plan.schema.jobs import Jobs
from vani.centre.plan.schema.plans import PathPlan, PathSettings
from vani.centre.plan.schema.snapshot import Snapshot

ROOT = Path(__file__).resolve().parents[2]
TABLE_3_JOBS = ROOT / "examples" / "plan" / "table-3-jobs.yaml"
TABLE_3_NOW = ROOT / "examples" / "plan" / "table-3-now.yaml"
DIMENSIONS = ("iobw", "iops", "mdops")
STEPS = 10**9


def machine(
    forwarding: list[dict[str, Any]], targets: list[list[dict[str, Any]]], reach: Any = None, **more: Any
) -> Snapshot:
    """A snapshot with forwarding nodes f0, f1, ... and, by storage node s0, s1, ..., the targets behind it."""
    numbered = count()
    behind = [
        [{"index": next(numbered), "size": 1 << 40, "used": 0} | one for one in some] for some in targets
    ]
    return Snapshot.model_validate(
        {
            "forwarding": [{"name": f"f{n}"} | one for n, one in enumerate(forwarding)],
            "storage": [
                {"name": f"s{n}", "ost": [one["index"] for one in some], "peak": {"iobw": 1e15, "iops": 1e15}}
                | more.get("storage", {}).get(n, {})
                for n, some in enumerate(behind)
            ],
            "ost": [one for some in behind for one in some],
            "reach": reach,
        }
    )


def node(load: float | None = 0.0, iobw: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """A node; dimensions that are not given have plenty of room."""
    return {"load": load, "peak": {"iobw": iobw, "iops": 1e9, "mdops": 1e9} | more.pop("peak", {})} | more


def jobs_of(*demands: dict[str, Any]) -> Jobs:
    """Jobs a, b, ... of four nodes that demand only bytes, unless stated otherwise."""
    return Jobs.model_validate(
        {
            "jobs": [
                {"name": "abcdefghij"[n], "nodes": one.pop("nodes", 4)}
                | {
                    key: one.pop(key)
                    for key in ("hosts", "pattern", "processes", "bytes", "submit_s")
                    if key in one
                }
                | {"demand": {"iops": 0, "mdops": 0} | one if one else None}
                for n, one in enumerate(map(dict, demands))
            ]
        }
    )


def planned(jobs: Jobs, snapshot: Snapshot, **more: Any) -> PathPlan:
    """A plan with the defaults of the command."""
    asked = {"capacity": "binding", "exact": False, "pack": False, "metadata_share": None}
    settings = PathSettings.model_validate(asked | {key: more.pop(key) for key in asked if key in more})
    return path(jobs, snapshot, settings, **more)


def free_of(snapshot: Snapshot) -> dict[Any, dict[str, float]]:
    """Free capacity of each usable node, by ("fwd", name), ("sn", name), ("ost", index) and dimension."""
    load = {one.index: one.load for one in snapshot.ost}
    found: dict[Any, dict[str, float]] = {}
    for one in snapshot.forwarding:
        found["fwd", one.name] = _free(one, one.load)
    for one in snapshot.storage:
        known = [load[index] for index in one.ost if load[index] is not None]
        mean = sum(known) / len(known) if known else None
        found["sn", one.name] = _free(one, one.load if one.load is not None else mean)
    for one in snapshot.ost:
        found["ost", one.index] = _free(one, one.load)
    return found


def _free(one: Any, load: float | None) -> dict[str, float]:
    if one.state != "ok" or load is None or one.peak is None or one.peak.iobw is None:
        return dict.fromkeys(DIMENSIONS, 0.0)
    peaks = {name: getattr(one.peak, name) for name in DIMENSIONS}
    return {name: float("inf") if peak is None else peak * (1 - load) for name, peak in peaks.items()}


def best_by_enumeration(snapshot: Snapshot, demand: dict[str, float], nodes: int) -> float:
    """The largest share over all ways to give each of `nodes` compute nodes one forwarding node."""
    names = [one.name for one in snapshot.forwarding]
    ways = combinations_with_replacement(names, nodes)
    return max(
        largest_flow(snapshot, demand, {name: count / nodes for name, count in Counter(way).items()}) for way in ways
    )


def largest_flow(
    snapshot: Snapshot, demand: dict[str, float], mapped: dict[str, float] | None = None
) -> float:
    """The share of a demand that a maximum flow carries, node by node.

    `mapped` is the share of the compute nodes on each forwarding node; None: free choice.
    """
    asked = {name: rate for name, rate in demand.items() if rate > 0}
    capacity = {
        key: int(min(1.0, *(free[name] / rate for name, rate in asked.items())) * STEPS)
        for key, free in free_of(snapshot).items()
    }
    for one in snapshot.forwarding if mapped is not None else ():
        key = ("fwd", one.name)
        capacity[key] = min(capacity[key], int(mapped.get(one.name, 0.0) * STEPS))
    graph = nx.DiGraph()
    graph.add_edge("S", "job", capacity=STEPS)
    for key, room in capacity.items():
        graph.add_edge((*key, "in"), (*key, "out"), capacity=room)
    every = [one.name for one in snapshot.storage]
    for one in snapshot.forwarding:
        graph.add_edge("job", ("fwd", one.name, "in"))
        reached = every if snapshot.reach is None else snapshot.reach.get(one.name, [])
        graph.add_edges_from((("fwd", one.name, "out"), ("sn", name, "in")) for name in reached)
    for one in snapshot.storage:
        for index in one.ost:
            graph.add_edge(("sn", one.name, "out"), ("ost", index, "in"))
            graph.add_edge(("ost", index, "out"), "T")
    if "T" not in graph:
        return 0.0
    return nx.maximum_flow_value(graph, "S", "T") / STEPS


def check_sound(plan: PathPlan, jobs: Jobs, snapshot: Snapshot) -> None:
    """Check that no node is above its free capacity or abnormal, that paths exist, and that flows are conserved."""
    free, used = free_of(snapshot), defaultdict(lambda: dict.fromkeys(DIMENSIONS, 0.0))
    behind = {index: one.name for one in snapshot.storage for index in one.ost}
    for job, got in zip(jobs.jobs, plan.jobs, strict=True):
        by_forwarder: defaultdict[str, float] = defaultdict(float)
        for flow in got.flows:
            assert flow.share > 0
            assert behind[flow.ost] == flow.storage
            assert snapshot.reach is None or flow.storage in snapshot.reach[flow.forwarding]
            by_forwarder[flow.forwarding] += flow.share
            for key in (("fwd", flow.forwarding), ("sn", flow.storage), ("ost", flow.ost)):
                for name in DIMENSIONS:
                    asked = getattr(job.demand, name) if job.demand is not None else None
                    if plan.path.capacity == "binding" or name == "iobw":
                        used[key][name] += flow.share * (asked or 0.0)
        assert got.met is None or abs(sum(by_forwarder.values()) - got.met) < 1e-9
        assert got.met is None or got.met <= (got.flow or 0.0) + 1e-9 <= 1 + 2e-9
        assert got.met is None or got.bound is None or got.met <= got.bound + 1e-6
        # Each compute node has one forwarding node, which carries no more than its compute nodes demand.
        nodes = {one.forwarding: one.nodes for one in got.map}
        assert len(nodes) == len(got.map)
        assert sum(nodes.values()) in ((0, job.nodes) if got.met in (None, 0.0) else (job.nodes,))
        assert all(share <= nodes[name] / job.nodes + 1e-6 for name, share in by_forwarder.items())
    for key, taken in used.items():
        for name in DIMENSIONS:
            assert taken[name] <= free[key][name] * (1 + 1e-6) + 1e-9, (key, name)


LOADS = st.sampled_from([0.0, 0.05, 0.2, 0.35, 0.6, 0.85, 1.0])
STATES = st.sampled_from(["ok", "ok", "ok", "degraded", "offline"])
RATES = st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0])


@st.composite
def nodes(draw: Any) -> dict[str, Any]:
    """A node with all figures, or without one of them."""
    peak = {name: draw(RATES) for name in DIMENSIONS}
    return {"load": draw(LOADS), "state": draw(STATES), "peak": peak}


@st.composite
def machines(draw: Any, complete: bool | None = None) -> Snapshot:
    """A machine in any state; with `complete`, each forwarding node reaches each storage node."""
    forwarding = draw(st.lists(nodes(), min_size=1, max_size=5))
    targets = draw(st.lists(st.lists(nodes(), min_size=1, max_size=3), min_size=1, max_size=4))
    storage = {n: draw(nodes()) for n in range(len(targets))}
    reach = None
    if complete is False or (complete is None and draw(st.booleans())):
        names = [f"s{n}" for n in range(len(targets))]
        reach = {f"f{n}": draw(st.lists(st.sampled_from(names), unique=True)) for n in range(len(forwarding))}
        reach["f0"] = reach["f0"] or names[:1]
    return machine(forwarding, targets, reach, storage=storage)


@st.composite
def demands(draw: Any) -> dict[str, Any]:
    """A job that demands bytes, operations, metadata operations, or several of them."""
    found = {name: draw(RATES) for name in DIMENSIONS}
    found["iobw"] = found["iobw"] or 0.1
    return found | {"nodes": draw(st.integers(1, 7))}
