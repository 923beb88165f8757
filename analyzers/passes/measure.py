"""The protocol of a measure: three functions as in a Dask aggregation, `chunk`, `combine` and `aggregate`.

A pass reads each partition once for all its measures: `chunk` starts a collector, which takes the calls of the
partition batch by batch, in order, and returns a small partial result; `combine` makes one partial result of several,
in any order; `aggregate` makes of the last one what the profile is made of. A partition contains whole processes, so
that what belongs to one process (its positions, its busy time) never has to be put together from two partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from vani.analyzers.calls.batch import Batch
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload

__all__ = ["Collector", "Collects", "Measure", "declared_result"]

Partial = TypeVar("Partial")
"""Partial result of a measure, for one partition or several: small and picklable."""
Partial_co = TypeVar("Partial_co", covariant=True)
Result_co = TypeVar("Result_co", covariant=True)


class Collector(Protocol[Partial_co]):
    """Collects one partition."""

    def add(self, batch: Batch) -> None:
        """Take the next batch of the partition."""

    def result(self) -> Partial_co:
        """The partial result of the partition: small, picklable, and complete."""


class Collects(Protocol[Partial]):
    """Something that is collected in a pass over all calls."""

    @property
    def columns(self) -> frozenset[str]:
        """Columns of `vani.calls.CALLS` that it reads besides layer and flags."""

    def chunk(self, context: Context, findings: SurveyFindings | None) -> Collector[Partial]:
        """Start a partition; `findings` are those of the survey, None in the survey itself."""

    def combine(self, parts: Sequence[Partial]) -> Partial:
        """Make one partial result of several, or of none; associative, and free of order."""


class Measure(Collects[Partial], Protocol[Partial, Result_co]):
    """One thing that is measured in calls; its module's docstring defines it.

    A measure with the attribute `result`, the frozen dataclass that `aggregate` returns, is looked up by it:
    `Measurements.of(result)`. The result of another one is in the profile as `extensions.<name>`.
    """

    @property
    def name(self) -> str:
        """No other measure has it."""

    def aggregate(self, combined: Partial, workload: Workload, findings: SurveyFindings) -> Result_co:
        """Typed columns for the profile, of the combined partial result of all partitions.

        Keys of tables are unpacked here: only a measure knows how they were packed.
        """


def declared_result(measure: Measure[Any, Any]) -> type[object] | None:
    """The dataclass that `aggregate` returns; None: numbers, texts, lists and mappings for `extensions`."""
    declared: object = getattr(measure, "result", None)
    return declared if isinstance(declared, type) else None
