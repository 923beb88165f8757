"""Measurements of a workload: the input of all entities, from any source.

Every source (decoded calls, calls counted on grammars) produces one `Measurements`, which `vani.analyzers.assemble`
converts to a profile. Fields are results that every source must provide: without the files, their users and the number
of calls there is no profile. Other results are looked up by their type, and are None if the source lacks them; the
source then states the reason.

Results of measures without a field in the schema: numbers, texts, lists and mappings that a profile can contain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeVar

import numpy as np

from vani.analyzers.measures.operations import OperationCounts, ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles
from vani.analyzers.workload import Workload
from vani.columns import Bools, Ints
from vani.counts import FileLayout, JobFacts, NotCounted
from vani.errors import InputError
from vani.schema.profile import AppDependency

_DEEPEST = 16

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def plain(result: object, name: str) -> Plain:
    """A measure's result as plain values; numpy numbers become Python numbers.

    Raises
    ------
    InputError
        The result is, or contains, anything else.
    """
    return _plain(result, name, f"extensions.{name}", 0)


def _plain(value: object, name: str, where: str, depth: int) -> Plain:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: _plain(element, name, f"{where}.{key}", depth + 1) for key, element in value.items()}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_plain(element, name, f"{where}[{i}]", depth + 1) for i, element in enumerate(value)]
    what = f"{value}" if isinstance(value, float) else f"a {type(value).__name__}"
    raise InputError(
        f"its `aggregate` gives {what} for {where}, which a profile cannot contain",
        where=f"measure {name!r}",
        todo="give numbers, texts, lists and mappings by text",
    )


Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class TraceFacts:
    """Facts about a trace that are known without reading calls. Times are nanoseconds on the ranks' clocks."""

    source: str
    tool: str
    format: str
    layout: str
    ranks: int
    records: int
    functions: Mapping[str, int]
    """Number of calls by function, most frequent first."""
    start_unix_s: float | None
    begin_ns: int
    """Start on the trace's own clocks: negative if one was set back to before the start of the tracer."""
    span_ns: int | None
    """End of the last call; None if no times were read."""
    repaired_times: int | None
    complete: bool | None
    problems: Sequence[str]
    limits: Sequence[tuple[str, str]]
    """Attributes that the trace can never provide, with reasons."""
    facts: Sequence[tuple[str, Sequence[str], int]]
    """Library calls whose arguments were kept: function, arguments, count."""
    job: JobFacts = field(default_factory=JobFacts)
    hints_passed: int | None = None
    """Number of MPI-IO opens and views with hints, for sources that only count these."""

    @property
    def has_results(self) -> bool:
        """Whether the tracer records return values, so that bytes are those that were moved."""
        return self.tool in ("strace", "dftracer", "otf2")


@dataclass(frozen=True, eq=False)
class FilesOnTargets:
    """Files and their storage targets; shape (pairs,) each, one pair per file and target."""

    file: Ints
    target: Ints
    bytes: Ints
    """Bytes that were moved; each target gets an equal share of a file's bytes."""
    read_ns: Ints
    """Time in reads of the whole file, not only on this target, averaged over processes."""
    write_ns: Ints
    of_system: Mapping[int, int]
    """Number of targets of each file's file system, if known."""


@dataclass(frozen=True, eq=False)
class Phases:
    """Phases, app by app and in order of time; if no times are known, each app is one phase."""

    start_ns: Ints
    """Shape (phases,): start of each phase."""
    app: Ints
    """Shape (phases,): app of each phase."""
    gap_ns: Sequence[int | None]
    """Pause that separates each app's phases; None if it has no I/O, or no times are known."""

    gap_given: bool = False
    """Whether the user set the pause, instead of it being found from the data."""

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, eq=False)
class PossibleExchanges:
    """Files through which processes may have read what others wrote, if the order of calls is unknown."""

    between_apps: bool
    processes: Bools
    """Shape (apps,): whether processes of the app may have done so."""
    files: Ints | None
    """Codes (by last name) of the possible files; None for any file."""
    exchanged: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Files among these through which data certainly passed."""
    dependencies: Sequence[AppDependency] = ()
    """Dependencies between apps if `between_apps` is False, known from the order of runs."""


class Results:
    """Results of measures by type; immutable.

    Parameters
    ----------
    results
        At most one of each type.
    unknown
        By type: reason why the source lacks all or part of it.
    otherwise
        Reason for types in neither `results` nor `unknown`; None if the source has everything.
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
        """The result of this type; None if the source cannot provide it, for the reason returned by `why`.

        Raises
        ------
        ValueError
            The source lacks it without a reason.
        """
        known = self._by_type.get(result)
        if isinstance(known, result):
            return known
        if self.why(result) is None:
            raise ValueError(f"{result.__name__} is not measured, and no reason is given")
        return None

    def why(self, result: type[object]) -> str | None:
        """Reason why the source lacks all or part of it; None if it has all of it."""
        why = self._unknown.get(result)
        return self._otherwise if why is None and result not in self._by_type else why

    def without(self, result: type[object], why: str) -> Results:
        """A copy without one of the results."""
        others = [other for type_, other in self._by_type.items() if type_ is not result]
        return Results(others, unknown={**self._unknown, result: why}, otherwise=self._otherwise)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measurements of a workload; see the module's docstring."""

    workload: Workload
    traces: Sequence[TraceFacts]
    phases: Phases
    listed: Ints
    """Codes of the listed files, the most important first."""
    survey: SurveyedFiles
    """Calls on each file, from which roles, folders and important files follow; every source has them."""
    operations: OperationCounts
    """Operations and bytes; every source has them, so the numbers of calls in a profile are never null."""
    processes: ProcessCounts
    """Which process used which file, which defines the data set; every source has it."""
    results: Results
    """All other results of measures."""
    formats_on_disk: Mapping[int, str] = field(default_factory=dict)
    """Formats by file code, from the first bytes of files that still exist on this machine."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """Reasons why the source lacks a value, by attributes of the profile that come from no measure (`storage.shared`),
    or by `renames` or `times` (for the facts that traces state about themselves)."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """Other remarks of the source, by attribute of the profile."""
    layouts: Mapping[int, FileLayout] = field(default_factory=dict)
    """Lustre layouts by file code, for files whose layout the source records."""
    mounts: Sequence[tuple[str, str]] = ()
    """(folder, type) of file systems that were mounted where the workload ran."""
    targets: FilesOnTargets | None = None
    """None if the source does not record which files are on which targets."""
    not_counted: Sequence[tuple[str, NotCounted]] = ()
    """Name of an app, and I/O that its tracer knows to have missed."""
    nodes: int | None = None
    """Number of nodes on which the workload ran, if recorded."""
    hidden_flushes: tuple[Ints, Ints] = (np.empty(0, np.int64), np.empty(0, np.int64))
    """Pairs of phase and file with flushes whose time is part of write time."""
    extensions: Mapping[str, Plain] = field(default_factory=dict)
    """Results, by measure name, of measures that declare no result type, such as those of plug-ins."""

    def of(self, result: type[Result]) -> Result | None:
        """See `Results.of`."""
        return self.results.of(result)

    def why(self, result: type[object]) -> str:
        """Reason why the source lacks it; see `Results.why`."""
        why = self.results.why(result)
        if why is None:
            raise ValueError(f"{result.__name__} is measured")
        return why


def files_with_most(paths: Sequence[str], files: Ints, most: int | None, *amounts: Ints) -> Ints:
    """The files to list: those with the largest amounts, the first of which counts most, then by path.

    Parameters
    ----------
    paths
        Path of each file of the workload.
    files, amounts
        Codes of files, and amounts of each of them, shape (n,) each.
    most
        Maximum number of files; None for all.
    """
    falling = [-amount for amount in amounts]
    chosen = np.arange(len(files)) if most is None else np.lexsort(falling[::-1])[: max(0, most)]
    order = sorted(chosen.tolist(), key=lambda i: (*(int(amount[i]) for amount in falling), paths[int(files[i])]))
    return files[np.array(order, np.int64)]
