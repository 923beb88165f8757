"""jobs.yaml: the jobs that run on a machine or wait for it, as `vani plan` reads them.

A person or a scheduler's script writes it. Unknown values are left out, and a plan states what it lacked.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from vani.errors import InputError
from vani.schema.document import Document
from vani.schema.host_list import HostList
from vani.schema.model import Model, schema_field

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


class AccessPattern(Model):
    """How a job reads or writes, to find curves of similar jobs."""

    operation: Literal["read", "write"] = Field(default="write", description="direction that moves most bytes")
    layout: Literal["file_per_process", "shared"] = Field(description="one file per process, or one file shared by all")
    order: Literal["contiguous", "strided"] = Field(
        default="contiguous",
        description="order of requests; strided: requests of the processes alternate in a shared file",
    )
    request: int = Field(ge=1, le=1 << 50, description="size of one read or write in bytes")


class Demand(Model):
    """Load of a job on the machine while it does I/O."""

    iobw: Amount | None = Field(default=None, description="required bandwidth, bytes per second")
    iops: Amount | None = Field(default=None, description="required data operations per second")
    mdops: Amount | None = Field(default=None, description="required metadata operations per second")


class Creation(Model):
    """A file that the job is going to create."""

    path: str = Field(min_length=1, max_length=4096, description="absolute path")
    size: int = Field(ge=0, le=1 << 62, description="expected size in bytes")
    rank: Count | None = Field(default=None, description="process that creates the file")
    layout: AtLeastOne | str | None = Field(
        default=None, description="stripe count, composite layout (`-E ...`), or a file with Tarazu's buckets"
    )


class PlannedJob(Model):
    """One job that runs or waits."""

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


def refuse_twins(what: str, names: Sequence[str], where: str) -> None:
    """Raise InputError if two parts of a document share a name; errors call the document `where`."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 0)
    if times > 1:
        raise InputError(f"two {what}s are named {name!r}", where=where, todo="give each a different name")


class Jobs(Document):
    """The jobs of a machine."""

    schema_: Literal["vani.jobs/1"] = schema_field("vani.jobs/1")
    jobs: list[PlannedJob] = Field(min_length=1, max_length=MAX_JOBS, description="jobs in the order of submission")

    def refuse_twins(self, where: str) -> None:
        """Raise InputError if two jobs share a name; errors call the document `where`."""
        refuse_twins("job", [job.name for job in self.jobs], where)
