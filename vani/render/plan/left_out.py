"""What a plan could not do, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.units import counted

if TYPE_CHECKING:
    from vani.schema.plan import Plan

__all__ = ["left_out"]


def left_out(plan: Plan) -> str | None:
    """The first line of a plan that leaves something out; None for a whole one."""
    parts = []
    if plan.unplaced:
        parts.append(f"{counted(len(plan.unplaced), 'job')} unplaced")
    if plan.over_capacity:
        parts.append(f"{plan.after.over:,} of {counted(plan.after.io_nodes, 'I/O node')} not there")
    if plan.no_data:
        jobs = {one.name for one in plan.no_data}
        parts.append(f"figures of {counted(len(jobs), 'job')} missing or estimated")
    return f"Incomplete: {', '.join(parts)}." if parts else None
