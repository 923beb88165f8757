"""The number of targets that keep the writers (or readers) of one shared file busy, and the gain of a change.

A node sends the bytes of all its processes, so a file needs targets by the nodes that move its bytes, not by their
processes: some for each node, more for collective calls, whose aggregators write in step and wait for the slowest. Of
counts that did about as well where they were measured, the least is taken: it takes the fewest targets from others.
`python -m benchmarks.stripes` chooses both numbers on all machines but one and judges them on that one
(docs/models.md).

A change of the count is judged by the rate that the file reached with the present one. Two readings of that rate bound
what more targets bring:

- the times of nodes and targets add up, 1 / rate = 1 / (nodes * node rate) + 1 / (targets * target rate), so that the
  trace shows the rate of one target, and nodes that are at their own rate gain nothing;
- bandwidth grows with a power of the targets, as the measured sweeps do in the middle.

The estimate is their geometric mean. Nodes that send as much as a client can gain nothing from any count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from vani.models.calibration import SPREAD
from vani.models.contention import CLIENT_RATE, REACH
from vani.units import GiB, MiB

if TYPE_CHECKING:
    from vani.schema.system import StripeCurve

__all__ = [
    "ALIKE",
    "CACHED_PER_NODE",
    "CACHED_PER_TARGET",
    "COLLECTIVE_ALIKE",
    "COLLECTIVE_PER_NODE",
    "EXPONENT",
    "LEAST_SHARE",
    "NODE_RATE",
    "OWN_PER_NODE",
    "PER_NODE",
    "RANGE_EXPONENT",
    "measured_per_node",
    "range_factor",
    "speedup",
    "wanted_targets",
]

PER_NODE: Final = 2
"""Targets for each node whose processes call independently: the cheapest within 4 % of the best mean."""

ALIKE: Final = 6
"""Up to so many for each node did as well in the mean."""

COLLECTIVE_PER_NODE: Final = 4
"""Targets for each node in collective calls, where that is not more than there are processes."""

COLLECTIVE_ALIKE: Final = 8

OWN_PER_NODE: Final = 4
"""Targets for each node whose processes write separate files, over all files that are written at the same time:
the fewest within 4 % of the best on ARCHER's fs3, judged on its fs4. No other machine was measured."""

CACHED_PER_NODE: Final = 512 * MiB
"""Bytes per node that Lustre's clients take at the speed of memory where nothing is flushed. OPRAEL's 128 processes on
8 nodes: 512 MiB per node are fastest on 4 of 32 targets, from 1 GiB per node on the targets decide."""

CACHED_PER_TARGET: Final = GiB
"""A target for each GiB of such files: best of 1 to 32 targets at 1 and at 4 GiB there; on Mahti,
where all calls are collective, at 1, 4 and 8 GiB."""

NODE_RATE: Final = 0.8e9
"""Bytes per second that a node writes to one shared file, in the middle of the measured sweeps."""

EXPONENT: Final = 0.4
"""Of the targets, in the second reading."""

RANGE_EXPONENT: Final = 0.3
"""Of the targets, too: the further a count is from the present one, the wider the range of four of five measured
speed-ups."""

MOST_GUESSED: Final = 64
"""Targets at most where the number of nodes is guessed. Too few cost more than too many up to here; on the one measured
machine with more, 64 processes did best on 64 targets and reached a tenth of that on 128."""

LEAST_SHARE: Final = 0.1
"""A file whose targets give less than this share of a target's rate is slowed by something else (ours)."""


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
    """The number of targets for a file that `processes` on `nodes` move; at least 1, at most `most`.

    Parameters
    ----------
    bytes_
        Of the file.
    collective
        Aggregators move the bytes: no more targets than processes, each of which serves one.
    cached
        Bytes per target where the nodes' memory takes the file; None where targets decide.
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
    """Targets per node that were measured to be enough on this machine; None where no curve is of the kind.

    Of the curve whose number of nodes is nearest, the fewest targets that reach `REACH` of its best bandwidth, of all
    files together.

    Parameters
    ----------
    own
        Of a file for each process, not of a shared one.
    strided
        Pieces of less than a stripe alternate between processes; where that was not measured, regions are used instead.
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
    """Times as fast on `after` targets as on `before` (fewer), where `rate` bytes per second were reached.

    1 where the nodes send as much as clients can, `client_rate` each.
    """
    if rate >= nodes * client_rate:
        return 1.0
    # Share of the time that the nodes themselves need.
    own = min(1.0, rate / (nodes * node_rate))
    added = 1 / (own + (1 - own) * before / after)
    return math.sqrt(added * math.pow(after / before, exponent))


def range_factor(before: int, after: int, exponent: float = RANGE_EXPONENT) -> float:
    """Factor either way from `speedup` that four of five measured ones keep within."""
    return max(SPREAD, math.pow(max(after / before, before / after), exponent))
