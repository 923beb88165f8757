"""Plans of kind `job`: the I/O nodes that one job uses from its start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.units import counted, format_rate

if TYPE_CHECKING:
    from vani.centre.plan.schema import JobPlan

def body(plan: JobPlan) -> list[str]:
    """The I/O nodes that the job gets, and their gain."""
    name = f" ({one_line(plan.job.name)})" if plan.job.name else ""
    nodes = counted(plan.job.nodes, "compute node")
    ways = {"direct": "direct access", "own": "of its own", "shared": "shared with others", None: "no plan"}
    way = ways[plan.access]
    if plan.io_nodes:
        way = f"{counted(len(plan.io_nodes), 'I/O node')} {way}: {', '.join(map(one_line, plan.io_nodes))}"
    lines = [f"Job {plan.job.id}{name}, {nodes}: {way}."]
    allotment = plan.allotment
    if allotment is not None and allotment.bandwidth is not None:
        lines.append(
            f"Expected {format_rate(allotment.bandwidth)}, with {counted(plan.running - 1, 'other job')} running."
        )
    return lines


def missing(plan: JobPlan) -> list[str]:
    """Omissions of the plan, as parts of a sentence."""
    return [
        *(["the job is not placed"] if plan.unplaced else []),
        *(["it gets fewer I/O nodes than the policy assigns"] if plan.over_capacity else []),
        *(["figures of the job missing or estimated"] if plan.no_data else []),
    ]
