"""How a job's nodes share the components on the way to the file system: routers, links, bridges, I/O nodes.

The scheduler's placement decides that, and it changes the load of the busiest router by orders of magnitude. If it is
unknown, there are two extremes: *packed*, with as few components as possible, and *spread*, with as many.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Component:
    """A kind of component that several compute nodes share.

    Parameters
    ----------
    count
        Number of components in the machine.
    nodes
        Compute nodes behind each component.
    """

    count: int
    nodes: int


@dataclass(frozen=True)
class Groups:
    """The nodes of a job, grouped by the component that they share.

    Parameters
    ----------
    largest
        Nodes in the largest group (the paper's s_io, s_b, s_l, s_r).
    used
        Number of components in use (n_io, n_b, n_l, n_r).
    """

    largest: int
    used: int


def packed(nodes: int, component: Component) -> Groups:
    """Put all nodes behind as few components as possible."""
    return Groups(
        min(nodes, component.nodes), max(1, min(component.count, math.ceil(nodes / component.nodes)))
    )


def spread(nodes: int, component: Component) -> Groups:
    """Spread the nodes evenly over as many components as possible."""
    used = max(1, min(nodes, component.count))
    return Groups(math.ceil(nodes / used), used)


def groups_of(behind: Iterable[str]) -> Groups:
    """Group nodes by component; `behind` has the component of each node."""
    sizes = Counter(behind)
    return Groups(max(sizes.values(), default=0), len(sizes))
