"""The layers of nodes between jobs and OSTs, and flows through them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.centre.columns import Flags, Floats, Ints
from vani.centre.plan.schema.plans import Dimension, LayerName, Left
from vani.centre.plan.schema.snapshot import IoNode, Snapshot, StorageNode, Target
from vani.errors import InputError

# The layers of the I/O path as arrays: each node's capacity, load and position in the queue.
#
# Arrays over the nodes of a layer have shape (nodes,). Arrays over nodes and dimensions (bytes, data operations,
# metadata operations per second) have shape (nodes, 3).


DIMENSIONS: Final[tuple[Dimension, ...]] = ("iobw", "iops", "mdops")
DUST: Final = 1e-9
"""Shares of a demand, or of a peak, up to this size are rounding errors."""

_BOUNDS: Final = np.array([0.0, 0.2, 0.4, 0.6, 0.8])
"""Lower bounds of the buckets: {0}, (0, 20 %], ..., (80 %, 100 %]."""
_LEAST_PEAK: Final = 1e-100
"""Smaller peaks count as 0, because dividing by them overflows."""
_TURNS: Final = 1 << 40
BEYOND: Final = 8 * _TURNS
"""More than any key."""
_WORDS: Final = {"iobw": "bytes", "iops": "data operations", "mdops": "metadata operations"}
_KINDS: Final = {"forwarding": "forwarding node", "storage": "storage node", "ost": "OST"}


def keys_of(load: Floats, turn: Ints) -> Ints:
    """Sort keys of the queues: by bucket, and by turn within a bucket."""
    # A load equal to a bound belongs to the bucket below it.
    bucket = np.searchsorted(_BOUNDS, load - DUST, side="right")
    return np.asarray(bucket * _TURNS + turn, dtype=np.int64)


def bucket_of(keys: Ints) -> Ints:
    """The bucket of each key, from 0."""
    return np.asarray(keys // _TURNS, dtype=np.int64)


@dataclass
class Layer:
    """The nodes of one layer.

    Attributes
    ----------
    load
        Load in the snapshot, 0..1; NaN if unknown.
    peak
        Peak rates. NaN if unknown, infinite if the layer is not limited in a dimension.
    usable
        True for nodes that the plan may use: those that are ok and have figures.
    used
        Rates that the plan puts on the nodes.
    known_load
        `load` with 0 in place of unknown loads.
    free
        Peaks less the load in the snapshot; infinite if the layer is not limited.
    """

    name: LayerName
    names: list[str]
    load: Floats
    peak: Floats
    usable: Flags
    lacks: list[Left] = field(default_factory=list)
    knows_loads: bool = True
    used: Floats = field(init=False)
    known_load: Floats = field(init=False)
    free: Floats = field(init=False)
    turn: Ints = field(init=False)
    _part_of_peak: Floats = field(init=False)
    _next: int = field(init=False)

    def __post_init__(self) -> None:
        self.known_load = np.nan_to_num(self.load)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            self.free = np.where(np.isinf(self.peak), np.inf, self.peak * (1 - self.known_load)[:, None])
            is_peak = np.isfinite(self.peak) & (self.peak > _LEAST_PEAK)
            self._part_of_peak = np.where(is_peak, 1 / self.peak, 0.0)
            self.free[self.peak <= _LEAST_PEAK] = 0.0
        self.used = np.zeros_like(self.peak)
        self.turn = np.arange(len(self.names), dtype=np.int64)
        self._next = len(self.names)

    @property
    def word(self) -> str:
        return _KINDS[self.name]

    @property
    def room(self) -> Floats:
        """Free capacity in each dimension; infinite if the layer is not limited."""
        return np.maximum(self.free - self.used, 0.0)

    def shares(self, demand: Floats) -> Floats:
        """Share of a demand that each node could carry in its scarcest dimension, shape (nodes,). It may exceed 1."""
        needed = demand > 0
        if not needed.any():
            return np.where(self.usable, np.inf, 0.0)
        with np.errstate(over="ignore"):
            shares = (self.room[:, needed] / demand[needed]).min(axis=1)
        return np.where(self.usable & (shares > DUST), shares, 0.0)

    def weights(self, demand: Floats) -> Floats:
        """Increase of each node's load if it carried the whole demand, shape (nodes,)."""
        return np.asarray((self._part_of_peak * demand).max(axis=1))

    @property
    def growth(self) -> Floats:
        """Increase of each node's load through the plan, shape (nodes,)."""
        return np.asarray((self._part_of_peak * self.used).max(axis=1))

    @property
    def is_limited(self) -> Flags:
        """True for nodes with a finite peak in any dimension, shape (nodes,)."""
        return np.asarray((self._part_of_peak > 0).any(axis=1))

    def keys(self, load: Floats) -> Ints:
        """Sort keys of the queue, shape (nodes,): by bucket, and within a bucket by waiting time."""
        return keys_of(load, self.turn)

    def to_the_back(self, nodes: Sequence[int]) -> None:
        """Move nodes behind all others of their bucket."""
        for node in nodes:
            self.turn[node] = self._next
            self._next += 1

    def index(self, load: Floats) -> float | None:
        """Load imbalance: population standard deviation of the usable nodes' loads / 0.5. None if loads are unknown."""
        if not self.knows_loads or not self.usable.any():
            return None
        return min(1.0, float(np.minimum(load[self.usable], 1.0).std()) / 0.5)


@dataclass
class Network:
    """Forwarding nodes, storage nodes, targets, and the connections between them.

    Forwarding nodes that reach the same storage nodes form a group: `groups` has the group of each forwarding node, and
    `reach` the storage nodes of each group. `behind` has the targets of each storage node, and `above` the storage node
    of each target, -1 for none.
    """

    forwarding: Layer
    storage: Layer
    ost: Layer
    groups: Ints
    reach: list[Ints]
    behind: list[Ints]
    above: Ints
    storage_follows: Flags
    """True for storage nodes whose load is the mean of their targets' loads."""
    lacks: list[Left] = field(default_factory=list)
    _loads: tuple[Floats, Floats, Floats] | None = field(init=False, default=None)

    @property
    def layers(self) -> tuple[Layer, Layer, Layer]:
        return self.forwarding, self.storage, self.ost

    def loads(self) -> tuple[Floats, Floats, Floats]:
        """Loads of each layer, including what the plan carries so far."""
        if self._loads is not None:
            return self._loads
        grown = [layer.growth for layer in self.layers]
        has_node = self.above >= 0
        served, nodes = self.above[has_node], len(self.storage.names)
        of_targets = np.bincount(served, weights=grown[2][has_node], minlength=nodes)
        mean = of_targets / np.maximum(1, np.bincount(served, minlength=nodes))
        grown[1] = np.where(self.storage_follows, np.maximum(grown[1], mean), grown[1])
        first, second, third = (layer.known_load + more for layer, more in zip(self.layers, grown, strict=True))
        self._loads = first, second, third
        return self._loads

    def carry(self, demand: Floats, flows: Sequence[tuple[int, int, int, float]]) -> None:
        """Add flows of a demand to the nodes' loads and move the used nodes to the back of their queues."""
        self._loads = None
        for position, layer in enumerate(self.layers):
            nodes = [int(flow[position]) for flow in flows]
            carried = np.array([flow[3] for flow in flows])[:, None] * demand
            np.add.at(layer.used, np.array(nodes, dtype=np.int64), carried)
            # In order of first use.
            layer.to_the_back(list(dict.fromkeys(nodes)))


def network_of(snapshot: Snapshot, dimensions: Collection[Dimension] = DIMENSIONS, where: str = "snapshot") -> Network:
    """The network that a snapshot describes.

    Abnormal nodes are not used, nor are nodes that lack a figure that others of their layer have. Peaks are required in
    `dimensions` only.

    Raises
    ------
    InputError
        There are no forwarding nodes, storage nodes or targets, or no forwarding node reaches a storage node.
    """
    if not snapshot.forwarding:
        raise InputError("names no forwarding node", where=where, todo="add `forwarding`")
    if not snapshot.ost:
        raise InputError("names no OST", where=where, todo="add `ost`")
    position = {target.index: n for n, target in enumerate(snapshot.ost)}
    ost = _layer("ost", snapshot.ost, dimensions)
    nodes = snapshot.storage or _servers(snapshot, where)
    behind = [np.array([position[index] for index in node.ost], dtype=np.int64) for node in nodes]
    follows = np.array([node.load is None for node in nodes])
    known = [
        node if node.load is not None else node.model_copy(update={"load": _mean(ost.load[targets])})
        for node, targets in zip(nodes, behind, strict=True)
    ]
    storage = _layer("storage", known, dimensions)
    above = np.full(len(ost.names), -1, dtype=np.int64)
    for n, targets in enumerate(behind):
        above[targets] = n
    forwarding = _layer("forwarding", snapshot.forwarding, dimensions)
    groups, reach, lacks = _reach(snapshot, storage, where)
    lacks += [
        Left(name=f"OST {ost.names[n]}", reason="no storage node serves it: it is not used")
        for n in np.flatnonzero((above < 0) & ost.usable)
    ]
    ost.usable &= above >= 0
    lacks = [*forwarding.lacks, *storage.lacks, *ost.lacks, *lacks]
    follows |= ~storage.is_limited
    return Network(forwarding, storage, ost, groups, reach, behind, above, follows, lacks)


def _layer(name: LayerName, nodes: Sequence[IoNode | StorageNode | Target], dimensions: Collection[Dimension]) -> Layer:
    names = [str(node.index) if isinstance(node, Target) else node.name for node in nodes]
    load = np.array([node.load for node in nodes], dtype=np.float64)
    peak = np.array([[getattr(node.peak, name, None) for name in DIMENSIONS] for node in nodes], dtype=np.float64)
    usable, word = np.array([node.state == "ok" for node in nodes], dtype=np.bool_), _KINDS[name]
    lacks: list[Left] = []
    knows_loads = bool((usable & ~np.isnan(load)).any()) or not usable.any()
    if knows_loads:
        missing = usable & np.isnan(load)
        lacks += _not_used(name, names, missing, "no load")
        usable &= ~missing
    else:
        lacks.append(Left(name=f"{word}s", reason="their load is not known: plans use their full peaks"))
    for column, dimension in enumerate(DIMENSIONS):
        unknown = np.isnan(peak[:, column])
        if dimension not in dimensions or (name != "forwarding" and dimension == "mdops"):
            # Metadata operations go to the metadata server, unless a storage node has a peak of them.
            peak[unknown, column] = np.inf
        elif usable.any() and unknown[usable].all():
            lacks.append(Left(name=f"{word}s", reason=f"no peak of {_WORDS[dimension]} is known: not limited"))
            peak[:, column] = np.inf
        else:
            missing = usable & unknown
            lacks += _not_used(name, names, missing, f"no peak of {_WORDS[dimension]}")
            usable &= ~missing
    return Layer(name, names, load, peak, usable, lacks, knows_loads)


def _not_used(name: LayerName, names: Sequence[str], missing: Flags, what: str) -> list[Left]:
    word = "OST " if name == "ost" else ""
    return [
        Left(name=f"{word}{names[n]}", reason=f"{what}, which others have: it is not used")
        for n in np.flatnonzero(missing).tolist()
    ]


def _servers(snapshot: Snapshot, where: str) -> list[StorageNode]:
    """The servers of the OSTs, which take the place of storage nodes if there are none."""
    behind: defaultdict[str, list[int]] = defaultdict(list)
    for target in snapshot.ost:
        if target.oss is not None:
            behind[target.oss].append(target.index)
    if not behind:
        raise InputError("names no storage node", where=where, todo="add `storage`, or the `oss` of each OST")
    return [StorageNode(name=name, ost=targets) for name, targets in behind.items()]


def _reach(snapshot: Snapshot, storage: Layer, where: str) -> tuple[Ints, list[Ints], list[Left]]:
    """The group of each forwarding node, the storage nodes of each group, and nodes that `reach` lacks."""
    if snapshot.reach is None:
        return np.zeros(len(snapshot.forwarding), dtype=np.int64), [np.arange(len(storage.names))], []
    if not any(snapshot.reach.values()):
        todo = "name those that each reaches; without `reach`, each reaches all"
        raise InputError("no forwarding node reaches a storage node", where=f"{where}: reach", todo=todo)
    position = {name: n for n, name in enumerate(storage.names)}
    known: dict[tuple[int, ...], int] = {}
    groups, lacks = [], []
    for node in snapshot.forwarding:
        if node.name not in snapshot.reach:
            lacks.append(Left(name=node.name, reason="`reach` does not name it: it is not used"))
        reached = tuple(sorted({position[name] for name in snapshot.reach.get(node.name, ())}))
        groups.append(known.setdefault(reached, len(known)))
    return np.array(groups, dtype=np.int64), [np.array(reached, dtype=np.int64) for reached in known], lacks


def _mean(values: Floats) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


# Flow of a job's demand through the layers: Algorithm 1 of AIOT, and a maximum flow.
#
# Amounts are shares of the job's demand, where 1 is all of it. A flow is (forwarding node, storage node, target,
# share), with nodes as indexes into their layers.

Flows = list[tuple[int, int, int, float]]

_STEPS: Final = 10**9
"""Units in a demand for the maximum flow, whose algorithms terminate for integers."""
_NEXT_BOUNDS: Final = (0.2, 0.4, 0.6, 0.8, 1.0)


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
        for load, weight, node in zip(loads, weights, path, strict=True):
            pushed = pushed if pack else min(pushed, _to_the_bound(float(load[node]), float(weight[node])))
        left -= pushed
        for of, load, weight, node in zip(left_of.layers, loads, weights, path, strict=True):
            of[node] = rest if (rest := of[node] - pushed) > DUST else 0.0
            load[node] += pushed * weight[node]
        flows.append((*path, pushed))
        if not pack:
            queue.requeue(path)
        queue.look(path[1], left_of)
    return _together(flows)


class _Queues:
    """The queues of all layers while one job is served."""

    def __init__(self, network: Network, loads: list[Floats]) -> None:
        self._network = network
        self._loads = loads
        self._keys = [layer.keys(load) for layer, load in zip(network.layers, loads, strict=True)]
        self._next = max(int(layer.turn.max(initial=0)) for layer in network.layers) + 1
        self._best: Ints | None = None

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

    def look(self, node: int, left: Room) -> None:
        """Update the bucket of a storage node's best target."""
        assert self._best is not None
        best = _head(self._keys[2], left.ost, self._network.behind[node])
        if best is not None:
            self._best[node] = int(bucket_of(self._keys[2][[best]])[0]) * BEYOND

    def requeue(self, path: tuple[int, int, int]) -> None:
        """Put the nodes of a path behind the others of their buckets."""
        turn = np.array([self._next])
        for keys, load, node in zip(self._keys, self._loads, path, strict=True):
            keys[node] = keys_of(load[[node]], turn)[0]
        self._next += 1


def _head(keys: Ints, left: Floats, among: Ints | None = None) -> int | None:
    """The first node in the queue that can carry more; None if there is none."""
    candidates = np.flatnonzero(left > DUST) if among is None else among[left[among] > DUST]
    return int(candidates[keys[candidates].argmin()]) if len(candidates) else None


def _to_the_bound(load: float, weight: float) -> float:
    """Share of the demand that takes a node's load to the next bucket bound; infinite if there is none."""
    bound = next((bound for bound in _NEXT_BOUNDS if bound > load + DUST), None)
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
    network: Network, whole: list[Ints], amounts: dict[object, dict[object, int]]
) -> Iterator[tuple[int, int, int, float]]:
    """Split the flows of merged nodes: each forwarding node of a group, and each target, takes what it can, in turn."""
    loads = network.loads()
    order = [np.argsort(layer.keys(load), kind="stable") for layer, load in zip(network.layers, loads, strict=True)]
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


def _steps(shares: Floats) -> Ints:
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
    for fwd, node, target, share in flows:
        sums[fwd, node, target] = sums.get((fwd, node, target), 0.0) + share
    return [(*path, share) for path, share in sums.items()]


# The static map in use without a plan: blocks of compute nodes belong to forwarding nodes, regardless of load.
#
# On TaihuLight, 512 consecutive compute nodes share a forwarding node (AIOT, section II-A).

def static_shares(layer: Layer, nodes: Sequence[int], demands: Floats, serves: Sequence[bool]) -> Floats:
    """Share of each job's demand that forwarding nodes carry with the static map, shape (jobs,).

    Parameters
    ----------
    nodes
        Number of compute nodes of each job. Jobs occupy consecutive nodes.
    demands
        Demand of each job by dimension, shape (jobs, 3).
    serves
        True for each forwarding node in service. A node of unknown capacity is not limited.
    """
    count = len(layer.names)
    block = -(-sum(nodes) // count)
    ends = np.cumsum(nodes)
    parts = [_part(int(end) - many, int(end), block) for many, end in zip(nodes, ends, strict=True)]
    demanded = np.zeros_like(layer.peak)
    for (first, share), demand in zip(parts, demands, strict=True):
        demanded[first : first + len(share)] += share[:, None] * demand
    free = np.where(np.isnan(layer.free), np.inf, layer.free)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        carried = np.where(demanded > 0, free / demanded, 1.0).min(axis=1)
    carried = np.where(np.asarray(serves), np.minimum(carried, 1.0), 0.0)
    return np.array([float(share @ carried[first : first + len(share)]) for first, share in parts])


def _part(begin: int, end: int, block: int) -> tuple[int, Floats]:
    """First block of compute nodes `begin` to `end`, and the share of them in it and in each following block."""

    first, last = begin // block, (end - 1) // block
    edges = np.clip(np.arange(first, last + 2) * block, begin, end)
    return first, np.diff(edges) / (end - begin)
