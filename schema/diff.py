"""The differences of two profiles, attribute by attribute, the most important difference first."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.check import Source
from vani.schema.model import Model

__all__ = ["Diff", "DiffCounts", "Difference", "KeyFigure"]

Figure = int | float | str | bool | None


class Difference(Model):
    """An attribute that differs between the two profiles, or an entity that only one of them has."""

    attribute: str = Field(
        description="path in the profile, entities by name; of an entity alone, its own path"
    )
    target: str | None = Field(description="file or app that the attribute belongs to")
    unit: Literal[
        "bytes", "seconds", "rate", "share", "count", "number", "text", "flag", "histogram", "entity"
    ]
    before: Figure = Field(description="in A; of several runs the median; null: unknown, or no such entity")
    after: Figure = Field(description="in B")
    change: float | None = Field(description="(after - before) / before; null where there is no such number")
    status: Literal["worse", "better", "changed", "within", "new", "gone", "unknown"] = Field(
        description="within: within the tolerance; changed: neither direction is better; "
        "unknown: null in one of the two"
    )
    matters: bool = Field(description="beyond the tolerance, and the entity has at least 1 % of the I/O time")
    io_time_s: float | None = Field(
        description="I/O time of the entity, the larger of both, summed over processes"
    )
    io_time_share: float | None = Field(description="its share of the I/O time of the workload")
    same_as: str | None = Field(description="an attribute above it that this one only repeats")


class KeyFigure(Model):
    """A figure that describes a run, whether it changed or not."""

    attribute: str = Field(description="path in the profile")
    unit: Literal["bytes", "seconds", "share", "count"]
    before: Figure = Field(description="in A; of several runs the median; null: unknown")
    after: Figure = Field(description="in B")
    change: float | None = Field(description="(after - before) / before; null where there is no such number")


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
    compared: int = Field(description="attributes that both have")


class Diff(Model):
    """All differences, the most important first."""

    schema_: Literal["vani.diff/1"] = Field(alias="schema", default="vani.diff/1")
    version: str
    a: Source
    b: Source
    figures: list[KeyFigure] = Field(description="the run in a few lines")
    counts: DiffCounts
    differences: list[Difference]
