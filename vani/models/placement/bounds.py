"""Bounds that no placement of stripes can beat, by counting."""

from __future__ import annotations

import math

import numpy as np

from vani.models.placement.targets import Floats, Stripes, Targets

__all__ = ["least_level", "least_server_level"]

_KINDS = 64


def least_level(stripes: Stripes, targets: Targets) -> float:
    """A level (bytes that count / size) that the fullest target reaches in every placement.

    The largest of three: stripes come in whole units of their common divisor, and below a level each target takes so
    many of them; stripes of at least a size need as many places of that size, no more per target than there are
    requests with such stripes; and each request needs as many targets as it has stripes.
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
    """The same of the fullest server, where every target has one; else 0."""
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
    """The lowest level at which all take `wanted` units together; infinite where they never do."""

    def taken(level: float) -> float:
        # What rounding takes from a whole number of units is given back.
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
    """Each request's largest stripes need that many targets: its k-th largest meets at best the k-th emptiest."""
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
