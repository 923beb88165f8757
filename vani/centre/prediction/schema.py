"""prediction.yaml: the expected behaviour of a future run, the files it creates, or the time of a write.

Each kind of prediction is a document that is derived from `Prediction`.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.document import DocumentOfKinds
from vani.schema.model import Model, schema_field

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Moment = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Prediction(DocumentOfKinds):
    """A prediction of any kind."""

    schema_: Literal["vani.prediction/1"] = schema_field("vani.prediction/1")
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of prediction")
    outside: list[str] = Field(
        description="inputs that exceed the data of the model, for which no accuracy is promised"
    )
    notes: list[str] = Field(description="remarks needed to interpret the figures")


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


AtLeastOne = Annotated[int, Field(ge=1)]


class PredictedWrite(Model):
    """The write in question: a file per process."""

    nodes: AtLeastOne = Field(description="number of writing compute nodes")
    processes_per_node: AtLeastOne = Field(description="number of writing processes per node")
    bytes_per_process: float = Field(
        gt=0, allow_inf_nan=False, description="bytes that each process writes to its file"
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
