"""Behaviours of runs: scores of the predictors that foresaw them, and the phases they consist of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["SURE", "Comparison", "Mode", "PhaseOfRun", "Reliability", "RunPhases", "Score", "ShareRange"]

SURE: Final = 0.9
"""Probability from which a prediction is called sure."""


@dataclass(frozen=True)
class ShareRange:
    """A share with the range that 95 of 100 drawings of categories give."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """The score of a predictor.

    Attributes
    ----------
    per_run
        Share of the runs that were predicted rightly.
    per_category
        Mean of that share over categories.
    brier
        Mean square of probability less outcome of the most probable behaviour.
    sure
        Share of the runs whose probability is at least `SURE`.
    sure_right
        Share of these that were right; None where there are none.
    """

    name: str
    per_run: ShareRange
    per_category: ShareRange
    brier: float
    sure: float
    sure_right: float | None


@dataclass(frozen=True)
class Reliability:
    """Predictions of `auto` with a probability from `low` to `high`: their mean, and the share that was right."""

    low: float
    high: float
    runs: int
    said: float
    right: float


@dataclass(frozen=True)
class Mode:
    """The scores of all predictors.

    Attributes
    ----------
    known
        Runs that were predicted; of `unknown` ones no run of their category was known.
    categories
        Of the runs that were predicted.
    seen
        Share whose behaviour was among those known: no predictor can be right more often.
    """

    ended_only: bool
    known: int
    unknown: int
    categories: int
    seen: float
    scores: tuple[Score, ...]
    reliability: tuple[Reliability, ...]


@dataclass(frozen=True)
class Comparison:
    """Both modes; `behaviours` is how many there are in all categories."""

    runs: int
    categories: int
    behaviours: int
    first: float
    modes: tuple[Mode, Mode]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PhaseOfRun:
    """A phase: its id, when it begins and how long it lasts in seconds, and bytes per second in it."""

    phase: int
    begin_s: float
    length_s: float
    read_per_s: float
    written_per_s: float


@dataclass(frozen=True)
class RunPhases:
    """A run: where it was read from, what its series is from and how fine it is, its behaviour and its phases."""

    path: str
    source: str
    behaviour: int
    step_s: float
    phases: tuple[PhaseOfRun, ...]
