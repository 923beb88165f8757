"""When calls took place, for what is found in all processes together: noted while they are measured, or from files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.measures import busy_time
from vani.analyzers.passes.measure import Both, Collects
from vani.analyzers.passes.run_pass import Task, run_pass
from vani.analyzers.passes.scratch_file import ScratchFile
from vani.analyzers.passes.timed_groups import NotedGroup, NoteTimes, StoredGroup
from vani.analyzers.tables.int_table import IntTable
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.engine.executor import Executor
from vani.store.read import Store

__all__ = ["TimedCalls"]

_MOST_NOTED = 16_000_000
"""Calls whose times stay in memory, in about 10 bytes each and at most 20."""

Partial = TypeVar("Partial")


def _stored_groups(task: Task, stores: Sequence[Store], contexts: Sequence[Context]) -> list[StoredGroup]:
    store, shift = stores[task.trace], contexts[task.trace].workload.shift_ns[task.trace]
    groups = store.row_groups(store.manifest.parts[task.part])
    return [StoredGroup(task.trace, shift, group) for group in groups if group.rows]


class TimedCalls:
    """When calls took place: of those at hand noted in the pass that measures them, of others in their files."""

    def __init__(
        self,
        workload: Workload,
        tasks: Sequence[Task],
        findings: SurveyFindings,
        listed: NDArray[np.int64],
        executor: Executor,
        stores: Sequence[Store],
        contexts: Sequence[Context],
    ) -> None:
        self._at_hand, self._in_files = list[Task](), list[Task]()
        for task in tasks:
            store = stores[task.trace]
            (self._at_hand if not store.has_files or store.is_at_hand else self._in_files).append(task)
        self._stores, self._contexts = stores, contexts
        self._findings, self._executor, self._apps = findings, executor, len(workload.apps)
        self._rows = busy_time.rows_of_groups(workload.processes)
        self._numbers = np.full(workload.files, -1, np.int64)
        self._numbers[listed] = np.arange(len(listed))
        self._noted: list[NotedGroup] | None = None

    def noted_beside(self, wanted: Collects[Partial]) -> Partial:
        """What is collected in a pass over all calls, in which it is noted when they took place."""
        of_files = self._collected(wanted, self._in_files)
        if not self._at_hand:
            return of_files
        of_others, self._noted = self._collected(Both(wanted, self._notes()), self._at_hand)
        return wanted.combine([of_others, of_files]) if self._in_files else of_others

    def _notes(self) -> NoteTimes:
        calls = sum(task.rows for task in self._at_hand)
        folders = (self._stores[task.trace].scratch for task in self._at_hand)
        folder = next((folder for folder in folders if folder), None)
        file = None if folder is None or calls <= _MOST_NOTED else ScratchFile(folder)
        return NoteTimes(self._numbers, file, self._rows)

    def _collected(self, wanted: Collects[Partial], tasks: Sequence[Task]) -> Partial:
        return run_pass(
            wanted, self._findings, tasks, self._executor, self._stores, self._contexts, "measure"
        )

    def busy(self) -> IntTable:
        """When any process was busy; see `busy_time.busy`."""
        if self._at_hand and self._noted is None:
            self._noted = self._collected(self._notes(), self._at_hand)
        found = self._executor.map(
            _stored_groups, self._in_files, stage="overlap", broadcast=(self._stores, self._contexts)
        )
        groups = [*(self._noted or ()), *(group for some in found for group in some)]
        return busy_time.busy(
            groups,
            self._findings,
            self._numbers,
            self._executor,
            workload=self._apps > 1,
            contexts=self._contexts,
        )
