"""The quality of plans: measured times of jobs relative to the expected times, and to those before the plan."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from vani.centre.history.schema import PlanScore
from vani.errors import one_line
from vani.render.table import table
from vani.units import format_share

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


SCORE_HEAD: Final = (
    "job", "user", "jobs", "judged", "measured/expected", "eight of ten", "in range", "changed", "times as fast",
    "slower",
)  # fmt: skip


def scores_as_text(scores: Sequence[PlanScore]) -> str:
    """Write a line for each job name and user."""
    if not scores:
        return "No outcomes are stored yet (vani plan outcome).\n"
    return "\n".join(table(SCORE_HEAD, [score_row(score) for score in scores], left=(1,), all_rows=True)) + "\n"


def score_row(score: PlanScore) -> tuple[str, ...]:
    """The cells of a score; empty if a figure is unknown."""
    has_range = score.low is not None and score.high is not None
    return (
        one_line(score.name),
        one_line(score.user),
        f"{score.jobs:,}",
        f"{score.judged:,}",
        "" if score.ratio is None else f"{score.ratio:.2f}",
        f"{score.low:.2f} to {score.high:.2f}" if has_range else "",
        "" if score.within is None else format_share(score.within),
        f"{score.changed:,}",
        "" if score.gain is None else f"{score.gain:.2f}",
        f"{score.worse:,}",
    )
