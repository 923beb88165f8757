"""Phases of a run from the times of its files, for sources without the time of each call (Tarazu, section 6.3).

The time of a file runs from its first call to its last. Its bytes, metadata operations and time in calls are
spread evenly over that time and summed over all files, stretch by stretch. Time in a stretch that is not I/O becomes
computing before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from vani.centre.plan.schema.scenario import ScenarioPhase

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity

MOST_STRETCHES: Final = 200
"""Most stretches. If there are more, the time is cut into equal ones."""
_LEAST_S: Final = 1e-6
"""Duration of a file whose first call is its last."""


def phases_of_files(files: Sequence[FileEntity], processes: int) -> tuple[list[ScenarioPhase], float]:
    """Phases in chronological order, and seconds from the start of the workload to the first call on a file.

    Parameters
    ----------
    files
        Files of one app. Those without bytes or times are left out.
    processes
        Number of processes of the app.
    """
    rows = np.array(
        [
            (
                file.first_s,
                file.last_s,
                file.io.bytes.read or 0,
                file.io.bytes.written or 0,
                file.io.ops.metadata if file.io.ops is not None else 0,
                file.io.time_s.total
                if file.io.time_s is not None and file.io.time_s.total is not None
                else 0.0,
                file.processes,
            )
            for file in files
            if file.first_s is not None
            and file.last_s is not None
            and (file.io.bytes.read or file.io.bytes.written)
        ],
        dtype=np.float64,
    )
    if not len(rows):
        return [], 0.0
    first, last, read, written, metadata, busy, users = rows.T
    last = np.maximum(last, first + _LEAST_S)
    edges = np.unique(np.concatenate([first, last]))
    if len(edges) > MOST_STRETCHES + 1:
        edges = np.linspace(edges[0], edges[-1], MOST_STRETCHES + 1)
    low, high = edges[:-1, None], edges[1:, None]
    # Share of each file in each stretch, shape (stretches, files).
    part = np.maximum(0.0, np.minimum(last, high) - np.maximum(first, low)) / (last - first)
    # Processes work in parallel: at least the time of the busiest file, and at least the total spread over all.
    in_calls = np.maximum((part * (busy / np.maximum(users, 1))).max(axis=1), part @ busy / processes)
    pauses = np.maximum(0.0, np.diff(edges) - in_calls)
    phases: list[ScenarioPhase] = []
    pause = 0.0
    directions: tuple[tuple[Literal["read", "write"], np.ndarray], ...] = (("read", read), ("write", written))
    all_opens = part @ metadata
    for stretch in range(len(part)):
        pause += float(pauses[stretch])
        opens = float(all_opens[stretch])
        for operation, moved in directions:
            own = part[stretch] * moved
            count = int(np.count_nonzero(own))
            if count:
                phases.append(
                    ScenarioPhase(
                        operation=operation,
                        bytes=float(own.sum()),
                        files=count,
                        opens=opens,
                        compute_s=pause,
                        # Phases with different numbers of files use different files.
                        file_set=f"{count} files",
                    )
                )
                pause = opens = 0.0
    return phases, float(edges[0])
