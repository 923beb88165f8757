"""Files that a run is going to create: the prediction of kind `creations`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.prediction.schema.any_prediction import Count, Prediction, Share
from vani.schema.model import Model

Bytes = Annotated[int, Field(ge=0, le=1 << 62)]


class PredictedCreation(Model):
    """A file that is expected to be created."""

    path: str | None = Field(description="expected path; null if unknown")
    rank: Count | None = Field(description="process that creates the file; null if several do, or if unknown")
    size: Bytes | None = Field(description="final size in bytes; null if not known well enough")
    low: Bytes | None = Field(
        description="lower end of the size range, which covers nine of ten comparable cases; null if there are none"
    )
    high: Bytes | None = Field(
        description="upper end of the size range, which covers nine of ten comparable cases; null if there are none"
    )
    probability: Share | None = Field(
        description="probability that `size` is within 1 %, measured on held-out runs; null if there are none to "
        "compare with"
    )
    stripe_count: Annotated[int, Field(ge=1)] | None = Field(
        description="stripe count that such a file had before; null if unknown"
    )


class CreationsPrediction(Prediction):
    """The files that the next run of a category creates, or the rest of one that has begun."""

    kind: Literal["creations"] = Field(default="creations", description="kind of prediction: files that a run creates")
    application: str = Field(description="name of the executable")
    user: str = Field(description="user of the runs")
    processes: Count = Field(description="number of processes of each run")
    task: Literal["next_run", "rest_of_run"] = Field(
        description="scope of the prediction: a whole run, or the rest of a run after its start"
    )
    runs: Count = Field(description="number of past runs that were examined")
    begun: Count = Field(description="number of files that the run has created already")
    method: str = Field(description="predictor used")
    law: str = Field(description="detected pattern in a few words; empty if there is none")
    held_out: Count = Field(description="number of runs, or parts of runs, on which the predictors were compared")
    judged: dict[str, Share] = Field(
        description="share of the files whose size was predicted within 1 %, by predictor, best first"
    )
    creations: list[PredictedCreation] = Field(description="predicted files in the expected order")
