"""Predicted files as rows of the document, with their names.

Names are taken from an earlier run; numbers in them are continued if they count up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from pydantic import TypeAdapter

from vani.centre.prediction.creations.choice import Chosen
from vani.centre.prediction.creations.series import LARGEST, Creations, Floats, Ints, nth_of_rank
from vani.centre.prediction.schema import PredictedCreation

_DIGITS: Final = re.compile(r"\d{1,18}")
_TURNS: Final = 4
_SURE: Final = 0.99
_LONGEST_PERIOD: Final = 64
_COUNTED: Final = 2000
"""Number of files of two runs compared to learn how numbers in names continue."""

Fields = tuple[str, tuple[int, ...]]
"""A name without its numbers, and the numbers."""


def coming_paths(past: Sequence[Creations], so_far: Creations, ranks: Ints) -> list[str | None]:
    """Names of the files that `ranks` create after `so_far`, in order; None if unknown.

    The names come from the last run, or from the second, third or fourth last if those are the same. Numbers that
    grow by the same amount from run to run, or from one creation of a rank to the next, are continued.
    """
    runs = [run for run in past if run.paths][-_TURNS - 1 :]
    nth = nth_of_rank(ranks, so_far)
    names: list[str | None] = [None] * len(ranks)
    template = _base(runs, so_far) if runs else None
    if template is not None:
        base, steps = template
        at = base.find(ranks, nth)
        for place in np.flatnonzero(at >= 0).tolist():
            names[place] = _moved(base.paths[at[place]], steps, 1)
    known = so_far if so_far.paths and len(so_far) else runs[-1] if runs else None
    missing = [place for place, name in enumerate(names) if name is None]
    if known is not None and missing:
        _count_on(names, missing, known, ranks, nth)
    return _once(names, set(so_far.paths))


def _base(runs: Sequence[Creations], so_far: Creations) -> tuple[Creations, tuple[int, ...]] | None:
    """The run whose names recur, and the increments of their numbers; None if there is none."""
    last = runs[-1]
    if so_far.paths:
        for run in reversed(runs):
            if _same_share(so_far, run) >= _SURE:
                return run, ()
    for back in range(1, min(_TURNS, len(runs) - 1) + 1):
        if _same_share(last, runs[-1 - back]) >= _SURE:
            return runs[-back], ()
    if len(runs) == 1:
        return last, ()
    steps = _steps(runs[-2], last)
    # Any two numbers differ by some amount; only the same amount twice is a law.
    if steps is not None and len(runs) > 2 and steps == _steps(runs[-3], runs[-2]):
        return last, steps
    return None


def _same_share(this: Creations, other: Creations) -> float:
    at = other.find(this.ranks[:_COUNTED], this.nth[:_COUNTED])
    there = np.flatnonzero(at >= 0).tolist()
    return sum(this.paths[i] == other.paths[at[i]] for i in there) / len(there) if there else 0.0


def _steps(before: Creations, after: Creations) -> tuple[int, ...] | None:
    """The increment of each number in names from one run to the next; None if names differ in another way."""
    at = before.find(after.ranks[:_COUNTED], after.nth[:_COUNTED])
    differences: set[tuple[int, ...]] = set()
    for place in np.flatnonzero(at >= 0).tolist():
        difference = _difference(before.paths[at[place]], after.paths[place])
        if difference is None:
            return None
        differences.add(difference)
    return differences.pop() if len(differences) == 1 else None


def _fields(path: str) -> Fields:
    return _DIGITS.sub("\0", path), tuple(int(digits) for digits in _DIGITS.findall(path))


def _difference(before: str, after: str) -> tuple[int, ...] | None:
    (shape, first), (other, second) = _fields(before), _fields(after)
    if shape != other:
        return None
    return tuple(b - a for a, b in zip(first, second, strict=True))


def _moved(path: str, steps: tuple[int, ...], times: int) -> str | None:
    if not any(steps):
        return path
    numbers = iter(steps)

    def count(number: re.Match[str]) -> str:
        value = int(number[0]) + times * next(numbers, 0)
        return str(max(0, value)).zfill(len(number[0]))

    return _DIGITS.sub(count, path)


def _count_on(
    names: list[str | None], missing: Sequence[int], known: Creations, ranks: Ints, nth: Ints
) -> None:
    """Fill in names beyond the end of a run by continuing the numbers in each rank's last names."""
    order = np.argsort(known.ranks, kind="stable")
    who, starts = np.unique(known.ranks[order], return_index=True)
    of_rank = dict(zip(who.tolist(), np.split(order, starts[1:]), strict=True)) if len(who) else {}
    laws: dict[int, tuple[int, tuple[int, ...], list[str]] | None] = {}
    for place in missing:
        rank = int(ranks[place])
        if rank not in of_rank:
            continue
        if rank not in laws:
            laws[rank] = _law(
                [known.paths[place] for place in of_rank[rank][-4 * _LONGEST_PERIOD :].tolist()]
            )
        law = laws[rank]
        if law is None:
            continue
        period, steps, tail = law
        ahead = int(nth[place]) - len(of_rank[rank])
        if ahead >= 0:
            names[place] = _moved(tail[ahead % period], steps, ahead // period + 1)


def _law(paths: Sequence[str]) -> tuple[int, tuple[int, ...], list[str]] | None:
    """Period after which names recur, the increments of their numbers, and the last such period."""
    for period in range(1, min(_LONGEST_PERIOD, len(paths) // 2) + 1):
        differences = {
            _difference(paths[at - period], paths[at])
            for at in range(max(period, len(paths) - 3 * period), len(paths))
        }
        if len(differences) == 1:
            steps = differences.pop()
            if steps is not None and any(steps):
                return period, steps, list(paths[-period:])
    return None


def _once(names: list[str | None], used: set[str]) -> list[str | None]:
    """The names without repetitions, because a file is created only once."""
    for place, name in enumerate(names):
        if name is not None:
            if name in used:
                names[place] = None
            used.add(name)
    return names


def expected_files(
    past: Sequence[Creations], so_far: Creations, chosen: Chosen, least: float
) -> list[PredictedCreation]:
    """One row per file; sizes with a probability below `least` are unknown."""
    foreseen = chosen.foreseen
    nth = nth_of_rank(foreseen.ranks, so_far)
    paths = coming_paths(past, so_far, foreseen.ranks)
    stripes = _stripes(past, so_far, foreseen.ranks, nth)
    known = np.isfinite(foreseen.sizes) & ~(chosen.probability < least)
    bounds = [_whole(foreseen.sizes * factor) for factor in (1.0, chosen.low, chosen.high)]
    is_finite = np.isfinite(foreseen.sizes)
    ranged = is_finite & bool(np.isfinite(chosen.low))
    columns = zip(
        paths,
        foreseen.ranks.tolist(),
        *(bound.tolist() for bound in bounds),
        known.tolist(),
        ranged.tolist(),
        chosen.probability.tolist(),
        stripes.tolist(),
        strict=True,
    )
    # Validating all rows at once takes a fifth of the time for a million rows.
    return TypeAdapter(list[PredictedCreation]).validate_python(
        [
            {
                "path": path,
                "rank": None if rank < 0 else rank,
                "size": size if is_known else None,
                "low": low if has_range else None,
                "high": high if has_range else None,
                "probability": None if math.isnan(probability) else round(probability, 4),
                "stripe_count": count or None,
            }
            for path, rank, size, low, high, is_known, has_range, probability, count in columns
        ]
    )


def _whole(sizes: Floats) -> Ints:
    with np.errstate(invalid="ignore"):
        return np.clip(np.rint(np.nan_to_num(sizes)), 0, float(LARGEST)).astype(np.int64)


def _stripes(past: Sequence[Creations], so_far: Creations, ranks: Ints, nth: Ints) -> Ints:
    """Stripe counts of the same creations in the last run; otherwise the most frequent one."""
    last = past[-1] if past else so_far
    at = last.find(ranks, nth)
    every = last.stripes[last.stripes > 0]
    common = int(np.bincount(every).argmax()) if len(every) else 0
    stripe_counts = np.full(len(ranks), common, dtype=np.int64)
    stripe_counts[at >= 0] = last.stripes[at[at >= 0]]
    return stripe_counts
