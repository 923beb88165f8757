"""How many I/O nodes serve a job, from measured curves; prefetch chunk and request split of its forwarding nodes.

A curve gives the bandwidth of an access pattern by number of I/O nodes (0: compute nodes reach the file system
themselves). Legal are numbers that divide the compute nodes, so that each I/O node serves equally many (Bez et al.,
IPDPS 2021, section 5.1, where it is printed the other way round), and 0 where the machine allows it. Of the legal
numbers the fewest is taken that reaches (1 - tolerance) of the best mean.

Bundled are 189 patterns measured on MareNostrum 4 (data/forge_mn4.csv; writes with O_DIRECT). The nearest pattern has
the same layout (file per process, shared) and order (contiguous, strided), and the least distance

    d = |log2 nodes / nodes'| + |log2 processes per node / processes per node'| + |log2 request / request'|

that is, the sum of doublings by which it differs.

Prefetch (AIOT, equation 2): chunk = prefetch buffer * forwarding nodes / files that are read.
Request split (AIOT, section III-B.2): metadata : other requests = P : (1 - P); P is the share of metadata.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vani.units import KiB, MiB

__all__ = [
    "Pattern",
    "Rate",
    "Scenario",
    "fewest",
    "legal",
    "measured",
    "nearest",
    "prefetch_chunk",
    "speedups",
]

_FILE = Path(__file__).resolve().parent / "data" / "forge_mn4.csv"
_COUNTS = (0, 1, 2, 4, 8)


@dataclass(frozen=True)
class Pattern:
    """How a job writes: `request` bytes at a time by `processes` on `nodes`."""

    nodes: int
    processes: int
    layout: Literal["fpp", "shared"]
    order: Literal["contiguous", "strided"]
    request: int


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


@functools.cache
def measured() -> tuple[Scenario, ...]:
    """The bundled measurements."""
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


def nearest(pattern: Pattern, scenarios: Iterable[Scenario]) -> tuple[Scenario, float]:
    """The scenario nearest to a pattern and its distance in doublings; see the module."""
    order = pattern.order if pattern.layout == "shared" else "contiguous"
    alike = [s for s in scenarios if (s.pattern.layout, s.pattern.order) == (pattern.layout, order)]
    best = min(alike, key=lambda scenario: _distance(pattern, scenario.pattern))
    return best, _distance(pattern, best.pattern)


def legal(nodes: int, choices: Iterable[int], *, direct: bool) -> list[int]:
    """Of `choices`, numbers of I/O nodes that a job of `nodes` compute nodes can have, ascending."""
    return sorted({n for n in choices if (n == 0 and direct) or (n > 0 and nodes % n == 0)})


def fewest(curve: Mapping[int, Rate], allowed: Iterable[int], tolerance: float) -> int | None:
    """The fewest I/O nodes within `tolerance`, 0..1, of the best mean; None where none is measured."""
    known = [n for n in allowed if n in curve]
    if not known:
        return None
    best = max(curve[n].mean for n in known)
    # Direct access takes no I/O node, but it scatters most: it has to be the best, not nearly.
    if 0 in known and curve[0].mean >= best:
        return 0
    return min(n for n in known if n and curve[n].mean >= (1 - tolerance) * best)


def speedups(curve: Mapping[int, Rate], before: int, after: int) -> tuple[float, float, float]:
    """How many times as fast: least, expected, most; the ends one deviation off, least never below 1."""
    old, new = curve[before], curve[after]
    least = max(0.0, new.mean - new.deviation) / (old.mean + old.deviation)
    slow = old.mean - old.deviation
    expected = new.mean / old.mean
    most = (new.mean + new.deviation) / slow if slow > 0 else math.inf
    return max(1.0, min(least, expected)), max(1.0, expected), max(1.0, expected, most)


def prefetch_chunk(buffer: int, forwarders: int, files: int) -> int:
    """Equation 2, in bytes."""
    return buffer * forwarders // max(1, files)


def _distance(one: Pattern, other: Pattern) -> float:
    def doublings(a: float, b: float) -> float:
        return abs(math.log2(max(a, 1) / max(b, 1)))

    return (
        doublings(one.nodes, other.nodes)
        + doublings(one.processes / one.nodes, other.processes / other.nodes)
        + doublings(one.request, other.request)
    )
