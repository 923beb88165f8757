"""The documents of `vani diff`: the differences of two profiles, most important first, or a line for each of many runs.

In the table of runs, a column's name is the path of its figure in the profile.
"""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import Field

from vani.schema.check import Source
from vani.schema.model import Model

Figure = int | float | str | bool | None
KeyUnit = Literal["bytes", "seconds", "share", "count"]

SLOWEST_CALLS: Final = "max(apps[*].balance.slowest_call_time_s)"
"""The key figure that includes time in libraries."""
KEY_FIGURES: Final[Mapping[str, tuple[KeyUnit, str]]] = {
    "workflow.processes": ("count", "processes"),
    "workflow.runtime_s": ("seconds", "run time"),
    "workflow.io.time_s.total": ("seconds", "I/O time, all processes"),
    "workflow.io_time_share": ("share", "I/O share of run time"),
    "workflow.io_time_share_slowest": ("share", "I/O share, slowest process"),
    SLOWEST_CALLS: ("seconds", "I/O calls, slowest process"),
    "workflow.io.bytes.read": ("bytes", "read"),
    "workflow.io.bytes.written": ("bytes", "written"),
    "workflow.io.ops.read": ("count", "reads"),
    "workflow.io.ops.write": ("count", "writes"),
    "workflow.io.ops.sync": ("count", "flushes"),
    "workflow.io.ops.metadata": ("count", "metadata operations"),
    "workflow.files.total": ("count", "files"),
}
"""Unit and name of each attribute that describes a run."""


class Difference(Model):
    """An attribute that differs between the two profiles, or an entity that only one of them has."""

    attribute: str = Field(
        description="path in the profile, with entities by name; for an entity that is only in one of the two, its "
        "own path"
    )
    target: str | None = Field(description="file or app that the attribute belongs to")
    unit: Literal["bytes", "seconds", "rate", "share", "count", "number", "text", "flag", "histogram", "entity"]
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
    unit: KeyUnit
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


class RunRow(Model):
    """One run; values missing from its profile are null."""

    run: str = Field(description="path of the profile or trace, as given")
    apps: str = Field(description="names of its apps, separated by commas")
    start: str | None = Field(description="start of the run, ISO 8601 in UTC")
    tracer: str | None = Field(description="tool that recorded the run, and its trace format")
    processes: int = Field(description="workflow.processes")
    nodes: int | None = Field(description="job.nodes")
    runtime_s: float | None = Field(description="workflow.runtime_s")
    matters: str | None = Field(default=None, description="verdict.matters: yes, no, open or too_short")
    io_share: float | None = Field(description="verdict.share: the first share in the sentence of the verdict")
    io_share_slowest: float | None = Field(default=None, description="verdict.share_slowest")
    io_share_is_lower_bound: bool | None = Field(default=None, description="verdict.is_lower_bound")
    verdict: str | None = Field(default=None, description="verdict.sentence")
    io_s: float | None = Field(description="workflow.io.time_s.total, seconds of all processes")
    read: int | None = Field(description="workflow.io.bytes.read")
    written: int | None = Field(description="workflow.io.bytes.written")
    read_rate: float | None = Field(description="workflow.io.bandwidth.read, bytes per second")
    write_rate: float | None = Field(description="workflow.io.bandwidth.write, bytes per second")
    reads: int | None = Field(description="workflow.io.ops.read")
    writes: int | None = Field(description="workflow.io.ops.write")
    metadata: int | None = Field(description="workflow.io.ops.metadata")
    read_p50: int | None = Field(description="workflow.io.transfer_size.read.p50, bytes")
    write_p50: int | None = Field(description="workflow.io.transfer_size.write.p50, bytes")
    files: int | None = Field(description="workflow.files.total")
    shared_files: int | None = Field(description="workflow.files.shared")
    costliest: str | None = Field(description="verdict.cause.call: function with most I/O time, else with most calls")
    damage: str | None = Field(description="what the traces lost, in one sentence; null if they are complete")


COLUMNS = tuple(RunRow.model_fields)
"""Names of the columns, in their order."""


class Unread(Model):
    """A file that is neither a profile nor a trace, or is damaged."""

    run: str
    why: str


class RunTable(Model):
    """Many runs."""

    schema_: Literal["vani.table/1"] = Field(alias="schema", default="vani.table/1")
    version: str = Field(description="version of Vani")
    rows: list[RunRow] = Field(description="rows in the order requested")
    unread: list[Unread] = Field(description="files that could not be read, with reasons")
