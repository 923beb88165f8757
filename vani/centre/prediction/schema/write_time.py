"""How long a write takes: the prediction of kind `write_time`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.prediction.schema.any_prediction import Amount, Prediction
from vani.schema.model import Model

AtLeastOne = Annotated[int, Field(ge=1)]


class PredictedWrite(Model):
    """The write in question: a file per process."""

    nodes: AtLeastOne = Field(description="number of writing compute nodes")
    processes_per_node: AtLeastOne = Field(description="number of writing processes per node")
    bytes_per_process: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        description="bytes that each process writes to its file"
    )
    stripe_count: AtLeastOne | None = Field(description="stripe count of each file; null if the file system has none")


class PredictedTerm(Model):
    """A summand of the time."""

    feature: str = Field(description="feature as named in the paper; 1 is the intercept")
    coefficient: float = Field(description="seconds per unit of the feature, with sizes in megabytes")
    value: float = Field(description="value of the feature")
    seconds: float = Field(description="contribution of the term; negative if the coefficient is")


class WriteEnd(Model):
    """The write with its nodes in one place."""

    placement: Literal["packed", "spread", "mapped"] = Field(
        description="placement of the nodes. packed: behind as few routers or I/O nodes as possible; spread: behind "
        "as many as possible; mapped: as actually placed"
    )
    groups: dict[str, tuple[int, int]] = Field(
        description="by component, number of the job's nodes behind the busiest instance, and number of instances in "
        "use"
    )
    seconds: float = Field(description="write time, from the first open to the last close")
    terms: list[PredictedTerm] = Field(description="terms whose sum is `seconds`")


class WriteTimePrediction(Prediction):
    """How long a write takes."""

    kind: Literal["write_time"] = Field(default="write_time", description="kind of prediction: write time")
    model: str = Field(description="name of the model")
    source: str = Field(description="source of the model")
    write: PredictedWrite | None = Field(description="write to be predicted by a published model")
    asked: dict[str, float | str] = Field(description="input of a fitted model, by column of its samples")
    seconds: Amount | None = Field(
        description="most probable time; null if outside the model, or if only a range is known"
    )
    low: Amount | None = Field(
        description="lower bound in seconds: the shortest time of all placements, or for mapped nodes the 5th "
        "percentile; null if outside the model"
    )
    high: Amount | None = Field(
        description="upper bound in seconds: the longest time of all placements, or for mapped nodes the 95th "
        "percentile; null if outside the model"
    )
    ends: list[WriteEnd] = Field(description="placements that were examined, with every term")
