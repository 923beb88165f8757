"""Predictors of the next behaviour in a sequence, discovered in the modules of this package.

A follower sees the ids of one category's runs in order, and predicts the next one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Protocol

__all__ = ["Begin", "Follower", "Predictor", "Shares", "each_alone", "predictors"]

Shares = dict[int, float]
"""Probability by id; the remainder to 1 is the probability of a new behaviour."""


class Follower(Protocol):
    """A predictor applied to the runs of one category."""

    def see(self, behaviour: int) -> None:
        """Learn the next id."""

    def predict(self) -> Shares:
        """Probabilities of the next id, in order of preference among equally likely ones; empty before any run."""


Begin = Callable[[], Follower]
"""Factory of a follower for one category; followers from one factory may learn from each other."""


def each_alone(follower: Begin) -> Callable[[Sequence[Sequence[int]]], Begin]:
    """The `prepare` function of a predictor that learns nothing from other categories."""
    return lambda _: follower


def _is_installed() -> bool:
    return True


@dataclass(frozen=True)
class Predictor:
    """A prediction method; each module lists its own in `PREDICTORS`.

    Attributes
    ----------
    about
        Its assumption, in a few words.
    order
        Its position in tables.
    prepare
        Learns from the sequences of all categories, and returns a factory of followers.
    installed
        Whether its libraries are installed.
    learns
        Whether training takes long. Such a predictor is tried only in evaluations, and `auto` uses it only where it
        is best.
    """

    name: str
    about: str
    order: int
    prepare: Callable[[Sequence[Sequence[int]]], Begin]
    installed: Callable[[], bool] = _is_installed
    learns: bool = False


@functools.cache
def predictors() -> dict[str, Predictor]:
    """All predictors by name, plain ones first, without those whose library is not installed."""
    listed = [
        predictor
        for module in iter_modules(__path__)
        for predictor in import_module(f"{__name__}.{module.name}").PREDICTORS
    ]
    by_order = sorted(listed, key=lambda predictor: predictor.order)
    return {predictor.name: predictor for predictor in by_order if predictor.installed()}
