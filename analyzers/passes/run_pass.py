"""A pass over the calls of all stores: each partition is read once for all that is collected in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from vani.analyzers.calls.batch import Batch
from vani.analyzers.passes.measure import Collects
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context
from vani.engine.run import Engine
from vani.store.read import Store

__all__ = ["Task", "run_pass", "tasks_of"]

Partial = TypeVar("Partial")


@dataclass(frozen=True, eq=False)
class Task:
    store: Store
    part: int
    context: Context


def _run_part(task: Task, wanted: Collects[Partial], findings: SurveyFindings | None) -> Partial:
    """One partition, once."""
    collector = wanted.begin(task.context, findings)
    for calls in task.store.batches(
        task.store.manifest.parts[task.part], sorted(wanted.columns | {"layer", "flags"})
    ):
        collector.add(Batch(task.context, calls, findings))
        # The next one is decoded into its memory.
        del calls
    return collector.result()


def run_pass(
    wanted: Collects[Partial],
    findings: SurveyFindings | None,
    tasks: Sequence[Task],
    engine: Engine,
    constants: Sequence[object],
    stage: str,
) -> Partial:
    """What is collected in a pass over all partitions."""
    apart = not any(task.store.has_files for task in tasks)
    return engine.reduce(
        partial(_run_part, wanted=wanted, findings=findings),
        # A long one that began last would keep all other workers waiting.
        sorted(tasks, key=_rows, reverse=True),
        wanted.combine,
        stage=stage,
        constants=constants,
        calls=sum(map(_rows, tasks)) if apart else 0,
    )


def _rows(task: Task) -> int:
    return task.store.manifest.parts[task.part].rows


def tasks_of(stores: Sequence[Store], contexts: Sequence[Context]) -> list[Task]:
    return [
        Task(store, part, context)
        for store, context in zip(stores, contexts, strict=True)
        for part in range(len(store.manifest.parts))
    ]
