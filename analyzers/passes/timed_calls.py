"""When calls took place, for what is found in all processes together: noted while they are measured, or from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.measures import busy_time
from vani.analyzers.passes.measure import Both, Collects
from vani.analyzers.passes.run_pass import Task, run_pass
from vani.analyzers.passes.scratch_file import ScratchFile, can_lie_in_memory
from vani.analyzers.passes.timed_groups import NotedGroup, NoteTimes, StoredGroup
from vani.analyzers.tables.int_table import IntTable
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Workload
from vani.engine.run import Engine

__all__ = ["TimedCalls"]

_MOST_NOTED = 16_000_000
"""Calls whose times stay in memory, in about 10 bytes each and at most 20."""

Partial = TypeVar("Partial")


def _stored_groups(task: Task) -> list[StoredGroup]:
    groups = task.store.row_groups(task.store.manifest.parts[task.part])
    return [StoredGroup(task.context, group) for group in groups if group.rows]


class TimedCalls:
    """When calls took place: of those at hand noted in the pass that measures them, of others in their files."""

    def __init__(
        self,
        workload: Workload,
        tasks: Sequence[Task],
        findings: SurveyFindings,
        listed: NDArray[np.int64],
        engine: Engine,
        constants: Sequence[object],
    ) -> None:
        self._at_hand = [task for task in tasks if not task.store.has_files or task.store.is_at_hand]
        self._in_files = [task for task in tasks if task.store.has_files and not task.store.is_at_hand]
        self._findings, self._engine, self._apps = findings, engine, len(workload.apps)
        self._rows = busy_time.rows_of_groups(workload.processes)
        self._numbers = np.full(workload.files, -1, np.int64)
        self._numbers[listed] = np.arange(len(listed))
        self._constants = [*constants, self._numbers]
        self._noted: list[NotedGroup] | None = None

    def noted_beside(self, wanted: Collects[Partial]) -> Partial:
        """What is collected in a pass over all calls, in which it is noted when they took place."""
        of_files = self._collected(wanted, self._in_files)
        if not self._at_hand:
            return of_files
        of_others, self._noted = self._collected(Both(wanted, self._notes()), self._at_hand)
        return wanted.combine([of_others, of_files]) if self._in_files else of_others

    def _notes(self) -> NoteTimes:
        calls = sum(task.store.manifest.parts[task.part].rows for task in self._at_hand)
        folder = next((task.store.scratch for task in self._at_hand if task.store.scratch), None)
        if folder is None or (calls <= _MOST_NOTED and not can_lie_in_memory()):
            return NoteTimes(self._numbers, None, self._rows)
        # Forks of this process read there what others noted: it is not sent from one to the other and back.
        file = ScratchFile(folder if calls > _MOST_NOTED else None)
        return NoteTimes(self._numbers, file, self._rows)

    def _collected(self, wanted: Collects[Partial], tasks: Sequence[Task]) -> Partial:
        return run_pass(wanted, self._findings, tasks, self._engine, self._constants, "measure")

    def busy(self) -> IntTable:
        """When any process was busy; see `busy_time.busy`."""
        if self._at_hand and self._noted is None:
            self._noted = self._collected(self._notes(), self._at_hand)
        found = self._engine.map(_stored_groups, self._in_files, stage="overlap", constants=self._constants)
        groups = [*(self._noted or ()), *(group for some in found for group in some)]
        return busy_time.busy(
            groups,
            self._findings,
            self._numbers,
            self._engine,
            workload=self._apps > 1,
            constants=self._constants,
        )
