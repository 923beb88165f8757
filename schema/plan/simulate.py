"""Plans of kind `simulate`: what would happen to the jobs of a scenario."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Plan, Share
from vani.schema.scenario import Pieces, Placement, Stages

__all__ = [
    "Moment",
    "SimulatePlan",
    "SimulateSettings",
    "SimulatedJob",
    "SimulatedStage",
    "SimulatedVariant",
]

Ratio = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SimulateSettings(Model):
    """Settings of the simulation."""

    seeds: list[Count] = Field(description="of random placement; one run each")
    tolerance: Share = Field(
        description="flows that end within this share of the shortest flow are one event; 0: exact"
    )
    alone: bool = Field(description="whether each job was also simulated alone")


class SimulatedJob(Model):
    """One job in the run that is the median by its end."""

    name: str = Field(description="of the job")
    begin_s: Amount = Field(description="when it begins")
    end_s: Amount | None = Field(description="when it ends; null: never")
    io_s: Amount | None = Field(
        description="seconds in which any of its processes moves something; null: never ends"
    )
    bytes: Amount = Field(description="bytes moved")
    read: Amount | None = Field(
        description="bytes per second while it reads; null: it does not, or never ends"
    )
    write: Amount | None = Field(
        description="bytes per second while it writes; null: it does not, or never ends"
    )
    bound: dict[str, Share] = Field(
        description="share of its processes' I/O time by what held them back: a stage, or `process`"
    )
    alone_s: Amount | None = Field(default=None, description="its duration alone; null: not requested")
    slowdown: Ratio | None = Field(
        default=None, description="its length with the others / alone; null: not requested"
    )


class SimulatedStage(Model):
    """How busy the members of a stage are, from the beginning to the end."""

    kind: str = Field(description="node, io_node, whole, server, target, metadata or burst_buffer")
    members: Count = Field(description="how many there are")
    used: Count = Field(description="members that anything passes")
    mean: Ratio = Field(description="busy share of the time, mean of all members")
    most: Ratio = Field(description="of the busiest member")
    busiest: Count = Field(description="its number")


class SimulatedVariant(Model):
    """The outcome of one variant."""

    name: str = Field(description="of the variant; `scenario` where there are none")
    stages: Stages = Field(description="overlapped or serial")
    pieces: Pieces = Field(description="how files are stored on their targets")
    placement: Placement = Field(description="where files are stored")
    plans: list[str] = Field(description="kinds of plans that are followed")
    runs: Count = Field(description="runs, one per seed; one if nothing is random")
    makespan_s: Amount | None = Field(description="end of the last job, median of the runs; null: never")
    low_s: Amount | None = Field(description="the least of the runs; null: none ends")
    high_s: Amount | None = Field(description="maximum over the runs; null: a run never ends")
    read: Amount | None = Field(
        description="bytes per second of all jobs while any reads, median of the runs"
    )
    write: Amount | None = Field(description="the same while any writes")
    ost_cost: Ratio | None = Field(
        description="bytes on the fullest target / their mean (Tarazu, equation 4), median run; null: no bytes"
    )
    jobs: list[SimulatedJob] = Field(description="in the order of the scenario")
    by_stage: list[SimulatedStage] = Field(description="in the order of the path")
    events: Count = Field(description="events of the median run")


class Moment(Model):
    """An interval of time of the last variant."""

    begin_s: Amount = Field(description="from")
    end_s: Amount = Field(description="to")
    rates: list[Amount] = Field(description="bytes per second of each job, in their order")
    busy: dict[str, Ratio] = Field(description="busy share of each stage's busiest member")


class SimulatePlan(Plan):
    """The outcome of a simulation."""

    kind: Literal["simulate"] = Field(
        default="simulate", description="what is planned: nothing, it is a simulation"
    )
    simulate: SimulateSettings = Field(description="settings of the request")
    outcomes: list[SimulatedVariant] = Field(description="the first is `before`, the last `after`")
    timeline: list[Moment] = Field(description="of the last variant's median run, at most 400 stretches")
