"""The base of every plan: its inputs, its expected gain, and what could not be done.

The same inputs give the same bytes: a plan contains no time, and only the machine names it was given.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from vani.schema.advice import Expected
from vani.schema.kinds import DocumentOfKinds
from vani.schema.model import Model

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PlanInput(Model):
    """An input document of the plan."""

    kind: Literal["jobs", "plan", "profile", "snapshot", "system", "scenario", "layout", "trace"] = Field(
        description="kind of input: jobs, current plan, profile of a job, state (snapshot) or description of the "
        "machine, scenario, layout of a file, trace, or store"
    )
    path: str | None = Field(description="path as given; null for an input in memory")
    sha256: str = Field(description="SHA-256 of the file, or of the YAML of an input in memory")


class Left(Model):
    """Something that the plan could not do."""

    name: str = Field(description="item concerned: a job, a file, a node, or `pool`")
    reason: str = Field(description="reason why nothing was assigned")


class Plan(DocumentOfKinds):
    """A plan of any kind; each kind adds its own decisions."""

    schema_: Literal["vani.plan/1"] = Field(
        alias="schema", default="vani.plan/1", description="name and version of this schema"
    )
    version: str = Field(description="version of Vani")
    kind: str = Field(description="kind of plan")
    inputs: list[PlanInput] = Field(description="documents that the plan was made from")
    expected: Expected | None = Field(
        description="expected effect of the plan; null if before and after cannot be compared"
    )
    unplaced: list[Left] = Field(description="items to which nothing was assigned, and why")
    over_capacity: list[Left] = Field(description="requests that exceed the available capacity")
    no_data: list[Left] = Field(description="missing figures, and the assumptions used instead")
    notes: list[str] = Field(description="remarks needed to interpret the figures")

    @property
    def is_whole(self) -> bool:
        """Whether the plan omits nothing."""
        return not (self.unplaced or self.over_capacity or self.no_data)
