"""Chooses targets for the objects of files, as Lustre's allocator does or with other policies.

Lustre's allocator (LSA; Tarazu, equation 1) is round-robin while free bytes differ by less than a window, and draws
targets weighted by free bytes otherwise. Its choice depends on its position, which is unknown, so it starts at
random here and results are a range over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.centre.plan.schema.scenario import Placement
from vani.centre.plan.simulate.layout import Component, dealt
from vani.centre.plan.simulate.machine import Targets
from vani.centre.plan.simulate.rates import Floats, Ints
from vani.errors import InputError

RANDOM = frozenset({"round_robin", "random_start", "random", "weighted", "lsa"})
"""Policies whose result depends on the seed."""


class Placer:
    """Chooses targets for one component after another and keeps account of bytes.

    Targets are positions in `targets`, not Lustre's indexes.
    """

    def __init__(self, targets: Targets, placement: Placement, seed: int) -> None:
        self.targets, self.placement = targets, placement
        self.random = np.random.default_rng(seed)
        self.used = targets.used.copy()
        self.placed = np.zeros(len(targets.index))
        """Bytes that this simulation placed on each target, shape (targets,)."""
        self.usable = np.flatnonzero(targets.usable)
        if not len(self.usable):
            raise InputError("no target is usable: all are offline", where="snapshot", todo="make one available")
        self.next = int(self.random.integers(len(self.usable)))
        servers = int(targets.server.max()) + 1
        self._servers_used = np.bincount(targets.server, self.used, minlength=servers)

    def place(self, files: Sequence[tuple[float, tuple[Component, ...]]]) -> list[list[Ints]]:
        """Targets of each component of each file, with all files growing to their sizes at the same time.

        A component gets its objects only when its file reaches it.
        """
        placed_on: list[list[Ints]] = [[] for _ in files]
        for number in range(max((len(parts) for _, parts in files), default=0)):
            for row, (size, parts) in zip(placed_on, files, strict=True):
                if number < len(parts) and (size > parts[number].start or number == 0):
                    row.append(self.targets_of_component(size, parts, number))
        return placed_on

    def targets_of_component(self, size: float, parts: tuple[Component, ...], number: int) -> Ints:
        """Choose targets for one component of a file of `size` bytes."""
        part = parts[number]
        chosen = self._choose(min(part.count, len(self.usable)))
        self.hold(chosen, size, parts, number)
        return chosen

    def hold(self, chosen: Ints, size: float, parts: tuple[Component, ...], number: int) -> None:
        """Account for the bytes of a component on the given targets."""
        part = parts[number]
        high = size if part.end is None else min(size, part.end)
        if high <= part.start or not part.count:
            return
        amount = dealt(part, part.start, high)[: len(chosen)]
        np.add.at(self.used, chosen, amount)
        np.add.at(self.placed, chosen, amount)
        np.add.at(self._servers_used, self.targets.server[chosen], amount)

    def _choose(self, count: int) -> Ints:
        policy = self.placement.policy
        if policy == "lsa":
            policy = "round_robin" if self._is_level() else "weighted"
        if policy == "random_start":
            self.next = int(self.random.integers(len(self.usable)))
        if policy in {"round_robin", "random_start"}:
            chosen = self.usable[(self.next + np.arange(count)) % len(self.usable)]
            self.next = (self.next + count) % len(self.usable)
            return chosen
        if policy == "least_used":
            return self._least_used(count)
        free = self._free() if policy == "weighted" else None
        return self._drawn(count, free)

    def _drawn(self, count: int, free: Floats | None) -> Ints:
        # Weighted sampling without replacement: winners of a race with speeds w (Efraimidis and Spirakis, 2006).
        race = self.random.exponential(size=len(self.usable))
        if free is not None and np.isfinite(free).all():
            race = np.divide(race, free, out=np.full_like(race, np.inf), where=free > 0)
        return self.usable[np.argsort(race, kind="stable")[:count]]

    def _least_used(self, count: int) -> Ints:
        own = self.used[self.usable]
        server = self._servers_used[self.targets.server[self.usable]]
        return self.usable[np.lexsort((self.usable, server, own))[:count]]

    def _free(self) -> Floats:
        return np.maximum(self.targets.size[self.usable] - self.used[self.usable], 0.0)

    def _is_level(self) -> bool:
        free = self._free()
        most = float(free.max())
        return most == np.inf or most - float(free.min()) <= self.placement.window * most
