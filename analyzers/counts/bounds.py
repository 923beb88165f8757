"""Both ends of attributes of which counts tell no more."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.times import busy_times_at_most
from vani.analyzers.measurements import Measurements
from vani.analyzers.measures.busy_time import ALL, BusyTimes
from vani.calls import Kind

__all__ = ["bounds_of"]

_KINDS = {"read": int(Kind.READ), "write": int(Kind.WRITE), "metadata": int(Kind.METADATA), "total": ALL}


def bounds_of(rows: Rows, measured: Measurements) -> dict[str, tuple[float, float]]:
    """By attribute of the profile: the least and the most that it can be."""
    busy = measured.of(BusyTimes)
    if busy is None:
        return {}
    apps = len(rows.world.apps)
    of_apps = busy_times_at_most(rows, np.where(rows.included, rows.app, -1), apps)
    workload = busy_times_at_most(rows, np.where(rows.included, 0, -1), 1)
    lowest = busy.apps if apps == 1 else busy.workload[None]
    flushed = np.zeros(apps, np.bool_)
    flushed[rows.app[rows.included & (rows["syncs"] > 0)]] = True
    found = dict(_rows("workflow", lowest[0], workload[0], flushed=bool(flushed.any())))
    for app in range(apps):
        found |= dict(_rows(f"apps[{app}]", busy.apps[app], of_apps[app], flushed=bool(flushed[app])))
    return found


def _rows(
    where: str, low: NDArray[np.int64], high: NDArray[np.int64], *, flushed: bool
) -> Iterator[tuple[str, tuple[float, float]]]:
    for name, kind in _KINDS.items():
        # How much of the time of writes was that of flushes is not known.
        least = 0 if flushed and kind == Kind.WRITE else int(low[kind])
        if high[kind] > least:
            yield f"{where}.io.busy_s.{name}", (least / 1e9, max(int(low[kind]), int(high[kind])) / 1e9)
