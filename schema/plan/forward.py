"""Plans of kind `forward`: which job gets how many I/O nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.plan.any_plan import Amount, Count, Plan, Share

__all__ = [
    "Allotment",
    "ForwardPlan",
    "ForwardSettings",
    "Outcome",
    "Policy",
    "PoolWorth",
]

Policy = Literal["mckp", "static", "size", "process", "zero", "one", "oracle"]


class ForwardSettings(Model):
    """The question that `vani plan forward` answered."""

    io_nodes: Count = Field(description="I/O nodes of the pool")
    policy: Policy = Field(description="how they are shared")
    objective: Literal["sum", "max-min", "proportional"] = Field(
        description="what mckp maximizes: the sum of bandwidths; the least share of its own best that "
        "a job gets, then the sum; the sum of logarithms"
    )
    floor: Share = Field(description="share of its own best bandwidth that every job gets at least (mckp)")
    direct: bool = Field(description="whether jobs may bypass I/O nodes")
    any_number: bool = Field(
        default=False, description="whether jobs may have numbers that do not divide their compute nodes"
    )
    rounding: Literal["half-up", "ceil"] = Field(description="of static, size and process")
    nodes_per_io_node: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        description="compute nodes per I/O node, for static; null: those of all jobs over the pool"
    )
    change_cost_s: Amount = Field(description="seconds of I/O that a job loses when its number changes")


class Allotment(Model):
    """The share of one job."""

    name: str = Field(description="of the job")
    nodes: Count = Field(description="its compute nodes")
    io_nodes: Count | None = Field(
        description="I/O nodes of the job alone; 0: direct access, or the shared one; null: unplaced"
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
        description="I/O nodes that it has now, by the current plan; null: none known"
    )
    source: Literal["measured", "estimated", "none"] = Field(
        description="source of its bandwidths: its own curve, curves near its pattern, nothing"
    )
    low: Amount | None = Field(description="5 % of runs are below it; null: scatter not known")
    high: Amount | None = Field(description="5 % of runs are above it; null: scatter not known")


class Outcome(Model):
    """The total that a policy gives."""

    policy: Policy | Literal["current"] = Field(description="current: the current plan")
    io_nodes: Count = Field(description="I/O nodes that it assigns, including the shared one")
    over: Count = Field(description="how many of these the pool does not have")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")
    least_share: Amount | None = Field(description="least bandwidth / own best of a job; null: no figures")
    no_figure: Count = Field(description="jobs that the sum lacks")


class PoolWorth(Model):
    """The optimum with another pool; only where it differs from the pool before."""

    io_nodes: Count = Field(description="I/O nodes of the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")


class ForwardPlan(Plan):
    """Number of I/O nodes for each job."""

    kind: Literal["forward"] = Field(default="forward", description="what is planned: I/O nodes")
    forward: ForwardSettings = Field(description="settings of the request")
    before: Outcome = Field(description="the current plan, or static where none is given")
    after: Outcome = Field(description="this plan")
    jobs: list[Allotment] = Field(description="in the order of jobs.yaml")
    one_more: Amount | None = Field(
        description="gain of one more I/O node on the sum, bytes per second; null: not mckp, or nothing to "
        "compare with"
    )
    pools: list[PoolWorth] = Field(
        description="the optimum by size of the pool (mckp, objective sum), ascending"
    )
    compared: list[Outcome] = Field(description="all policies side by side, if requested")
