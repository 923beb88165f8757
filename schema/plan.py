"""plan.yaml: who gets which part of a machine, what that is worth, and what could not be done.

The same inputs give the same bytes: a plan holds no time and no names of machines but those it was given.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from vani.schema.advice import Expected
from vani.schema.model import Model

__all__ = [
    "Allotment",
    "ForwardSettings",
    "Left",
    "Outcome",
    "Plan",
    "PlanInput",
    "PoolWorth",
]

Policy = Literal["mckp", "static", "size", "process", "zero", "one", "oracle"]
Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PlanInput(Model):
    """A document that the plan rests on."""

    kind: Literal["jobs", "plan", "profile"] = Field(
        description="what it is: jobs, the plan that is in force, or a profile of a job"
    )
    path: str | None = Field(description="as it was named; null where it was given in memory")
    sha256: str = Field(description="of the file; of what is in memory, of its YAML")


class ForwardSettings(Model):
    """What `vani plan forward` was asked."""

    io_nodes: Count = Field(description="I/O nodes of the pool")
    policy: Policy = Field(description="how they are shared")
    objective: Literal["sum", "max-min", "proportional"] = Field(
        description="what mckp makes as large as possible: the sum of bandwidths; the least share of its own best that "
        "a job gets, then the sum; the sum of logarithms"
    )
    floor: Share = Field(description="share of its own best bandwidth that every job gets at least (mckp)")
    direct: bool = Field(description="whether jobs may do without I/O nodes")
    rounding: Literal["half-up", "ceil"] = Field(description="of static, size and process")
    nodes_per_io_node: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        description="compute nodes per I/O node, for static; null: those of all jobs over the pool"
    )
    change_cost_s: Amount = Field(description="seconds of I/O that a job loses when its number changes")


class Allotment(Model):
    """What one job gets."""

    name: str = Field(description="of the job")
    nodes: Count = Field(description="its compute nodes")
    io_nodes: Count | None = Field(
        description="I/O nodes of its own; 0: direct access, or the shared one; null: unplaced"
    )
    shared: bool = Field(description="true where it uses the I/O node that several jobs share")
    bandwidth: Amount | None = Field(
        description="expected, the cost of a change included, bytes per second; null: no figure"
    )
    own_best: Amount | None = Field(
        description="bandwidth that it would have alone with the pool; null: no figure"
    )
    share: Amount | None = Field(description="bandwidth without the cost of a change / own_best")
    before: Count | None = Field(
        description="I/O nodes that it has now, by the plan in force; null: none known"
    )
    source: Literal["measured", "estimated", "none"] = Field(
        description="of its bandwidths: its own curve, curves near its pattern, nothing"
    )
    low: Amount | None = Field(description="5 % of runs lie below it; null: scatter not known")
    high: Amount | None = Field(description="5 % of runs lie above it; null: scatter not known")


class Outcome(Model):
    """What a policy gives in sum."""

    policy: Policy | Literal["current"] = Field(description="current: the plan that is in force")
    io_nodes: Count = Field(description="I/O nodes that it hands out, the shared one included")
    over: Count = Field(description="how many of these the pool does not have")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")
    least_share: Amount | None = Field(description="least bandwidth / own best of a job; null: no figures")
    no_figure: Count = Field(description="jobs that the sum lacks")


class PoolWorth(Model):
    """What the optimum would be with another pool; only where it differs from the pool before."""

    io_nodes: Count = Field(description="I/O nodes of the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")


class Left(Model):
    """Something that the plan could not do."""

    name: str = Field(description="job, or `pool`")
    reason: str = Field(description="why")


class Plan(Model):
    """Who gets which part of the machine."""

    schema_: Literal["vani.plan/1"] = Field(
        alias="schema", default="vani.plan/1", description="name and version of this schema"
    )
    version: str = Field(description="of Vani")
    kind: Literal["forward"] = Field(description="what is planned: I/O nodes")
    inputs: list[PlanInput] = Field(description="what it rests on")
    forward: ForwardSettings = Field(description="what was asked")
    before: Outcome = Field(description="the plan in force, or static where none is given")
    after: Outcome = Field(description="this plan")
    expected: Expected | None = Field(
        description="of the sum of bandwidths; null where the jobs with a figure are not the same before and after"
    )
    jobs: list[Allotment] = Field(description="in the order of jobs.yaml")
    one_more: Amount | None = Field(
        description="what one more I/O node would add to the sum, bytes per second; null: not mckp, or nothing to "
        "compare with"
    )
    pools: list[PoolWorth] = Field(
        description="the optimum by size of the pool (mckp, objective sum), ascending"
    )
    compared: list[Outcome] = Field(description="all policies side by side, where that was asked")
    unplaced: list[Left] = Field(description="jobs that got nothing, and why")
    over_capacity: list[Left] = Field(description="what exceeds the pool")
    no_data: list[Left] = Field(description="figures that were missing, and what was done without them")
    notes: list[str] = Field(description="what a reader of the figures has to know")

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return not (self.unplaced or self.over_capacity or self.no_data)

    def to_yaml(self) -> str:
        """Write the plan as YAML."""
        from vani.schema.document import dumps  # noqa: PLC0415

        return dumps(self)

    @classmethod
    def load(cls, path: str | Path) -> Plan:
        """Read a plan from YAML or JSON.

        Raises
        ------
        DocumentError
            The file is no valid plan.
        """
        from vani.schema.document import load  # noqa: PLC0415

        return load(path, cls)
