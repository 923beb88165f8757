"""Storage targets in order of the time that their files lose, over all runs of a period."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vani.schema.history import TargetRow

__all__ = ["check_target_times", "ranked_targets"]

_LEAST_TARGETS: Final = 4
"""A median over fewer says nothing; the same as of rule LUS009."""
_SLOW: Final = 5.0
"""Times as long as on the others, from which on a target is slow: that of rule LUS009."""
_LEAST_LOST_S: Final = 1.0
_LEAST_FILES: Final = 2.0
"""One file may wait for its own process; that of rule LUS009, too."""

Category = tuple[str, str, str, int]


@dataclass
class _Target:
    """The means of a target, one of each run."""

    files: float = 0.0
    lost_s: float = 0.0
    seconds: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


def check_target_times(text: str | None) -> None:
    """Raise ValueError where a text is not what `target_times` writes."""
    for row in json.loads(text) if text is not None else ():
        target, *sums = row
        if not (isinstance(target, int) and target >= 0 and len(sums) == 3):
            raise ValueError("no storage target")
        if not (all(isinstance(value, float) and 0 <= value < math.inf for value in sums) and sums[0] > 0):
            raise ValueError("no times of a storage target")


def ranked_targets(rows: Iterable[tuple[str, str, str, int, str]]) -> list[TargetRow]:
    """Rank targets by the seconds that files on them take longer than files of runs like theirs on other targets.

    Runs are alike that have application, user and number of processes in common. Their files on a target are held
    against the median over all targets that such runs use, of which there must be four; larger files may take longer.

    Parameters
    ----------
    rows
        Of each run the mount, application, user, processes, and what `target_times` gave.
    """
    runs: dict[Category, list[list[list[float]]]] = {}
    for mount, application, user, processes, text in rows:
        runs.setdefault((mount, application, user, processes), []).append(json.loads(text))
    targets: dict[tuple[str, int], _Target] = {}
    for (mount, *_), some in runs.items():
        together: dict[int, np.ndarray] = {}
        for run in some:
            for target, *sums in run:
                together[int(target)] = together.get(int(target), np.zeros(3)) + sums
        if len(together) < _LEAST_TARGETS:
            continue
        all_sums = np.array(list(together.values()))
        usual_s, usual_bytes = np.median(all_sums[:, 1:] / all_sums[:, :1], axis=0)
        for run in some:
            for target, files, seconds, moved in run:
                usual = usual_s * max(1.0, moved / files / usual_bytes)
                own = targets.setdefault((mount, int(target)), _Target())
                own.files += files
                own.lost_s += max(0.0, seconds - files * usual)
                own.seconds.append(seconds / files)
                if usual > 0:
                    own.times.append(seconds / files / usual)
    ranked = [_row(mount, target, own) for (mount, target), own in targets.items()]
    return sorted(ranked, key=lambda row: (-row.lost_s, row.mount, row.target))


def _row(mount: str, target: int, own: _Target) -> TargetRow:
    times = float(np.median(own.times)) if own.times else 1.0
    return TargetRow(
        mount=mount,
        target=target,
        runs=len(own.seconds),
        files=own.files,
        mean_s=float(np.mean(own.seconds)),
        median_s=float(np.median(own.seconds)),
        times=times,
        lost_s=own.lost_s,
        slow=times >= _SLOW and own.lost_s >= _LEAST_LOST_S and own.files >= _LEAST_FILES,
    )
