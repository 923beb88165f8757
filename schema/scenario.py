"""scenario.yaml: a machine, jobs and failures, as `vani plan simulate` simulates them.

Bytes, seconds, bytes per second. Values missing from `machine` come from `system` or `snapshot`; a stage
without a rate limits nothing, and the plan states that.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field

from vani.errors import DocumentError
from vani.schema.document import Document
from vani.schema.jobs import MOST_JOBS, Amount, AtLeastOne, Bytes, Count, Name
from vani.schema.model import Model

__all__ = [
    "Failure",
    "Machine",
    "Placement",
    "Scenario",
    "ScenarioJob",
    "ScenarioPhase",
    "Speeds",
    "Variant",
]

MOST_SEEDS = 1000
_MOST_RATE = 1e18

Rate = Annotated[float, Field(ge=0, le=_MOST_RATE, allow_inf_nan=False)]
PathText = Annotated[str, Field(min_length=1, max_length=4096)]
Kind = Literal["node", "io_node", "whole", "server", "target", "metadata", "burst_buffer"]
Pieces = Literal["in_turn", "contiguous"]
Stages = Literal["overlapped", "serial"]


class Speeds(Model):
    """Bytes per second by direction; a direction that is null has that of the other."""

    read: Rate | None = Field(default=None, description="bytes per second")
    write: Rate | None = Field(default=None, description="bytes per second")


Speed = Rate | Speeds


class Machine(Model):
    """A machine: the stages of the path that bytes take, and the speed of each stage's members."""

    system: PathText | None = Field(default=None, description="a bundled machine, or a system.yaml")
    file_system: str | None = Field(
        default=None, description="which of its file systems; null: the first one that has targets"
    )
    snapshot: PathText | None = Field(
        default=None, description="its state now: sizes, loads and states of targets"
    )
    nodes: AtLeastOne | None = Field(
        default=None, description="compute nodes; null: as many as all jobs have"
    )
    process: Speed | None = Field(default=None, description="of one process")
    node: Speed | None = Field(default=None, description="of one compute node")
    io_nodes: Count | None = Field(default=None, description="I/O nodes; null or 0: none in between")
    io_node: Speed | None = Field(default=None, description="of one I/O node")
    whole: Speed | None = Field(
        default=None, description="of the part that all bytes pass: the network of the file system"
    )
    servers: AtLeastOne | None = Field(default=None, description="servers (OSS)")
    server: Speed | None = Field(default=None, description="of one server")
    targets: Annotated[int, Field(ge=1, le=65_536)] | None = Field(default=None, description="targets (OST)")
    target: Speed | None = Field(default=None, description="of one target")
    target_size: Annotated[int, Field(ge=1, le=1 << 62)] | None = Field(
        default=None, description="capacity of one target, bytes"
    )
    metadata: Rate | None = Field(
        default=None, description="metadata operations per second, all metadata servers"
    )
    burst_buffer: Speed | None = Field(default=None, description="of the burst buffer of one compute node")


class ScenarioPhase(Model):
    """A part of a job: it computes, then moves bytes, and ends when the last of its processes has."""

    operation: Literal["read", "write", "stage_in", "stage_out"] = Field(
        description="stage_in: from the file system into the burst buffers, stage_out: back"
    )
    bytes: Bytes = Field(description="bytes over all processes, each time")
    files: AtLeastOne | None = Field(default=None, description="files; null: one of each process")
    layout: AtLeastOne | str | None = Field(
        default=None,
        description="stripes of a file, or options of a composite layout (`-E ...`); null: the machine's default, "
        "else one stripe",
    )
    pieces: Pieces | None = Field(
        default=None,
        description="in_turn: stripes of a file are dealt to its targets in turn, all are used at once; contiguous: "
        "each target stores one piece, in sequence (Tarazu); null: the scenario's",
    )
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous", description="of a file that processes share: one part each, or in turns"
    )
    opens: Amount | None = Field(
        default=None, description="metadata operations before the bytes; null: each process opens its files"
    )
    storage: Literal["file_system", "burst_buffer"] = Field(
        default="file_system", description="where the files of a read or write are stored"
    )
    file_set: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        default="files", description="phases of a job that name the same set use the same files"
    )
    compute_s: Amount = Field(default=0.0, description="seconds without I/O before it")
    background: bool = Field(default=False, description="the next phase does not wait for it")
    repeat: Annotated[int, Field(ge=1, le=100_000)] = Field(default=1, description="how often it comes")


class ScenarioJob(Model):
    """A simulated job."""

    name: Name = Field(description="unique in the scenario")
    nodes: AtLeastOne = Field(default=1, description="compute nodes")
    processes: AtLeastOne | None = Field(default=None, description="on all nodes; null: one a node")
    start_s: Amount = Field(default=0.0, description="when it begins")
    phases: Annotated[list[ScenarioPhase], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="its phases"
    )
    profile: PathText | None = Field(
        default=None,
        description="a profile or a trace of an earlier run, whose phases are simulated; relative to this folder",
    )
    store: PathText | None = Field(
        default=None,
        description="a store (`vani convert`) of an earlier run, whose calls are simulated; relative to this folder",
    )


class Placement(Model):
    """Placement of the files of jobs."""

    policy: Literal["round_robin", "random_start", "random", "weighted", "lsa", "least_used"] = Field(
        default="lsa",
        description="round_robin continues from a random start; random_start starts at random for each component "
        "of a file; random draws targets, weighted by their free bytes; lsa: round_robin while free bytes differ by "
        "less than `window`, then weighted; least_used: those with the fewest bytes, of servers first",
    )
    window: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.17, description="share of the largest free bytes (lsa)"
    )


class Failure(Model):
    """A member of a stage that fails, is slow, or recovers."""

    kind: Kind = Field(description="kind of part")
    which: Annotated[list[Count], Field(min_length=1, max_length=65_536)] = Field(
        description="numbers of the members, from 0"
    )
    from_s: Amount = Field(default=0.0, description="when it begins")
    until_s: Amount | None = Field(default=None, description="when it is over; null: never")
    factor: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.0, description="share of its rate that is left; 0: none"
    )


class Variant(Model):
    """A variant of the scenario; null values are the scenario's."""

    name: Name = Field(description="name in the plan")
    machine: Machine | None = Field(default=None, description="another machine, whole")
    placement: Placement | None = Field(default=None, description="other placement")
    plans: Annotated[list[PathText], Field(max_length=100)] | None = Field(
        default=None, description="other plans"
    )
    failures: Annotated[list[Failure], Field(max_length=10_000)] | None = Field(
        default=None, description="other failures"
    )
    stages: Stages | None = Field(default=None, description="other stages")
    pieces: Pieces | None = Field(default=None, description="other pieces")
    layout: AtLeastOne | str | None = Field(
        default=None, description="layout of all files, overriding phases"
    )


class Scenario(Document):
    """A machine, its jobs, and failures."""

    schema_: Literal["vani.scenario/1"] = Field(
        alias="schema", default="vani.scenario/1", description="name and version of this schema"
    )
    machine: Machine = Field(description="the stages that bytes pass")
    jobs: PathText | None = Field(default=None, description="a jobs.yaml whose jobs run, too")
    workload: Annotated[list[ScenarioJob], Field(max_length=MOST_JOBS)] = Field(
        default_factory=list, description="jobs"
    )
    placement: Placement = Field(default_factory=Placement, description="where files are stored")
    plans: Annotated[list[PathText], Field(max_length=100)] = Field(
        default_factory=list, description="plans (vani.plan/1) that are followed, at most one of each kind"
    )
    failures: Annotated[list[Failure], Field(max_length=10_000)] = Field(
        default_factory=list, description="parts that fail or are slow, and when"
    )
    stages: Stages = Field(
        default="overlapped",
        description="overlapped: bytes stream through all stages at once; serial: a burst passes one stage after the "
        "other, as measured times often add up",
    )
    pieces: Pieces = Field(default="in_turn", description="how files are stored on their targets")
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=1 << 62)]], Field(min_length=1, max_length=MOST_SEEDS)
    ] = Field(default_factory=lambda: [1], description="of random placement; one run each")
    variants: Annotated[list[Variant], Field(max_length=20)] = Field(
        default_factory=list, description="the first is `before`, the last `after`; none: the scenario itself"
    )

    def refuse_contradictions(self, where: str) -> None:
        """Check the parts for contradictions; errors call the document `where`.

        Raises
        ------
        DocumentError
            No job runs, two parts share a name, a job has no work, or a failure ends before it begins.
        """
        if not self.workload and self.jobs is None:
            raise DocumentError("no job runs", where=where, todo="give `workload` or `jobs`")
        for what, names in (
            ("job", [job.name for job in self.workload]),
            ("variant", [variant.name for variant in self.variants]),
        ):
            name, times = Counter(names).most_common(1)[0] if names else ("", 0)
            if times > 1:
                raise DocumentError(
                    f"two {what}s are named {name!r}", where=where, todo="give each a different name"
                )
        for job in self.workload:
            given = [what for what in ("phases", "profile", "store") if getattr(job, what) is not None]
            if len(given) != 1:
                raise DocumentError(
                    f"job {job.name!r} has {' and '.join(given) or 'nothing to do'}",
                    where=where,
                    todo="give it phases, a profile or a store, one of them",
                )
        of_variants = (failure for variant in self.variants for failure in variant.failures or ())
        for failure in (*self.failures, *of_variants):
            if failure.until_s is not None and failure.until_s <= failure.from_s:
                raise DocumentError(
                    f"a failure of a {failure.kind} ends at {failure.until_s:g} s and begins at {failure.from_s:g} s",
                    where=where,
                    todo="let `until_s` be later",
                )
