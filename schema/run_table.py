"""Many runs, a line each, as `vani diff` writes them. A column's name is the path of its figure in the profile."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from vani.schema.model import Model


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
