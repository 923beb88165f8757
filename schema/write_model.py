"""model.yaml: a model of how long a write takes, fitted to samples. Plain data: reading it runs nothing."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, model_validator

from vani.schema.document import Document
from vani.schema.model import Model

__all__ = ["Envelope", "JudgedMethod", "RivalMethod", "StageCost", "WriteModel"]

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Factor = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=1e-30, le=1e30, allow_inf_nan=False)]


class JudgedMethod(Model):
    """A method, tested on the largest scales of the samples, which it had not seen, by two steps in scale."""

    method: str = Field(description="name of the method")
    error: Amount = Field(description="mean of the logarithm of how many times too long or too short")
    within_20: Share = Field(description="share of predictions off by at most 20 % of the measured time")
    within_30: Share = Field(description="the same for 30 %")


class RivalMethod(Model):
    """A method nearly as good as the chosen one."""

    method: str = Field(description="name of the method")
    parameters: dict[str, JsonValue] = Field(description="of the method, fitted to the same samples")


class Envelope(Model):
    """The range of the samples in one column."""

    low: float = Field(allow_inf_nan=False, description="least value")
    high: float = Field(allow_inf_nan=False, description="largest value")


class StageCost(Model):
    """Cost of a stage of the path per unit of its load; the reciprocal is its bandwidth."""

    stage: str = Field(description="load of the stage; 1 is the constant cost of each write")
    cost: Cost | None = Field(
        description="seconds per byte (megabyte, with the features of Xie et al.), request or process; null: not "
        "identified, since it makes up little of every sample's time"
    )
    low: Cost | None = Field(description="of ten resamplings, nine give more than this and less than `high`")
    high: Cost | None = Field(description="see `low`")
    share: Share = Field(description="largest share of a sample's time that the stage makes up")


class WriteModel(Document):
    """A fitted model."""

    schema_: Literal["vani.model/1"] = Field(
        alias="schema", default="vani.model/1", description="name and version of this schema"
    )
    version: str = Field(description="of Vani")
    method: str = Field(description="how times are predicted")
    system: Literal["cetus", "titan"] | None = Field(
        description="machine whose features of Xie et al. are used; null: loads of the columns"
    )
    scale: str = Field(description="column with the scale")
    samples: Annotated[int, Field(ge=1)] = Field(description="writes that it was fitted to")
    unconverged: Annotated[int, Field(ge=0)] = Field(
        description="writes left out, since their repetitions differ too much for a mean"
    )
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = Field(
        description="that the mean of repetitions is within a tenth of the true mean"
    )
    held_out: Annotated[int, Field(ge=1)] = Field(
        description="writes for the interval: above half of the largest scale, and smaller ones if these are few"
    )
    columns: Annotated[dict[str, Envelope], Field(min_length=1, max_length=100)] = Field(
        description="numbers that a question has to give, and what the samples covered"
    )
    words: dict[str, list[str]] = Field(
        description="settings that a question has to give, and those that were met"
    )
    low: Factor = Field(
        description="measured over predicted time at the largest scale: of ten writes, nine are above this and below "
        "`high`; beyond that scale, see `offset`"
    )
    high: Factor = Field(description="see `low`")
    offset: Factor = Field(
        default=1.0,
        description="median of measured over predicted time of the writes held out; at a scale s times the largest "
        "one, `low` (where it is below 1) or `high` (above 1) is multiplied by its power of s - 1",
    )
    rivals: Annotated[list[RivalMethod], Field(max_length=100)] = Field(
        default=[], description="methods nearly as good as this one: the interval includes their predictions"
    )
    judged: list[JudgedMethod] = Field(description="all methods on the scales held out, the best first")
    stages: list[StageCost] = Field(
        description="cost of each stage, where the method adds up or compares stages; else empty"
    )
    parameters: dict[str, JsonValue] = Field(description="of the method")

    @model_validator(mode="after")
    def _agrees(self) -> WriteModel:
        if self.scale not in self.columns:
            raise ValueError(f"the scale {self.scale!r} is not one of the columns")
        if self.low > self.high:
            raise ValueError("`low` is above `high`")
        return self
