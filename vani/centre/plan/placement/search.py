"""OSTs for stripes: largest files first, improved by exchanges, with a proof where the result is the best possible."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from vani.centre.columns import Floats, Ints

# Targets and stripes for the placement algorithms, as columns.



@dataclass(frozen=True)
class Targets:
    """Targets, one entry each; every column has shape (targets,).

    Attributes
    ----------
    size
        Capacity in bytes.
    base
        Bytes that count before anything is placed: weighted past use.
    room
        Bytes that may be added.
    server
        Number of its server, from 0 without gaps; -1 if unknown.
    """

    size: Floats
    base: Floats
    room: Floats
    server: Ints

    def __len__(self) -> int:
        return len(self.size)

    def part(self, indices: Ints) -> Targets:
        """A subset of the targets, given by index."""
        return Targets(self.size[indices], self.base[indices], self.room[indices], renumbered(self.server[indices]))

    @cached_property
    def server_sizes(self) -> Floats:
        """Capacity of each server's targets in bytes, shape (servers,)."""
        return self.by_server(self.size)

    def by_server(self, values: Floats) -> Floats:
        """Sum over the targets of each server, shape (servers,). Targets without a known server are left out."""
        known = self.server >= 0
        count = int(self.server.max(initial=-1)) + 1
        sums = np.zeros(count)
        np.add.at(sums, self.server[known], values[known])
        return sums


def renumbered(server: Ints) -> Ints:
    """Renumber servers from 0 without gaps. -1 stays."""
    known = server >= 0
    numbers = np.full(len(server), -1, dtype=np.int64)
    numbers[known] = np.unique(server[known], return_inverse=True)[1]
    return numbers


@dataclass(frozen=True)
class Stripes:
    """Stripes of all requests, one entry each, in request order.

    `first[i]` is the index of the first stripe of request i, and `first[-1]` the number of stripes.
    """

    bytes: Floats
    request: Ints
    first: Ints

    @classmethod
    def of(cls, requests: Sequence[Sequence[int]]) -> Stripes:
        """Build the columns from requests, each a sequence of the bytes of its stripes."""
        counts = np.array([len(request) for request in requests], dtype=np.int64)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        sizes = np.fromiter((size for request in requests for size in request), np.float64, int(first[-1]))
        return cls(sizes, np.repeat(np.arange(len(requests), dtype=np.int64), counts), first)

    def chosen(self, indices: Ints) -> Stripes:
        """A subset of the stripes in the given order, with `first` as if each were a request of its own."""
        return Stripes(self.bytes[indices], self.request[indices], np.arange(len(indices) + 1, dtype=np.int64))


# Lower bounds on the level of the fullest target and server, by counting.

_KINDS = 64


def least_level(stripes: Stripes, targets: Targets) -> float:
    """A level (bytes including the base / size) that the fullest target reaches in every placement.

    It is the largest of three bounds. Stripes are whole units of their common divisor, and up to a level each target
    has room for so many units. Stripes of at least some size need as many places of that size, and each target has at
    most one per request with such stripes. Each request needs as many targets as it has stripes.
    """
    floor = float(np.max(targets.base / targets.size, initial=0.0))
    filled = stripes.bytes[stripes.bytes > 0]
    if not len(filled) or not len(targets):
        return floor
    unit = math.gcd(*{int(size) for size in np.unique(filled)})
    most = np.floor(targets.room / unit)
    bounds = [floor, _level(targets.size, targets.base, unit, most, float(filled.sum()) / unit)]
    for size in np.unique(filled)[::-1][:_KINDS]:
        large = stripes.bytes >= size
        requests = len(np.unique(stripes.request[large]))
        most = np.minimum(np.floor(targets.room / size), requests)
        bounds.append(_level(targets.size, targets.base, float(size), most, float(large.sum())))
    bounds.append(_widest(stripes, targets))
    return max(bounds)


def least_server_level(stripes: Stripes, targets: Targets) -> float:
    """A level that the fullest server reaches in every placement; 0 unless every target's server is known."""
    if not len(targets) or np.any(targets.server < 0):
        return 0.0
    sizes, base = targets.server_sizes, targets.by_server(targets.base)
    floor = float(np.max(base / sizes))
    filled = stripes.bytes[stripes.bytes > 0]
    if not len(filled):
        return floor
    unit = math.gcd(*{int(size) for size in np.unique(filled)})
    most = np.floor(targets.by_server(targets.room) / unit)
    return max(floor, _level(sizes, base, unit, most, float(filled.sum()) / unit))


def _level(size: Floats, base: Floats, unit: float, most: Floats, wanted: float) -> float:
    """The lowest level at which all together have space for `wanted` units; infinite if there is none."""

    def taken(level: float) -> float:
        # Tolerance against rounding errors just below a whole number of units.
        units = np.floor((level * size - base) / unit * (1 + 1e-12) + 1e-9)
        return float(np.clip(units, 0, most).sum())

    if float(most.sum()) < wanted:
        return math.inf
    low, high = 0.0, float(np.max((base + most * unit) / size)) * (1 + 1e-9) + 1e-300
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if taken(middle) >= wanted else (middle, high)
        if high - low <= 1e-15 * high:
            break
    return low


def _widest(stripes: Stripes, targets: Targets) -> float:
    """Bound from the widest request: its k + 1 largest stripes need k + 1 targets, at best the emptiest."""
    counts = np.diff(stripes.first)
    wide = int(np.argmax(counts))
    widest = np.sort(stripes.bytes[stripes.first[wide] : stripes.first[wide + 1]])[::-1]
    if len(widest) > len(targets):
        return math.inf
    filled = [(targets.base + size) / targets.size for size in widest if size > 0]
    return max((float(np.partition(level, k)[k]) for k, level in enumerate(filled)), default=0.0)


# Place stripes, the largest first, where the level stays lowest, with each request's on distinct targets.
#
# Equal requests are placed together: one level gives the number of stripes per target, and assigning these in turn
# gives each request every target at most once.

_FEW = 4
"""Up to this many equal requests are placed one by one."""

_TIE = 1e-9
"""Weight of a server's level, which breaks ties between targets of the same level."""


def largest_first(requests: Sequence[Sequence[int]], stripes: Stripes, targets: Targets) -> Ints:
    """The target of each stripe, shape (stripes,); -1 for requests that do not fit."""
    state = _State(stripes, targets)
    alike: dict[tuple[int, ...], list[int]] = {}
    for number, request in enumerate(requests):
        alike.setdefault(tuple(request), []).append(number)
    for sizes, numbers in sorted(alike.items(), key=lambda item: (-max(item[0]), -sum(item[0]))):
        if len(sizes) > len(targets):
            continue
        if len(numbers) > _FEW and min(sizes) == max(sizes) and sizes[0] > 0:
            state.place_alike(numbers, sizes[0], len(sizes))
        else:
            for number in numbers:
                state.place_one(number)
    return state.place


class _State:
    def __init__(self, stripes: Stripes, targets: Targets) -> None:
        self.stripes, self.targets = stripes, targets
        self.place: Ints = np.full(len(stripes.bytes), -1, dtype=np.int64)
        self.load: Floats = targets.base.copy()
        self.room: Floats = targets.room.copy()
        self.of_server: Floats = targets.by_server(targets.base)

    def place_one(self, number: int) -> None:
        first, end = self.stripes.first[number], self.stripes.first[number + 1]
        sizes = self.stripes.bytes[first:end]
        count = len(sizes)
        order = np.argsort(-sizes, kind="stable")
        level = (self.load + sizes.mean()) / self.targets.size
        level += _TIE * self._server_level()
        level[self.room < sizes[order[-1]]] = np.inf
        chosen = np.argpartition(level, count - 1)[:count] if count < len(level) else np.arange(count)
        chosen = chosen[np.argsort(level[chosen], kind="stable")]
        if np.isinf(level[chosen]).any() or np.any(self.room[chosen] < sizes[order]):
            fitting = self._fit(sizes[order])
            if fitting is None:
                return
            chosen = fitting
        self._take(first + order, chosen, sizes[order])

    def place_alike(self, numbers: list[int], size: int, count: int) -> None:
        most = np.floor(self.room / size)
        wanted = self._that_fit(len(numbers), count, most)
        if not wanted:
            return
        taken = self._shares(size, np.minimum(most, wanted), wanted * count)
        # Emptier targets first, so that the order of stripes does not follow the targets' indexes.
        order = np.lexsort((np.arange(len(taken)), self.load / self.targets.size))
        dealt = np.repeat(order, taken[order]).reshape(count, wanted)
        where = np.concatenate([np.arange(self.stripes.first[n], self.stripes.first[n + 1]) for n in numbers[:wanted]])
        self._take(where, dealt.T.ravel(), np.full(len(where), float(size)))

    def _that_fit(self, requests: int, count: int, most: Floats) -> int:
        """The number of requests that fit, each on as many targets as it has stripes."""
        numbers = range(1, requests + 1)
        return bisect_left(numbers, True, key=lambda number: bool(np.minimum(most, number).sum() < number * count))

    def _shares(self, size: float, most: Floats, wanted: int) -> Ints:
        """Number of stripes per target at the lowest level at which all stripes fit."""

        def below(level: float) -> Floats:
            fitting = np.floor((level * self.targets.size - self.load) / size * (1 + 1e-12) + 1e-9)
            return np.clip(fitting, 0, most)

        low, high = 0.0, float(np.max((self.load + most * size) / self.targets.size)) * (1 + 1e-9)
        while high - low > 1e-14 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if below(middle).sum() >= wanted else (middle, high)
        taken = below(high)
        surplus = int(taken.sum()) - wanted
        if surplus:
            # Drop the surplus of the last stripes on the fullest targets and, among equal ones, the fullest servers.
            last = (self.load + taken * size) / self.targets.size + _TIE * self._server_level()
            last[taken == 0] = -np.inf
            taken[np.argsort(-last, kind="stable")[:surplus]] -= 1
        return taken.astype(np.int64)

    def _fit(self, sizes: Floats) -> Ints | None:
        """Targets for stripes in descending order of size, each the emptiest with room; None if one does not fit."""
        chosen: list[int] = []
        free = np.ones(len(self.load), dtype=bool)
        for size in sizes:
            level = np.where(free & (self.room >= size), (self.load + size) / self.targets.size, np.inf)
            best = int(np.argmin(level))
            if np.isinf(level[best]):
                return None
            chosen.append(best)
            free[best] = False
        return np.array(chosen, dtype=np.int64)

    def _server_level(self) -> Floats:
        if not len(self.of_server):
            return np.zeros(len(self.load))
        level = self.of_server / self.targets.server_sizes
        return np.where(self.targets.server >= 0, level[self.targets.server], 0.0)

    def _take(self, where: Ints, chosen: Ints, sizes: Floats) -> None:
        self.place[where] = chosen
        np.add.at(self.load, chosen, sizes)
        np.subtract.at(self.room, chosen, sizes)
        server = self.targets.server[chosen]
        known = server >= 0
        np.add.at(self.of_server, server[known], sizes[known])


# Lower the fullest target, then the fullest server, by moving one stripe or exchanging two.
#
# Each exchange lowers the fullest target and raises no other to its level, so the search ends. It stops at the lower
# bound, when no single exchange helps, or after a number of steps that grows with the number of targets.

_NEAR: Final = 1e-9
_EMPTIEST: Final = (48, 600)
"""Numbers of emptiest targets to consider. The second is for when the first does not help."""

_TRIED: Final = 64
_SIZES: Final = 64
_ALIKE: Final = 16
_MAX_FAILED: Final = 30
_REGROUPED: Final = 60_000
"""Stripes times groups to try: with many stripes, exchanges come close and few groups are tried."""

_GROUP: Final = 4
_REGROUP_TRIES: Final = 300


def exchange(place: Ints, stripes: Stripes, targets: Targets, bound: float, server_bound: float) -> Ints:
    """A placement with a lower level of the fullest target, or the same and a lower level of the fullest server.

    Parameters
    ----------
    place
        Target of each stripe, shape (stripes,). -1 stays.
    bound, server_bound
        Lower bounds of the levels of the fullest target and server.
    """
    search = _Search(place, stripes, targets)
    for _ in range(4 * len(targets) + 500):
        if not search.lower_target(bound):
            break
    search.regroup(bound)
    search.ceiling = float(search.level.max(initial=0.0))
    for _ in range(4 * len(targets.server_sizes) + 500):
        if not search.lower_server(server_bound):
            break
    return search.place


class _Search:
    def __init__(self, place: Ints, stripes: Stripes, targets: Targets) -> None:
        self.place, self.stripes, self.targets = place.copy(), stripes, targets
        placed = place >= 0
        count = len(targets)
        new = np.bincount(place[placed], weights=stripes.bytes[placed], minlength=count)
        self.load: Floats = targets.base + new
        self.room: Floats = targets.room - new
        stripes_placed = np.flatnonzero(placed)
        stripes_placed = stripes_placed[np.argsort(place[stripes_placed], kind="stable")]
        parts = np.split(stripes_placed, np.searchsorted(place[stripes_placed], np.arange(1, count)))
        self.on: list[dict[float, list[int]]] = [self._by_size(part) for part in parts]
        self.ceiling = np.inf

    def _by_size(self, on_target: Ints) -> dict[float, list[int]]:
        by_size: dict[float, list[int]] = {}
        for stripe, size in zip(on_target.tolist(), self.stripes.bytes[on_target].tolist(), strict=True):
            by_size.setdefault(size, []).append(stripe)
        return by_size

    @property
    def level(self) -> Floats:
        return self.load / self.targets.size

    def lower_target(self, bound: float) -> bool:
        """Take something from the fullest target. False if that is impossible or unnecessary."""
        level = self.level
        full = int(np.argmax(level))
        if level[full] <= bound * (1 + _NEAR) or not self.on[full]:
            return False
        others = np.flatnonzero(np.arange(len(level)) != full)
        for many in _EMPTIEST:
            near = others if len(others) <= many else others[np.argpartition(level[others], many)[:many]]
            if self._best([full], near, limit=float(level[full])):
                return True
            if len(near) == len(others):
                break
        return False

    def regroup(self, bound: float) -> None:
        """Search all placements of the stripes on the fullest target and a few random others, with a fixed seed."""
        random = np.random.default_rng(0)
        failed = 0
        for _ in range(max(4, min(400, _REGROUPED // (len(self.place) + 1)))):
            if failed == _MAX_FAILED:
                return
            level = self.level
            full = int(np.argmax(level))
            if level[full] <= bound * (1 + _NEAR) or len(level) < _GROUP:
                return
            others = np.flatnonzero(np.arange(len(level)) != full)
            group = np.concatenate([[full], random.choice(others, _GROUP - 1, replace=False)])
            failed += 1
            if self._regroup(group):
                while self.lower_target(bound):
                    pass
                if self.level.max() < level[full] * (1 - _NEAR):
                    failed = 0

    def _regroup(self, group: Ints) -> bool:
        every = np.array(
            [stripe for target in group.tolist() for alike in self.on[target].values() for stripe in alike],
            dtype=np.int64,
        )
        if len(every) > MAX_STRIPES:
            return False
        part, none = self.stripes.chosen(every), np.full(len(group), -1, dtype=np.int64)
        inside = np.bincount(self.place[every], weights=part.bytes, minlength=len(self.targets))
        targets = Targets(self.targets.size[group], (self.load - inside)[group], (self.room + inside)[group], none)
        place = np.argsort(group)[np.searchsorted(np.sort(group), self.place[every])]
        better = search(place, part, targets, 0.0, 0.0, most_tried=_REGROUP_TRIES)[0]
        for stripe, before, after in zip(every.tolist(), group[place].tolist(), group[better].tolist(), strict=True):
            if before != after:
                self._move(stripe, before, after)
        return not np.array_equal(better, place)

    def lower_server(self, bound: float) -> bool:
        """Take something from the fullest server without raising any target above the fullest one."""
        sizes = self.targets.server_sizes
        if len(sizes) < 2:
            return False
        level = self.targets.by_server(self.load) / sizes
        full = int(np.argmax(level))
        if level[full] <= bound * (1 + _NEAR):
            return False
        sources = np.flatnonzero(self.targets.server == full).tolist()
        for low in np.argsort(level, kind="stable")[:4]:
            if level[low] >= level[full]:
                break
            gap = (level[full] - level[low]) / (1 / sizes[full] + 1 / sizes[low])
            if self._best_between(sources, np.flatnonzero(self.targets.server == low), float(gap)):
                return True
        return False

    def _columns(self, where: Ints | list[int]) -> tuple[Ints, Ints, Floats]:
        """One stripe of each size on the given targets, plus an empty place (-1) per target; their targets and bytes.

        If a target has very many sizes, a sample from the smallest to the largest.
        """
        stripe, owner, sizes_there = [], [], []
        for target in where:
            sizes = list(self.on[target])
            if len(sizes) > _SIZES:
                sizes.sort()
                sizes = [sizes[number * (len(sizes) - 1) // (_SIZES - 1)] for number in range(_SIZES)]
            stripe += [self.on[target][size][0] for size in sizes] + [-1]
            sizes_there += [*sizes, 0.0]
            owner += [target] * (len(sizes) + 1)
        return np.array(stripe, dtype=np.int64), np.array(owner, dtype=np.int64), np.array(sizes_there)

    def _best(self, sources: list[int], others: Ints, limit: float) -> bool:
        """Make the exchange after which the fuller of the two targets has the lowest level, if it is below `limit`."""
        given, taken, moved = self._exchanges(sources, others)
        source, there = given[1][:, None], taken[1]
        after = np.maximum(
            (self.load[source] - moved) / self.targets.size[source],
            (self.load[there] + moved) / self.targets.size[there],
        )
        after[(moved <= 0) | (self.room[there] < moved)] = np.inf
        return self._first_allowed(after, limit * (1 - _NEAR), given, taken)

    def _best_between(self, sources: list[int], others: Ints, gap: float) -> bool:
        """Make the exchange that comes closest to levelling two servers. It moves fewer than `gap` bytes."""
        given, taken, moved = self._exchanges(sources, others)
        there = taken[1]
        lifted = (self.load[there] + moved) / self.targets.size[there]
        wrong = (moved <= 0) | (moved >= gap) | (self.room[there] < moved)
        wrong |= lifted > self.ceiling * (1 + _NEAR)
        after = np.where(wrong, np.inf, np.abs(moved - gap / 2))
        return self._first_allowed(after, np.inf, given, taken)

    def _exchanges(self, sources: list[int], others: Ints) -> tuple[Ints, Ints, Floats]:
        """Stripes to give and to take, each with its target, shape (2, stripes), and the bytes that each pair moves."""
        *given, out = self._columns(sources)
        *taken, back = self._columns(others)
        real = given[0] >= 0
        return np.array(given)[:, real], np.array(taken), out[real][:, None] - back[None, :]

    def _first_allowed(self, after: Floats, limit: float, given: Ints, taken: Ints) -> bool:
        flat = after.ravel()
        fitting = np.flatnonzero(flat < limit)
        if not len(fitting):
            return False
        if len(fitting) > _TRIED:
            fitting = fitting[np.argpartition(flat[fitting], _TRIED)[:_TRIED]]
        for cell in fitting[np.argsort(flat[fitting], kind="stable")].tolist():
            row, column = divmod(cell, after.shape[1])
            if self._swap_alike(*given[:, row].tolist(), *taken[:, column].tolist()):
                return True
        return False

    def _swap_alike(self, give: int, source: int, take: int, target: int) -> bool:
        """Exchange two stripes, or others of their sizes if a request would get two stripes on one target."""
        for out in self._alike(give, source):
            if self._meets(out, target, besides=take):
                continue
            if take < 0:
                self._move(out, source, target)
                return True
            for back in self._alike(take, target):
                if not self._meets(back, source, besides=out) and not self._meets(out, target, besides=back):
                    self._move(out, source, target)
                    self._move(back, target, source)
                    return True
        return False

    def _alike(self, stripe: int, where: int) -> list[int]:
        return self.on[where][float(self.stripes.bytes[stripe])][:_ALIKE]

    def _meets(self, stripe: int, target: int, besides: int) -> bool:
        """True if another stripe of the same request is on the target."""
        request = int(self.stripes.request[stripe])
        first, end = int(self.stripes.first[request]), int(self.stripes.first[request + 1])
        others = np.flatnonzero(self.place[first:end] == target) + first
        return any(other not in (besides, stripe) for other in others.tolist())

    def _move(self, stripe: int, source: int, target: int) -> None:
        size = float(self.stripes.bytes[stripe])
        alike = self.on[source][size]
        alike.remove(stripe)
        if not alike:
            del self.on[source][size]
        self.on[target].setdefault(size, []).append(stripe)
        self.place[stripe] = target
        self.load[source] -= size
        self.load[target] += size
        self.room[source] += size
        self.room[target] -= size


# Exhaustive search over placements of a few stripes, for cases that largest-first and exchanges do not solve.

MAX_STRIPES: Final = 24
MAX_TRIED: Final = 6_000


def search(
    place: Ints,
    stripes: Stripes,
    targets: Targets,
    bound: float,
    server_bound: float,
    most_tried: int = MAX_TRIED,
) -> tuple[Ints, bool]:
    """The best placement of all stripes, and True if every placement was examined.

    The best has the lowest level of the fullest target, then of the fullest server. With more than `MAX_STRIPES`
    stripes, or if no placement has room for all, `place` is returned.
    """
    if len(stripes.bytes) > MAX_STRIPES:
        return place, False
    tries = _Tries(stripes, targets, bound, server_bound, most_tried)
    if np.all(place >= 0):
        tries.keep(place)
    complete = tries.run()
    return (place if tries.best is None else tries.best), complete


class _Tries:
    def __init__(self, stripes: Stripes, targets: Targets, bound: float, server_bound: float, most_tried: int) -> None:
        self.most_tried, self.stripes, self.targets = most_tried, stripes, targets
        self.bound, self.server_bound = bound * (1 + 1e-12), server_bound * (1 + 1e-12)
        # The largest first: they have the fewest choices.
        self.order = np.lexsort((stripes.request, -stripes.bytes)).tolist()
        self.bytes, self.request = stripes.bytes.tolist(), stripes.request.tolist()
        self.size, self.server = targets.size.tolist(), targets.server.tolist()
        self.load, self.room = targets.base.tolist(), targets.room.tolist()
        self.place = [-1] * len(self.bytes)
        self.on: list[set[int]] = [set() for _ in self.size]
        self.best: Ints | None = None
        self.worth = (float("inf"), float("inf"))
        self.tried = 0

    def keep(self, place: Ints) -> None:
        worth = levels(place, self.stripes, self.targets)
        if worth < self.worth:
            self.best, self.worth = place.copy(), worth

    def run(self) -> bool:
        """Run the search. True if it ended before the number of tries ran out."""
        return self._go(0, float(np.max(self.targets.base / self.targets.size, initial=0.0)))

    def _go(self, depth: int, fullest: float) -> bool:
        self.tried += 1
        if self.tried > self.most_tried:
            return False
        is_least = self.worth[0] <= self.bound and self.worth[1] <= self.server_bound
        if is_least or fullest > self.worth[0] * (1 + 1e-12):
            return True
        if depth == len(self.order):
            self.keep(np.array(self.place, dtype=np.int64))
            return True
        stripe = self.order[depth]
        size, request = self.bytes[stripe], self.request[stripe]
        seen = set()
        for target in sorted(range(len(self.size)), key=lambda number: (self.load[number] + size) / self.size[number]):
            # Empty targets of a kind are interchangeable: try only one of them.
            kind = (self.load[target], self.size[target], self.room[target], self.server[target])
            if request in self.on[target] or self.room[target] < size:
                continue
            if not self.on[target]:
                if kind in seen:
                    continue
                seen.add(kind)
            self.place[stripe] = target
            self.on[target].add(request)
            self.load[target] += size
            self.room[target] -= size
            complete = self._go(depth + 1, max(fullest, self.load[target] / self.size[target]))
            self.place[stripe] = -1
            self.on[target].discard(request)
            self.load[target] -= size
            self.room[target] += size
            if not complete:
                return False
        return True


# Place stripes so that the level of the fullest target is lowest, and then that of the fullest server.



@dataclass(frozen=True)
class Balanced:
    """A placement of stripes.

    Attributes
    ----------
    place
        Target of each stripe in request order, shape (stripes,); -1 if its request was not placed.
    bound
        Lower bound of the level of the fullest target in any placement of these stripes.
    is_least
        True if no placement has a lower level, either because of the bound or because all were tried.
    """

    place: Ints
    bound: float
    is_least: bool


def balance(requests: Sequence[Sequence[int]], targets: Targets) -> Balanced:
    """Place requests, each the bytes of its stripes, with the stripes of a request on distinct targets.

    A request is placed as a whole or not at all. The result is deterministic.
    """
    stripes = Stripes.of(requests)
    place = largest_first(requests, stripes, targets)
    is_whole = bool(np.all(place >= 0))
    if not is_whole:
        # Levels do not show a lack of room. Try the targets with most room first, in case that places more.
        fuller = Targets(targets.room + targets.base, targets.base, targets.room, targets.server)
        if np.all(fuller.size > 0):
            other = largest_first(requests, stripes, fuller)
            place = other if np.sum(other >= 0) > np.sum(place >= 0) else place
            is_whole = bool(np.all(place >= 0))
    served = [request for request, first in zip(requests, stripes.first[:-1], strict=True) if place[first] >= 0]
    placed = stripes if is_whole else Stripes.of(served)
    bound, server_bound = least_level(placed, targets), least_server_level(placed, targets)
    place = exchange(place, stripes, targets, bound, server_bound)
    level, server_level = levels(place, stripes, targets)
    complete = False
    if not is_whole or level > bound * (1 + _NEAR) or server_level > server_bound * (1 + _NEAR):
        place, complete = search(place, stripes, targets, bound, server_bound)
        if not is_whole and np.all(place >= 0):
            bound = least_level(stripes, targets)
            is_whole = True
        level, _ = levels(place, stripes, targets)
    return Balanced(place, bound, level <= bound * (1 + _NEAR) or (complete and is_whole))


def levels(place: Ints, stripes: Stripes, targets: Targets) -> tuple[float, float]:
    """Levels of the fullest target and the fullest server; 0 if there is none."""
    load = loads(place, stripes, targets)
    sizes = targets.server_sizes
    return (
        float(np.max(load / targets.size, initial=0.0)),
        float(np.max(targets.by_server(load) / sizes)) if len(sizes) else 0.0,
    )


def loads(place: Ints, stripes: Stripes, targets: Targets) -> Floats:
    """Bytes on each target including its base, shape (targets,)."""
    placed = place >= 0
    return targets.base + np.bincount(place[placed], weights=stripes.bytes[placed], minlength=len(targets))
