"""jobs.yaml, the jobs that share a machine, and sharing.yaml, how `vani plan job` shares its I/O nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from vani.errors import DocumentError, InputError
from vani.schema.document import Document
from vani.schema.host_list import HostList
from vani.schema.model import Model, SparseModel

# jobs.yaml: the jobs that run on a machine or wait for it, as `vani plan` reads them.
#
# A person or a scheduler's script writes it. Unknown values are left out, and a plan states what it lacked.

MAX_JOBS = 10_000
"""More do not run at once on any machine, and the plan of so many takes seconds."""

_MAX_NODES = 10_000_000
_MAX = 1e18
_MAX_RATE = 1e14

Count = Annotated[int, Field(ge=0, le=_MAX_NODES)]
AtLeastOne = Annotated[int, Field(ge=1, le=_MAX_NODES)]
Bytes = Annotated[float, Field(ge=0, le=_MAX, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=_MAX, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0.001, le=1000, allow_inf_nan=False)]


def _harmless(name: str) -> str:
    # Names are written into commands, scripts and maps of other programs.
    if not name.isprintable() or any(sign in name for sign in "\"'`\\$"):
        raise ValueError("a name of printable characters without quotes, backslashes or dollar signs")
    return name


def _hosts(text: str) -> str:
    HostList.parse(text)
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_harmless)]


class CurveItem(Model):
    """Bandwidth of a job with a number of I/O nodes."""

    io_nodes: Count = Field(description="number of I/O nodes; 0 is direct access to the file system")
    bandwidth: Annotated[float, Field(ge=1, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        description="mean over the repetitions, bytes per second; plans round it to whole numbers"
    )
    deviation: Amount = Field(
        default=0.0, description="standard deviation of the repetitions, bytes per second; 0 if unknown"
    )


class StripeItem(Model):
    """Bandwidth of a job whose main file has a number of stripes."""

    stripe_count: AtLeastOne = Field(description="stripe count of the file with the most I/O time")
    bandwidth: Annotated[float, Field(ge=1, le=_MAX_RATE, allow_inf_nan=False)] = Field(
        description="mean over the runs, bytes per second of the I/O time of that file"
    )
    deviation: Amount = Field(default=0.0, description="standard deviation of the runs, bytes per second; 0 if unknown")
    runs: AtLeastOne = Field(description="number of measured runs")


class IoSeconds(Model):
    """I/O time of earlier runs: seconds of the slowest process in I/O calls."""

    low: Amount = Field(description="10th percentile")
    median: Amount
    high: Amount = Field(description="90th percentile")
    runs: AtLeastOne = Field(description="number of measured runs, without runs that a plan changed")


class PlannedIoSeconds(Model):
    """I/O time of earlier runs whose files a plan laid out."""

    stripe_count: AtLeastOne = Field(description="stripe count that the plan set for the files")
    low: Amount = Field(description="10th percentile")
    median: Amount
    high: Amount = Field(description="90th percentile")
    runs: AtLeastOne = Field(description="number of measured runs")


class AvoidedSetting(Model):
    """A setting that made runs slower beyond their noise. Plans do not repeat it."""

    stripe_count: AtLeastOne = Field(description="stripe count of the main file")
    slower: Amount = Field(description="median I/O time with the setting / median I/O time without it")
    runs: AtLeastOne = Field(description="number of runs with the setting")


class Unknown(Model):
    """A figure that the history does not give."""

    name: str = Field(description="name of the field that is null")
    reason: str = Field(description="reason why it is null")


class AccessPattern(Model):
    """How a job reads or writes, to find curves of similar jobs."""

    operation: Literal["read", "write"] = Field(default="write", description="direction that moves most bytes")
    layout: Literal["file_per_process", "shared"] = Field(description="one file per process, or one file shared by all")
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous",
        description="order of requests; strided: requests of the processes alternate in a shared file",
    )
    request: Annotated[int, Field(ge=1, le=1 << 50)] = Field(description="size of one read or write in bytes")


class Demand(Model):
    """Load of a job on the machine while it does I/O."""

    iobw: Amount | None = Field(default=None, description="required bandwidth, bytes per second")
    iops: Amount | None = Field(default=None, description="required data operations per second")
    mdops: Amount | None = Field(default=None, description="required metadata operations per second")


class Creation(Model):
    """A file that the job is going to create."""

    path: Annotated[str, Field(min_length=1, max_length=4096)] = Field(description="absolute path")
    size: Annotated[int, Field(ge=0, le=1 << 62)] = Field(description="expected size in bytes")
    rank: Count | None = Field(default=None, description="process that creates the file")
    layout: AtLeastOne | str | None = Field(
        default=None, description="stripe count, composite layout (`-E ...`), or a file with Tarazu's buckets"
    )


class PlannedJob(SparseModel):
    """One job that runs or waits."""

    optional_keys: ClassVar[tuple[str, ...]] = (
        "runs",
        "io_s",
        "usual_stripes",
        "by_stripes",
        "by_plan",
        "mpi_io",
        "reads_from",
        "avoid",
        "unknown",
    )

    name: Name = Field(description="name of the job in plans; unique in the document")
    nodes: AtLeastOne = Field(description="number of compute nodes")
    processes: AtLeastOne | None = Field(default=None, description="number of processes on all nodes")
    hosts: Annotated[str, Field(max_length=100_000), AfterValidator(_hosts)] | None = Field(
        default=None, description="names of the nodes as a Slurm host list, such as n[1-64]"
    )
    submit_s: Amount = Field(
        default=0.0, description="submission time in seconds after the submission of the first job"
    )
    bytes: Bytes | None = Field(default=None, description="bytes that the job still has to read and write")
    curve: Annotated[list[CurveItem], Field(min_length=1, max_length=1000)] | None = Field(
        default=None, description="measured bandwidth by number of I/O nodes"
    )
    curve_nodes: AtLeastOne | None = Field(
        default=None, description="number of compute nodes with which `curve` was measured; null if it was `nodes`"
    )
    profile: Annotated[str, Field(min_length=1, max_length=4096)] | None = Field(
        default=None, description="profile of an earlier run; path relative to the folder of this document"
    )
    pattern: AccessPattern | None = Field(
        default=None, description="access pattern of the job; used if there is no curve"
    )
    weight: Weight = Field(default=1.0, description="weight of the job's bandwidth in the sum that mckp maximizes")
    demand: Demand | None = Field(default=None, description="rates that the job needs")
    creations: Annotated[list[Creation], Field(max_length=1_000_000)] | None = Field(
        default=None, description="files that the job will create"
    )
    runs: Count | None = Field(
        default=None, description="number of runs that these figures are based on; null if they were entered by hand"
    )
    io_s: IoSeconds | None = Field(default=None, description="I/O time of earlier runs")
    usual_stripes: AtLeastOne | None = Field(
        default=None, description="stripe count of the main file in runs that no plan changed"
    )
    by_stripes: Annotated[list[StripeItem], Field(max_length=1000)] | None = Field(
        default=None, description="measured bandwidth by stripe count of the main file"
    )
    by_plan: Annotated[list[PlannedIoSeconds], Field(max_length=1000)] | None = Field(
        default=None, description="I/O time of runs whose files were laid out by a plan, by their stripe count"
    )
    mpi_io: bool | None = Field(default=None, description="true if the job opens its files through MPI-IO")
    reads_from: Annotated[list[Count], Field(min_length=1, max_length=10_000)] | None = Field(
        default=None, description="OSTs of files that already existed when the job started, in most of its runs"
    )
    avoid: Annotated[list[AvoidedSetting], Field(max_length=1000)] = Field(
        default_factory=list, description="settings that made earlier runs slower"
    )
    unknown: Annotated[list[Unknown], Field(max_length=100)] = Field(
        default_factory=list, description="fields that are null, with the reasons"
    )


class Jobs(Document):
    """The jobs of a machine."""

    schema_: Literal["vani.jobs/1"] = Field(
        alias="schema", default="vani.jobs/1", description="name and version of this schema"
    )
    jobs: Annotated[list[PlannedJob], Field(min_length=1, max_length=MAX_JOBS)] = Field(
        description="jobs in the order of submission"
    )

    def refuse_twins(self, where: str) -> None:
        """Raise InputError if two jobs share a name; errors call the document `where`."""
        seen = set()
        for job in self.jobs:
            if job.name in seen:
                raise InputError(
                    f"two jobs are named {job.name!r}", where=where, todo="give each a different name"
                )
            seen.add(job.name)


# sharing.yaml: pools of I/O nodes, who may use them, and whose bandwidth counts more, as `vani plan job` reads it.
#
# A centre writes it once. A reservation is a pool, too: of I/O nodes by name, for the jobs of an account or a QOS.

PathText = Annotated[str, Field(min_length=1, max_length=4096)]
Names = Annotated[list[Name], Field(min_length=1, max_length=10_000)]


class JobPool(Model):
    """I/O nodes, and the jobs that share them: jobs that match every given list."""

    name: Name = Field(description="name of the pool in plans and in the log; unique in the document")
    file_system: str | None = Field(
        default=None, description="file system that the I/O nodes serve; null if not stated"
    )
    partitions: Names | None = Field(
        default=None, description="partitions or queues whose jobs use the pool; null for all"
    )
    accounts: Names | None = Field(default=None, description="accounts whose jobs use the pool; null for all")
    qos: Names | None = Field(default=None, description="qualities of service whose jobs use the pool; null for all")
    io_nodes: Annotated[int, Field(ge=0, le=100_000)] | Names | None = Field(
        default=None,
        description="I/O nodes of the pool: names, which no other pool may use, or a maximum number; null uses all "
        "remaining ones",
    )
    snapshot: PathText | None = Field(
        default=None,
        description="path of the machine's snapshot, relative to this document's folder; null uses that of the command",
    )
    hosts_file: PathText | None = Field(
        default=None,
        description="path of the GekkoFS hosts file, relative to this document's folder; null uses that of the command",
    )

    def takes(self, *, partition: str | None, account: str | None, qos: str | None) -> bool:
        """Whether the pool serves this job; a job without an account is in no list of accounts."""
        lists = ((self.partitions, partition), (self.accounts, account), (self.qos, qos))
        return all(names is None or value in names for names, value in lists)


class SharingSettings(Document):
    """Sharing of I/O nodes among the jobs of a centre."""

    schema_: Literal["vani.sharing/1"] = Field(
        alias="schema", default="vani.sharing/1", description="name and version of this schema"
    )
    weights: Annotated[dict[Name, Weight], Field(max_length=10_000)] = Field(
        default_factory=dict,
        description="weight by QOS of a job's bandwidth in the sum that mckp maximizes; 1 for all other QOS",
    )
    pools: Annotated[list[JobPool], Field(max_length=1000)] = Field(
        default_factory=list,
        description="pools; a job uses the first one that accepts it; empty if all jobs share one pool",
    )

    def weight_of(self, qos: str | None) -> float:
        """The weight of a job."""
        return 1.0 if qos is None else self.weights.get(qos, 1.0)

    def refuse_twins(self, where: str) -> None:
        """Raise DocumentError if two pools share a name or an I/O node; errors call the document `where`."""
        names = (pool.name for pool in self.pools)
        nodes = (node for pool in self.pools if isinstance(pool.io_nodes, list) for node in pool.io_nodes)
        for what, some in (("pools are named", names), ("pools have the I/O node", nodes)):
            twin = _twin(some)
            if twin is not None:
                raise DocumentError(f"two {what} {twin!r}", where=where, todo="name it once")


def _twin(names: Iterable[str]) -> str | None:
    return next((name for name, number in Counter(names).items() if number > 1), None)
