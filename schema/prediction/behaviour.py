"""Behaviour of the next run of an application: the prediction of kind `behaviour`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.prediction.any_prediction import Amount, Count, Moment, Prediction, Share

__all__ = [
    "BehaviourPrediction",
    "ExpectedRange",
    "KnownRun",
    "LikelyBehaviour",
    "PastRun",
    "WeighedPredictor",
]


class ExpectedRange(Model):
    """A figure of runs of one behaviour."""

    low: Amount = Field(description="one in twenty runs had less")
    median: Amount
    high: Amount = Field(description="one in twenty runs had more")


class KnownRun(Model):
    """A run that is kept in the history."""

    digest: str | None = Field(description="SHA-256 of the file it was read from; null: a table of runs")
    submitted: Moment = Field(description="start, seconds since 1970")
    paths: list[str] = Field(description="files that it was read from")


class LikelyBehaviour(Model):
    """A behaviour that the next run may have, and what such runs did."""

    behaviour: Count = Field(description="its number within the category, from 0 as behaviours appeared")
    probability: Share = Field(description="that the next run has it")
    runs: Count = Field(description="known runs that had it")
    bytes_read: ExpectedRange
    bytes_written: ExpectedRange
    metadata: ExpectedRange = Field(description="metadata operations")
    operations: ExpectedRange | None = Field(description="reads and writes; null where no run records them")
    files: ExpectedRange | None
    runtime_s: ExpectedRange | None
    in_io_s: ExpectedRange | None = Field(description="seconds of all processes in I/O calls")
    resembles: KnownRun = Field(description="the latest run that had it")


class PastRun(Model):
    """A run, and its behaviour predicted from earlier runs."""

    submitted: Moment = Field(description="start, seconds since 1970")
    behaviour: Count = Field(description="the one it had")
    expected: Count | None = Field(description="the most probable one; null: none was known")
    probability: Share = Field(description="probability it was given")


class WeighedPredictor(Model):
    """A predictor and its weight in the sum of probabilities."""

    name: str
    weight: Share = Field(description="by how often it was right in this category, and in others of its age")
    behaviour: Count = Field(description="the behaviour it considers most probable")
    probability: Share = Field(description="probability it gives")


class BehaviourPrediction(Prediction):
    """Behaviour of the next run of a category."""

    kind: Literal["behaviour"] = Field(default="behaviour", description="what is predicted")
    application: str
    user: str | None = Field(description="null: no run records the user")
    processes: Count | None = Field(description="of the run; null: no run records how many")
    runs: Count = Field(description="of the category that are known, and had ended")
    behaviours: list[LikelyBehaviour] = Field(description="the most probable first; empty: not known")
    other: Share = Field(description="probability of all others, new ones included")
    predictors: list[WeighedPredictor] = Field(description="predictors that the probabilities come from")
    past: list[PastRun] = Field(description="the last runs, the oldest first")
