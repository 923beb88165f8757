"""Place stripes, the largest first, where the level stays lowest, with each request's on distinct targets.

Equal requests are placed together: one level gives the number of stripes per target, and assigning these in turn
gives each request every target at most once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets

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
        where = np.concatenate(
            [np.arange(self.stripes.first[n], self.stripes.first[n + 1]) for n in numbers[:wanted]]
        )
        self._take(where, dealt.T.ravel(), np.full(len(where), float(size)))

    def _that_fit(self, requests: int, count: int, most: Floats) -> int:
        """The number of requests that fit, each on as many targets as it has stripes."""
        low, high = 0, requests
        while low < high:
            middle = (low + high + 1) // 2
            if np.minimum(most, middle).sum() >= middle * count:
                low = middle
            else:
                high = middle - 1
        return low

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
