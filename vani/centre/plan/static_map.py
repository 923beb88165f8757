"""The static map in use without a plan: blocks of compute nodes belong to forwarding nodes, regardless of load.

On TaihuLight, 512 consecutive compute nodes share a forwarding node (AIOT, section II-A).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.centre.plan.path_layers import Floats, Layer


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
