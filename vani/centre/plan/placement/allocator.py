"""Lustre's own choice of targets, which Tarazu calls LSA and describes in section 2.1.2.

While the free space of targets differs by at most a window (equation 1), Lustre takes them in turn, server by server.
Beyond that it chooses at random, weighted by free space. Lustre does not know file sizes: it uses the free space at the
time of creation. Here files are created one after another and filled at once, as in Tarazu's simulator (algorithm 3).
The model ignores that Lustre lowers the weight of recently used targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from vani.centre.plan.placement.targets import Floats, Ints, Stripes, Targets

Turn = Literal["going-on", "random-start"]

_BATCHES: Final = 64
"""Number of times that free space is examined."""


def in_turn(server: Ints) -> Ints:
    """Targets in round-robin order: the first of each server, then the second of each. Shape (targets,)."""
    rank = np.zeros(len(server), dtype=np.int64)
    seen: dict[int, int] = {}
    for number, owner in enumerate(server.tolist()):
        rank[number] = seen.get(owner, 0)
        seen[owner] = rank[number] + 1
    return np.lexsort((server, rank))


def allocate(
    requests: Sequence[Sequence[int]],
    targets: Targets,
    seed: int,
    *,
    turn: Turn = "going-on",
    window: float = 0.17,
    weighted: bool | None = None,
) -> Ints:
    """The target of each stripe, in request order. -1 for requests with more stripes than targets.

    Parameters
    ----------
    turn
        "going-on": a file begins after the previous one, the first at random.
        "random-start": every file begins at random.
    window
        Largest difference in free space, as a share of the most, at which targets are taken in turn.
    weighted
        True: always at random, weighted by free space. False: never. None: as equation 1 decides.
    """
    stripes = Stripes.of(requests)
    place: Ints = np.full(len(stripes.bytes), -1, dtype=np.int64)
    if not len(targets):
        return place
    random = np.random.default_rng(seed)
    order = in_turn(targets.server)
    free = targets.room.copy()
    at = int(random.integers(len(targets)))
    counts = np.diff(stripes.first)
    fitting = np.flatnonzero(counts <= len(targets))
    for batch in np.array_split(fitting, max(1, min(_BATCHES, len(fitting)))):
        if not len(batch):
            continue
        by_space = (free.max() - free.min() > window * free.max()) if weighted is None else weighted
        if by_space and np.any(free > 0):
            where, chosen = _by_space(batch, stripes, counts, free, random)
        else:
            where, chosen, at = _by_turn(batch, stripes, counts, order, at, turn, random)
        place[where] = chosen
        np.subtract.at(free, chosen, stripes.bytes[where])
        np.maximum(free, 0, out=free)
    return place


def _by_turn(
    batch: Ints, stripes: Stripes, counts: Ints, order: Ints, at: int, turn: Turn, random: np.random.Generator
) -> tuple[Ints, Ints, int]:
    wide = counts[batch]
    where = np.concatenate(
        [np.arange(stripes.first[request], stripes.first[request + 1]) for request in batch]
    )
    within = np.arange(len(where)) - np.repeat(np.cumsum(wide) - wide, wide)
    if turn == "going-on":
        begin = at + np.cumsum(wide) - wide
        at = int(at + wide.sum()) % len(order)
    else:
        begin = random.integers(len(order), size=len(batch))
    return where, order[(np.repeat(begin, wide) + within) % len(order)], at


def _by_space(
    batch: Ints, stripes: Stripes, counts: Ints, free: Floats, random: np.random.Generator
) -> tuple[Ints, Ints]:
    """Targets of each request, drawn without replacement with weights of free space."""
    where = np.concatenate(
        [np.arange(stripes.first[request], stripes.first[request + 1]) for request in batch]
    )
    # The k smallest of exponential variables with these rates are such a draw.
    with np.errstate(divide="ignore"):
        mean = 1 / free
    chosen = []
    for request in batch.tolist():
        count = int(counts[request])
        time = random.exponential(size=len(free)) * mean
        chosen.append(np.argpartition(time, count - 1)[:count] if count < len(time) else np.argsort(time))
    return where, np.concatenate(chosen)
