"""Maps each compute node of a job to one forwarding node, to carry as much of the job's demand as possible.

A forwarding node carries min(its compute nodes / the job's compute nodes, its room). If every forwarding node reaches
the same storage, a greedy mapping is optimal: first compute nodes that can be served completely, then those that a
forwarding node can serve the most of. (Gains are concave.) With limited reach, a mixed integer program (HiGHS) proves
the optimum for few forwarding nodes; for more, compute nodes are moved one by one while that helps. No mapping carries
more than the maximum flow, which may split a compute node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from vani.centre.plan.path_flow import Flows, Room, by_forwarder, carried, largest, maximum
from vani.centre.plan.path_layers import DUST, Floats, Network, Numbers

FEW: Final = 24
"""Most forwarding nodes for which the best mapping is proved."""
_SECONDS: Final = 5.0
_TRIES: Final = 200
_ALIKE: Final = 1e-6


def best_mapping(
    flows: Flows,
    room: Room,
    order: Sequence[int] | Numbers,
    nodes: int,
    *,
    network: Network,
    demand: Floats,
    pack: bool,
) -> tuple[dict[int, int], Flows, float]:
    """Compute nodes per forwarding node, the flow with that mapping, and an upper bound of any mapping's share.

    Parameters
    ----------
    flows
        Flows if compute nodes could be split.
    order
        Forwarding nodes in queue order, for compute nodes that those in use cannot serve completely.
    nodes
        Number of compute nodes of the job.
    """

    def through(counts: dict[int, int], given: Flows) -> Flows:
        """The flow if each compute node uses only its forwarding node."""
        sums = by_forwarder(given)
        if sums.keys() == counts.keys() and all(sums[fwd] <= n / nodes + DUST for fwd, n in counts.items()):
            return given
        limited = Room(np.zeros_like(room.forwarding), room.storage, room.ost)
        for fwd, count in counts.items():
            limited.forwarding[fwd] = min(float(room.forwarding[fwd]), count / nodes)
        return largest(network, limited, demand, exact=len(network.reach) > 1, pack=pack)

    counts = _dealt(by_forwarder(flows), room.forwarding, order, nodes)
    mapped = through(counts, flows)
    bound = carried(flows)
    if carried(mapped) >= 1 - _ALIKE:
        return counts, mapped, 1.0
    usable = np.flatnonzero(room.forwarding > DUST)
    if len(set(network.groups[usable].tolist())) == 1:
        # `_dealt` is optimal here, up to the limits of the storage.
        return counts, mapped, carried(mapped)
    most = maximum(network, room)
    bound = min(max(bound, carried(most)), _of_forwarders(room.forwarding[usable], nodes))
    if carried(mapped) < bound - _ALIKE:
        # A mapping that follows the maximum flow is often already optimal.
        other = _dealt(by_forwarder(most), room.forwarding, order, nodes)
        counts, mapped = _better((counts, mapped), (other, through(other, most)))
    if carried(mapped) < bound - _ALIKE:
        proved, least_bound = _program(network, room, usable, nodes) if len(usable) <= FEW else ({}, 1.0)
        bound = min(bound, least_bound)
        if proved:
            counts, mapped = _better((counts, mapped), (proved, through(proved, [])))
        else:
            counts, mapped = _moved(counts, mapped, through, room.forwarding, usable, nodes, bound)
    return counts, mapped, max(bound, carried(mapped))


def _better(
    first: tuple[dict[int, int], Flows], second: tuple[dict[int, int], Flows]
) -> tuple[dict[int, int], Flows]:
    return second if carried(second[1]) > carried(first[1]) + _ALIKE else first


def _dealt(
    sums: dict[int, float], room: Floats, order: Sequence[int] | Numbers, nodes: int
) -> dict[int, int]:
    """Assign compute nodes where they are served completely, and the rest where the largest part of one is."""
    units = np.minimum(room, 1.0) * nodes
    whole = np.floor(units + 1e-6).astype(np.int64)
    used = np.array(list(sums), dtype=np.int64)
    share = np.array(list(sums.values()))
    # In proportion to the flow, which keeps the loads of Algorithm 1, but at most as many as are served completely.
    wanted = share / float(share.sum()) * nodes
    proportional = np.floor(wanted + 1e-6).astype(np.int64)
    counts = dict(zip(used.tolist(), np.minimum(proportional, whole[used]).tolist(), strict=True))
    rest = nodes - sum(counts.values())
    turns = used[np.argsort(proportional - wanted, kind="stable")].tolist()
    for most, candidates in ((1, turns), (nodes, turns), (nodes, [int(fwd) for fwd in order])):
        for fwd in candidates if rest else ():
            more = min(rest, most, int(whole[fwd]) - counts.get(fwd, 0))
            counts[fwd] = counts.get(fwd, 0) + max(0, more)
            rest -= max(0, more)
    if rest:
        reached = [fwd for fwd in dict.fromkeys([*turns, *map(int, order)]) if units[fwd] - whole[fwd] > DUST]
        parts = sorted(reached, key=lambda fwd: -round(float(units[fwd] - whole[fwd]), 9))
        for fwd in parts[:rest]:
            counts[fwd] = counts.get(fwd, 0) + 1
        # All are full: the rest joins those that carry most.
        for n in range(max(0, rest - len(parts))):
            fwd = turns[n % len(turns)]
            counts[fwd] = counts.get(fwd, 0) + 1
    return {fwd: count for fwd, count in counts.items() if count}


def _of_forwarders(room: Floats, nodes: int) -> float:
    """Upper bound of the share that forwarding nodes carry, with unlimited storage."""
    units = np.minimum(room, 1.0) * nodes
    whole = np.floor(units + 1e-6)
    rest = max(0, nodes - int(whole.sum()))
    parts = np.sort(np.maximum(units - whole, 0.0))[::-1]
    return min(1.0, float(min(nodes, whole.sum()) + parts[:rest].sum()) / nodes)


def _program(network: Network, room: Room, usable: Numbers, nodes: int) -> tuple[dict[int, int], float]:
    """The best mapping from a mixed integer program, and its bound; empty on a timeout or without scipy."""
    try:
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - heavy, and an extra
    except ImportError:
        return {}, 1.0
    behind = np.array(
        [
            min(float(room.storage[node]), float(room.ost[targets].sum()))
            for node, targets in enumerate(network.behind)
        ]
    )
    pairs = [(n, int(node)) for n, fwd in enumerate(usable) for node in network.reach[network.groups[fwd]]]
    count, flows = len(usable), len(pairs)
    # Columns: compute nodes of each forwarding node, then flows from forwarding to storage nodes.
    of_forwarder = np.zeros((count, count + flows))
    of_storage = np.zeros((len(behind), count + flows))
    for column, (n, node) in enumerate(pairs, start=count):
        of_forwarder[n, column] = of_storage[node, column] = 1.0
    rooms = LinearConstraint(of_forwarder.copy(), -np.inf, np.minimum(room.forwarding[usable], 1.0))
    of_forwarder[:, :count] = -np.eye(count) / nodes
    all_nodes = np.concatenate([np.ones(count), np.zeros(flows)])[None, :]
    answer = milp(
        np.concatenate([np.zeros(count), -np.ones(flows)]),
        integrality=np.concatenate([np.ones(count), np.zeros(flows)]),
        bounds=Bounds(0, np.concatenate([np.full(count, nodes), np.ones(flows)])),
        constraints=[
            rooms,
            LinearConstraint(of_forwarder, -np.inf, 0),
            LinearConstraint(of_storage, -np.inf, np.minimum(behind, 1.0)),
            LinearConstraint(all_nodes, nodes, nodes),
        ],
        options={"time_limit": _SECONDS, "mip_rel_gap": 1e-7},
    )
    bound = 1.0 if answer.mip_dual_bound is None else min(1.0, float(-answer.mip_dual_bound))
    if answer.x is None:
        return {}, bound
    numbers = np.round(answer.x[:count]).astype(np.int64)
    return {int(fwd): int(number) for fwd, number in zip(usable, numbers, strict=True) if number}, bound


def _moved(
    counts: dict[int, int],
    mapped: Flows,
    through: Callable[[dict[int, int], Flows], Flows],
    room: Floats,
    usable: Numbers,
    nodes: int,
    bound: float,
) -> tuple[dict[int, int], Flows]:
    """Move compute nodes away from where least of them is carried, as long as that helps."""
    tries = 0
    improved = True
    while improved and tries < _TRIES:
        improved = False
        sums = by_forwarder(mapped)
        idle = sorted(counts, key=lambda fwd: sums.get(fwd, 0.0) - counts[fwd] / nodes)
        free = sorted(usable.tolist(), key=lambda fwd: sums.get(fwd, 0.0) - float(room[fwd]))
        for source, target in ((a, b) for a in idle[:8] for b in free[:8] if a != b):
            changed = {**counts, source: counts[source] - 1, target: counts.get(target, 0) + 1}
            changed = {fwd: count for fwd, count in changed.items() if count}
            flows = through(changed, [])
            tries += 1
            if carried(flows) > carried(mapped) + _ALIKE:
                counts, mapped, improved = changed, flows, carried(flows) < bound - _ALIKE
                break
            if tries >= _TRIES:
                break
    return counts, mapped
