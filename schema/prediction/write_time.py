"""How long a write takes: the prediction of kind `write_time`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.prediction.any_prediction import Amount, Prediction

__all__ = ["PredictedTerm", "PredictedWrite", "WriteEnd", "WriteTimePrediction"]

AtLeastOne = Annotated[int, Field(ge=1)]


class PredictedWrite(Model):
    """The write in question: a file per process."""

    nodes: AtLeastOne = Field(description="compute nodes that write")
    processes_per_node: AtLeastOne = Field(description="processes of each that write")
    bytes_per_process: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="bytes that each writes to its file"
    )
    stripe_count: AtLeastOne | None = Field(description="of each file; null: the file system has none")


class PredictedTerm(Model):
    """A summand of the time."""

    feature: str = Field(description="as the paper names it; 1 is the intercept")
    coefficient: float = Field(description="seconds per unit of the feature; sizes are megabytes")
    value: float = Field(description="of the feature")
    seconds: float = Field(description="contribution of the term; negative where the coefficient is")


class WriteEnd(Model):
    """The write with its nodes in one place."""

    placement: Literal["packed", "spread", "mapped"] = Field(
        description="packed: behind as few routers or I/O nodes as possible; spread: as many; mapped: as placed"
    )
    groups: dict[str, tuple[int, int]] = Field(
        description="by component, nodes of the job behind the busiest one, and how many are used"
    )
    seconds: float = Field(description="write time, from the first open to the last close")
    terms: list[PredictedTerm] = Field(description="its summands")


class WriteTimePrediction(Prediction):
    """How long a write takes."""

    kind: Literal["write_time"] = Field(default="write_time", description="what is predicted")
    model: str = Field(description="name of the model")
    source: str = Field(description="source of the model")
    write: PredictedWrite | None = Field(description="question to a published model")
    asked: dict[str, float | str] = Field(
        description="question to a fitted model, by column of its samples"
    )
    seconds: Amount | None = Field(
        description="most probable time; null: outside the model, or only a range"
    )
    low: Amount | None = Field(
        description="seconds; the least that the placements give, or of ten writes from nodes that are mapped, nine "
        "take more than this and less than `high`; null: outside the model"
    )
    high: Amount | None = Field(description="seconds; see `low`; null: outside the model")
    ends: list[WriteEnd] = Field(description="the examined placements, with every term")
