"""Lower bounds on the level of the fullest target and server, by counting."""

from __future__ import annotations

import math

import numpy as np

from vani.centre.plan.placement.targets import Floats, Stripes, Targets

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
    return max(
        (
            float(np.partition((targets.base + size) / targets.size, k)[k])
            for k, size in enumerate(widest)
            if size > 0
        ),
        default=0.0,
    )
