"""The number of targets that keep the writers (or readers) of a shared file busy, and the gain from a change.

A node sends the bytes of all its processes, so the number of targets follows from the nodes that move a file's bytes,
not from their processes: a few per node, and more for collective calls, whose aggregators write in step and wait for
the slowest. Of counts that performed about equally in the measurements, the model takes the smallest, which takes the
fewest targets from others. `python -m benchmarks.stripes` fits both numbers on all machines but one and judges them on
that one (docs/models.md).

The gain from another count follows from the rate that the file reached with the present one. Two models bound the
effect of more targets:

- the times of nodes and targets add up, 1 / rate = 1 / (nodes * node rate) + 1 / (targets * target rate), so the
  trace shows the rate of one target, and nodes that are at their own rate gain nothing;
- bandwidth grows with a power of the number of targets, as the measured sweeps do in their middle.

The estimate is the geometric mean of both. Nodes that already send as much as a client can gain nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vani.models.calibration import SPREAD
from vani.models.contention import CLIENT_RATE, LUSTRE_MAX_STRIPES, REACH
from vani.units import GiB, KiB, MiB

if TYPE_CHECKING:
    from vani.schema.system import StripeCurve

PER_NODE: Final = 2
"""Targets per node for independent calls: the fewest within 4 % of the best mean."""

ALIKE: Final = 6
"""Most targets per node that did equally well on average."""

COLLECTIVE_PER_NODE: Final = 4
"""Targets per node for collective calls, but at most one per process."""

COLLECTIVE_ALIKE: Final = 8

OWN_PER_NODE: Final = 4
"""Targets per node for processes that write separate files, summed over files written at the same time. The fewest
within 4 % of the best on ARCHER's fs3, judged on its fs4. There are no measurements of another machine."""

CACHED_PER_NODE: Final = 512 * MiB
"""Bytes per node that Lustre's clients absorb at memory speed if nothing is flushed. From OPRAEL's 128 processes on
8 nodes: 512 MiB per node are fastest on 4 of 32 targets; from 1 GiB per node, the targets limit the rate."""

CACHED_PER_TARGET: Final = GiB
"""One target per GiB of such files. This is the best of 1 to 32 targets for 1 and 4 GiB in the same data, and for 1, 4
and 8 GiB on Mahti, where all calls are collective."""

NODE_RATE: Final = 0.8e9
"""Bytes per second that a node writes to a shared file, in the middle of the measured sweeps."""

EXPONENT: Final = 0.4
"""Exponent of the number of targets in the second model."""

RANGE_EXPONENT: Final = 0.3
"""Exponent of the ratio of targets in the range of four of five measured speed-ups: the range widens with the ratio."""

MOST_GUESSED: Final = 64
"""Most targets if the number of nodes is a guess. Up to here, too few cost more than too many. On the one measured
machine with more, 64 processes did best on 64 targets and reached a tenth of that on 128."""

LEAST_SHARE: Final = 0.1
"""If a file's targets give less than this share of their rate, something else slows it (our choice)."""

LEAST_STRIPE: Final = 512 * KiB
"""Least bytes of a file per target: below it, more targets are useless (our choice)."""


def most_targets(bytes_: float, targets: int) -> int:
    """Most targets, of `targets`, that a file of `bytes_` bytes can use on Lustre."""
    return min(targets, LUSTRE_MAX_STRIPES, max(1, int(min(bytes_ / LEAST_STRIPE, targets))))


def wanted_targets(
    *,
    bytes_: int,
    nodes: int,
    processes: int,
    most: int,
    per_node: float,
    collective: bool,
    cached: int | None,
) -> int:
    """The number of targets, 1 to `most`, for a file that `processes` processes on `nodes` nodes read or write.

    Parameters
    ----------
    bytes_
        Size of the file.
    collective
        Aggregators move the bytes, each to its own target: no more targets than processes.
    cached
        Bytes per target if the file fits into the nodes' memory; None if the targets limit the rate.
    """
    if cached is not None:
        return max(1, min(most, round(bytes_ / cached)))
    wanted = math.ceil(per_node * nodes)
    return max(1, min(wanted, most, processes if collective else most))


def measured_per_node(
    curves: Iterable[StripeCurve],
    *,
    nodes: int,
    collective: bool,
    reads: bool,
    own: bool = False,
    strided: bool = False,
) -> float | None:
    """Targets per node that were enough in measurements of this machine; None without a curve of the kind.

    Of the curves, the one with the nearest number of nodes is used. The fewest targets, summed over files, that reach
    `REACH` of its best bandwidth are enough.

    Parameters
    ----------
    own
        Each process has its own file.
    strided
        Pieces smaller than a stripe alternate between processes. Without such a curve, one with contiguous regions
        is used.
    """
    kind, operation = "collective" if collective else "independent", "read" if reads else "write"
    layout = "file_per_process" if own else "shared"
    same = [c for c in curves if (c.calls, c.operation, c.layout) == (kind, operation, layout)]
    alternating = [curve for curve in same if curve.order == "strided"]
    same = alternating if strided and alternating else [curve for curve in same if curve.order == "contiguous"]
    if not same:
        return None
    near = min(same, key=lambda curve: abs(math.log(curve.nodes / nodes)))
    enough = REACH * max(point.bandwidth for point in near.points)
    count = min(point.stripe_count for point in near.points if point.bandwidth >= enough)
    return count * (near.processes_per_node or 1) if own else count / near.nodes


def speedup(
    before: int,
    after: int,
    rate: float,
    *,
    nodes: int,
    client_rate: float = CLIENT_RATE,
    node_rate: float = NODE_RATE,
    exponent: float = EXPONENT,
) -> float:
    """Speed-up on `after` targets of a file that reached `rate` bytes per second on `before` (fewer) targets.

    1 if the nodes already send as much as clients can, `client_rate` each.
    """
    if rate >= nodes * client_rate:
        return 1.0
    # Share of the time that the nodes take.
    own = min(1.0, rate / (nodes * node_rate))
    added = 1 / (own + (1 - own) * before / after)
    return math.sqrt(added * math.pow(after / before, exponent))


def range_factor(before: int, after: int, exponent: float = RANGE_EXPONENT) -> float:
    """Factor, either way, from `speedup` that covers four of five measured speed-ups."""
    return max(SPREAD, math.pow(max(after / before, before / after), exponent))
