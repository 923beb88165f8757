"""Measurements of a workload: all that entities see, from any source.

Sources (decoded calls, calls counted on grammars) end in one `Measurements`; `vani.analyzers.assemble` makes the
profile of it. What every source must count are fields: without the files, who used them and the number of calls there
is no profile. All else is looked up by the type of the measure's result, and is None where the source lacks it;
then it gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.extensions import Plain
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.processes import ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles
from vani.analyzers.workload.workload import Workload
from vani.counts import FileLayout, JobFacts, NotCounted
from vani.schema.profile import AppDependency

__all__ = ["FilesOnTargets", "Measurements", "Phases", "PossibleExchanges", "Results", "TraceFacts"]

Ints = NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class TraceFacts:
    """Facts about a trace that need no call to be read. Times are nanoseconds of the ranks' clocks."""

    source: str
    tool: str
    format: str
    layout: str
    ranks: int
    records: int
    functions: Mapping[str, int]
    """Calls by function, most first."""
    start_unix_s: float | None
    begin_ns: int
    """Start by its own clocks: below 0 where one was set back to before the start of the tracer."""
    span_ns: int | None
    """End of the last call; None where no time was read."""
    repaired_times: int | None
    complete: bool | None
    problems: Sequence[str]
    limits: Sequence[tuple[str, str]]
    """Attributes that the trace can never give, and the reasons."""
    facts: Sequence[tuple[str, Sequence[str], int]]
    """Library calls whose arguments were kept: function, arguments, how often."""
    job: JobFacts = field(default_factory=JobFacts)
    hints_passed: int | None = None
    """Opens and views of MPI-IO that passed hints, where that alone was counted."""

    @property
    def has_results(self) -> bool:
        """The tracer keeps what calls returned: bytes are those that were moved."""
        return self.tool in ("strace", "dftracer", "otf2")


@dataclass(frozen=True, eq=False)
class FilesOnTargets:
    """Files and the storage targets that store them; shape (pairs,) each, a pair per file and target."""

    file: Ints
    target: Ints
    bytes: Ints
    """Bytes that were moved, an equal share of the file's for each of its targets."""
    read_ns: Ints
    """Time in reads of the whole file, of one process on average."""
    write_ns: Ints
    of_system: Mapping[int, int]
    """By file: targets of its file system, where that is known."""


@dataclass(frozen=True, eq=False)
class Phases:
    """Phases, app after app and in order of time; all of an app are one where no time is known."""

    start_ns: Ints
    """Shape (phases,)."""
    app: Ints
    """Shape (phases,)."""
    gap_ns: Sequence[int | None]
    """Pause that separates the phases of each app; None where it has no I/O, or no time is known."""

    gap_given: bool = False
    """By the user, not found from the data."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, eq=False)
class PossibleExchanges:
    """Files in which processes may have read what others wrote, if the order of calls is not known."""

    between_apps: bool
    processes: NDArray[np.bool_]
    """Shape (apps,): between processes of the app."""
    files: Ints | None
    """Codes (by last name) of files through which it may have been; None: any file."""
    exchanged: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Files among these through which it was for certain."""
    dependencies: Sequence[AppDependency] = ()
    """Between apps, where `between_apps` is False: known by the order of runs."""


class Results:
    """Results of measures by their type; never changed.

    Parameters
    ----------
    results
        One of a type at most.
    unknown
        By type: why the source lacks it, or part of it.
    otherwise
        Why it lacks what is neither in `results` nor in `unknown`; None: it has everything.
    """

    def __init__(
        self,
        results: Iterable[object],
        *,
        unknown: Mapping[type[object], str] | None = None,
        otherwise: str | None = None,
    ) -> None:
        self._by_type = {type(result): result for result in results}
        self._unknown = dict(unknown or {})
        self._otherwise = otherwise

    def of(self, result: type[Result]) -> Result | None:
        """The result of this type; None where the source cannot give it, for the reason of `why`.

        Raises
        ------
        ValueError
            The source lacks it, and gives no reason.
        """
        known = self._by_type.get(result)
        if isinstance(known, result):
            return known
        if self.why(result) is None:
            raise ValueError(f"{result.__name__} is not measured, and no reason is given")
        return None

    def why(self, result: type[object]) -> str | None:
        """Why the source lacks it, or part of it; None where it has all of it."""
        why = self._unknown.get(result)
        return self._otherwise if why is None and result not in self._by_type else why

    def without(self, result: type[object], why: str) -> Results:
        """The same without one of them."""
        others = [other for type_, other in self._by_type.items() if type_ is not result]
        return Results(others, unknown={**self._unknown, result: why}, otherwise=self._otherwise)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measurements of a workload; see the module's docstring."""

    workload: Workload
    traces: Sequence[TraceFacts]
    phases: Phases
    listed: Ints
    """File codes of the files that are listed, the most important first."""
    survey: SurveyedFiles
    """Every source counts the calls on each file: roles, folders and which files matter follow from them."""
    operations: OperationCounts
    """Every source counts operations and bytes: the numbers of calls in a profile are never null."""
    processes: ProcessCounts
    """Every source knows which process used which file: that is what the data set is."""
    results: Results
    """All else that measures found."""
    formats_on_disk: Mapping[int, str] = field(default_factory=dict)
    """By file code, of files that are still on this machine: format by their first bytes."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """By attribute of the profile that is made of no result of a measure (`storage.shared`), or `renames`, or `times`
    (of what traces state about themselves): why the source lacks it."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """By attribute of the profile: other remarks of the source."""
    layouts: Mapping[int, FileLayout] = field(default_factory=dict)
    """By file code, of files whose layout on Lustre the source records."""
    mounts: Sequence[tuple[str, str]] = ()
    """(folder, type) of file systems that were mounted where the workload ran."""
    targets: FilesOnTargets | None = None
    """None where the source does not record which files are on which targets."""
    not_counted: Sequence[tuple[str, NotCounted]] = ()
    """Name of an app, and I/O of it that its tracer knows to have missed."""
    nodes: int | None = None
    """Nodes that the workload ran on, where recorded."""
    hidden_flushes: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))
    """Phases and files, a pair each, of flushes whose time is in that of writes."""
    extensions: Mapping[str, Plain] = field(default_factory=dict)
    """Results, by name, of measures that declare no type of result, such as those of plug-ins."""

    def of(self, result: type[Result]) -> Result | None:
        """See `Results.of`."""
        return self.results.of(result)

    def why(self, result: type[object]) -> str:
        """Why the source lacks it; see `Results.why`."""
        why = self.results.why(result)
        if why is None:
            raise ValueError(f"{result.__name__} is measured")
        return why
