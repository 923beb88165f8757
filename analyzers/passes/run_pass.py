"""A pass over the calls of all stores: each partition is read once for all that is collected in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from vani.analyzers.calls.batch import Batch
from vani.analyzers.passes.measure import Collects
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context
from vani.engine.executor import Executor
from vani.store.read import Store

__all__ = ["Task", "run_pass", "tasks_of"]

Partial = TypeVar("Partial")


@dataclass(frozen=True)
class Task:
    """One partition: the number of its trace, and its own among the parts of that trace's store."""

    trace: int
    part: int
    rows: int


def _run_part(
    task: Task,
    wanted: Collects[Partial],
    findings: SurveyFindings | None,
    stores: Sequence[Store],
    contexts: Sequence[Context],
) -> Partial:
    """One partition, once."""
    store, context = stores[task.trace], contexts[task.trace]
    collector = wanted.begin(context, findings)
    for calls in store.batches(
        store.manifest.parts[task.part], sorted(wanted.columns | {"layer", "flags"})
    ):
        collector.add(Batch(context, calls, findings))
        # The next one is decoded into its memory.
        del calls
    return collector.result()


def run_pass(
    wanted: Collects[Partial],
    findings: SurveyFindings | None,
    tasks: Sequence[Task],
    executor: Executor,
    stores: Sequence[Store],
    contexts: Sequence[Context],
    stage: str,
) -> Partial:
    """What is collected in a pass over all partitions."""
    collected: Partial = executor.reduce(
        _run_part,
        # A long one that began last would keep all other workers waiting.
        sorted(tasks, key=lambda task: task.rows, reverse=True),
        wanted.combine,
        stage=stage,
        broadcast=(wanted, findings, stores, contexts),
    )
    return collected


def tasks_of(stores: Sequence[Store]) -> list[Task]:
    return [
        Task(trace, number, part.rows)
        for trace, store in enumerate(stores)
        for number, part in enumerate(store.manifest.parts)
    ]
