"""Results of IO500, IOR and mdtest: rates by phase, and how they compare."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vani.schema.model import Model, SparseModel

__all__ = ["Agreement", "Benchmark", "BenchmarkPhase"]

Count = Annotated[int, Field(gt=0)]
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BenchmarkPhase(Model):
    """A phase, and how its rate compares with that of another phase."""

    name: str = Field(description="of IO500 such as ior-hard-write; else the file and what was done")
    rate: Rate = Field(description="by `unit`; the mean of repetitions")
    unit: Literal["bytes/s", "operations/s"]
    seconds: Rate | None = Field(default=None, description="how long it took")
    valid: bool = Field(default=True, description="false where IO500 marks it [INVALID]")
    nodes: Count | None = None
    processes: Count | None = None
    per_node: Rate | None = Field(default=None, description="rate / nodes")
    per_process: Rate | None = Field(default=None, description="rate / processes")
    per_target: Rate | None = Field(
        default=None, description="rate / targets (metadata targets of operations) of the file system, if it is known"
    )
    opening_share: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="IOR: share of the time of opening the file; null where IOR's text is missing"
    )
    other: str | None = Field(default=None, description="the phase that it is compared with")
    share: Rate | None = Field(default=None, description="rate / rate of the other phase")
    typical: list[Rate] | None = Field(
        default=None,
        description="that share in public submissions to IO500: 10, 25, 50, 75 and 90 % of them have less",
    )
    score_at_median: Rate | None = Field(
        default=None, description="factor on IO500's score if the share were the median"
    )


class Agreement(Model):
    """The rate a benchmark prints, and the rate from its trace."""

    what: str = Field(description="read, write, or an operation of mdtest")
    benchmark: Rate = Field(description="what the benchmark prints, bytes (operations) per second")
    trace: Rate = Field(description="rate of the calls in the trace while at least one process is in such a call")
    share: Rate = Field(description="benchmark / trace")
    sentence: str


class Benchmark(SparseModel):
    """A run of IO500, IOR or mdtest, read from its own output."""

    optional_keys: ClassVar[tuple[str, ...]] = ("agreement", "problems")

    tool: Literal["io500", "ior", "mdtest"]
    version: str | None = None
    valid: bool = Field(default=True, description="false where IO500 marks its score [INVALID]")
    score: Rate | None = Field(default=None, description="of IO500; null where it is not complete")
    nodes: Count | None = None
    processes: Count | None = None
    api: str | None = Field(default=None, description="interface of IOR: POSIX, MPIIO, ...")
    collective: bool | None = Field(default=None, description="whether the shared file was written by collective calls")
    folder: str | None = Field(default=None, description="where its files were")
    phases: list[BenchmarkPhase]
    limits: list[str] = Field(default=[], description="limits of the run, most important first, one sentence each")
    problems: list[str] = Field(default=[], description="unreadable or contradictory parts")
    agreement: list[Agreement] = Field(default=[], description="with the trace of the run, where there is one")

    def keys_left_out(self) -> tuple[str, ...]:
        """The optional keys that are empty."""
        return tuple(name for name in self.optional_keys if not getattr(self, name))
