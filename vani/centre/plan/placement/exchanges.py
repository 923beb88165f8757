"""Lower the fullest target, then the fullest server, by moving one stripe or exchanging two.

Each exchange lowers the fullest target and raises no other to its level, so the search ends. It stops at the lower
bound, when no single exchange helps, or after a number of steps that grows with the number of targets.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vani.centre.plan.placement.search import MOST_STRIPES, search
from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets

_NEAR: Final = 1e-9
_EMPTIEST: Final = (48, 600)
"""Numbers of emptiest targets to consider. The second is for when the first does not help."""

_TRIED: Final = 64
_SIZES: Final = 64
_ALIKE: Final = 16
_MOST_FAILED: Final = 30
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
            if failed == _MOST_FAILED:
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
        every = [
            stripe for target in group.tolist() for alike in self.on[target].values() for stripe in alike
        ]
        if len(every) > MOST_STRIPES:
            return False
        every_stripe = np.array(every, dtype=np.int64)
        inside = np.bincount(
            self.place[every_stripe], weights=self.stripes.bytes[every_stripe], minlength=len(self.targets)
        )
        part = self.stripes.chosen(every_stripe)
        targets = Targets(
            self.targets.size[group],
            (self.load - inside)[group],
            (self.room + inside)[group],
            np.full(len(group), -1, dtype=np.int64),
        )
        place = np.searchsorted(np.sort(group), self.place[every_stripe])
        place = np.argsort(group)[place]
        better = search(place, part, targets, 0.0, 0.0, most_tried=_REGROUP_TRIES)[0]
        if np.array_equal(better, place):
            return False
        for stripe, before, after in zip(
            every_stripe.tolist(), group[place].tolist(), group[better].tolist(), strict=True
        ):
            if before != after:
                self._move(stripe, before, after)
        return True

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
        given, here, out = self._columns(sources)
        real = np.flatnonzero(given >= 0)
        got, there, back = self._columns(others)
        moved = out[real][:, None] - back[None, :]
        source = here[real][:, None]
        after = np.maximum(
            (self.load[source] - moved) / self.targets.size[source],
            (self.load[there] + moved) / self.targets.size[there],
        )
        after[(moved <= 0) | (self.room[there] < moved)] = np.inf
        return self._first_allowed(after, limit * (1 - _NEAR), given, here, real, got, there)

    def _best_between(self, sources: list[int], others: Ints, gap: float) -> bool:
        """Make the exchange that comes closest to levelling two servers. It moves fewer than `gap` bytes."""
        given, here, out = self._columns(sources)
        real = np.flatnonzero(given >= 0)
        got, there, back = self._columns(others)
        moved = out[real][:, None] - back[None, :]
        lifted = (self.load[there] + moved) / self.targets.size[there]
        wrong = (moved <= 0) | (moved >= gap) | (self.room[there] < moved)
        wrong |= lifted > self.ceiling * (1 + _NEAR)
        after = np.where(wrong, np.inf, np.abs(moved - gap / 2))
        return self._first_allowed(after, np.inf, given, here, real, got, there)

    def _first_allowed(
        self,
        after: Floats,
        limit: float,
        given: Ints,
        here: Ints,
        real: Ints,
        got: Ints,
        there: Ints,
    ) -> bool:
        flat = after.ravel()
        fitting = np.flatnonzero(flat < limit)
        if not len(fitting):
            return False
        if len(fitting) > _TRIED:
            fitting = fitting[np.argpartition(flat[fitting], _TRIED)[:_TRIED]]
        for cell in fitting[np.argsort(flat[fitting], kind="stable")].tolist():
            row, column = divmod(cell, after.shape[1])
            source, target = int(here[real[row]]), int(there[column])
            if self._swap_alike(int(given[real[row]]), source, int(got[column]), target):
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
