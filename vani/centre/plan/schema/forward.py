"""Plans of kind `forward`: which job gets how many I/O nodes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.any_plan import Amount, Count, Plan, Share
from vani.schema.model import Model

Policy = Literal["mckp", "static", "process", "zero", "one", "oracle"]


class ForwardSettings(Model):
    """The question that `vani plan forward` answered."""

    io_nodes: Count = Field(description="number of I/O nodes in the pool")
    policy: Policy = Field(description="policy by which the jobs share the pool")
    objective: Literal["sum", "max-min", "proportional"] = Field(
        description="objective of mckp: the sum of bandwidths; the smallest share of its own best that a job gets, "
        "then the sum; or the sum of logarithms"
    )
    floor: Share = Field(description="minimum share of its own best bandwidth that every job gets (mckp)")
    direct: bool = Field(description="true if jobs may bypass I/O nodes")
    any_number: bool = Field(
        default=False,
        description="true if jobs may get numbers of I/O nodes that do not divide their number of compute nodes",
    )
    rounding: Literal["half-up", "ceil"] = Field(description="rounding method of the policies static and process")
    nodes_per_io_node: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        description="number of compute nodes per I/O node, for static; null uses the compute nodes of all jobs / "
        "`io_nodes`"
    )


class Allotment(Model):
    """The share of one job."""

    name: str = Field(description="name of the job")
    nodes: Count = Field(description="number of compute nodes of the job")
    io_nodes: Count | None = Field(
        description="number of I/O nodes for this job alone; 0 is direct access or the shared I/O node; null if the "
        "job is unplaced"
    )
    shared: bool = Field(description="true if the job uses the I/O node shared by several jobs")
    bandwidth: Amount | None = Field(
        description="expected bandwidth in bytes per second; null if there is no figure"
    )
    own_best: Amount | None = Field(
        description="bandwidth that the job would have alone on the pool, bytes per second; null if there is no figure"
    )
    share: Amount | None = Field(description="bandwidth / own_best")
    before: Count | None = Field(description="number of I/O nodes in the current plan; null if unknown")
    source: Literal["measured", "estimated", "none"] = Field(
        description="source of the bandwidths: the job's own curve, curves of similar patterns, or nothing"
    )
    low: Amount | None = Field(description="5th percentile of the bandwidth; null if the scatter is unknown")
    high: Amount | None = Field(description="95th percentile of the bandwidth; null if the scatter is unknown")


class Outcome(Model):
    """The total that a policy gives."""

    policy: Policy | Literal["current"] = Field(
        description="policy by which the jobs share the pool; `current` is the current plan"
    )
    io_nodes: Count = Field(description="number of I/O nodes assigned, including the shared one")
    over: Count = Field(description="number of assigned I/O nodes that exceed the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")
    least_share: Amount | None = Field(
        description="smallest ratio of bandwidth to own best over the jobs; null if there are no figures"
    )
    no_figure: Count = Field(description="number of jobs left out of the sum for lack of a figure")


class PoolWorth(Model):
    """The optimum with another pool; only where it differs from the pool before."""

    io_nodes: Count = Field(description="number of I/O nodes in the pool")
    bandwidth: Amount = Field(description="sum over the jobs with a figure, bytes per second")


class ForwardPlan(Plan):
    """Number of I/O nodes for each job."""

    kind: Literal["forward"] = Field(default="forward", description="kind of plan: sharing of I/O nodes")
    forward: ForwardSettings = Field(description="settings of the request")
    before: Outcome = Field(description="outcome of the current plan, or of `static` if none was given")
    after: Outcome = Field(description="outcome of this plan")
    jobs: list[Allotment] = Field(description="jobs in the order of jobs.yaml")
    one_more: Amount | None = Field(
        description="gain in the sum from one more I/O node, bytes per second; null if the policy is not mckp, or "
        "there is nothing to compare with"
    )
    pools: list[PoolWorth] = Field(description="optimum by pool size, in ascending order (mckp, objective sum)")
    compared: list[Outcome] = Field(description="outcomes of all policies, if requested")
