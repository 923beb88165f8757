"""The quality of plans: measured times of jobs relative to the expected times, and to those before the plan."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.history.schema import PlanScore

if TYPE_CHECKING:
    from vani.centre.history.rows import PlannedRun

_WORSE: Final = 1.1
"""Factor over the time without the change from which on a job counts as worse (our choice)."""


def plan_scores(rows: Iterable[PlannedRun]) -> list[PlanScore]:
    """A score for each job name and user, those with the most jobs first."""
    by_name: defaultdict[tuple[str, str], list[PlannedRun]] = defaultdict(list)
    for row in rows:
        by_name[row.name, row.user].append(row)
    scores = [_score(name, user, some) for (name, user), some in by_name.items()]
    return sorted(scores, key=lambda score: (-score.jobs, score.name, score.user))


def _score(name: str, user: str, rows: list[PlannedRun]) -> PlanScore:
    judged = [row for row in rows if row.measured and row.expected]
    ratios = [row.measured / row.expected for row in judged if row.measured and row.expected]
    within = [
        row.low <= row.measured <= row.high
        for row in judged
        if row.measured is not None and row.low is not None and row.high is not None
    ]
    changed = [row for row in rows if row.changed]
    gains = [row.before / row.measured for row in changed if row.measured and row.before]
    low, high = np.quantile(ratios, [0.1, 0.9]).tolist() if ratios else (None, None)
    return PlanScore(
        name=name,
        user=user,
        jobs=len(rows),
        changed=len(changed),
        judged=len(judged),
        ratio=statistics.median(ratios) if ratios else None,
        low=low,
        high=high,
        within=sum(within) / len(within) if within else None,
        gain=statistics.median(gains) if gains else None,
        worse=sum(_WORSE * gain < 1 for gain in gains),
        reasons=sorted({row.reason for row in rows if row.reason}),
    )
