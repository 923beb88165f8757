"""Predictors of the next behaviour in a sequence, found by themselves in the modules of this package.

A follower of one category is shown the ids of its runs in order, and predicts the next one.
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
"""Probability by id; the rest to 1 is that of a behaviour never seen."""


class Follower(Protocol):
    """A predictor on the runs of one category."""

    def see(self, behaviour: int) -> None:
        """Take in the next id."""

    def predict(self) -> Shares:
        """Probabilities of the next id, the preferred one of equally likely ones first; empty before any run."""


Begin = Callable[[], Follower]
"""Makes a follower of one category; the followers it makes may learn from each other."""


def each_alone(follower: Begin) -> Callable[[Sequence[Sequence[int]]], Begin]:
    """The `prepare` of a predictor that learns nothing from other categories."""
    return lambda _: follower


def _is_installed() -> bool:
    return True


@dataclass(frozen=True)
class Predictor:
    """One way to predict; a module lists its own in `PREDICTORS`.

    Attributes
    ----------
    about
        Its assumption, in a few words.
    order
        Its place in tables.
    prepare
        Learns from the sequences of all categories, and returns a maker of followers.
    installed
        True where its libraries are installed.
    learns
        Its learning takes long, so that it is tried in evaluations only, and `auto` weighs it only where it is best.
    """

    name: str
    about: str
    order: int
    prepare: Callable[[Sequence[Sequence[int]]], Begin]
    installed: Callable[[], bool] = _is_installed
    learns: bool = False


@functools.cache
def predictors() -> dict[str, Predictor]:
    """All predictors by name, the plain ones first; those whose library is not installed are left out."""
    listed = [
        predictor
        for module in iter_modules(__path__)
        for predictor in import_module(f"{__name__}.{module.name}").PREDICTORS
    ]
    by_order = sorted(listed, key=lambda predictor: predictor.order)
    return {predictor.name: predictor for predictor in by_order if predictor.installed()}
