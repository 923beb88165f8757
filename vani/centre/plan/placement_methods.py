"""The methods that choose OSTs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from vani.centre.columns import Floats, Ints
from vani.centre.plan.placement.search import Stripes, Targets, balance
from vani.centre.plan.simulate.machine import in_turn

# Algorithm 1 of Tarazu as printed: a minimum-cost maximum flow from requests to targets.
#
# An arc from a request to a target costs the load of the target's server, and an arc from a target to the sink costs
# the target's own cost. Neither depends on the request or on the number of stripes. The flow of least cost is therefore
# greedy: the cheapest target takes as many requests as it may, then the next. (The feasible flows form a polymatroid,
# for which greedy is exact.) All stripes of a batch pile up on the cheapest targets. Each target takes the requests
# with most stripes left, which leaves most choice for the remaining targets.

def cheapest(counts: Sequence[int], costs: Floats, capacity: Ints) -> list[list[int]]:
    """Targets of each request in the order of assignment; fewer than its stripes if the targets run out.

    Parameters
    ----------
    counts
        Number of stripes of each request.
    costs
        Cost of a stripe on each target, shape (targets,): load of its server + its own cost.
    capacity
        Most stripes on each target, shape (targets,). A target takes at most one per request.
    """
    left = np.array(counts, dtype=np.int64)
    targets_of_request: list[list[int]] = [[] for _ in counts]
    for target in np.argsort(costs, kind="stable").tolist():
        count = min(int(capacity[target]), int(np.count_nonzero(left)))
        if count <= 0:
            continue
        # The request's index breaks ties.
        chosen = np.lexsort((np.arange(len(left)), -left))[:count]
        left[chosen] -= 1
        for request in chosen.tolist():
            targets_of_request[request].append(target)
    return targets_of_request


# Chooses OSTs for requests with each method: sound ones first, and degraded ones only for the rest.

Request = Sequence[int]

_MAX_ORDERED = 256
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
        Bytes per second: the peak times the share that its load leaves, if those are known.
    """

    index: Ints
    is_sound: np.ndarray
    targets: Targets
    load: Floats
    used: Floats
    pace: Floats

    def part(self, mask: np.ndarray) -> Pool:
        """A subset of the OSTs, given as a mask."""
        columns = {name: getattr(self, name)[mask] for name in ("index", "is_sound", "load", "used", "pace")}
        return Pool(targets=self.targets.part(np.flatnonzero(mask)), **columns)

    def after(self, added: Floats) -> Pool:
        """The pool with `added` bytes on each OST."""
        old = self.targets
        room = np.maximum(old.room - added, 0)
        return replace(self, targets=replace(old, base=old.base + added, room=room))


@dataclass(frozen=True)
class Chosen:
    """For each request, the position in the pool of each stripe's OST; incomplete or empty if it does not fit.

    `is_least` is true if no placement can have a lower level of the fullest OST.
    """

    of: list[list[int]]
    is_least: bool


Method = Literal["balanced", "tarazu", "waves", "total", "turn"]
"""Besides those of the command: `waves` spreads what is written at the same time over OSTs by their rates, `total` also
what is written before, and `turn` takes OSTs in turn as Lustre does, from the emptiest on."""
_FULLNESS: Final = 0.02
"""Share of a wave's time that a full OST is worth: times within it count as equal, and the emptier OST is taken."""
_BEFORE: Final = 0.1
"""Weight of what is written before a wave, which should end evenly, too."""


def choose(requests: Sequence[Request], waves: Sequence[int], largest: int, pool: Pool, method: Method) -> Chosen:
    """Choose OSTs.

    Parameters
    ----------
    waves
        Number of the wave in which each request is written; those of one wave are written at the same time.
    largest
        The largest stripe of all requests, the unit in which tarazu counts room.
    """
    sound = np.flatnonzero(pool.is_sound)
    first = _choose(requests, waves, largest, pool.part(pool.is_sound), method)
    rows = [[int(sound[target]) for target in row] for row in first.of]
    left = [number for number, row in enumerate(rows) if len(row) < len(requests[number])]
    if not left or bool(np.all(pool.is_sound)):
        return Chosen(rows, first.is_least)
    added = np.zeros(len(pool.index))
    for request, row in zip(requests, rows, strict=True):
        np.add.at(added, np.array(row, dtype=np.int64), np.array(request[: len(row)], dtype=np.float64))
    if method != "tarazu":
        rows = [[] if number in left else row for number, row in enumerate(rows)]
    among = ~pool.is_sound | (method != "tarazu")
    rest = [requests[number][len(rows[number]) :] for number in left]
    second = _choose(rest, [waves[number] for number in left], largest, pool.after(added).part(among), method)
    places = np.flatnonzero(among)
    for number, row in zip(left, second.of, strict=True):
        rows[number] = rows[number] + [int(places[target]) for target in row]
    return Chosen(rows, is_least=False)


def _choose(requests: Sequence[Request], waves: Sequence[int], largest: int, pool: Pool, method: Method) -> Chosen:
    if not requests or not len(pool.index):
        return Chosen([[] for _ in requests], is_least=False)
    if method == "tarazu":
        capacity = np.floor(pool.targets.room / max(1, largest)).astype(np.int64)
        counts = [len(request) for request in requests]
        return Chosen(cheapest(counts, pool.load + pool.used, capacity), is_least=False)
    if method == "turn":
        return Chosen(_in_turn(requests, pool), is_least=False)
    if method == "balanced":
        placement = balance(requests, pool.targets)
        return Chosen(_spread(requests, _rows(requests, placement.place)), placement.is_least)
    rows: list[list[int]] = [[] for _ in requests]
    old, added = pool.targets, np.zeros(len(pool.index))
    before = 1.0 if method == "total" else _BEFORE
    for wave in sorted(set(waves)):
        own = [number for number, of_wave in enumerate(waves) if of_wave == wave]
        some = [requests[number] for number in own]
        seconds = sum(map(sum, some)) / pool.pace.sum()
        base = before * added + _FULLNESS * seconds * pool.pace * pool.used
        targets = Targets(pool.pace, base, np.maximum(old.room - added, 0), old.server)
        for number, row in zip(own, _rows(some, balance(some, targets).place), strict=True):
            rows[number] = row
            np.add.at(added, row, np.array(requests[number][: len(row)], dtype=np.float64))
    return Chosen(_spread(requests, rows), is_least=False)


def _in_turn(requests: Sequence[Request], pool: Pool) -> list[list[int]]:
    """OSTs in turn, server by server, from the emptiest on; one without room is passed over."""
    order = in_turn(pool.targets.server)
    at, room = int(np.argmin(pool.used[order])), pool.targets.room.copy()
    rows: list[list[int]] = []
    for request in requests:
        largest = max(request, default=0)
        turn = np.roll(order, -at)
        fitting = turn[room[turn] >= largest][: len(request)]
        row = fitting.tolist() if len(fitting) == len(request) else []
        if row:
            room[fitting] -= np.array(request, dtype=np.float64)
            at = (at + int(np.flatnonzero(turn == row[-1])[0]) + 1) % len(order)
        rows.append(row)
    return rows


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
    if len(osts) > _MAX_ORDERED:
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
