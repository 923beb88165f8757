"""Check that a folder's traces are one workload: runs that share no file, job or time are unrelated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from vani.calls import FileClass
from vani.errors import InputError
from vani.readers.trace_reader import KeepsCounts, TraceReader
from vani.units import format_count, format_seconds

_NEAR_S: Final = 3600.0
"""Our choice: a job's steps wait for each other for less time."""
_LONGEST_JOB_S: Final = 7 * 86400.0
"""Our choice: batch systems let few jobs run longer, and then reuse their ids."""


@dataclass(eq=False)
class _Run:
    """One trace: its head, and its files on request."""

    path: Path
    readers: list[TraceReader]

    @cached_property
    def span(self) -> tuple[float, float] | None:
        """Start and end, seconds since 1970; the end equals the start if only calls show it; None if not stored."""
        starts = [reader.start_unix_s for reader in self.readers if reader.start_unix_s is not None]
        if not starts:
            return None
        lengths = [r.counts().span_ns / 1e9 for r in self.readers if isinstance(r, KeepsCounts)]
        return min(starts), max(starts) + max(lengths, default=0.0)

    @cached_property
    def job(self) -> tuple[str | None, str | None] | None:
        """Id of its job and the user; None if the trace names neither."""
        jobs = [reader.counts().job for reader in self.readers if isinstance(reader, KeepsCounts)]
        return next(((job.id, job.user) for job in jobs if job.id or job.user), None)

    @cached_property
    def files(self) -> frozenset[str]:
        """Paths of its data set files."""
        tables = (reader.files() for reader in self.readers)
        return frozenset(
            path
            for table in tables
            for path, kind in zip(table["path"].to_pylist(), table["class"].to_pylist(), strict=True)
            if kind == FileClass.DATASET
        )

    def is_near(self, other: _Run) -> bool:
        """Whether two runs are less than an hour apart, and belong to one user if both users are known.

        Job ids do not distinguish runs, because without a batch system Darshan uses the process id.
        """
        if self.job is not None and other.job is not None and self.job[1] != other.job[1]:
            return False
        return self.gap(other) < _NEAR_S

    def gap(self, other: _Run) -> float:
        """Seconds from the end of the first run to the start of the other; 0 if a start is unknown."""
        if self.span is None or other.span is None:
            return 0.0
        return max(self.span[0], other.span[0]) - min(self.span[1], other.span[1])


def refuse_unrelated(readers: Sequence[TraceReader]) -> None:
    """Raise InputError if the traces form groups that have nothing to do with each other.

    Runs belong together if they are in one job, are of one user and less than an hour apart, or share a data set
    file; and so do runs that each belong to the same third one.
    """
    by_path: dict[Path, list[TraceReader]] = {}
    for reader in readers:
        by_path.setdefault(reader.path, []).append(reader)
    runs = [_Run(path, own) for path, own in by_path.items()]
    if len(runs) < 2:
        return
    runs.sort(key=lambda run: run.span[0] if run.span is not None else 0.0)
    group = np.arange(len(runs))
    of_job: dict[object, int] = {}
    latest: dict[object, int] = {}
    for number, run in enumerate(runs):
        if run.job is not None and run.job[0] is not None:
            step = of_job.get(run.job, number)
            if run.gap(runs[step]) < _LONGEST_JOB_S:
                _join(group, number, step)
            of_job[run.job] = number
        # Each user's run that ended last may still be near.
        user = None if run.job is None else run.job[1]
        before = latest.setdefault(user, number)
        if run.is_near(runs[before]):
            _join(group, number, before)
        if run.span is not None and run.span[1] >= (runs[before].span or (0.0, 0.0))[1]:
            latest[user] = number
    if len(set(group.tolist())) == 1:
        return
    first: dict[str, int] = {}
    for number, run in enumerate(runs):
        for path in run.files:
            _join(group, number, first.setdefault(path, number))
    groups = list(dict.fromkeys(group.tolist()))
    if len(groups) > 1:
        raise _refusal(runs, [runs[group.tolist().index(number)] for number in groups])


def _join(group: np.ndarray[tuple[int], np.dtype[np.int64]], run: int, other: int) -> None:
    if group[run] != group[other]:
        group[group == group[run]] = group[other]


def _refusal(runs: Sequence[_Run], of_groups: Sequence[_Run]) -> InputError:
    """An error that names the first run of two groups, and the time between them."""
    first, second = of_groups[0], of_groups[1]
    apart = ""
    if first.span is not None and second.span is not None:
        apart = f", {format_seconds(max(0.0, second.span[0] - first.span[0]))} apart"
    jobs = {run.job for run in runs if run.job is not None and run.job[0] is not None}
    of_jobs = f" of {format_count(len(jobs))} jobs" if len(jobs) > 1 else ""
    return InputError(
        f"{format_count(len(runs))} traces{of_jobs} are {format_count(len(of_groups))} runs that share no file and no "
        f"job ({first.path.name} and {second.path.name}{apart}): not one workload",
        todo="profile them one by one (`vani profile --each -o FOLDER ...`) or as one anyway (`--together`)",
    )
