"""The workload before any call is read, and each trace's place in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.workload.renamed_files import Lives, Renames

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Workload:
    """The workload before any call is read, from the manifests of its stores."""

    paths: Sequence[str]
    """Path of each global file code; traces that name the same path share its code."""
    file_class: NDArray[np.int8]
    apps: tuple[str, ...]
    app_of_trace: tuple[int, ...]
    process_base: tuple[int, ...]
    """First global process number of each trace."""
    processes: int
    shift_ns: tuple[int, ...]
    """Start of each trace relative to the first, in ns."""
    span_ns: int
    """End of the last call in ns."""
    known_sizes: Ints
    """Shape (files,): size of a file before the run according to job.yaml, or `NO_VALUE`."""
    final_name: Ints
    """Shape (files,): one code for all names among which files were renamed, if the order of calls is unknown;
    otherwise each name's own code, and `Batch.file` maps files to their last name."""
    functions: tuple[str, ...] = ()
    """Names of all traces' functions, by global code."""
    renames: Renames = field(default_factory=Renames.none)
    lives: Lives | None = None
    """Files that names denote over time; None if no data set file was renamed."""

    @property
    def files(self) -> int:
        return len(self.paths)


@dataclass(frozen=True, eq=False)
class Context:
    """A trace's place in the workload: the global codes for its own codes."""

    workload: Workload
    trace: int
    file_codes: NDArray[np.int64]
    """Global code for each of the trace's own file codes."""
    function_codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(1, np.int32))
    """Global code for each of the trace's own function codes; the last entry is for a function without a name."""

    @property
    def app(self) -> int:
        return self.workload.app_of_trace[self.trace]
