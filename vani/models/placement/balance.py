"""Place stripes so that the fullest target is as empty as possible, then the fullest server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.models.placement.bounds import least_level, least_server_level
from vani.models.placement.exchanges import exchange
from vani.models.placement.largest_first import largest_first
from vani.models.placement.search import search
from vani.models.placement.targets import Floats, Ints, Stripes, Targets

__all__ = ["Balanced", "balance", "levels"]

_NEAR = 1e-9


@dataclass(frozen=True)
class Balanced:
    """A placement of stripes.

    Attributes
    ----------
    place
        Target by stripe, in the order of requests; -1: its request has no place.
    bound
        The level that the fullest target reaches in every placement of these stripes.
    is_least
        Whether no placement of them has an emptier fullest target: by the bound, or since all were tried.
    """

    place: Ints
    bound: float
    is_least: bool


def balance(requests: Sequence[Sequence[int]], targets: Targets) -> Balanced:
    """Place requests, each a sequence of bytes by stripe, its stripes on distinct targets.

    A request is placed whole or not at all. The same input gives the same placement.
    """
    stripes = Stripes.of(requests)
    place = largest_first(requests, stripes, targets)
    is_whole = bool(np.all(place >= 0))
    if not is_whole:
        # Levels do not show a lack of room: try the emptiest in bytes first, if that places more.
        fuller = Targets(targets.room + targets.base, targets.base, targets.room, targets.server)
        if np.all(fuller.size > 0):
            other = largest_first(requests, stripes, fuller)
            place = other if np.sum(other >= 0) > np.sum(place >= 0) else place
            is_whole = bool(np.all(place >= 0))
    some = [request for request, first in zip(requests, stripes.first[:-1], strict=True) if place[first] >= 0]
    placed = stripes if is_whole else Stripes.of(some)
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
    """Levels of the fullest target and of the fullest server; 0 without one."""
    load = loads(place, stripes, targets)
    sizes = targets.server_sizes
    return (
        float(np.max(load / targets.size, initial=0.0)),
        float(np.max(targets.by_server(load) / sizes)) if len(sizes) else 0.0,
    )


def loads(place: Ints, stripes: Stripes, targets: Targets) -> Floats:
    """Bytes that count on each target."""
    placed = place >= 0
    return targets.base + np.bincount(place[placed], weights=stripes.bytes[placed], minlength=len(targets))
