"""The differences of two profiles, attribute by attribute, the most important difference first."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.check import Source
from vani.schema.model import Model

Figure = int | float | str | bool | None


class Difference(Model):
    """An attribute that differs between the two profiles, or an entity that only one of them has."""

    attribute: str = Field(
        description="path in the profile, with entities by name; for an entity that is only in one of the two, its "
        "own path"
    )
    target: str | None = Field(description="file or app that the attribute belongs to")
    unit: Literal[
        "bytes", "seconds", "rate", "share", "count", "number", "text", "flag", "histogram", "entity"
    ]
    before: Figure = Field(
        description="value in A (the median of several runs); null if unknown, or if A lacks the entity"
    )
    after: Figure = Field(description="value in B; null if unknown, or if B lacks the entity")
    change: float | None = Field(description="(after - before) / before; null if it cannot be computed")
    status: Literal["worse", "better", "changed", "within", "new", "gone", "unknown"] = Field(
        description="direction of the difference. within: within the tolerance; changed: neither direction is better; "
        "unknown: null in A or B"
    )
    matters: bool = Field(
        description="true if the difference exceeds the tolerance and the entity has at least 1 % of the I/O time"
    )
    io_time_s: float | None = Field(
        description="I/O time of the entity summed over processes, the larger value of A and B"
    )
    io_time_share: float | None = Field(description="share of the entity in the I/O time of the workload")
    same_as: str | None = Field(description="attribute at a higher level that this difference merely repeats")


class KeyFigure(Model):
    """A figure that describes a run, whether it changed or not."""

    attribute: str = Field(description="path in the profile")
    unit: Literal["bytes", "seconds", "share", "count"]
    before: Figure = Field(description="value in A (the median of several runs); null if unknown")
    after: Figure = Field(description="value in B; null if unknown")
    change: float | None = Field(description="(after - before) / before; null if it cannot be computed")


class DiffCounts(Model):
    """Number of differences of each kind; repetitions are not counted."""

    worse: int
    better: int
    changed: int
    within: int
    new: int
    gone: int
    unknown: int
    matters: int
    compared: int = Field(description="number of attributes that both A and B have")


class Diff(Model):
    """All differences, the most important first."""

    schema_: Literal["vani.diff/1"] = Field(alias="schema", default="vani.diff/1")
    version: str
    a: Source
    b: Source
    figures: list[KeyFigure] = Field(description="key figures of the two runs")
    counts: DiffCounts
    differences: list[Difference]
