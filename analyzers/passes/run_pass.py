"""A pass over the calls of all stores: each partition is read once for everything collected in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vani.analyzers.batch import Batch
from vani.analyzers.passes.measure import Collects
from vani.analyzers.workload import Context, SurveyFindings
from vani.engine.executor import Executor
from vani.store.read import Store


@dataclass(frozen=True)
class Task:
    """One partition: the number of its trace, and its own number among the parts of that trace's store."""

    trace: int
    part: int
    rows: int


def run_pass(
    measures: Sequence[Collects[Any]],
    findings: SurveyFindings | None,
    tasks: Sequence[Task],
    executor: Executor,
    stores: Sequence[Store],
    contexts: Sequence[Context],
    stage: str,
) -> list[Any]:
    """The combined partial result of each measure over all partitions."""
    combined: list[Any] = executor.reduce(
        _collect,
        # A long partition that starts last would keep all other workers waiting.
        sorted(tasks, key=lambda task: task.rows, reverse=True),
        partial(_combine, measures),
        stage=stage,
        broadcast=(measures, findings, stores, contexts),
    )
    return combined


def _collect(
    task: Task,
    measures: Sequence[Collects[Any]],
    findings: SurveyFindings | None,
    stores: Sequence[Store],
    contexts: Sequence[Context],
) -> list[Any]:
    """The partial result of each measure for one partition."""
    store, context = stores[task.trace], contexts[task.trace]
    collectors = [measure.chunk(context, findings) for measure in measures]
    columns = sorted({"layer", "flags"}.union(*(measure.columns for measure in measures)))
    for calls in store.batches(store.manifest.parts[task.part], columns):
        batch = Batch(context, calls, findings)
        for collector in collectors:
            collector.add(batch)
        # Release the memory, into which the next batch is decoded.
        del calls, batch
    return [collector.result() for collector in collectors]


def _combine(measures: Sequence[Collects[Any]], parts: Sequence[list[Any]]) -> list[Any]:
    return [measure.combine([part[i] for part in parts]) for i, measure in enumerate(measures)]


def tasks_of(stores: Sequence[Store]) -> list[Task]:
    """All partitions."""
    return [
        Task(trace, number, part.rows)
        for trace, store in enumerate(stores)
        for number, part in enumerate(store.manifest.parts)
    ]
