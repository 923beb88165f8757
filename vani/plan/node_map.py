"""One forwarding node for each compute node of a job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.plan.path_flow import Flows, by_forwarder
from vani.plan.path_layers import DUST, Floats, Numbers

__all__ = ["nodes_by_forwarder"]


def nodes_by_forwarder(
    flows: Flows, room: Floats, order: Sequence[int] | Numbers, nodes: int
) -> dict[int, int]:
    """Number of compute nodes on each forwarding node, in the order in which flows use them.

    Parameters
    ----------
    flows
        What the forwarding nodes are to carry: compute nodes are dealt in proportion to it.
    room
        Share of the demand that each forwarding node could carry: no more compute nodes are dealt to it than it
        can serve whole, as long as others have room; where all are full, the rest is dealt to those that carry most.
    order
        Forwarding nodes whose turn is next, for compute nodes that those in use cannot serve whole.
    """
    sums = by_forwarder(flows)
    used, share = np.array(list(sums), dtype=np.int64), np.array(list(sums.values()))
    total = float(share.sum())
    wanted = share / total * nodes
    counts = np.floor(wanted + 1e-6).astype(np.int64)
    rest = nodes - int(counts.sum())
    remainder = np.argsort(-(wanted - counts), kind="stable")
    if total >= 1 - DUST:
        fits = np.maximum(_whole(room[used], nodes) - counts, 0)
        for most in (1, nodes):
            for n in remainder:
                more = min(rest, most, int(fits[n]))
                counts[n] += more
                fits[n] -= more
                rest -= more
        dealt = dict(zip(used.tolist(), counts.tolist(), strict=True))
        for fwd in order if rest else ():
            fit = min(rest, int(_whole(room[[fwd]], nodes)[0])) if int(fwd) not in dealt else 0
            if fit:
                dealt[int(fwd)] = fit
                rest -= fit
    else:
        dealt = dict(zip(used.tolist(), counts.tolist(), strict=True))
    for n in remainder[:rest]:
        dealt[int(used[n])] += 1
    return {fwd: count for fwd, count in dealt.items() if count}


def _whole(room: Floats, nodes: int) -> Numbers:
    """Number of a job's compute nodes that fit into room."""
    return np.floor(np.minimum(room, 1.0) * nodes + 1e-6).astype(np.int64)
