"""Intervals of an app's timeline in which it does I/O (table V)."""

from typing import Final, Literal

from pydantic import Field

from vani.schema.model import Model
from vani.schema.profile.iostats import IOStats, OpCounts
from vani.schema.profile.quantities import AtLeastOne, Bytes, Count, Seconds, Share


class Frequency(Model):
    """How a phase's operations are spaced in time (table V)."""

    kind: Literal["single", "iterative", "bulk"] = Field(
        description="spacing of data operations. single: at most one per process; bulk: back to back; iterative: with "
        "pauses in between"
    )
    ops_per_process: float = Field(description="data operations / participating processes, per repetition")
    size: Bytes | None = Field(description="most common size of the data operations")


_MOST_SPANS: Final = 100_000


class Repeats(Model):
    """How often similar phases repeat."""

    count: AtLeastOne = Field(description="number of phases in this row")
    period_s: Seconds | None = Field(
        description="median time from the start of one phase to the start of the next; null for a single phase, or if "
        "the spacing is irregular"
    )


class Dominant(Model):
    """The calls that most of the I/O time went to."""

    kind: Literal["read", "write", "metadata", "sync"] = Field(description="kind of call")
    share: Share = Field(description="share of this kind in the time of all kinds")


class PhaseIO(IOStats):
    """The I/O of a phase; some sources give only its bytes."""

    ops: OpCounts | None = Field(  # type: ignore[assignment]
        description="number of calls; null if a source records when bytes were moved but not the number of calls"
    )

    @classmethod
    def of(cls, io: IOStats) -> "PhaseIO":
        """The same figures."""
        return cls.model_construct(**{name: getattr(io, name) for name in cls.model_fields})


class Phase(Model):
    """A stretch of an app's timeline in which its processes do I/O (table V), or several similar ones.

    Phases are separate where no process is in a call for longer than `apps[].phase_gap_s`, where most processes begin
    the same again after a pause of at least 10 ms, and where they turn from reading to writing or back.
    """

    app: str = Field(description="name of the app")
    index: Count = Field(description="number of the phase within its app, from 0")
    start_s: Seconds = Field(description="start of the first repetition, from the start of the workload")
    end_s: Seconds = Field(description="end of the last repetition, from the start of the workload")
    runtime_s: Seconds = Field(description="summed duration of all repetitions")
    repeats: Repeats | None = Field(
        default=None,
        description="number of similar phases in this row and their spacing; null for documents of an older version, "
        "where each row is one phase",
    )
    kind: Literal["write", "read", "mixed", "metadata"] = Field(
        description="kind of at least 95 % of the data operations and bytes, else mixed; metadata if there are no "
        "data operations, or if metadata takes 95 % of the I/O time and at most a quarter of the calls move data"
    )
    dominant: Dominant | None = Field(
        default=None, description="kind of call that took most of the I/O time; null if no time passed"
    )
    processes: Count = Field(description="largest number of participating processes of any repetition")
    io: PhaseIO = Field(description="I/O of all repetitions together")
    frequency: Frequency | None = Field(
        description="spacing of the data operations; null if the number of calls (`io.ops`) is unknown"
    )

    @property
    def count(self) -> int:
        """Number of phases in this entry."""
        return self.repeats.count if self.repeats is not None else 1

    @property
    def spans(self) -> list[tuple[float, float]]:
        """(start, end) of each repetition in seconds, taken as equally long and evenly spaced.

        More than 100,000 count as one: nothing distinguishes them, and a document may claim any number.
        """
        if self.count == 1 or self.count > _MOST_SPANS:
            return [(self.start_s, self.end_s)]
        length = self.runtime_s / self.count
        apart = (self.end_s - length - self.start_s) / (self.count - 1)
        return [(self.start_s + i * apart, self.start_s + i * apart + length) for i in range(self.count)]
