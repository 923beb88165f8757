"""Storage targets ranked by the time lost on their files, over all runs of a period: `vani history targets`."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Final, Literal

import click
import numpy as np
from pydantic import Field

from vani.centre.columns import Floats
from vani.centre.history.runs import read
from vani.centre.history.runs.store import Store
from vani.centre.history.schema import TargetRow
from vani.centre.history.settings import PeriodSettings, json_list
from vani.cli.options import settings_options
from vani.errors import InputError, one_line
from vani.render.table import table
from vani.schema.settings import Option
from vani.units import counted, format_number, format_seconds

_LEAST_TARGETS: Final = 4
"""Minimum number of targets for a meaningful median; the same as in rule LUS009."""
_SLOW: Final = 5.0
"""Factor over the other targets' time from which on a target is slow; the same as in rule LUS009."""
_LEAST_LOST_S: Final = 1.0
_LEAST_FILES: Final = 2.0
"""A single file may wait for its own process; the same as in rule LUS009."""

_JOBS: Final = 3
_AT_ONCE: Final = 10_000
"""Number of runs parsed before their numbers become columns."""
_MAX_TARGETS: Final = 1 << 32
"""Limit of target numbers; as a factor, it combines two numbers into one that a double represents exactly."""

Category = tuple[str, str, str, int]


def check_target_times(text: str | None) -> None:
    """Raise ValueError if a text is not in the format of `target_times`."""
    for row in json.loads(text) if text is not None else ():
        target, *sums = row
        if not (isinstance(target, int) and target >= 0 and len(sums) == 3):
            raise ValueError("no storage target")
        if not (all(isinstance(value, float) and 0 <= value < math.inf for value in sums) and sums[0] > 0):
            raise ValueError("no times of a storage target")


Row = tuple[str, str, str, int, str | None, str]


def ranked_targets(rows: Iterable[Row], job: str | None = None) -> list[TargetRow]:
    """Rank targets by the extra seconds of their files, compared with files of similar runs on other targets.

    Runs are similar if they have the same application, user and number of processes. Their files on a target are
    compared with the median over all targets that such runs use, which must be at least four. Larger files may take
    longer.

    Parameters
    ----------
    rows
        Mount, application, user, processes, job and `target_times` text of each run.
    job
        Rank by the losses of this job, compared with all similar runs.

    Raises
    ------
    InputError
        No run of that job has target times.
    """
    categories: dict[Category, int] = {}
    jobs: list[str | None] = []
    parts = [_values(some, categories, jobs) for some in read.pieces(rows, _AT_ONCE)]
    if job is not None and job not in jobs:
        what = f"has no run of job {one_line(job)} whose log names storage targets"
        raise InputError(what, where="the history", todo="leave out --job")
    if not categories:
        return []
    category, run, target, files, seconds, moved = np.concatenate(parts, axis=1)
    same, inverse = np.unique(category * _MAX_TARGETS + target, return_inverse=True)
    sums = np.stack([np.bincount(inverse, values, len(same)) for values in (files, seconds, moved)])
    usual = np.full((2, len(categories)), np.nan)
    # Values are in ascending order, so those of a category are together.
    for number, begin, end in _runs_of(same // _MAX_TARGETS):
        if end - begin >= _LEAST_TARGETS:
            usual[:, int(number)] = np.median(sums[1:, begin:end] / sums[0, begin:end], axis=1)
    usual_s, usual_bytes = usual[:, category.astype(np.int64)]
    mean = seconds / files
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = usual_s * np.fmax(1.0, moved / files / usual_bytes)
        times = mean / expected
    known = np.isfinite(usual_s)
    if job is not None:
        known &= np.array([name == job for name in jobs])[run.astype(np.int64)]
    mounts = list(dict.fromkeys(mount for mount, *_ in categories))
    of_mount = np.array([mounts.index(mount) for mount, *_ in categories])[category.astype(np.int64)]
    order = np.lexsort((target, of_mount))
    order = order[known[order]]
    place = of_mount[order] * _MAX_TARGETS + target[order]
    ranked = []
    for number, begin, end in _runs_of(place):
        own = order[begin:end]
        lost = np.maximum(0.0, seconds[own] - files[own] * expected[own])
        worst = [jobs[int(run[own[at]])] for at in np.argsort(-lost, kind="stable")[:_JOBS] if lost[at] > 0]
        at, target_number = divmod(int(number), _MAX_TARGETS)
        figures = files[own], mean[own], times[own], lost
        ranked.append(_row(mounts[at], target_number, *figures, dict.fromkeys(worst)))
    return sorted(ranked, key=lambda row: (-row.lost_s, row.mount, row.target))


def _values(rows: Iterable[Row], categories: dict[Category, int], jobs: list[str | None]) -> Floats:
    """Category, run, target, files, seconds and bytes for each target of some runs, shape (6, n)."""
    first = len(jobs)
    lengths, codes, flat = [], [], []
    for mount, application, user, processes, job, text in rows:
        run = json.loads(text)
        jobs.append(job)
        codes.append(categories.setdefault((mount, application, user, processes), len(categories)))
        lengths.append(len(run))
        flat += run
    values = np.array(flat, np.float64).reshape(-1, 4).T
    of_runs = np.array([codes, range(first, first + len(codes))], np.float64)
    return np.concatenate([np.repeat(of_runs, lengths, axis=1), values])


def _runs_of(ascending: Floats) -> Iterator[tuple[float, int, int]]:
    """Each value of an ascending column, with the begin and end of its indices."""
    ends = np.append(np.flatnonzero(np.diff(ascending)) + 1, len(ascending)).tolist()
    begin = 0
    for end in ends if len(ascending) else []:
        yield float(ascending[begin]), begin, end
        begin = end


def _row(
    mount: str, target: int, files: Floats, mean: Floats, times: Floats, lost: Floats, jobs: Iterable[str | None],
) -> TargetRow:
    # If such runs take no time, nothing is slow.
    finite = times[np.isfinite(times)]
    typical, lost_s = float(np.median(finite)) if len(finite) else 1.0, float(lost.sum())
    return TargetRow(
        mount=mount, target=target, runs=len(mean), files=float(files.sum()), mean_s=float(mean.mean()),
        median_s=float(np.median(mean)), times=typical, lost_s=lost_s,
        slow=typical >= _SLOW and lost_s >= _LEAST_LOST_S and float(files.sum()) >= _LEAST_FILES,
        jobs=[job for job in jobs if job is not None],
    )  # fmt: skip


def targets_as_text(rows: Sequence[TargetRow], limit: int) -> str:
    """Write the first rows, and which targets to examine."""
    if not rows:
        return "No run lists four or more storage targets. Darshan logs with the Lustre module list them.\n"
    head = ("mount", "OST", "runs", "files", "time per file: mean", "median", "times the others", "lost")
    cells = [
        (
            one_line(row.mount), str(row.target), f"{row.runs:,}", format_number(row.files),
            format_seconds(row.mean_s), format_seconds(row.median_s),
            format_number(row.times) + (" SLOW" if row.slow else ""), format_seconds(row.lost_s),
        )
        for row in rows[:limit]
    ]
    slow = [row for row in rows if row.slow]
    lines = [f"{counted(len(rows), 'storage target')}", *table(head, cells, left=(), all_rows=True)]
    lines += [
        f"Slow: OST {row.target} of {one_line(row.mount)}. `lfs osts {one_line(row.mount)}` shows its name and state."
        f"{_of_jobs(row)}"
        for row in slow[:limit]
    ] or ["No target is slow in most runs."]
    return "\n".join(lines) + "\n"


def _of_jobs(row: TargetRow) -> str:
    names = ", ".join(map(one_line, row.jobs))
    return f" Largest losses: job{'s' if len(row.jobs) > 1 else ''} {names}." if names else ""


class TargetsSettings(PeriodSettings):
    """Which losses count."""

    job: Annotated[str | None, Option(metavar="NUMBER")] = Field(
        None, description="Time that this job of the batch system lost, compared with similar runs."
    )


def history_targets(settings: TargetsSettings | None = None, /, **fields: Any) -> list[TargetRow]:
    """Rank Lustre targets by the extra time of files on them, compared with similar runs on other targets.

    Returns
    -------
    list of TargetRow
        The target with the largest loss first; empty if the logs name no targets, or too few.

    Raises
    ------
    InputError
        There is no history, a day is invalid, or the job is unknown.
    """
    wanted = TargetsSettings.of(settings, **fields)
    period = wanted.period
    with Store(wanted.db).reading() as connection:
        return ranked_targets(read.target_times(connection, period), wanted.job)


class _Shown(TargetsSettings):
    limit: int = Field(10, ge=1, description="Maximum number of rows.")
    format: Literal["text", "json"] = Field("text", description="Output format.")


@click.command("targets")
@settings_options(_Shown)
def command(settings: _Shown) -> None:
    """Rank Lustre targets (OSTs) by the I/O time lost on them.

    Files on a target are compared with those of similar runs (application, user, processes) on all other targets.
    Darshan logs with the Lustre module, binary or printed, name the targets.
    """
    rows, limit = history_targets(settings), settings.limit
    click.echo(json_list(rows[:limit]) if settings.format == "json" else targets_as_text(rows, limit), nl=False)
