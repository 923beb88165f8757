"""model.yaml: a model of how long a write takes, fitted to samples. Plain data: reading it runs nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from vani.schema.document import Document
from vani.schema.model import Model, schema_field

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=1e-30, le=1e30, allow_inf_nan=False)]


class JudgedMethod(Model):
    """A method, tested on the largest scales of the samples, which it had not seen, by two steps in scale."""

    method: str = Field(description="name of the method")
    error: Amount = Field(description="mean absolute logarithm of predicted time / measured time")
    within_20: Share = Field(description="share of predictions off by at most 20 % of the measured time")
    within_30: Share = Field(description="share of predictions off by at most 30 % of the measured time")


class RivalMethod(Model):
    """A method nearly as good as the chosen one."""

    method: str = Field(description="name of the method")
    parameters: dict[str, JsonValue] = Field(description="parameters of the method, fitted to the same samples")


class Envelope(Model):
    """The range of the samples in one column."""

    low: float = Field(allow_inf_nan=False, description="smallest value")
    high: float = Field(allow_inf_nan=False, description="largest value")


class StageCost(Model):
    """Cost of a stage of the path per unit of its load; the reciprocal is its bandwidth."""

    stage: str = Field(description="load of the stage; 1 for the constant cost of each write")
    cost: Cost | None = Field(
        description="seconds per byte (megabyte, with the features of Xie et al.), request or process; null if the "
        "samples cannot identify it, because its share in their times is small"
    )
    low: Cost | None = Field(description="5th percentile of `cost` over resamplings")
    high: Cost | None = Field(description="95th percentile of `cost` over resamplings")
    share: Share = Field(description="largest share of any sample's time that the stage accounts for")


class WriteModel(Document):
    """A fitted model."""

    schema_: Literal["vani.model/1"] = schema_field("vani.model/1")
    version: str = Field(description="version of Vani")
    method: str = Field(description="method of predicting times")
    system: Literal["cetus", "titan"] | None = Field(
        description="machine whose features by Xie et al. are used; null uses loads computed from the columns"
    )
    scale: str = Field(description="name of the column with the scale")
    samples: int = Field(ge=1, description="number of writes that the model was fitted to")
    unconverged: int = Field(
        ge=0, description="number of writes left out because their repetitions differ too much for a mean"
    )
    confidence: float = Field(
        ge=0.5, lt=1, description="confidence that the mean of repetitions is within a tenth of the true mean"
    )
    held_out: Annotated[int, Field(ge=1)] = Field(
        description="number of writes used for the interval: those above half of the largest scale, and smaller ones "
        "if these are few"
    )
    columns: dict[str, Envelope] = Field(
        min_length=1, max_length=100, description="numbers that a question must give, and the range of the samples"
    )
    words: dict[str, list[str]] = Field(
        description="settings that a question must give, and the values that the samples contain"
    )
    low: Factor = Field(
        description="lower end of the 90 % range of measured / predicted time at the largest scale; for larger scales "
        "see `offset`"
    )
    high: Factor = Field(
        description="upper end of the 90 % range of measured / predicted time at the largest scale; for larger scales "
        "see `offset`"
    )
    offset: Factor = Field(
        default=1.0,
        description="median of measured / predicted time of the held-out writes; at s times the largest scale, `low` "
        "(if offset < 1) or `high` (if offset > 1) is multiplied by offset to the power s - 1",
    )
    rivals: Annotated[list[RivalMethod], Field(max_length=100)] = Field(
        default=[], description="methods nearly as good as the chosen one; the interval includes their predictions"
    )
    judged: list[JudgedMethod] = Field(description="results of all methods on the held-out scales, chosen one first")
    stages: list[StageCost] = Field(
        description="cost of each stage, if the method adds up or compares stages; otherwise empty"
    )
    parameters: dict[str, JsonValue] = Field(description="parameters of the fitted method")

    @model_validator(mode="after")
    def _agrees(self) -> WriteModel:
        if self.scale not in self.columns:
            raise ValueError(f"the scale {self.scale!r} is not one of the columns")
        if self.low > self.high:
            raise ValueError("`low` is above `high`")
        return self
