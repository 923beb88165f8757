"""Plans of kind `simulate`: what would happen to the jobs of a scenario."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Plan, Share
from vani.centre.plan.schema.scenario import Pieces, Placement, Stages
from vani.schema.model import Model

Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SimulateSettings(Model):
    """Settings of the simulation."""

    seeds: list[Count] = Field(description="seeds for random placement; one run each")
    tolerance: Share = Field(
        description="flows that end within this share of the shortest flow are merged into one event; 0 is exact"
    )
    alone: bool = Field(description="true if each job was also simulated alone")


class SimulatedJob(Model):
    """One job in the run that is the median by its end."""

    name: str = Field(description="name of the job")
    begin_s: Amount = Field(description="start time")
    end_s: Amount | None = Field(description="end time; null if the job never ends")
    io_s: Amount | None = Field(
        description="seconds during which any of the job's processes moves data; null if the job never ends"
    )
    bytes: Amount = Field(description="bytes moved")
    read: Amount | None = Field(
        description="bytes per second while the job reads; null if it does not read or never ends"
    )
    write: Amount | None = Field(
        description="bytes per second while the job writes; null if it does not write or never ends"
    )
    bound: dict[str, Share] = Field(description="share of the processes' I/O time by bottleneck: a stage, or `process`")
    alone_s: Amount | None = Field(default=None, description="duration when simulated alone; null if not requested")
    slowdown: Ratio | None = Field(
        default=None, description="duration with the other jobs / duration alone; null if not requested"
    )


class SimulatedStage(Model):
    """How busy the members of a stage are, from the beginning to the end."""

    kind: str = Field(description="kind of stage: node, io_node, whole, server, target, metadata or burst_buffer")
    members: Count = Field(description="number of members of the stage")
    used: Count = Field(description="number of members that carry any traffic")
    mean: Ratio = Field(description="share of the time in which a member is busy, mean over all members")
    most: Ratio = Field(description="share of the time in which the busiest member is busy")
    busiest: Count = Field(description="number of the busiest member")


class SimulatedVariant(Model):
    """The outcome of one variant."""

    name: str = Field(description="name of the variant; `scenario` if there are no variants")
    stages: Stages = Field(description="flow through the stages: overlapped or serial")
    pieces: Pieces = Field(description="storage of files on their targets: in_turn or contiguous")
    placement: Placement = Field(description="policy by which files are placed on targets")
    plans: list[str] = Field(description="kinds of plans that were applied")
    runs: Count = Field(description="number of runs, one per seed; one if nothing is random")
    makespan_s: Amount | None = Field(description="end of the last job, median of the runs; null if it never ends")
    low_s: Amount | None = Field(description="minimum over the runs; null if none ends")
    high_s: Amount | None = Field(description="maximum over the runs; null if some run never ends")
    read: Amount | None = Field(description="bytes per second of all jobs while any of them reads, median of the runs")
    write: Amount | None = Field(
        description="bytes per second of all jobs while any of them writes, median of the runs"
    )
    ost_cost: Ratio | None = Field(
        description="bytes on the fullest target / mean bytes per target (Tarazu, equation 4), median run; null "
        "without bytes"
    )
    jobs: list[SimulatedJob] = Field(description="jobs in the order of the scenario")
    by_stage: list[SimulatedStage] = Field(description="stages in the order of the data path")
    events: Count = Field(description="number of events of the median run")


class Moment(Model):
    """An interval of time of the last variant."""

    begin_s: Amount = Field(description="start of the interval")
    end_s: Amount = Field(description="end of the interval")
    rates: list[Amount] = Field(description="bytes per second of each job, in the order of `jobs`")
    busy: dict[str, Ratio] = Field(description="busy share of the busiest member of each stage")


class SimulatePlan(Plan):
    """The outcome of a simulation."""

    kind: Literal["simulate"] = Field(default="simulate", description="kind of plan: a simulation, which plans nothing")
    simulate: SimulateSettings = Field(description="settings of the request")
    outcomes: list[SimulatedVariant] = Field(description="results by variant; the first is `before`, the last `after`")
    timeline: list[Moment] = Field(description="intervals of the median run of the last variant, at most 400")
