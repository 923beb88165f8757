"""Behaviours of runs by their phases: runs that go through the same phases one after the other are one behaviour.

Phases of all runs of a category are clustered by their figures (bytes read, written, and whatever else is known, per
second), as runs are by their totals; how long a phase lasts does not count, as the paper has it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vani.history.behaviour.ids import behaviour_ids
from vani.history.behaviour.phases import Phase

__all__ = ["phase_ids"]


def phase_ids(runs: Sequence[Sequence[Phase]], step_s: Sequence[float]) -> tuple[list[list[int]], list[int]]:
    """Number the phases of a category, and by their sequences its runs, both from 0 as they appear.

    Parameters
    ----------
    runs
        The phases of each run, in order of submission.
    step_s
        Seconds between two samples, of each run.

    Returns
    -------
    Of each run the ids of its phases (neighbours that are alike are still listed), and the id of its behaviour.
    """
    means = [np.array(phase.means) / step for one, step in zip(runs, step_s, strict=True) for phase in one]
    table = np.array(means) if means else np.zeros((0, 1))
    ids = behaviour_ids(np.zeros(len(table), np.int64), table).tolist()
    of_runs: list[list[int]] = []
    known: dict[tuple[int, ...], int] = {}
    behaviours = []
    for one in runs:
        mine, ids = ids[: len(one)], ids[len(one) :]
        of_runs.append(mine)
        # A phase that was cut in two by chance is still one.
        sequence = tuple(phase for place, phase in enumerate(mine) if not place or phase != mine[place - 1])
        behaviours.append(known.setdefault(sequence, len(known)))
    return of_runs, behaviours
