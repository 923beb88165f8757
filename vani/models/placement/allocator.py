"""The choice of targets by Lustre itself (Tarazu calls it LSA), by the account of Tarazu, section 2.1.2.

While free space differs by no more than a window (equation 1), targets are taken in turn, server by server; beyond
it, at random by free space. Lustre knows no sizes: what counts is free space when a file is made. Here files are made
one after the other and filled at once, as in Tarazu's simulator (algorithm 3). Lustre also makes a target that was
just taken less likely, which is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

import numpy as np

from vani.models.placement.targets import Floats, Ints, Stripes, Targets

__all__ = ["Turn", "allocate", "in_turn"]

Turn = Literal["going-on", "random-start"]

_BATCHES: Final = 64
"""Free space is examined so many times."""


def in_turn(server: Ints) -> Ints:
    """Targets in the order in which they are taken: the first of each server, then the second of each."""
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
    """The target of each stripe, in the order of requests; -1 for requests with more stripes than targets.

    Parameters
    ----------
    turn
        Whether a file begins behind the one before, the first at random, or each at random.
    window
        Difference of free space, as a share of the most, up to which targets are taken in turn.
    weighted
        True: always at random by free space; False: never; None: by equation 1.
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
    for some in np.array_split(fitting, max(1, min(_BATCHES, len(fitting)))):
        if not len(some):
            continue
        by_space = (free.max() - free.min() > window * free.max()) if weighted is None else weighted
        if by_space and np.any(free > 0):
            where, chosen = _by_space(some, stripes, counts, free, random)
        else:
            where, chosen, at = _by_turn(some, stripes, counts, order, at, turn, random)
        place[where] = chosen
        np.subtract.at(free, chosen, stripes.bytes[where])
        np.maximum(free, 0, out=free)
    return place


def _by_turn(
    some: Ints, stripes: Stripes, counts: Ints, order: Ints, at: int, turn: Turn, random: np.random.Generator
) -> tuple[Ints, Ints, int]:
    wide = counts[some]
    where = np.concatenate(
        [np.arange(stripes.first[request], stripes.first[request + 1]) for request in some]
    )
    within = np.arange(len(where)) - np.repeat(np.cumsum(wide) - wide, wide)
    if turn == "going-on":
        begin = at + np.cumsum(wide) - wide
        at = int(at + wide.sum()) % len(order)
    else:
        begin = random.integers(len(order), size=len(some))
    return where, order[(np.repeat(begin, wide) + within) % len(order)], at


def _by_space(
    some: Ints, stripes: Stripes, counts: Ints, free: Floats, random: np.random.Generator
) -> tuple[Ints, Ints]:
    """Targets of each request, drawn without putting back; the odds are free space."""
    where = np.concatenate(
        [np.arange(stripes.first[request], stripes.first[request + 1]) for request in some]
    )
    # The smallest of exponential times by rate are such a draw.
    with np.errstate(divide="ignore"):
        mean = 1 / free
    chosen = []
    for request in some.tolist():
        count = int(counts[request])
        time = random.exponential(size=len(free)) * mean
        chosen.append(np.argpartition(time, count - 1)[:count] if count < len(time) else np.argsort(time))
    return where, np.concatenate(chosen)
