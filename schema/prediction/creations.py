"""Files that a run is going to create: the prediction of kind `creations`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.prediction.any_prediction import Count, Prediction, Share

__all__ = ["CreationsPrediction", "PredictedCreation"]

Bytes = Annotated[int, Field(ge=0, le=1 << 62)]


class PredictedCreation(Model):
    """A file that is expected to be created."""

    path: str | None = Field(description="as the program is expected to name it; null: not known")
    rank: Count | None = Field(description="process that creates it; null: several do, or not known")
    size: Bytes | None = Field(description="bytes in the end; null: not known well enough")
    low: Bytes | None = Field(
        description="nine of ten were larger or as large; null: nothing to compare with"
    )
    high: Bytes | None = Field(description="nine of ten were smaller or as large; null as `low`")
    probability: Share | None = Field(
        description="that `size` is within 1 %, by held-out runs; null: nothing to compare with"
    )
    stripe_count: Annotated[int, Field(ge=1)] | None = Field(
        description="that such a file had before; null: not known"
    )


class CreationsPrediction(Prediction):
    """The files that the next run of a category creates, or the rest of one that has begun."""

    kind: Literal["creations"] = Field(default="creations", description="what is predicted")
    application: str = Field(description="name of the executable")
    user: str = Field(description="user of the runs")
    processes: Count = Field(description="of each run")
    task: Literal["next_run", "rest_of_run"] = Field(description="a whole run, or what follows its beginning")
    runs: Count = Field(description="past runs that were examined")
    begun: Count = Field(description="files that the run has created already")
    method: str = Field(description="predictor used")
    law: str = Field(description="the law that it found, in a few words; empty: no law")
    held_out: Count = Field(description="runs, or parts of runs, on which predictors were compared")
    judged: dict[str, Share] = Field(
        description="by predictor, share of these files whose size it predicted within 1 %, the best first"
    )
    creations: list[PredictedCreation] = Field(description="in the order in which they are expected")
