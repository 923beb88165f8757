"""Behaviour of the next run of an application: the prediction of kind `behaviour`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.centre.prediction.schema.any_prediction import Amount, Count, Moment, Prediction, Share
from vani.schema.model import Model


class ExpectedRange(Model):
    """A figure of runs of one behaviour."""

    low: Amount = Field(description="5th percentile over runs with this behaviour")
    median: Amount
    high: Amount = Field(description="95th percentile over runs with this behaviour")


class KnownRun(Model):
    """A run that is kept in the history."""

    digest: str | None = Field(
        description="SHA-256 of the file that contains the run; null if it comes from a table of runs"
    )
    submitted: Moment = Field(description="start, seconds since 1970")
    paths: list[str] = Field(description="paths of the files that contain the run")


class LikelyBehaviour(Model):
    """A behaviour that the next run may have, and what such runs did."""

    behaviour: Count = Field(description="number within the category, from 0 in the order in which behaviours appeared")
    probability: Share = Field(description="probability that the next run shows this behaviour")
    runs: Count = Field(description="number of known runs with this behaviour")
    bytes_read: ExpectedRange
    bytes_written: ExpectedRange
    metadata: ExpectedRange = Field(description="metadata operations")
    operations: ExpectedRange | None = Field(description="number of reads and writes; null if no run records them")
    files: ExpectedRange | None
    runtime_s: ExpectedRange | None
    in_io_s: ExpectedRange | None = Field(description="seconds of all processes in I/O calls")
    resembles: KnownRun = Field(description="latest run with this behaviour")


class PastRun(Model):
    """A run, and its behaviour predicted from earlier runs."""

    submitted: Moment = Field(description="start, seconds since 1970")
    behaviour: Count = Field(description="actual behaviour of the run")
    expected: Count | None = Field(description="most probable behaviour before the run; null if none was known")
    probability: Share = Field(description="probability that was assigned to the actual behaviour")


class WeighedPredictor(Model):
    """A predictor and its weight in the sum of probabilities."""

    name: str
    weight: Share = Field(
        description="weight, based on how often the predictor was right in this category and in others of the same age"
    )
    behaviour: Count = Field(description="most probable behaviour according to this predictor")
    probability: Share = Field(description="probability assigned to that behaviour")


class BehaviourPrediction(Prediction):
    """Behaviour of the next run of a category."""

    kind: Literal["behaviour"] = Field(default="behaviour", description="kind of prediction: behaviour of the next run")
    application: str
    user: str | None = Field(description="user of the runs; null if no run records the user")
    processes: Count | None = Field(description="number of processes of the run; null if no run records it")
    runs: Count = Field(description="number of known runs of the category that had ended")
    behaviours: list[LikelyBehaviour] = Field(description="known behaviours, most probable first; empty if unknown")
    other: Share = Field(description="probability of all other behaviours, including new ones")
    predictors: list[WeighedPredictor] = Field(description="predictors that contributed to the probabilities")
    past: list[PastRun] = Field(description="latest runs, oldest first")
