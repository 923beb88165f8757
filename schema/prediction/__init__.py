"""prediction.yaml: the expected behaviour of a future run, and how far to trust it.

Each kind of prediction is a file whose model is imported here.
"""

from __future__ import annotations

from vani.schema.prediction.any_prediction import Prediction
from vani.schema.prediction.behaviour import (
    BehaviourPrediction,
    ExpectedRange,
    KnownRun,
    LikelyBehaviour,
    PastRun,
    WeighedPredictor,
)
from vani.schema.prediction.creations import CreationsPrediction, PredictedCreation
from vani.schema.prediction.write_time import PredictedTerm, PredictedWrite, WriteEnd, WriteTimePrediction

__all__ = [
    "BehaviourPrediction",
    "CreationsPrediction",
    "ExpectedRange",
    "KnownRun",
    "LikelyBehaviour",
    "PastRun",
    "PredictedCreation",
    "PredictedTerm",
    "PredictedWrite",
    "Prediction",
    "WeighedPredictor",
    "WriteEnd",
    "WriteTimePrediction",
]
