"""Exhaustive search over placements of a few stripes, for cases that largest-first and exchanges do not solve."""

from __future__ import annotations

from typing import Final

import numpy as np

from vani.centre.plan.placement.targets import Ints, Stripes, Targets

MOST_STRIPES: Final = 24
MOST_TRIED: Final = 6_000


def search(
    place: Ints,
    stripes: Stripes,
    targets: Targets,
    bound: float,
    server_bound: float,
    most_tried: int = MOST_TRIED,
) -> tuple[Ints, bool]:
    """The best placement of all stripes, and True if every placement was examined.

    The best has the lowest level of the fullest target, then of the fullest server. With more than `MOST_STRIPES`
    stripes, or if no placement has room for all, `place` is returned.
    """
    if len(stripes.bytes) > MOST_STRIPES:
        return place, False
    tries = _Tries(stripes, targets, bound, server_bound, most_tried)
    if np.all(place >= 0):
        tries.keep(place)
    complete = tries.run()
    return (place if tries.best is None else tries.best), complete


class _Tries:
    def __init__(
        self, stripes: Stripes, targets: Targets, bound: float, server_bound: float, most_tried: int
    ) -> None:
        self.most_tried = most_tried
        self.targets = targets
        self.bound, self.server_bound = bound * (1 + 1e-12), server_bound * (1 + 1e-12)
        # The largest first: they have the fewest choices.
        self.order = np.lexsort((stripes.request, -stripes.bytes)).tolist()
        self.bytes, self.request = stripes.bytes.tolist(), stripes.request.tolist()
        self.size, self.server = targets.size.tolist(), targets.server.tolist()
        self.base, self.load, self.room = (
            targets.base.tolist(),
            targets.base.tolist(),
            targets.room.tolist(),
        )
        self.place = [-1] * len(self.bytes)
        self.on: list[set[int]] = [set() for _ in self.size]
        self.best: Ints | None = None
        self.worth = (float("inf"), float("inf"))
        self.tried = 0

    def keep(self, place: Ints) -> None:
        new = np.bincount(place, weights=np.array(self.bytes, dtype=np.float64), minlength=len(self.targets))
        load = self.targets.base + new
        worth = self._worth(load.tolist())
        if worth < self.worth:
            self.best, self.worth = place.copy(), worth

    def run(self) -> bool:
        """Run the search. True if it ended before the number of tries ran out."""
        return self._go(0, max((b / s for b, s in zip(self.base, self.size, strict=True)), default=0.0))

    def _go(self, depth: int, fullest: float) -> bool:
        self.tried += 1
        if self.tried > self.most_tried:
            return False
        if fullest > self.worth[0] * (1 + 1e-12) or self._is_least():
            return True
        if depth == len(self.order):
            self.keep(np.array(self.place, dtype=np.int64))
            return True
        stripe = self.order[depth]
        size, request = self.bytes[stripe], self.request[stripe]
        seen = set()
        complete = True
        for target in sorted(
            range(len(self.size)), key=lambda number: (self.load[number] + size) / self.size[number]
        ):
            # Empty targets of a kind are interchangeable: try only one of them.
            kind = (self.load[target], self.size[target], self.room[target], self.server[target])
            if request in self.on[target] or self.room[target] < size:
                continue
            if not self.on[target] and kind in seen:
                continue
            if not self.on[target]:
                seen.add(kind)
            self._put(stripe, target, size, request)
            level = max(fullest, self.load[target] / self.size[target])
            complete = self._go(depth + 1, level) and complete
            self._take_back(stripe, target, size, request)
            if not complete:
                return False
        return complete

    def _put(self, stripe: int, target: int, size: float, request: int) -> None:
        self.place[stripe] = target
        self.on[target].add(request)
        self.load[target] += size
        self.room[target] -= size

    def _take_back(self, stripe: int, target: int, size: float, request: int) -> None:
        self.place[stripe] = -1
        self.on[target].discard(request)
        self.load[target] -= size
        self.room[target] += size

    def _is_least(self) -> bool:
        return self.worth[0] <= self.bound and self.worth[1] <= self.server_bound

    def _worth(self, load: list[float]) -> tuple[float, float]:
        target = max((level / size for level, size in zip(load, self.size, strict=True)), default=0.0)
        sizes = self.targets.server_sizes
        if not len(sizes):
            return target, 0.0
        return target, float(np.max(self.targets.by_server(np.array(load)) / sizes))
