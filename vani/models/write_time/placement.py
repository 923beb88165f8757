"""The components between the nodes of a job and the file system: routers, links, bridges, I/O nodes.

A scheduler decides that, and it changes the load of the busiest router by orders of magnitude. Where it is not known,
two ends are examined: *packed*, as few shared components as can be, and *spread*, as many.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Component", "Groups", "groups_of", "packed", "spread"]


@dataclass(frozen=True)
class Component:
    """Something that several compute nodes share.

    Parameters
    ----------
    count
        How many the machine has.
    nodes
        Compute nodes behind each of them.
    """

    count: int
    nodes: int


@dataclass(frozen=True)
class Groups:
    """The nodes of a job behind one kind of component.

    Parameters
    ----------
    largest
        Nodes of the largest group (the paper's s_io, s_b, s_l, s_r).
    used
        How many components are used (n_io, n_b, n_l, n_r).
    """

    largest: int
    used: int


def packed(nodes: int, component: Component) -> Groups:
    """All nodes behind as few components as can be."""
    return Groups(
        min(nodes, component.nodes), max(1, min(component.count, math.ceil(nodes / component.nodes)))
    )


def spread(nodes: int, component: Component) -> Groups:
    """The nodes behind as many components as can be, evenly."""
    used = max(1, min(nodes, component.count))
    return Groups(math.ceil(nodes / used), used)


def groups_of(behind: Iterable[str]) -> Groups:
    """Count the entries of a map: for each node of the job, the component that it is behind."""
    sizes = Counter(behind)
    return Groups(max(sizes.values(), default=0), len(sizes))
