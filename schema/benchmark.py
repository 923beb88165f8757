"""Results of IO500, IOR and mdtest: rates by phase, and how they compare."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vani.schema.model import Model, SparseModel

Count = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BenchmarkPhase(Model):
    """A phase, and how its rate compares with that of another phase."""

    name: str = Field(description="IO500 phase such as ior-hard-write; otherwise the file and the operation")
    rate: Rate = Field(description="mean rate of the repetitions, in `unit`")
    unit: Literal["bytes/s", "operations/s"]
    seconds: Rate | None = Field(default=None, description="duration of the phase")
    valid: bool = Field(default=True, description="false if IO500 marks the phase [INVALID]")
    nodes: Count | None = None
    processes: Count | None = None
    per_node: Rate | None = Field(default=None, description="rate / nodes")
    per_process: Rate | None = Field(default=None, description="rate / processes")
    per_target: Rate | None = Field(
        default=None,
        description="rate / number of targets (metadata targets for metadata operations) of the file system; null if "
        "that number is unknown",
    )
    opening_share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None,
        description="share of the time spent opening the file (IOR only); null if the text output of IOR is missing",
    )
    other: str | None = Field(default=None, description="phase to which this one is compared")
    share: Rate | None = Field(default=None, description="rate / rate of the other phase")
    typical: list[Rate] | None = Field(
        default=None, description="percentiles 10, 25, 50, 75 and 90 of `share` in public IO500 submissions"
    )
    score_at_median: Rate | None = Field(
        default=None, description="factor by which the IO500 score would change if `share` were the median"
    )


class Agreement(Model):
    """The rate a benchmark prints, and the rate from its trace."""

    what: str = Field(description="operation: read, write, or a mdtest operation")
    benchmark: Rate = Field(description="rate printed by the benchmark, bytes (operations) per second")
    trace: Rate = Field(
        description="rate of the traced calls over the time in which at least one process is in such a call"
    )
    share: Rate = Field(description="benchmark / trace")
    sentence: str


class Benchmark(SparseModel):
    """A run of IO500, IOR or mdtest, read from its own output."""

    optional_keys: ClassVar[tuple[str, ...]] = ("agreement", "problems")

    tool: Literal["io500", "ior", "mdtest"]
    version: str | None = None
    valid: bool = Field(default=True, description="false if IO500 marks its score [INVALID]")
    score: Rate | None = Field(default=None, description="IO500 score; null if it is incomplete")
    nodes: Count | None = None
    processes: Count | None = None
    api: str | None = Field(default=None, description="IOR interface: POSIX, MPIIO, ...")
    collective: bool | None = Field(default=None, description="true if collective calls wrote the shared file")
    folder: str | None = Field(default=None, description="folder of the test files")
    phases: list[BenchmarkPhase]
    limits: list[str] = Field(
        default=[], description="factors that limited the run, most important first, one sentence each"
    )
    problems: list[str] = Field(
        default=[], description="parts of the output that are unreadable or contradictory; left out if there are none"
    )
    agreement: list[Agreement] = Field(
        default=[], description="comparison of its rates with the trace of the run; left out if there is none"
    )

    def keys_left_out(self) -> tuple[str, ...]:
        """The optional keys that are empty."""
        return tuple(name for name in self.optional_keys if not getattr(self, name))
