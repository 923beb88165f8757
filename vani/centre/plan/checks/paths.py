"""Check of plans that choose paths: nodes, connections and peaks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from vani.centre.plan.checks import Findings
from vani.centre.plan.path_layers import DIMENSIONS
from vani.centre.plan.schema import Left

if TYPE_CHECKING:
    from vani.centre.plan.schema import JobPath, PathPlan
    from vani.centre.plan.schema.snapshot import IoNode, Snapshot, StorageNode, Target

_ROUNDED: Final = 1e-6
"""Relative tolerance: a written plan rounds shares to nine digits, and many flows add up on a node."""

_WORDS: Final = {
    "iobw": "bytes per second",
    "iops": "operations per second",
    "mdops": "metadata operations per second",
}


def check_paths(plan: PathPlan, snapshot: Snapshot) -> Findings:
    """Compare the paths of a plan with the snapshot.

    A path breaks the plan if one of its nodes is missing, is not ok or no longer leads to the next, or if a node would
    carry more than its peak. Too little free capacity is only a note: the present load may include the plan's own jobs.
    """
    nodes = _nodes_of(snapshot)
    broken = [*_states(plan, nodes), *_broken_links(plan.jobs, snapshot)]
    unknown, notes = [], []
    for key, sent in _sent(plan).items():
        node = nodes.get(key)
        if node is None or node.state != "ok":
            continue
        for name, amount in sent.items():
            peak = getattr(node.peak, name, None)
            if peak is None:
                # Storage nodes and targets need no peak of metadata operations, which go to the metadata server.
                if not (name == "mdops" and key[0] != "forwarding node"):
                    unknown.append(Left(name=_called(key), reason=f"no peak of {_WORDS[name]}"))
            elif amount > peak * (1 + _ROUNDED):
                reason = f"{amount:,.0f} {_WORDS[name]} are planned, its peak is {peak:,.0f}"
                broken.append(Left(name=_called(key), reason=reason))
            elif node.load is not None and amount > peak * (1 - node.load) * (1 + _ROUNDED):
                notes.append(
                    f"{_called(key)} has {peak * (1 - node.load):,.0f} {_WORDS[name]} free, and {amount:,.0f} are "
                    "planned: not enough, unless its load includes the jobs of the plan"
                )
    return Findings(broken, unknown, notes)


Key = tuple[str, str]


def _nodes_of(snapshot: Snapshot) -> dict[Key, IoNode | StorageNode | Target]:
    nodes: dict[Key, IoNode | StorageNode | Target] = {}
    nodes |= {("forwarding node", node.name): node for node in snapshot.forwarding}
    nodes |= {("storage node", node.name): node for node in snapshot.storage}
    return nodes | {("OST", str(target.index)): target for target in snapshot.ost}


def _states(plan: PathPlan, nodes: dict[Key, IoNode | StorageNode | Target]) -> Iterator[Left]:
    servers = {name for kind, name in nodes if kind == "storage node"}
    for key in dict.fromkeys(key for job in plan.jobs for key in _keys(job)):
        node = nodes.get(key)
        if node is not None and node.state != "ok":
            yield Left(name=_called(key), reason=f"it is {node.state}")
        # Without storage nodes in the snapshot, the plan used servers in their place.
        elif node is None and (key[0] != "storage node" or servers):
            yield Left(name=_called(key), reason="it is not in the snapshot")


def _keys(job: JobPath) -> Iterator[Key]:
    yield from (("forwarding node", part.forwarding) for part in job.map)
    for flow in job.flows:
        yield "storage node", flow.storage
        yield "OST", str(flow.ost)


def _broken_links(jobs: Iterable[JobPath], snapshot: Snapshot) -> Iterator[Left]:
    behind = {index: node.name for node in snapshot.storage for index in node.ost}
    ways = dict.fromkeys((flow.forwarding, flow.storage, flow.ost) for job in jobs for flow in job.flows)
    for forwarding, storage in dict.fromkeys(way[:2] for way in ways):
        if snapshot.reach is not None and storage not in snapshot.reach.get(forwarding, ()):
            yield Left(name=f"forwarding node {forwarding}", reason=f"it no longer reaches {storage}")
    for storage, ost in dict.fromkeys(way[1:] for way in ways):
        if snapshot.storage and behind.get(ost) != storage:
            yield Left(name=f"OST {ost}", reason=f"it no longer belongs to {storage}")


def _sent(plan: PathPlan) -> dict[Key, dict[str, float]]:
    """Load of each node that the plan uses, by dimension."""
    loads: defaultdict[Key, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for job in plan.jobs:
        demand = {name: rate for name in DIMENSIONS if (rate := getattr(job, name))}
        for flow in job.flows:
            for key in (
                ("forwarding node", flow.forwarding),
                ("storage node", flow.storage),
                ("OST", str(flow.ost)),
            ):
                for name, rate in demand.items():
                    loads[key][name] += flow.share * rate
    return {key: dict(sent) for key, sent in loads.items()}


def _called(key: Key) -> str:
    return f"{key[0]} {key[1]}"
