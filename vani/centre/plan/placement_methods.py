"""Chooses OSTs for requests with each method: sound ones first, and degraded ones only for the rest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from vani.centre.plan.placement.allocator import allocate
from vani.centre.plan.placement.balance import balance
from vani.centre.plan.placement.cheapest import cheapest
from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets

if TYPE_CHECKING:
    from vani.centre.plan.schema import PlaceSettings

Request = Sequence[int]

_MOST_ORDERED = 256
"""Widest request whose stripes are ordered one by one, in quadratic time. Wider ones are only rotated."""


@dataclass(frozen=True)
class Pool:
    """OSTs in service. Every column has shape (targets,).

    Attributes
    ----------
    index
        Lustre's indexes, ascending.
    is_sound
        True for OSTs that are not degraded.
    load
        Weighted load of each OST's server (tarazu only).
    used
        Share of the bytes in use, 0..1.
    pace
        Bytes per second in any unit: the peak times the share that its load leaves, if those are known.
    """

    index: Ints
    is_sound: np.ndarray
    targets: Targets
    load: Floats
    used: Floats
    pace: Floats

    def part(self, mask: np.ndarray) -> Pool:
        """A subset of the OSTs, given as a mask."""
        return Pool(
            self.index[mask],
            self.is_sound[mask],
            self.targets.part(np.flatnonzero(mask)),
            self.load[mask],
            self.used[mask],
            self.pace[mask],
        )

    def after(self, added: Floats) -> Pool:
        """The pool with `added` bytes on each OST."""
        old = self.targets
        return replace(
            self,
            targets=Targets(old.size, old.base + added, np.maximum(old.room - added, 0), old.server),
        )


@dataclass(frozen=True)
class Chosen:
    """For each request, the position in the pool of each stripe's OST; incomplete or empty if it does not fit.

    `is_least` is true if no placement can have a lower level of the fullest OST.
    """

    of: list[list[int]]
    is_least: bool


def choose(requests: Sequence[Request], largest: int, pool: Pool, settings: PlaceSettings) -> Chosen:
    """Choose OSTs. `largest` is the largest stripe of all requests, the unit in which tarazu counts room."""
    sound = np.flatnonzero(pool.is_sound)
    first = _choose(requests, largest, pool.part(pool.is_sound), settings)
    rows = [[int(sound[target]) for target in row] for row in first.of]
    left = [number for number, row in enumerate(rows) if len(row) < len(requests[number])]
    if not left or bool(np.all(pool.is_sound)):
        return Chosen(rows, first.is_least)
    added = np.zeros(len(pool.index))
    for request, row in zip(requests, rows, strict=True):
        np.add.at(added, np.array(row, dtype=np.int64), np.array(request[: len(row)], dtype=np.float64))
    if settings.method == "tarazu":
        degraded = np.flatnonzero(~pool.is_sound)
        rest = [requests[number][len(rows[number]) :] for number in left]
        second = _choose(rest, largest, pool.after(added).part(~pool.is_sound), settings)
        for number, row in zip(left, second.of, strict=True):
            rows[number] += [int(degraded[target]) for target in row]
    else:
        second = _choose([requests[number] for number in left], largest, pool.after(added), settings)
        for number, row in zip(left, second.of, strict=True):
            rows[number] = row
    return Chosen(rows, is_least=False)


def _choose(requests: Sequence[Request], largest: int, pool: Pool, settings: PlaceSettings) -> Chosen:
    if not requests or not len(pool.index):
        return Chosen([[] for _ in requests], is_least=False)
    if settings.method == "tarazu":
        capacity = np.floor(pool.targets.room / max(1, largest)).astype(np.int64)
        counts = [len(request) for request in requests]
        return Chosen(cheapest(counts, pool.load + pool.used, capacity), is_least=False)
    if settings.method == "lsa":
        place = allocate(requests, pool.targets, settings.seed, turn=settings.turn, window=settings.window)
        return Chosen(_rows(requests, place), is_least=False)
    placement = balance(requests, pool.targets)
    return Chosen(_spread(requests, _rows(requests, placement.place)), placement.is_least)


def _spread(requests: Sequence[Request], rows: list[list[int]]) -> list[list[int]]:
    """Order the OSTs of each request so that few files use the same OST for the same stripe number.

    Only stripes of the same size as the first are reordered, so every OST keeps its bytes.
    """
    _deal(requests, rows)
    stripes_on: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for request, row in zip(requests, rows, strict=True):
        alike = [n for n in range(len(row)) if request[n] == request[0]]
        osts = [row[n] for n in alike]
        order = _ordered(osts, [stripes_on[n] for n in alike])
        for n, ost in zip(alike, order, strict=True):
            row[n] = ost
            stripes_on[n][ost] += 1
    return rows


def _deal(requests: Sequence[Request], rows: list[list[int]]) -> None:
    """Give single-stripe files of equal size their OSTs in turn, because consecutive files are written together."""
    by_size: defaultdict[int, list[int]] = defaultdict(list)
    for number, request in enumerate(requests):
        if len(request) == 1 and rows[number]:
            by_size[request[0]].append(number)
    for numbers in by_size.values():
        turns: Counter[int] = Counter()
        order = []
        for number in numbers:
            (ost,) = rows[number]
            order.append((turns[ost], ost))
            turns[ost] += 1
        for number, (_, ost) in zip(numbers, sorted(order), strict=True):
            rows[number] = [ost]


def _ordered(osts: list[int], stripes_on: Sequence[Counter[int]]) -> list[int]:
    """Reorder the OSTs so that each position gets the OST with the fewest stripes at that position."""
    if len(osts) > _MOST_ORDERED:
        first = min(range(len(osts)), key=lambda n: stripes_on[0][osts[n]])
        return osts[first:] + osts[:first]
    left, order = list(osts), []
    for at_place in stripes_on:
        order.append(min(left, key=at_place.__getitem__))
        left.remove(order[-1])
    return order


def _rows(requests: Sequence[Request], place: Ints) -> list[list[int]]:
    first = Stripes.of(requests).first.tolist()
    flat = place.tolist()
    rows = [flat[begin:end] for begin, end in pairwise(first)]
    return [row if row and row[0] >= 0 else [] for row in rows]
