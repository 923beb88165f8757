"""prediction.yaml: the expected behaviour of a future run, and how far to trust it.

Each kind of prediction is a file whose model is imported here.
"""

from __future__ import annotations

from vani.centre.prediction.schema.any_prediction import Prediction
from vani.centre.prediction.schema.behaviour import (
    BehaviourPrediction,
    ExpectedRange,
    KnownRun,
    LikelyBehaviour,
    PastRun,
    WeighedPredictor,
)
from vani.centre.prediction.schema.creations import CreationsPrediction, PredictedCreation
from vani.centre.prediction.schema.write_time import (
    PredictedTerm,
    PredictedWrite,
    WriteEnd,
    WriteTimePrediction,
)

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
