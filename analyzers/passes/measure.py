"""What a measure is.

The engine reads each partition once for all measures of a pass: every measure gets each batch, in order, then passes
on a small result; results of partitions are combined in any order. Partitions hold whole processes, so what belongs
to one process (its positions, its busy time) never has to be put together from two partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from vani.analyzers.calls.batch import Batch
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload

__all__ = ["Accumulator", "AnyMeasure", "Both", "Collects", "Measure", "Together", "one_of_many"]

Partial = TypeVar("Partial")
"""What a measure makes of a partition, and of several of them together: small and picklable."""
Other = TypeVar("Other")
Partial_co = TypeVar("Partial_co", covariant=True)
Result_co = TypeVar("Result_co", covariant=True)
"""What the profile is made of."""


class Accumulator(Protocol[Partial_co]):
    """Collects one partition."""

    def add(self, batch: Batch) -> None:
        """Take the next batch of the partition."""

    def result(self) -> Partial_co:
        """Pass on what was found: small, picklable, and complete."""


class Collects(Protocol[Partial]):
    """Something that is collected in a pass over all calls."""

    @property
    def columns(self) -> frozenset[str]:
        """Columns of `vani.calls.CALLS` that it reads besides layer and flags."""

    def begin(self, context: Context, findings: SurveyFindings | None) -> Accumulator[Partial]:
        """Start a partition."""

    def combine(self, parts: Sequence[Partial]) -> Partial:
        """Put results of partitions together, or what it put together before; associative, and free of order.

        `parts` may be empty.
        """


class Measure(Collects[Partial], Protocol[Partial, Result_co]):
    """One thing that is measured in calls; its module's docstring defines it.

    A measure with the attribute `result`, the frozen dataclass that `finish` returns, is looked up by it:
    `Measurements.of(result)`. What another one returns is in the profile as `extensions.<name>`.
    """

    @property
    def name(self) -> str:
        """No other measure has it."""

    def finish(self, combined: Partial, workload: Workload, findings: SurveyFindings) -> Result_co:
        """What the profile is made of: the combined result of all partitions as typed columns.

        Nobody else knows of what the keys of the tables before were made.
        """


class AnyMeasure(Protocol):
    """A measure among others, of whose partial results nobody else knows the type."""

    @property
    def name(self) -> str: ...

    @property
    def columns(self) -> frozenset[str]: ...

    @property
    def result(self) -> type[object] | None:
        """Type of what `finish` returns; None: numbers, texts, lists and mappings for `extensions`."""

    def begin(self, context: Context, findings: SurveyFindings | None) -> Accumulator[object]: ...

    def combine(self, parts: Sequence[object]) -> object: ...

    def finish(self, combined: object, workload: Workload, findings: SurveyFindings) -> object: ...


@dataclass(frozen=True, eq=False)
class _OneOfMany(Generic[Partial, Result_co]):
    """See `AnyMeasure`: what comes back to it are results of its own accumulators, so their type is known here."""

    measure: Measure[Partial, Result_co]

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def columns(self) -> frozenset[str]:
        return self.measure.columns

    @property
    def result(self) -> type[object] | None:
        declared: object = getattr(self.measure, "result", None)
        return declared if isinstance(declared, type) else None

    def begin(self, context: Context, findings: SurveyFindings | None) -> Accumulator[Partial]:
        return self.measure.begin(context, findings)

    def combine(self, parts: Sequence[object]) -> Partial:
        return self.measure.combine(cast("Sequence[Partial]", parts))

    def finish(self, combined: object, workload: Workload, findings: SurveyFindings) -> Result_co:
        return self.measure.finish(cast("Partial", combined), workload, findings)


def one_of_many(measure: Measure[Partial, Result_co]) -> AnyMeasure:
    """The measure as one of several that are collected together."""
    return _OneOfMany(measure)


@dataclass(frozen=True, eq=False)
class Together:
    """Measures that are collected in one pass, as one: each of its results is a list with one of each measure."""

    measures: Sequence[AnyMeasure]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(one.columns for one in self.measures))

    def begin(self, context: Context, findings: SurveyFindings | None) -> Accumulator[list[object]]:
        return _AccumulatorOfAll([one.begin(context, findings) for one in self.measures])

    def combine(self, parts: Sequence[list[object]]) -> list[object]:
        return [one.combine([part[i] for part in parts]) for i, one in enumerate(self.measures)]

    def finish(self, combined: list[object], workload: Workload, findings: SurveyFindings) -> list[object]:
        """Results of the measures, in their order."""
        return [one.finish(found, workload, findings) for one, found in zip(self.measures, combined, strict=True)]


@dataclass(frozen=True, eq=False)
class Both(Generic[Partial, Other]):
    """Two things that are collected in one pass."""

    one: Collects[Partial]
    other: Collects[Other]

    @property
    def columns(self) -> frozenset[str]:
        return self.one.columns | self.other.columns

    def begin(self, context: Context, findings: SurveyFindings | None) -> Accumulator[tuple[Partial, Other]]:
        return _AccumulatorOfBoth(self.one.begin(context, findings), self.other.begin(context, findings))

    def combine(self, parts: Sequence[tuple[Partial, Other]]) -> tuple[Partial, Other]:
        return self.one.combine([one for one, _ in parts]), self.other.combine([other for _, other in parts])


class _AccumulatorOfBoth(Generic[Partial, Other]):
    def __init__(self, one: Accumulator[Partial], other: Accumulator[Other]) -> None:
        self._one, self._other = one, other

    def add(self, batch: Batch) -> None:
        self._one.add(batch)
        self._other.add(batch)

    def result(self) -> tuple[Partial, Other]:
        return self._one.result(), self._other.result()


class _AccumulatorOfAll:
    def __init__(self, accumulators: Sequence[Accumulator[object]]) -> None:
        self._accumulators = accumulators

    def add(self, batch: Batch) -> None:
        for one in self._accumulators:
            one.add(batch)

    def result(self) -> list[object]:
        return [one.result() for one in self._accumulators]
