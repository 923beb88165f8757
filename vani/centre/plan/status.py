"""The verdict of `vani plan check`: whether a plan is still valid on the machine as it is now.

The only time in this document is that of the snapshot.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from vani.centre.plan.schema import Left, PlanInput
from vani.schema.model import Model


class PlanStatus(Model):
    """Whether a plan is still valid."""

    # The name of the schema stays: other programs read it.
    schema_: Literal["vani.standing/1"] = Field(
        alias="schema", default="vani.standing/1", description="name and version of this schema"
    )
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of the plan")
    plan: PlanInput = Field(description="plan that was checked")
    snapshot: PlanInput = Field(description="state of the machine that the plan was compared with")
    time: datetime | None = Field(description="time of the snapshot; null if unknown")
    holds: bool = Field(description="true if the plan is still valid, that is `broken` is empty")
    broken: list[Left] = Field(description="parts of the plan that are no longer valid, and why")
    unknown: list[Left] = Field(
        description="parts that could not be compared, and why; they do not invalidate the plan"
    )
    notes: list[str] = Field(description="other changes since the plan was made")
