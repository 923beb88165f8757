"""The number of targets of a shared file: a fixed rule, unless the run's own rate or this machine's curve decide.

A node sends the bytes of all its processes, so the number of targets follows from the nodes that move a file's bytes,
not from their processes. The fixed rule is so many targets per node, and `LEAST` at least. It keeps the present number
where each node already reaches the rate that nodes reach on any number of targets. `python -m benchmarks.stripes
--leave-one-machine-out` compares it with other fixed rules, on each machine (docs/accuracy.md).

A gain has a number only if this machine's bandwidth was measured by the number of targets. Sweeps of other machines do
not transfer: with the same counts, the measured factors differ by more than ten.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from vani.units import KiB

if TYPE_CHECKING:
    from vani.schema.system import StripeCurve, StripePoint

LUSTRE_MAX_STRIPES: Final = 2000

REACH: Final = 0.9
"""Share of the best bandwidth that is enough: the rest is not worth the targets it needs. A file on many
targets takes them from others, and each open and stat costs more with more objects (Lustre manual, section 19.2)."""

CLIENT_RATE: Final = 3.0e9
"""Bytes per second of a compute node as a client, for machines that give at most its network: median of the
ior-easy writes per node in the 18 IO500 submissions (2017 to 2019) with ten nodes on Lustre."""

PER_NODE: Final = 2
"""Targets per node for independent calls."""

COLLECTIVE_PER_NODE: Final = 3
"""Targets per node for collective calls, whose aggregators write in step and wait for the slowest."""

LEAST: Final = 4
"""Least targets of a large shared file. With fewer nodes, more than their share of targets costs little."""

LEAST_READ: Final = 64
"""Least targets of a shared file that is read: all targets, up to `MAX_GUESSED`. Reads share their locks, so wide files
cost them little. All targets were the best fixed rule on ARCHER; no other machine was measured."""

ENOUGH: Final = 0.5e9
"""Bytes per second and node of independent calls from which on more targets gained nothing: the best count was at most
1.27 times as fast in 19 runs (median 1.0), and 9 times in the median of 30 slower ones. Chosen with all machines."""

COLLECTIVE_ENOUGH: Final = 1.5e9
"""The same for collective calls. Only two measured runs were that fast (at most 1.16 times), so it rarely decides."""

MAX_GUESSED: Final = 64
"""Most targets if the number of nodes is a guess. Up to here, too few cost more than too many. On the one measured
machine with more, 64 processes did best on 64 targets and reached a tenth of that on 128."""

LEAST_STRIPE: Final = 512 * KiB
"""Least bytes of a file per target: below it, more targets are useless (our choice)."""

NEAR: Final = 4.0
"""Greatest factor between a count and the nearest measured one for an expected gain."""

ALIKE_NODES: Final = 2.0
"""Greatest factor between the nodes of a curve and those of a run for an expected gain (our choice)."""

RANGE_EXPONENT: Final = 0.6
"""The range widens with this power of the factor between a count and the nearest measured one. Four of five factors
between two counts, taken from two others of the same run, are inside on the measured machines (docs/accuracy.md)."""

UNMEASURED: Final = (
    "more targets may also be slower: measure this machine (`vani systems detect --measure --sweep`), or try it "
    "(`vani tune`)"
)
"""Why a change has no number."""


def most_targets(bytes_: float, targets: int) -> int:
    """Most targets, of `targets`, that a file of `bytes_` bytes can use on Lustre."""
    return min(targets, LUSTRE_MAX_STRIPES, max(1, int(min(bytes_ / LEAST_STRIPE, targets))))


def neat(count: float, most: int) -> int:
    """The nearest of 1, 2, 3, 4, 6, 8, 12, ... by ratio. At most `most`, which counts as neat itself.

    2^n and 3 * 2^n divide the usual numbers of processes. (LUMI's user guide: the stripe count should be a factor of
    the number of processes.)
    """
    top = max(1, most)
    steps = {top} | {n << shift for shift in range(top.bit_length()) for n in (1, 3) if n << shift <= top}
    return min(sorted(steps), key=lambda step: abs(math.log(step / max(1.0, count))))


def wanted_targets(*, nodes: int, most: int, per_node: float, least: float = LEAST) -> int:
    """The number of targets, 1 to `most`, for a file that `nodes` nodes read or write."""
    return max(1, min(math.ceil(max(least, per_node * nodes)), most))


def own_targets(*, nodes: int, files: int, most: int, per_node: float = PER_NODE) -> int:
    """Targets for each of `files` files that one process each of `nodes` nodes writes at the same time.

    The files of a node together get the targets of a shared file, so that a node with many files has one for each.
    """
    return max(1, wanted_targets(nodes=nodes, most=min(most, MAX_GUESSED), per_node=per_node) // -(-files // nodes))


def nearest_curve(
    curves: Iterable[StripeCurve],
    *,
    nodes: int,
    collective: bool,
    reads: bool,
    own: bool = False,
    strided: bool = False,
) -> StripeCurve | None:
    """The curve of this machine for this kind of access with the nearest number of nodes; None if it has none.

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
    return min(same, key=lambda curve: abs(math.log(curve.nodes / nodes)), default=None)


def measured_per_node(curve: StripeCurve) -> float:
    """Targets per node, summed over files, that were enough: the fewest that reach `REACH` of the best bandwidth."""
    enough = REACH * max(point.bandwidth for point in curve.points)
    count = min(point.stripe_count for point in curve.points if point.bandwidth >= enough)
    return count * (curve.processes_per_node or 1) if curve.layout == "file_per_process" else count / curve.nodes


def speedup(
    points: Sequence[StripePoint], before: int, after: int, rate: float | None = None
) -> tuple[float, float] | None:
    """The speed-up from `before` to `after` targets on a curve, and the factor, either way, of its range.

    `rate` is what the run reached on `before` targets, which is a point of its own if the curve lacks that count.
    Between two known counts, the logarithm of bandwidth is linear in that of the count. None if a count is outside the
    known ones, or more than `NEAR` times from the nearest.
    """
    known = {point.stripe_count: point.bandwidth for point in points}
    if rate and before not in known:
        known[before] = rate
    far = max(min(abs(math.log(count / at)) for at in known) for count in (before, after))
    # More targets than were measured may be slower.
    if far > math.log(NEAR) or not min(known) <= min(before, after) <= max(before, after) <= max(known):
        return None
    factor = _bandwidth(known, after) / _bandwidth(known, before)
    return factor, math.exp(RANGE_EXPONENT * far)


def _bandwidth(known: Mapping[int, float], count: int) -> float:
    """Bandwidth at a count between two known ones."""
    counts = sorted(known)
    if len(counts) == 1:
        return known[count]
    upper = bisect.bisect_left(counts, count, lo=1)
    (a, low), (b, high) = ((at, known[at]) for at in counts[upper - 1 : upper + 1])
    return low * math.pow(high / low, math.log(count / a) / math.log(b / a))
