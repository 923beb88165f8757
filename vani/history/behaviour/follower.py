"""The interface of all predictors: a follower of one category is shown ids in order and told to say the next one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Begin", "Follower", "Predictor", "Shares", "each_alone"]

Shares = dict[int, float]
"""Probability by id; what is missing to 1 is a behaviour that was never seen."""


class Follower(Protocol):
    """What a predictor knows of one category."""

    def see(self, behaviour: int) -> None:
        """Take in the next id."""

    def predict(self) -> Shares:
        """Probabilities of the ids that may come next, the first of equally likely ones first; empty before any."""


Begin = Callable[[], Follower]
"""Makes a follower of one category; followers that it makes may learn from each other."""


def each_alone(follower: Begin) -> Callable[[Sequence[Sequence[int]]], Begin]:
    """The `prepare` of a predictor that learns nothing from other categories."""
    return lambda _: follower


def _is_installed() -> bool:
    return True


@dataclass(frozen=True)
class Predictor:
    """One way to predict.

    Attributes
    ----------
    about
        What it assumes, in a few words.
    order
        Its place in tables.
    prepare
        Takes the sequences of all categories that may be learnt from beforehand, and returns what makes followers.
    installed
        Whether the libraries that it takes are there.
    learns
        Learning beforehand takes long: it is tried in evaluations only, and `auto` weighs it only where it wins.
    """

    name: str
    about: str
    order: int
    prepare: Callable[[Sequence[Sequence[int]]], Begin]
    installed: Callable[[], bool] = _is_installed
    learns: bool = False
