"""The number of I/O nodes for a job, from measured curves, and the prefetch chunk of its I/O nodes.

A curve gives the bandwidth of an access pattern by number of I/O nodes (0: compute nodes reach the file system
directly), and the conditions it was measured under. A number is legal if it divides the number of compute nodes, so
that every I/O node serves equally many (Bez et al., IPDPS 2021, section 5.1, which prints it the other way round). 0 is
legal if the machine allows it.

`choose` uses all curves near the pattern: same direction, layout (file per process, shared) and order (contiguous,
strided), and no condition farther away than `ENVELOPE`. It minimises the regret,

    regret(n) = 1 - bandwidth(n) / max over legal m of bandwidth(m),

averaged over these curves with weights 1 / 2^d. Of all numbers within `ALIKE` of the minimum it takes the smallest. The
distance d is the number of doublings by which the conditions of a curve differ:

    d = |log2 nodes / nodes'| + |log2 processes per node / processes per node'| + |log2 request / request'|

If that mean regret is above `most_regret`, the near curves contradict each other and there is no answer. On held-out
repetitions, this choice loses about half as much as one from the pattern's own curve alone, because five repetitions
scatter more than neighbouring patterns differ (`python -m benchmarks.models --forwarding`).

The bundled data, for MareNostrum 4 only, are 189 measured patterns (data/forge_mn4.csv; writes with O_DIRECT).

Prefetch (AIOT, equation 2): chunk = prefetch buffer * forwarding nodes / files that are read.
Request split (AIOT, section III-B.2): metadata : other requests = P : (1 - P); P is the share of metadata.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from vani.units import KiB, MiB, format_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Profile
    from vani.schema.system import Curve, System

_FILE = Path(__file__).resolve().parent / "data" / "forge_mn4.csv"
_MEASURED_ON: Final = "marenostrum4"
_COUNTS = (0, 1, 2, 4, 8)

ALIKE: Final = 0.005
"""Regrets that differ by less count as equal: no measurement resolves half a percent."""
ANCHOR: Final = 1.5
"""A curve applies to a run if its rate at the run's number of I/O nodes is within this factor of the run's rate."""
HELD_OUT: Final = 0.2
"""Standard deviation of ln(measured / expected speedup) of held-out patterns, in excess of that of repetitions."""
_BELOW, _ABOVE = 2.0, 1.5
"""Standard deviations that leave 5 % on each side; 1.645 for a normal distribution. The lower one is larger because
more runs are slower than expected than faster."""
_WIDEST: Final = 10.0


@dataclass(frozen=True)
class Pattern:
    """How a job reads or writes: `processes` processes on `nodes` nodes, `request` bytes at a time."""

    nodes: int
    processes: int
    layout: Literal["fpp", "shared"]
    order: Literal["contiguous", "strided"]
    request: int
    operation: Literal["read", "write"] = "write"

    @property
    def kind(self) -> tuple[str, str, str]:
        """The properties that two patterns must share to be comparable."""
        # A process with a file of its own interleaves with no other.
        return self.operation, self.layout, self.order if self.layout == "shared" else "contiguous"


@dataclass(frozen=True)
class Rate:
    """Mean and standard deviation over repetitions, bytes per second."""

    mean: float
    deviation: float


@dataclass(frozen=True)
class Scenario:
    """A pattern and its curve: rates by number of I/O nodes."""

    pattern: Pattern
    curve: Mapping[int, Rate]


@dataclass(frozen=True)
class Offset:
    """Differences between the conditions of two patterns, in doublings."""

    nodes: float
    processes_per_node: float
    request: float

    @property
    def distance(self) -> float:
        return self.nodes + self.processes_per_node + self.request

    def within(self, most: Offset) -> bool:
        return (
            self.nodes <= most.nodes
            and self.processes_per_node <= most.processes_per_node
            and self.request <= most.request
        )

    def beyond(self, most: Offset) -> str:
        """List, in words, the conditions that differ by more than `most`."""
        conditions = (
            ("nodes", self.nodes, most.nodes),
            ("processes per node", self.processes_per_node, most.processes_per_node),
            ("request size", self.request, most.request),
        )
        return ", ".join(f"{far:.2f} doublings of {name}" for name, far, limit in conditions if far > limit)


ENVELOPE: Final = Offset(1.0, 1.0, 1.0)
"""Greatest distance of a curve: one doubling of each condition, where the choice loses at most 10 % on average for each
layout and order. At two, strided writes lose 10 to 13 % (`python -m benchmarks.models --forwarding`)."""
_ENVELOPE_DIRECT: Final = Offset(1.0, 0.5, 1.0)
"""Greatest distance with a file per process and direct access among the choices. Direct access is best with 48
processes per node but not with 24: one doubling loses 18 %, half a doubling 9 % (halfway between 0 and 18)."""


@dataclass(frozen=True)
class Choice:
    """A number of I/O nodes and the curves behind it.

    `lost` maps a number of I/O nodes to its expected regret, 0..1, and `rates` maps it to its mean rate over the curves
    in `near`. The nearest curve comes first and is `distance` doublings away.
    """

    io_nodes: int
    lost: Mapping[int, float]
    rates: Mapping[int, Rate]
    near: tuple[Scenario, ...]
    distance: float


@functools.cache
def measured() -> tuple[Scenario, ...]:
    """The measurements on MareNostrum 4."""
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    return tuple(
        Scenario(
            Pattern(
                int(row["compute_nodes"]),
                int(row["processes"]),
                "fpp" if row["layout"] == "fpp" else "shared",
                "strided" if row["spatiality"] == "strided" else "contiguous",
                int(row["request_kib"]) * KiB,
            ),
            {n: Rate(float(row[f"mean_{n}"]) * MiB, float(row[f"std_{n}"]) * MiB) for n in _COUNTS},
        )
        for row in rows
    )


def curves_of(system: System) -> list[Scenario]:
    """The curves measured on a machine: those in its description, then the bundled ones."""
    layer = system.forwarding
    own = [_scenario(curve) for curve in layer.curves if curve.is_complete] if layer is not None else []
    known = {curve.pattern for curve in own}
    bundled = measured() if system.name == _MEASURED_ON else ()
    return [*own, *(curve for curve in bundled if curve.pattern not in known)]


def offset(pattern: Pattern, other: Pattern) -> Offset:
    """The differences between two patterns, in doublings."""

    def doublings(a: float, b: float) -> float:
        return abs(math.log2(max(a, 1) / max(b, 1)))

    return Offset(
        doublings(pattern.nodes, other.nodes),
        abs(math.log2((pattern.processes / pattern.nodes) / (other.processes / other.nodes))),
        doublings(pattern.request, other.request),
    )


def legal(nodes: int, choices: Iterable[int], *, direct: bool, any_number: bool = False) -> list[int]:
    """The `choices` that a job of `nodes` compute nodes can have as its number of I/O nodes, in ascending order.

    A number must divide `nodes`. With `any_number` it only must not exceed it. `direct` allows 0.
    """
    return sorted(n for n in {*choices} if (0 < n <= nodes and (any_number or nodes % n == 0)) or (not n and direct))


def regrets(curve: Mapping[int, Rate], allowed: Sequence[int]) -> dict[int, float]:
    """Share of the best allowed bandwidth that each allowed number loses, 0..1."""
    best = max(curve[n].mean for n in allowed)
    return {n: 1 - curve[n].mean / best for n in allowed}


def choose(
    pattern: Pattern, scenarios: Iterable[Scenario], allowed: Iterable[int], most_regret: float
) -> Choice | str:
    """The number with least mean regret over the near curves, or the reason why there is none, as part of a sentence.

    `allowed` are the legal numbers. The comparison is between those that the nearest curve has, over all near curves
    that have them all.
    """
    alike = [s for s in scenarios if s.pattern.kind == pattern.kind]
    if not alike:
        return "no curve was measured for this direction, file layout and order"
    wanted = sorted(set(allowed))
    off = sorted(((offset(pattern, s.pattern), s) for s in alike), key=lambda pair: pair[0].distance)
    is_split = pattern.layout == "fpp" and 0 in wanted
    most = _ENVELOPE_DIRECT if is_split else ENVELOPE
    near = [(far, s) for far, s in off if far.within(most)]
    if not near:
        far, other = off[0]
        return (
            f"the nearest measured curve ({other.pattern.processes:,} processes on {other.pattern.nodes} nodes, "
            f"{format_bytes(other.pattern.request)} at a time) is too far, {far.beyond(most)}"
        )
    known = next((numbers for _, s in near if len(numbers := [n for n in wanted if n in s.curve]) > 1), None)
    if known is None:
        return "fewer than two of the numbers that the job can have were measured"
    near = [(far, s) for far, s in near if s.curve.keys() >= set(known)]
    weights = [2**-far.distance for far, _ in near]
    lost = [regrets(s.curve, known) for _, s in near]
    expected = {n: _weighted([regret[n] for regret in lost], weights) for n in known}
    least = min(expected.values())
    if least > most_regret:
        return f"the near curves contradict each other: every number loses {least:.0%} of the best in their mean"
    # Direct access needs no I/O node, but its rates scatter most: it must be the best, not merely as good.
    best = min((n for n in known if expected[n] <= least + ALIKE), key=lambda n: n or math.inf)
    return Choice(
        best,
        expected,
        {n: _mean_rate([s.curve[n] for _, s in near], weights) for n in known},
        tuple(s for _, s in near),
        near[0][0].distance,
    )


def nearest(pattern: Pattern, scenarios: Iterable[Scenario]) -> tuple[Scenario, float]:
    """The scenario nearest to a pattern, at any distance, and that distance in doublings (see the module)."""
    alike = [s for s in scenarios if s.pattern.kind == pattern.kind]
    best = min(alike, key=lambda scenario: offset(pattern, scenario.pattern).distance)
    return best, offset(pattern, best.pattern).distance


def speedups(rates: Mapping[int, Rate], before: int, after: int) -> tuple[float, float, float]:
    """Least, expected and greatest speed-up from `before` to `after` I/O nodes; 90 % are in the range.

    The least may be below 1. The range combines the scatter of runs with `after` I/O nodes and of held-out patterns.
    """
    old, new = rates[before], rates[after]
    expected = new.mean / old.mean
    low, high = spread(math.hypot(new.deviation / new.mean, HELD_OUT))
    return expected * low, expected, expected * high


def spread(width: float) -> tuple[float, float]:
    """Factors that contain 90 % of a scatter; `width` is a standard deviation of logarithms."""
    # A wider scatter means nothing, and its factors overflow.
    width = min(width, _WIDEST)
    return math.exp(-_BELOW * width), math.exp(_ABOVE * width)


def prefetch_chunk(buffer: int, forwarders: int, files: int) -> int:
    """Prefetch chunk in bytes (AIOT, equation 2)."""
    return buffer * forwarders // max(1, files)


def _scenario(curve: Curve) -> Scenario:
    nodes, per_node = curve.nodes or 1, curve.processes_per_node or 1
    pattern = Pattern(
        nodes,
        nodes * per_node,
        "shared" if curve.layout == "shared" else "fpp",
        curve.order or "contiguous",
        curve.request or 1,
        curve.operation or "write",
    )
    return Scenario(pattern, {point.io_nodes: Rate(point.bandwidth, point.deviation) for point in curve.points})


def _weighted(values: Sequence[float], weights: Sequence[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def _mean_rate(rates: Sequence[Rate], weights: Sequence[float]) -> Rate:
    """Geometric mean of the rates, with the mean relative deviation."""
    mean = math.exp(_weighted([math.log(rate.mean) for rate in rates], weights))
    return Rate(mean, mean * _weighted([rate.deviation / rate.mean for rate in rates], weights))


STRIDED: Final = 0.5
"""Least share of accesses with a constant stride for a workload to count as strided: more often than not."""


@dataclass(frozen=True)
class Traffic:
    """The direction in which a job moves most of its bytes."""

    operation: Literal["read", "write"]
    bytes: int
    rate: float | None

    @property
    def verb(self) -> str:
        return "write" if self.operation == "write" else "read"

    @property
    def attribute(self) -> str:
        return "written" if self.operation == "write" else "read"


def traffic_of(profile: Profile) -> Traffic | None:
    """The direction with most bytes; None if the profile has no bytes."""
    io = profile.dataset.io
    if io.bytes.written is None or io.bytes.read is None:
        return None
    if io.bytes.written >= io.bytes.read:
        return Traffic("write", io.bytes.written, io.bandwidth.write)
    return Traffic("read", io.bytes.read, io.bandwidth.read)


def pattern_of(traffic: Traffic, profile: Profile, *, strided: float = STRIDED) -> Pattern | str:
    """The pattern of a run's traffic, or, as part of a sentence, why it is unknown."""
    io, nodes, writes = profile.dataset.io, profile.job.nodes or 1, traffic.operation == "write"
    sizes = io.transfer_size.write if writes else io.transfer_size.read
    if sizes is None or not sizes.p50:
        return f"dataset.io.transfer_size.{traffic.verb} is not known; supply a trace with sizes"
    moved = [(file, (file.io.bytes.written if writes else file.io.bytes.read) or 0) for file in profile.files]
    whole = sum(size for _, size in moved)
    shared = [(file, size) for file, size in moved if size and file.access == "shared"]
    is_shared = sum(size for _, size in shared) > whole / 2 if whole else profile.dataset.files == 1
    # Perhaps only some processes write a shared file: the aggregators of collective calls.
    users = max((file.writers if writes else file.readers for file, _ in shared), default=0)
    everyone = max(1, profile.workflow.processes)
    order = io.access_pattern
    is_strided = is_shared and order is not None and order.strided >= strided
    return Pattern(
        nodes=nodes,
        processes=users if is_shared and users else max(nodes, everyone),
        layout="shared" if is_shared else "fpp",
        order="strided" if is_strided else "contiguous",
        request=sizes.p50,
        operation=traffic.operation,
    )
