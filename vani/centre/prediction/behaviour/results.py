"""Result types for the behaviours of runs: how well predictors do, and the phases of each run."""

from dataclasses import dataclass
from typing import Final

SURE: Final = 0.9
"""Least probability of a prediction that counts as sure."""


@dataclass(frozen=True)
class ShareRange:
    """A share, 0..1, with its 95 % bootstrap interval over categories."""

    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """The score of a predictor.

    Attributes
    ----------
    per_run
        Share of the runs that were predicted correctly.
    per_category
        Mean of that share over the categories.
    brier
        Brier score of the most probable behaviour: mean square of (probability - outcome).
    sure
        Share of the runs predicted with a probability of at least `SURE`.
    sure_right
        Share of those predictions that were right; None if there are none.
    """

    name: str
    per_run: ShareRange
    per_category: ShareRange
    brier: float
    sure: float
    sure_right: float | None


@dataclass(frozen=True)
class Reliability:
    """Predictions of `auto` with a probability of `low` to `high`: mean probability (`said`), share that was right."""

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
        Number of predicted runs. The `unknown` ones had no earlier run of their category.
    categories
        Number of categories of the predicted runs.
    seen
        Share of the runs whose behaviour had occurred before, an upper bound for every predictor.
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
    """The scores in both modes; `behaviours` is their number over all categories."""

    runs: int
    categories: int
    behaviours: int
    first: float
    modes: tuple[Mode, Mode]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class PhaseOfRun:
    """A phase: its id, start and length in seconds, and its bytes per second."""

    phase: int
    begin_s: float
    length_s: float
    read_per_s: float
    written_per_s: float


@dataclass(frozen=True)
class RunPhases:
    """A run: its path, the source and step of its time series, its behaviour and its phases."""

    path: str
    source: str
    behaviour: int
    step_s: float
    phases: tuple[PhaseOfRun, ...]
