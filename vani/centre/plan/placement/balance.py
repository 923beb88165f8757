"""Place stripes so that the level of the fullest target is lowest, and then that of the fullest server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vani.centre.plan.placement.bounds import least_level, least_server_level
from vani.centre.plan.placement.exchanges import exchange
from vani.centre.plan.placement.largest_first import largest_first
from vani.centre.plan.placement.search import search
from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets

_NEAR = 1e-9


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
