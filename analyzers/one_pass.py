"""A pass over the calls of all stores: each partition is read once for all that is collected in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from vani.analyzers.batch import Batch
from vani.analyzers.facts import Facts
from vani.analyzers.measure import Collects
from vani.analyzers.world import Context
from vani.engine.run import Engine
from vani.store.read import Store

__all__ = ["Task", "collected_in", "tasks_of"]

Partial = TypeVar("Partial")


@dataclass(frozen=True, eq=False)
class Task:
    store: Store
    part: int
    context: Context


def _run_part(task: Task, wanted: Collects[Partial], facts: Facts | None) -> Partial:
    """One partition, once."""
    collector = wanted.begin(task.context, facts)
    for calls in task.store.batches(
        task.store.manifest.parts[task.part], sorted(wanted.columns | {"layer", "flags"})
    ):
        collector.add(Batch(task.context, calls, facts))
        # The next one is decoded into its memory.
        del calls
    return collector.result()


def collected_in(
    wanted: Collects[Partial],
    facts: Facts | None,
    tasks: Sequence[Task],
    engine: Engine,
    constants: Sequence[object],
    stage: str,
) -> Partial:
    """What is collected in a pass over all partitions."""
    apart = not any(task.store.has_files for task in tasks)
    return engine.reduce(
        partial(_run_part, wanted=wanted, facts=facts),
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
