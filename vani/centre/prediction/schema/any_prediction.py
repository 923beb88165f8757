"""The base of every prediction: where it leaves the known range, and notes for its reader."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.kinds import DocumentOfKinds

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Moment = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Prediction(DocumentOfKinds):
    """A prediction of any kind."""

    schema_: Literal["vani.prediction/1"] = Field(
        alias="schema", default="vani.prediction/1", description="name and version of this schema"
    )
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of prediction")
    outside: list[str] = Field(
        description="inputs that exceed the data of the model, for which no accuracy is promised"
    )
    notes: list[str] = Field(description="remarks needed to interpret the figures")
