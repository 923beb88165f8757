"""Runs in order of time, as whoever predicts them meets them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from vani.history.behaviour.panel import Panel, Said
from vani.history.behaviour.runs import Runs

__all__ = ["replay"]


def replay(runs: Runs, panel: Panel, places: Iterable[int], *, ended_only: bool) -> Iterator[int]:
    """Each run of `places` at the moment when it begins; the panel then knows what is known.

    When all are through, it knows all of them.

    Parameters
    ----------
    ended_only
        Known are only runs that had ended by then, in the order in which they ended; else all that began before.
    """
    running: list[tuple[float, int, Said | None]] = []

    def see_first() -> None:
        _, place, said = heapq.heappop(running)
        panel.see(int(runs.category[place]), int(runs.ids[place]), said)

    for place in places:
        while running and running[0][0] <= runs.submitted[place]:
            see_first()
        yield place
        until = float(runs.ended[place]) if ended_only else -float("inf")
        heapq.heappush(running, (until, place, panel.said(int(runs.category[place]))))
    while running:
        see_first()
