"""The layers of the I/O path as arrays: each node's capacity, load and position in the queue.

Arrays over the nodes of a layer have shape (nodes,). Arrays over nodes and dimensions (bytes, data operations, metadata
operations per second) have shape (nodes, 3).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from vani.centre.plan.schema import Left
from vani.errors import InputError

if TYPE_CHECKING:
    from vani.centre.plan.schema.path import Dimension, LayerName
    from vani.centre.plan.schema.snapshot import Rates, Snapshot

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]

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


def keys_of(load: Floats, turn: Numbers) -> Numbers:
    """Sort keys of the queues: by bucket, and by turn within a bucket."""
    # A load equal to a bound belongs to the bucket below it.
    bucket = np.searchsorted(_BOUNDS, load - DUST, side="right")
    return np.asarray(bucket * _TURNS + turn, dtype=np.int64)


def bucket_of(keys: Numbers) -> Numbers:
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
    turn: Numbers = field(init=False)
    _part_of_peak: Floats = field(init=False)
    _next: int = field(init=False)

    def __post_init__(self) -> None:
        self.known_load = np.nan_to_num(self.load)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            self.free = np.where(np.isinf(self.peak), np.inf, self.peak * (1 - self.known_load)[:, None])
            self._part_of_peak = np.where(
                np.isfinite(self.peak) & (self.peak > _LEAST_PEAK), 1 / self.peak, 0.0
            )
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

    def keys(self, load: Floats) -> Numbers:
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
    groups: Numbers
    reach: list[Numbers]
    behind: list[Numbers]
    above: Numbers
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
        first, second, third = (
            layer.known_load + more for layer, more in zip(self.layers, grown, strict=True)
        )
        self._loads = first, second, third
        return self._loads

    def carry(self, demand: Floats, flows: Sequence[tuple[int, int, int, float]]) -> None:
        """Add flows of a demand to the nodes' loads and move the used nodes to the back of their queues."""
        self._loads = None
        for position, layer in enumerate(self.layers):
            # In order of first use.
            nodes = list(dict.fromkeys(int(flow[position]) for flow in flows))
            where = np.array([flow[position] for flow in flows], dtype=np.int64)
            np.add.at(layer.used, where, np.array([flow[3] for flow in flows])[:, None] * demand)
            layer.to_the_back(nodes)


def network_of(
    snapshot: Snapshot, dimensions: Collection[Dimension] = DIMENSIONS, where: str = "snapshot"
) -> Network:
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
    ost = _layer(
        "ost",
        [str(target.index) for target in snapshot.ost],
        [target.load for target in snapshot.ost],
        [target.peak for target in snapshot.ost],
        [target.state == "ok" for target in snapshot.ost],
        dimensions,
    )
    names, loads, peaks, states, behind = _storage(snapshot, position, where)
    follows = np.array([load is None for load in loads])
    means = [
        load if load is not None else _mean(ost.load[targets])
        for load, targets in zip(loads, behind, strict=True)
    ]
    storage = _layer("storage", names, means, peaks, states, dimensions)
    above = np.full(len(ost.names), -1, dtype=np.int64)
    for n, targets in enumerate(behind):
        above[targets] = n
    forwarding = _layer(
        "forwarding",
        [node.name for node in snapshot.forwarding],
        [node.load for node in snapshot.forwarding],
        [node.peak for node in snapshot.forwarding],
        [node.state == "ok" for node in snapshot.forwarding],
        dimensions,
    )
    groups, reach, lacks = _reach(snapshot, storage, where)
    lacks += [
        Left(name=f"OST {ost.names[n]}", reason="no storage node serves it: it is not used")
        for n in np.flatnonzero((above < 0) & ost.usable)
    ]
    ost.usable &= above >= 0
    return Network(
        forwarding,
        storage,
        ost,
        groups,
        reach,
        behind,
        above,
        follows | ~storage.is_limited,
        [*forwarding.lacks, *storage.lacks, *ost.lacks, *lacks],
    )


def _layer(
    name: LayerName,
    names: list[str],
    loads: Sequence[float | None],
    peaks: Sequence[Rates | None],
    ok: Sequence[bool],
    dimensions: Collection[Dimension],
) -> Layer:
    load = np.array([np.nan if load is None else load for load in loads], dtype=np.float64)
    peak = np.full((len(names), len(DIMENSIONS)), np.nan)
    for n, rates in enumerate(peaks):
        if rates is not None:
            given = (rates.iobw, rates.iops, rates.mdops)
            peak[n] = [np.nan if rate is None else rate for rate in given]
    usable, word = np.array(ok, dtype=np.bool_), _KINDS[name]
    lacks: list[Left] = []
    knows_loads = bool((usable & ~np.isnan(load)).any()) or not usable.any()
    if knows_loads:
        missing = usable & np.isnan(load)
        lacks += _not_used(name, names, missing, "no load")
        usable &= ~missing
    else:
        lacks.append(
            Left(name=f"{word}s", reason="their load is not known: plans use their full peaks")
        )
    for column, dimension in enumerate(DIMENSIONS):
        unknown = np.isnan(peak[:, column])
        if dimension not in dimensions or (name != "forwarding" and dimension == "mdops"):
            # Metadata operations go to the metadata server, unless a storage node has a peak of them.
            peak[unknown, column] = np.inf
        elif usable.any() and unknown[usable].all():
            lacks.append(
                Left(
                    name=f"{word}s",
                    reason=f"no peak of {_WORDS[dimension]} is known: not limited",
                )
            )
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


def _storage(
    snapshot: Snapshot, position: dict[int, int], where: str
) -> tuple[list[str], list[float | None], list[Rates | None], list[bool], list[Numbers]]:
    """Names, loads, peaks, states and targets of the storage nodes. Without any, servers take their place."""
    if snapshot.storage:
        return (
            [node.name for node in snapshot.storage],
            [node.load for node in snapshot.storage],
            [node.peak for node in snapshot.storage],
            [node.state == "ok" for node in snapshot.storage],
            [np.array([position[index] for index in node.ost], dtype=np.int64) for node in snapshot.storage],
        )
    names = list(dict.fromkeys(target.oss for target in snapshot.ost if target.oss is not None))
    if not names:
        raise InputError("names no storage node", where=where, todo="add `storage`, or the `oss` of each OST")
    behind = [
        np.array([n for n, target in enumerate(snapshot.ost) if target.oss == name], dtype=np.int64)
        for name in names
    ]
    count = len(names)
    return names, [None] * count, [None] * count, [True] * count, behind


def _reach(snapshot: Snapshot, storage: Layer, where: str) -> tuple[Numbers, list[Numbers], list[Left]]:
    """The group of each forwarding node, the storage nodes of each group, and nodes that `reach` lacks."""
    if snapshot.reach is None:
        return np.zeros(len(snapshot.forwarding), dtype=np.int64), [np.arange(len(storage.names))], []
    if not any(snapshot.reach.values()):
        raise InputError(
            "no forwarding node reaches a storage node",
            where=f"{where}: reach",
            todo="name those that each reaches; without `reach`, each reaches all",
        )
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
