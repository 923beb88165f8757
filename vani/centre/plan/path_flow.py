"""Flow of a job's demand through the layers: Algorithm 1 of AIOT, and a maximum flow.

Amounts are shares of the job's demand, where 1 is all of it. A flow is (forwarding node, storage node, target, share),
with nodes as indexes into their layers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.plan.path_layers import BEYOND, DUST, Floats, Network, Numbers, bucket_of, keys_of

if TYPE_CHECKING:
    from collections.abc import Sequence

Flows = list[tuple[int, int, int, float]]

_STEPS: Final = 10**9
"""Units in a demand for the maximum flow, whose algorithms terminate for integers."""
_BOUNDS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass
class Room:
    """Capacity of each node for a demand, by layer, as shares of the demand. Shape (nodes,) each."""

    forwarding: Floats
    storage: Floats
    ost: Floats

    @property
    def layers(self) -> tuple[Floats, Floats, Floats]:
        return self.forwarding, self.storage, self.ost

    def copy(self) -> Room:
        return Room(*(layer.copy() for layer in self.layers))

    def least_sum(self, network: Network) -> tuple[float, float]:
        """Total capacity of the forwarding nodes, and of the layers behind them."""
        served = network.above >= 0
        behind = np.bincount(
            network.above[served], weights=np.minimum(self.ost[served], 2.0), minlength=len(self.storage)
        )
        return float(self.forwarding.sum()), float(np.minimum(self.storage, behind).sum())


def room_for(network: Network, demand: Floats) -> Room:
    """Capacity of each node for a demand, in its scarcest dimension; 0 for unusable nodes."""
    return Room(*(layer.shares(demand) for layer in network.layers))


def greedy(network: Network, room: Room, demand: Floats, *, pack: bool = False) -> Flows:
    """Algorithm 1: the head of the lowest bucket of each layer carries what it can, then the next one.

    The paper pushes compute node by compute node. Compute nodes of a job push equal amounts, so a run of them down the
    same path is one push here. It lasts until a node on the path is full or its load passes the next bucket bound. Then
    all nodes on the path go behind the others of their buckets. With `pack`, a run ends only when a node is full.
    """
    left_of = room.copy()
    loads = [load.copy() for load in network.loads()]
    weights = [layer.weights(demand) for layer in network.layers]
    queue = _Queues(network, loads)
    flows: Flows = []
    left = 1.0
    while left > DUST:
        path = queue.path(left_of)
        if path is None:
            break
        pushed = min(left, *(float(of[node]) for of, node in zip(left_of.layers, path, strict=True)))
        if not pack:
            pushed = min(
                pushed,
                *(
                    _to_the_bound(float(load[node]), float(weight[node]))
                    for load, weight, node in zip(loads, weights, path, strict=True)
                ),
            )
        left -= pushed
        for of, load, weight, node in zip(left_of.layers, loads, weights, path, strict=True):
            of[node] = rest if (rest := of[node] - pushed) > DUST else 0.0
            load[node] += pushed * weight[node]
        flows.append((*path, pushed))
        queue.pushed(path, left_of, requeue=not pack)
    return _together(flows)


class _Queues:
    """The queues of all layers while one job is served."""

    def __init__(self, network: Network, loads: list[Floats]) -> None:
        self._network = network
        self._loads = loads
        self._keys = [layer.keys(load) for layer, load in zip(network.layers, loads, strict=True)]
        self._next = max(int(layer.turn.max(initial=0)) for layer in network.layers) + 1
        self._best: Numbers | None = None

    def path(self, left: Room) -> tuple[int, int, int] | None:
        """The heads of the queues that reach each other and can carry more; None if there are none.

        Targets take precedence over storage nodes: no busy target is used while any node has an idle one.
        """
        if self._best is None:
            free = (left.ost > DUST) & (self._network.above >= 0)
            self._best = np.full(len(left.storage), BEYOND, dtype=np.int64)
            np.minimum.at(self._best, self._network.above[free], bucket_of(self._keys[2][free]) * BEYOND)
        while (fwd := _head(self._keys[0], left.forwarding)) is not None:
            reached = self._network.reach[self._network.groups[fwd]]
            while (node := _head(self._best + self._keys[1], left.storage, reached)) is not None:
                target = _head(self._keys[2], left.ost, self._network.behind[node])
                if target is not None:
                    return fwd, node, target
                left.storage[node] = 0.0
            # Forwarding nodes of the same group reach the same storage nodes, so they have no path either.
            left.forwarding[self._network.groups == self._network.groups[fwd]] = 0.0
        return None

    def _look(self, node: int, left: Room) -> None:
        """Update the bucket of a storage node's best target."""
        assert self._best is not None
        best = _head(self._keys[2], left.ost, self._network.behind[node])
        if best is not None:
            self._best[node] = int(bucket_of(self._keys[2][[best]])[0]) * BEYOND

    def pushed(self, path: tuple[int, int, int], left: Room, *, requeue: bool) -> None:
        """Update the queues after a push down a path."""
        if requeue:
            self.requeue(path)
        self._look(path[1], left)

    def requeue(self, path: tuple[int, int, int]) -> None:
        """Put the nodes of a path behind the others of their buckets."""
        turn = np.array([self._next])
        for keys, load, node in zip(self._keys, self._loads, path, strict=True):
            keys[node] = keys_of(load[[node]], turn)[0]
        self._next += 1


def _head(keys: Numbers, left: Floats, among: Numbers | None = None) -> int | None:
    """The first node in the queue that can carry more; None if there is none."""
    candidates = np.flatnonzero(left > DUST) if among is None else among[left[among] > DUST]
    return int(candidates[keys[candidates].argmin()]) if len(candidates) else None


def _to_the_bound(load: float, weight: float) -> float:
    """Share of the demand that takes a node's load to the next bucket bound; infinite if there is none."""
    bound = next((bound for bound in _BOUNDS if bound > load + DUST), None)
    return np.inf if bound is None or weight <= 0 else max(DUST, (bound - load) / weight)


def maximum(network: Network, room: Room) -> Flows:
    """A maximum flow, in units of 1e-9 of the demand, rounded down.

    Forwarding nodes that reach the same storage nodes are merged into one node of the graph.
    """
    import networkx as nx  # noqa: PLC0415 - needed only if a flow may not be a maximum

    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_edge("all", "job", capacity=_STEPS)
    whole = [_steps(layer) for layer in room.layers]
    supply = np.bincount(network.groups, weights=whole[0], minlength=len(network.reach)).astype(np.int64)
    for node, targets in enumerate(network.behind):
        room_behind = min(int(whole[1][node]), int(whole[2][targets].sum()))
        if room_behind:
            graph.add_edge(("storage", node), "end", capacity=room_behind)
    for group, reached in enumerate(network.reach):
        if supply[group]:
            graph.add_edge("job", ("group", group), capacity=int(supply[group]))
            graph.add_edges_from((("group", group), ("storage", int(node))) for node in reached)
    if not graph.has_node("end") or graph.in_degree("end") == 0:
        return []
    _, flows = nx.maximum_flow(graph, "all", "end")
    return list(_decomposed(network, whole, flows))


def _decomposed(
    network: Network, whole: list[Numbers], amounts: dict[object, dict[object, int]]
) -> Iterator[tuple[int, int, int, float]]:
    """Split the flows of merged nodes: each forwarding node of a group, and each target, takes what it can, in turn."""
    loads = network.loads()
    order = [
        np.argsort(layer.keys(load), kind="stable") for layer, load in zip(network.layers, loads, strict=True)
    ]
    rank = np.argsort(order[2])
    left = [layer.copy() for layer in whole]
    members: defaultdict[int, list[int]] = defaultdict(list)
    for fwd in order[0][left[0][order[0]] > 0][::-1]:
        members[int(network.groups[fwd])].append(int(fwd))
    targets = [list(behind[np.argsort(-rank[behind])]) for behind in network.behind]
    for group in range(len(network.reach)):
        for node, amount in amounts.get(("group", group), {}).items():
            assert isinstance(node, tuple)
            storage, rest = int(node[1]), amount
            while rest > 0:
                fwd, target = members[group][-1], int(targets[storage][-1])
                pushed = min(rest, int(left[0][fwd]), int(left[2][target]))
                if pushed:
                    yield fwd, storage, target, pushed / _STEPS
                rest -= pushed
                left[0][fwd] -= pushed
                left[2][target] -= pushed
                if not left[0][fwd]:
                    members[group].pop()
                if not left[2][target]:
                    targets[storage].pop()


def _steps(shares: Floats) -> Numbers:
    return np.asarray(np.floor(np.minimum(shares, 1.0) * _STEPS), dtype=np.int64)


def largest(network: Network, room: Room, demand: Floats, *, exact: bool, pack: bool) -> Flows:
    """The flow of Algorithm 1, or, with `exact`, a maximum flow if that carries more."""
    flows = greedy(network, room, demand, pack=pack)
    if exact and carried(flows) < 1 - DUST:
        better = maximum(network, room)
        if carried(better) > carried(flows) + 1e-6:
            return better
    return flows


def carried(flows: Sequence[tuple[int, int, int, float]]) -> float:
    """The share of a demand that the flows carry."""
    return min(1.0, sum(flow[3] for flow in flows))


def by_forwarder(flows: Flows) -> dict[int, float]:
    """The share that each forwarding node carries, in order of first use."""
    sums: dict[int, float] = {}
    for fwd, _, _, share in flows:
        sums[fwd] = sums.get(fwd, 0.0) + share
    return sums


def _together(flows: Flows) -> Flows:
    """Merge the flows of each path, in order of first use."""
    sums: dict[tuple[int, int, int], float] = {}
    for *path, share in flows:
        key = (path[0], path[1], path[2])
        sums[key] = sums.get(key, 0.0) + share
    return [(*key, share) for key, share in sums.items()]
