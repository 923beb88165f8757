"""What was measured in a workload: all that entities see, wherever it comes from.

Sources (decoded calls, calls counted on grammars) end in one `Measurements`; `vani.analyzers.assemble` makes the
profile of it. What a source cannot tell is None, and it says why in `unknown`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import World
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.call_costs import FunctionCosts
from vani.analyzers.measures.clocks import ClockSkew
from vani.analyzers.measures.exchanges import ExchangeCounts
from vani.analyzers.measures.extents import ProcessExtents
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.measures.library_time import LibraryTimes
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.past_end import BeyondEnds
from vani.analyzers.measures.processes import ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles
from vani.analyzers.measures.transfer_size import SizeCounts

__all__ = ["Measurements", "Phases", "PossibleExchanges", "TraceFacts"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TraceFacts:
    """What a trace tells of itself. Times are nanoseconds of the ranks' clocks."""

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
    """When it begins by its own clocks: below 0 where one was set back behind the start of the tracer."""
    span_ns: int | None
    """End of the last call; None where no time was read."""
    repaired_times: int | None
    complete: bool | None
    problems: Sequence[str]
    limits: Sequence[tuple[str, str]]
    """What the trace can never tell, by attribute, and why."""
    facts: Sequence[tuple[str, Sequence[str], int]]
    """Library calls whose arguments were kept: function, arguments, how often."""


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class PossibleExchanges:
    """Who may have read what another wrote, where the order of calls is not known."""

    between_apps: bool
    processes: NDArray[np.bool_]
    """Shape (apps,): between processes of the app."""
    files: Ints | None
    """Codes (by last name) of files through which it may have been; None: any file."""


@dataclass(frozen=True)
class Measurements:
    """One field per measure, named like it; the first of them are what every source counts."""

    world: World
    traces: Sequence[TraceFacts]
    phases: Phases
    listed: Ints
    """File codes of the files that are listed, the most important first."""
    survey: SurveyedFiles
    operations: OperationCounts
    transfer_size: SizeCounts
    call_costs: FunctionCosts
    processes: ProcessCounts
    libraries: LibraryUse
    access_pattern: PatternCounts | None = None
    footprint: Touched | None = None
    past_end: BeyondEnds | None = None
    io_time: SpentTime | None = None
    busy: BusyTimes | None = None
    library_time: LibraryTimes | None = None
    exchanges: ExchangeCounts | None = None
    extents: ProcessExtents | None = None
    lengths: FileLengths | None = None
    clocks: ClockSkew | None = None
    possible_exchanges: PossibleExchanges | None = None
    """Instead of `exchanges`."""
    formats_on_disk: Mapping[int, str] = field(default_factory=dict)
    """By file code, of files that are still on this machine: format by their first bytes."""
    unknown: Mapping[str, str] = field(default_factory=dict)
    """By field, or by attribute of the profile: why the source cannot tell it, or not all of it."""
    remarks: Mapping[str, str] = field(default_factory=dict)
    """By attribute of the profile: what else the source says of it."""
    extensions: Mapping[str, Any] = field(default_factory=dict)
    """Results of measures that have no field, such as those of plug-ins, by name."""

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.default is None and getattr(self, one.name) is None and one.name not in self.unknown:
                raise ValueError(f"{one.name} is None, and no reason is given")
