"""A Markov chain of sizes by rank: the most frequent successor of the last three sizes, or of fewer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np

from vani.centre.prediction.creations.growth import expected_ranks
from vani.centre.prediction.creations.predictors import Predictor
from vani.centre.prediction.creations.series import WITHIN, Creations, Floats, Foreseen, Ints

_MOST_ORDER: Final = 3
_REMEMBERED: Final = 20_000
"""Number of latest creations from which a chain is counted."""
_MOST_STEPS: Final = 200_000
_UNKNOWN: Final = -1
_BEFORE_FIRST: Final = -3
"""State in which rank 0 starts; other ranks start below."""

Context = tuple[int, ...]


def _predict(past: Sequence[Creations], so_far: Creations, count: int | None) -> Foreseen:
    """Count which size followed which, then take the most frequent transitions."""
    ranks = expected_ranks(past, so_far, count)
    runs, left = [so_far.part(max(0, len(so_far) - _REMEMBERED), None)] if len(so_far) else [], _REMEMBERED
    for run in reversed(past):
        left -= len(runs[0]) if runs else 0
        if left <= 0:
            break
        runs.insert(0, run.first(left))
    levels, states = _states(runs)
    chains = [
        chain
        for run, states_of_run in zip(runs, states, strict=True)
        for chain in _by_rank(run, states_of_run).values()
    ]
    follows = _counted(chains)
    latest = (
        {rank: chain[-_MOST_ORDER:] for rank, chain in _by_rank(so_far, states[-1]).items()}
        if len(so_far)
        else {}
    )
    return Foreseen(_followed(ranks, latest, follows, levels), ranks, f"{len(levels)} sizes")


def _states(runs: Sequence[Creations]) -> tuple[Floats, list[Ints]]:
    """The level of each state and the state of each creation; sizes within 1 % of each other form one state."""
    if not runs:
        return np.zeros(0), []
    every = np.concatenate([run.values for run in runs])
    values = np.unique(every)
    group = np.zeros(len(values), dtype=np.int64)
    first, number = (float(values[0]), 0) if len(values) else (0.0, 0)
    for at, value in enumerate(values.tolist()):
        if value - first > WITHIN * value:
            first, number = value, number + 1
        group[at] = number
    # The middle value represents a group.
    starts = np.searchsorted(group, np.arange(number + 1)) if len(values) else np.zeros(0, np.int64)
    ends = np.r_[starts[1:], len(values)] if len(values) else starts
    levels = values[(starts + ends - 1) // 2]
    states = group[np.searchsorted(values, every)] if len(values) else group
    return levels, np.split(states, np.cumsum([len(run) for run in runs])[:-1])


def _by_rank(run: Creations, states: Ints) -> dict[int, list[int]]:
    order = np.argsort(run.ranks, kind="stable")
    who, starts = np.unique(run.ranks[order], return_index=True)
    parts = np.split(states[order], starts[1:])
    if not len(who):
        return {}
    return {
        int(rank): [_BEFORE_FIRST - int(rank), *part.tolist()] for rank, part in zip(who, parts, strict=True)
    }


def _counted(chains: Sequence[list[int]]) -> dict[Context, int]:
    """The most frequent successor of each context of up to three states."""
    counts: dict[Context, Counter[int]] = defaultdict(Counter)
    for chain in chains:
        for at in range(1, len(chain)):
            for order in range(1, min(_MOST_ORDER, at) + 1):
                counts[tuple(chain[at - order : at])][chain[at]] += 1
    return {context: followers.most_common(1)[0][0] for context, followers in counts.items()}


def _followed(
    ranks: Ints, latest: dict[int, list[int]], follows: dict[Context, int], levels: Floats
) -> Floats:
    sizes = np.full(len(ranks), np.nan)
    steps = 0
    order = np.argsort(ranks, kind="stable")
    who, starts = np.unique(ranks[order], return_index=True)
    for rank, places in zip(who.tolist(), np.split(order, starts[1:]), strict=True) if len(who) else ():
        chain = list(latest.get(rank, [_BEFORE_FIRST - rank]))
        context = tuple(chain[-_MOST_ORDER:])
        walked: list[int] = []
        met: dict[Context, int] = {}
        while len(walked) < len(places) and steps < _MOST_STEPS:
            if context in met:
                # The chain is deterministic, so a context that recurs starts a cycle.
                begin = met[context]
                circle = walked[begin:]
                rest = np.resize(np.array(circle), len(places) - begin).tolist()
                walked = walked[:begin] + rest
                break
            met[context] = len(walked)
            state = _next(context, follows)
            if state == _UNKNOWN:
                break
            walked.append(state)
            context = (*context, state)[-_MOST_ORDER:]
            steps += 1
        path = np.array(walked, dtype=np.int64)
        sizes[places[: len(path)]] = levels[path]
    return sizes


def _next(context: Context, follows: dict[Context, int]) -> int:
    for order in range(len(context), 0, -1):
        state = follows.get(context[-order:])
        if state is not None:
            return state
    return _UNKNOWN


PREDICTORS = (Predictor("markov", "the size that most often followed the last sizes", 5, _predict),)
