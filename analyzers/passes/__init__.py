"""Passes over all calls: the protocol of a measure, one pass, and the order of the passes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from vani.analyzers.batch import Batch
from vani.analyzers.int_table import How, Sums, SumsBuilder
from vani.analyzers.workload import Context, SurveyFindings, Workload

Partial = TypeVar("Partial")
"""Partial result of a measure, for one or several partitions: small and picklable."""
Partial_co = TypeVar("Partial_co", covariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Collector(Protocol[Partial_co]):
    """Collects one partition."""

    def add(self, batch: Batch) -> None:
        """Add the next batch of the partition."""

    def result(self) -> Partial_co:
        """The partition's partial result: small, picklable, and complete."""


class Collects(Protocol[Partial]):
    """Anything that is collected in a pass over all calls."""

    @property
    def columns(self) -> frozenset[str]:
        """Columns of `vani.calls.CALLS` that it reads in addition to layer and flags."""

    def chunk(self, context: Context, findings: SurveyFindings | None) -> Collector[Partial]:
        """Start a partition; `findings` come from the survey, and are None in the survey itself."""

    def combine(self, parts: Sequence[Partial]) -> Partial:
        """Merge any number of partial results into one; associative and independent of order."""


class Measure(Collects[Partial], Protocol[Partial, Result_co]):
    """A quantity that is measured in calls; its module's docstring defines it.

    If a measure has the attribute `result`, the frozen dataclass that `aggregate` returns, its result is looked up by
    this type: `Measurements.of(result)`. The results of other measures are in the profile as `extensions.<name>`.
    """

    @property
    def name(self) -> str:
        """Unique name of the measure."""

    def aggregate(self, combined: Partial, workload: Workload, findings: SurveyFindings) -> Result_co:
        """Convert the combined partial result of all partitions to typed columns for the profile.

        Keys of tables are unpacked here, because only the measure knows how they were packed.
        """


def declared_result(measure: Measure[Any, Any]) -> type[object] | None:
    """The dataclass that `aggregate` returns; None for numbers, texts, lists and mappings for `extensions`."""
    declared: object = getattr(measure, "result", None)
    return declared if isinstance(declared, type) else None


class SumsMeasure:
    """A measure that adds up: a subclass declares what a batch adds to which table, and how tables become the result.

    It has `name`, `columns`, `add` and `aggregate`, and usually `result`; see `Measure`.
    """

    columns: ClassVar[frozenset[str]]
    minima: ClassVar[Sequence[str]] = ()
    """Columns of the tables whose minimum is taken, not their sum."""
    maxima: ClassVar[Sequence[str]] = ()
    """Columns of the tables whose maximum is taken."""
    packed: ClassVar[Collection[str]] = ()
    """Names of pairs that take little memory; see `Sums.merged`."""

    def add(self, batch: Batch, sums: SumsBuilder) -> None:
        """Add a batch to tables. Not needed if `chunk` returns a collector that keeps data from batch to batch."""
        raise NotImplementedError

    def chunk(self, context: Context, findings: SurveyFindings | None) -> SumsCollector:
        """See `Measure.chunk`."""
        return SumsCollector(self)

    def combine(self, parts: Sequence[Sums]) -> Sums:
        """See `Measure.combine`."""
        return Sums.merged(parts, self.how, self.packed)

    @property
    def how(self) -> Mapping[str, How]:
        """How columns that are not sums are combined."""
        of_minima: dict[str, How] = dict.fromkeys(self.minima, "min")
        return of_minima | dict.fromkeys(self.maxima, "max")


class SumsCollector:
    """Collects one partition for a `SumsMeasure`."""

    def __init__(self, measure: SumsMeasure) -> None:
        self._measure = measure
        self.sums = SumsBuilder(measure.how, measure.packed)

    def add(self, batch: Batch) -> None:
        """See `Collector.add`."""
        self._measure.add(batch, self.sums)

    def result(self) -> Sums:
        """See `Collector.result`."""
        return self.sums.result()



