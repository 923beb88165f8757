"""scenario.yaml: a machine, jobs and failures, as `vani plan simulate` simulates them.

Bytes, seconds, bytes per second. Values missing from `machine` come from `system` or `snapshot`; a stage
without a rate limits nothing, and the plan states that.
"""

from typing import Annotated, Literal

from pydantic import Field

from vani.centre.plan.schema.jobs import MAX_JOBS, Amount, AtLeastOne, Bytes, Count, Name, refuse_twins
from vani.errors import DocumentError
from vani.schema.document import Document
from vani.schema.model import Model, schema_field

MAX_SEEDS = 1000
_MAX_RATE = 1e18

Rate = Annotated[float, Field(ge=0, le=_MAX_RATE, allow_inf_nan=False)]
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

    system: PathText | None = Field(default=None, description="name of a bundled machine, or path of a system.yaml")
    file_system: str | None = Field(
        default=None, description="file system to simulate; null uses the first one that has targets"
    )
    snapshot: PathText | None = Field(
        default=None, description="current state of the machine: sizes, loads and states of targets"
    )
    nodes: AtLeastOne | None = Field(default=None, description="number of compute nodes; null uses the sum of all jobs")
    process: Speed | None = Field(default=None, description="rates of one process")
    node: Speed | None = Field(default=None, description="rates of one compute node")
    io_nodes: Count | None = Field(default=None, description="number of I/O nodes; null or 0 if there are none")
    io_node: Speed | None = Field(default=None, description="rates of one I/O node")
    whole: Speed | None = Field(
        default=None, description="rates of the part that all bytes pass: the network of the file system"
    )
    servers: AtLeastOne | None = Field(default=None, description="number of data servers (OSS)")
    server: Speed | None = Field(default=None, description="rates of one data server")
    targets: Annotated[int, Field(ge=1, le=65_536)] | None = Field(default=None, description="number of targets (OST)")
    target: Speed | None = Field(default=None, description="rates of one target")
    target_size: Annotated[int, Field(ge=1, le=1 << 62)] | None = Field(
        default=None, description="capacity of one target, bytes"
    )
    metadata: Rate | None = Field(
        default=None, description="metadata operations per second of all metadata servers together"
    )
    metadata_free: Annotated[int, Field(ge=0, le=1 << 62)] | None = Field(
        default=None, description="free bytes of the metadata target; null uses the system's, or is unknown"
    )
    burst_buffer: Speed | None = Field(default=None, description="rates of the burst buffer of one compute node")
    lock_s: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None = Field(
        default=None,
        description="seconds for a write lock to pass from one node to another; null uses the system's, or none",
    )


class ScenarioPhase(Model):
    """A part of a job: it computes, then moves bytes, and ends when the last of its processes has."""

    operation: Literal["read", "write", "stage_in", "stage_out"] = Field(
        description="operation of the phase. stage_in: copy from the file system to the burst buffers; stage_out: "
        "copy back"
    )
    bytes: Bytes = Field(description="total bytes of all processes, per repetition")
    files: AtLeastOne | None = Field(default=None, description="number of files; null means one per process")
    layout: AtLeastOne | str | None = Field(
        default=None,
        description="stripe count of a file, or options of a composite layout (`-E ...`); null uses the default of "
        "the machine, or one stripe",
    )
    pieces: Pieces | None = Field(
        default=None,
        description="distribution of a file. in_turn: stripes are dealt to the targets round-robin, so all are busy "
        "at once; contiguous: each target stores one piece, filled in sequence (Tarazu); null uses that of the "
        "scenario",
    )
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous",
        description="access to a file shared by processes: one contiguous part per process, or interleaved",
    )
    request: AtLeastOne | None = Field(
        default=None,
        description="bytes that a process writes before the next one where processes alternate; if smaller than a "
        "stripe, write locks pass with each; null if unknown",
    )
    opens: Amount | None = Field(
        default=None,
        description="number of metadata operations before the data is moved; null means that each process opens its "
        "files",
    )
    storage: Literal["file_system", "burst_buffer"] = Field(
        default="file_system", description="location of the files that are read or written"
    )
    file_set: str = Field(
        default="files", min_length=1, max_length=200,
        description="name of the set of files; phases of a job that name the same set use the same files",
    )
    compute_s: Amount = Field(default=0.0, description="seconds without I/O before the phase")
    background: bool = Field(default=False, description="true if the next phase does not wait for this one")
    repeat: int = Field(default=1, ge=1, le=100_000, description="number of repetitions")


class ScenarioJob(Model):
    """A simulated job."""

    name: Name = Field(description="name of the job, unique in the scenario")
    nodes: AtLeastOne = Field(default=1, description="number of compute nodes")
    processes: AtLeastOne | None = Field(
        default=None, description="number of processes on all nodes; null means one per node"
    )
    start_s: Amount = Field(default=0.0, description="start time in seconds")
    phases: Annotated[list[ScenarioPhase], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="phases of the job"
    )
    profile: PathText | None = Field(
        default=None,
        description="profile or trace of an earlier run whose phases are simulated; path relative to this folder",
    )
    store: PathText | None = Field(
        default=None,
        description="store (`vani convert`) of an earlier run whose calls are simulated; path relative to this folder",
    )


class Placement(Model):
    """Placement of the files of jobs."""

    policy: Literal["round_robin", "random_start", "random", "weighted", "lsa", "least_used"] = Field(
        default="lsa",
        description="placement policy. round_robin: continue from a random start; random_start: start at random for "
        "each component of a file; random: draw targets at random, weighted by free bytes; lsa: round_robin while "
        "free bytes differ by less than `window`, then weighted; least_used: targets with the fewest bytes, servers "
        "first",
    )
    window: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.17, description="difference in free bytes as a share of the largest (lsa)"
    )


class DataOnMdt(Model):
    """Small files that start on the metadata target, and move to OSTs after a time or under pressure (AIOT)."""

    below: int = Field(ge=1, le=1 << 30, description="largest file that starts there, bytes")
    expires_s: Amount = Field(description="seconds without use after which a file moves to OSTs")
    pressure: float = Field(
        default=0.5, ge=0, le=1, allow_inf_nan=False,
        description="share of the free space that the files may take; beyond it, those used least recently move",
    )
    folder: PathText = Field(default="DIR", description="folder of the files, for the line of a crontab")


class Failure(Model):
    """A member of a stage that fails, is slow, or recovers."""

    kind: Kind = Field(description="kind of part that fails")
    which: list[Count] = Field(min_length=1, max_length=65_536, description="numbers of the failing members, from 0")
    from_s: Amount = Field(default=0.0, description="start of the failure in seconds")
    until_s: Amount | None = Field(default=None, description="end of the failure in seconds; null if it never ends")
    factor: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        default=0.0, description="share of the rate that remains; 0 for a complete failure"
    )


class Variant(Model):
    """A variant of the scenario; null values are the scenario's."""

    name: Name = Field(description="name of the variant in the plan")
    machine: Machine | None = Field(default=None, description="complete description of another machine")
    placement: Placement | None = Field(default=None, description="placement that replaces that of the scenario")
    plans: Annotated[list[PathText], Field(max_length=100)] | None = Field(
        default=None, description="plans that replace those of the scenario"
    )
    failures: Annotated[list[Failure], Field(max_length=10_000)] | None = Field(
        default=None, description="failures that replace those of the scenario"
    )
    stages: Stages | None = Field(default=None, description="`stages` setting that replaces that of the scenario")
    pieces: Pieces | None = Field(default=None, description="`pieces` setting that replaces that of the scenario")
    layout: AtLeastOne | str | None = Field(
        default=None, description="layout of all files, overriding that of the phases"
    )
    data_on_mdt: DataOnMdt | None = Field(default=None, description="small files on the metadata target")


class Scenario(Document):
    """A machine, its jobs, and failures."""

    schema_: Literal["vani.scenario/1"] = schema_field("vani.scenario/1")
    machine: Machine = Field(description="machine, described by the stages that bytes pass")
    jobs: PathText | None = Field(default=None, description="path of a jobs.yaml whose jobs run as well")
    workload: list[ScenarioJob] = Field(default_factory=list, max_length=MAX_JOBS, description="jobs to simulate")
    placement: Placement = Field(default_factory=Placement, description="placement of files on targets")
    plans: list[PathText] = Field(
        default_factory=list, max_length=100, description="plans (vani.plan/1) to apply, at most one of each kind"
    )
    failures: list[Failure] = Field(
        default_factory=list, max_length=10_000, description="parts that fail or are slow, with times"
    )
    stages: Stages = Field(
        default="overlapped",
        description="flow through the stages. overlapped: bytes stream through all stages at once; serial: a burst "
        "passes one stage after the other, as measured times often add up",
    )
    pieces: Pieces = Field(default="in_turn", description="distribution of a file over its targets")
    seeds: Annotated[
        list[Annotated[int, Field(ge=0, le=1 << 62)]], Field(min_length=1, max_length=MAX_SEEDS)
    ] = Field(default_factory=lambda: [1], description="seeds for random placement; one run each")
    variants: list[Variant] = Field(
        default_factory=list, max_length=20,
        description="variants to compare; the first is `before`, the last `after`; empty for the scenario alone",
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
        refuse_twins("job", [job.name for job in self.workload], where)
        refuse_twins("variant", [variant.name for variant in self.variants], where)
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
