"""The passes over a workload's calls: a survey, the measuring pass, and busy time.

Each pass reads every partition once for all its measures. Only small results are exchanged between them.
"""

from __future__ import annotations

import pkgutil
import tempfile
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from vani.analyzers import measurements
from vani.analyzers.batch import Batch
from vani.analyzers.entities.files import formats_on_disk
from vani.analyzers.int_table import NO_VALUE, IntTable
from vani.analyzers.measures import busy_time
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.operations import OperationCounts, ProcessCounts
from vani.analyzers.measures.survey import Survey, join_busy, pause_floor_ns
from vani.analyzers.passes import Collects, Measure, declared_result
from vani.analyzers.passes.call_times import NotedTimes, NoteTimes, StoredTimes, needs_room
from vani.analyzers.passes.findings_of_survey import files_to_list, findings_of
from vani.analyzers.workload import NEVER, Context, Lives, SurveyFindings, Workload, lives_of
from vani.calls import Flag
from vani.columns import Ints, Numbers
from vani.counts import FileLayout
from vani.engine.executor import Executor
from vani.errors import InputError
from vani.plug_ins import described, plug_ins
from vani.store.partial_results import PartialResults
from vani.store.read import Manifest, Store

_ORDER_IS_KNOWN = "the order of calls is known"
_MAX_IN_MEMORY = 8_000_000
"""Maximum number of calls whose times stay in memory, about 13 bytes each."""

Partial = TypeVar("Partial")
Result = TypeVar("Result")


class _Recalled(Protocol):
    """See `PartialResults.of`."""

    def __call__(
        self, name: str, about: Sequence[Numbers | str], make: Callable[[], Partial], /
    ) -> Partial: ...


def _nothing_recalled(name: str, about: Sequence[Numbers | str], make: Callable[[], Partial]) -> Partial:
    del name, about
    return make()


def measure(
    workload: Workload,
    stores: Sequence[Store],
    contexts: Sequence[Context],
    executor: Executor,
    *,
    phase_gap_s: float | None = None,
    list_files: int | None = 100,
    known: PartialResults | None = None,
) -> measurements.Measurements:
    """Measure a workload.

    Parameters
    ----------
    stores, contexts
        One per trace.
    phase_gap_s
        Pause that separates phases; None derives it from the data.
    list_files
        Number of files to examine individually, those with most I/O time; None for all.
    known
        Results of earlier passes; new results are stored there, too.

    Raises
    ------
    CallsNeeded
        The known results are not sufficient, and the stores have no calls.
    """
    recalled: _Recalled = _nothing_recalled if known is None else known.of
    workload, contexts = with_names(workload, stores, contexts, executor, recalled)
    tasks = tasks_of(stores)
    (survey,) = recalled(
        "survey", (), lambda: run_pass([Survey()], None, tasks, executor, stores, contexts, "survey")
    )
    floor = pause_floor_ns(workload)
    busy = join_busy(survey.busy, floor)
    listed = files_to_list(workload, survey.files, list_files)
    findings, gaps = findings_of(workload, stores, survey, busy, floor, phase_gap_s, listed)
    measures = all_measures()
    # All other findings follow from the survey.
    about: list[Numbers | str] = [measure.name for measure in measures]
    about += [findings.phase_start, findings.phase_app, listed]
    with ExitStack() as stack:
        second = _SecondPass(workload, tasks, findings, listed, executor, stores, contexts, stack)
        combined = recalled("measure", about, lambda: second.combined(measures))
        total = recalled("overlap", about, second.busy)
    typed, extensions = _by_type(
        measures,
        [m.aggregate(part, workload, findings) for m, part in zip(measures, combined, strict=True)],
    )
    typed.append(busy_time.finish(total, findings.phases, len(listed), len(workload.apps)))
    results = measurements.Results(typed, unknown={measurements.PossibleExchanges: _ORDER_IS_KNOWN})
    processes = _certain(results, ProcessCounts)
    traces = [trace_facts(store.manifest) for store in stores]
    return measurements.Measurements(
        workload=workload,
        traces=traces,
        phases=measurements.Phases(findings.phase_start, findings.phase_app, gaps, gap_given=phase_gap_s is not None),
        listed=listed,
        survey=Survey().aggregate(survey, workload, findings),
        operations=_certain(results, OperationCounts),
        processes=processes,
        results=results,
        formats_on_disk=formats_on_disk(workload, processes.files.file, listed),
        layouts=_layouts(traces, workload, results.of(FileLengths)),
        mounts=[(args[0], args[1]) for trace in traces for name, args, _ in trace.facts if name == "mount"],
        extensions=extensions,
    )


def _layouts(
    traces: Sequence[measurements.TraceFacts], workload: Workload, lengths: FileLengths | None
) -> dict[int, FileLayout]:
    """Layouts by file that the traces state; of a composite layout, the component in which the file ends."""
    stated = {args[0]: args[1:] for trace in traces for name, args, _ in trace.facts if name == "layout"}
    layouts: dict[int, FileLayout] = {}
    for code, path in enumerate(workload.paths) if stated else ():
        if path not in stated:
            continue
        # Score-P writes DEFAULT or WIDE in place of an unknown number.
        counts, sizes, begins = ([int(n) if n.isdecimal() else 0 for n in text.split(", ")] for text in stated[path])
        length = NO_VALUE if lengths is None else int(lengths.length[code])
        # Where the end of a composite file is unknown, so is its component.
        at = bisect_right(begins, max(0, length - 1)) - 1 if length != NO_VALUE or len(begins) == 1 else None
        count, size = (None if at is None else of[at] or None for of in (counts, sizes))
        layouts[code] = FileLayout(count, size, len(counts))
    return layouts


class _SecondPass:
    """The measuring pass, and busy time from the times of calls.

    The pass records the times of calls, except for those in a store's files, which are read again from these. If there
    are many calls, their times are recorded in files of a temporary folder, which is removed with the `stack`.
    """

    def __init__(
        self,
        workload: Workload,
        tasks: Sequence[Task],
        findings: SurveyFindings,
        listed: Ints,
        executor: Executor,
        stores: Sequence[Store],
        contexts: Sequence[Context],
        stack: ExitStack,
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
        self._stack = stack
        self._noted: list[NotedTimes] | None = None

    def combined(self, measures: Sequence[Measure[Any, Any]]) -> list[Any]:
        """The combined partial result of each measure; also records the times of calls."""
        noted: list[Any] = []
        if self._at_hand:
            *noted, self._noted = self._run([*measures, self._note_times()], self._at_hand)
        if not self._in_files:
            return noted
        stored = self._run(measures, self._in_files)
        if not noted:
            return stored
        return [m.combine(parts) for m, *parts in zip(measures, noted, stored, strict=True)]

    def busy(self) -> IntTable:
        """Busy time of the workload; see `busy_time.busy`."""
        if self._at_hand and self._noted is None:
            (self._noted,) = self._run([self._note_times()], self._at_hand)
        stored = self._executor.map(
            _stored_times, self._in_files, stage="overlap", broadcast=(self._stores, self._contexts)
        )
        return busy_time.busy(
            [*(self._noted or ()), *(group for groups in stored for group in groups)],
            self._findings,
            self._numbers,
            self._executor,
            workload=self._apps > 1,
            contexts=self._contexts,
        )

    def _run(self, measures: Sequence[Any], tasks: Sequence[Task]) -> list[Any]:
        return run_pass(measures, self._findings, tasks, self._executor, self._stores, self._contexts, "measure")

    def _note_times(self) -> NoteTimes:
        folders = (self._stores[task.trace].scratch for task in self._at_hand)
        scratch = next((folder for folder in folders if folder), None)
        folder = None
        if scratch is not None and sum(task.rows for task in self._at_hand) > _MAX_IN_MEMORY:
            folder = _temporary_folder(scratch, self._stack)
        return NoteTimes(self._numbers, self._rows, folder)


def _temporary_folder(within: Path, stack: ExitStack) -> Path:
    """A new folder, which is removed with the stack.

    Raises
    ------
    NoRoomError
        No folder can be created.
    """
    with needs_room(within):
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vani-", dir=within)))


def _stored_times(task: Task, stores: Sequence[Store], contexts: Sequence[Context]) -> list[StoredTimes]:
    store, shift = stores[task.trace], contexts[task.trace].workload.shift_ns[task.trace]
    groups = store.row_groups(store.manifest.parts[task.part])
    return [StoredTimes(task.trace, shift, group) for group in groups if group.rows]


def _by_type(
    measures: Sequence[Measure[Any, Any]], results: Sequence[object]
) -> tuple[list[object], dict[str, measurements.Plain]]:
    """Results of a declared type, and the other measures' results by name."""
    typed: list[object] = []
    extensions: dict[str, measurements.Plain] = {}
    for measure, result in zip(measures, results, strict=True):
        declared = declared_result(measure)
        if declared is None:
            extensions[measure.name] = measurements.plain(result, measure.name)
        elif type(result) is declared:
            typed.append(result)
        else:
            raise TypeError(f"{measure.name} gives {type(result).__name__} and declares {declared.__name__}")
    return typed, extensions


def _certain(results: measurements.Results, wanted: type[Result]) -> Result:
    result = results.of(wanted)
    assert result is not None
    return result


def trace_facts(manifest: Manifest) -> measurements.TraceFacts:
    """Facts about a trace, from the manifest of its store."""
    shared = (field.name for field in fields(measurements.TraceFacts) if hasattr(manifest, field.name))
    return measurements.TraceFacts(**{name: getattr(manifest, name) for name in shared})


def with_names(
    workload: Workload,
    stores: Sequence[Store],
    contexts: Sequence[Context],
    executor: Executor,
    recalled: _Recalled = _nothing_recalled,
) -> tuple[Workload, Sequence[Context]]:
    """The workload with the files that its names denote; if files were renamed, this requires a pass over all opens."""
    lives = lives_of(workload.renames, workload.files)
    if lives is None:
        return workload, contexts
    openings = Openings(lives)
    tasks = tasks_of(stores)
    (opened,) = recalled(
        "names", (), lambda: run_pass([openings], None, tasks, executor, stores, contexts, "survey")
    )
    workload = replace(workload, lives=openings.placed(opened))
    return workload, [replace(context, workload=workload) for context in contexts]


class Openings:
    """A measure with a separate pass, for the first open of each name after each of its turns."""

    name = "openings"
    columns = frozenset({"file", "start_ns"})

    def __init__(self, lives: Lives) -> None:
        self._lives = lives

    def chunk(self, context: Context, findings: SurveyFindings | None) -> _OpeningsCollector:
        return _OpeningsCollector(self._lives)

    def combine(self, parts: Sequence[Ints]) -> Ints:
        first: Ints = np.min([np.full(len(self._lives.renamed), NEVER), *parts], axis=0)
        return first

    def placed(self, opened: Ints) -> Lives:
        """The lives with the times found; a name that is not opened between two renames has no file there."""
        lives = self._lives
        opened_by_turn = opened.copy()
        for a, b in zip(lives.first[:-1].tolist(), lives.first[1:].tolist(), strict=True):
            opened_by_turn[a:b] = np.minimum.accumulate(opened_by_turn[a:b][::-1])[::-1]
        return replace(lives, opened=opened_by_turn)


class _OpeningsCollector:
    def __init__(self, lives: Lives) -> None:
        self._lives = lives
        self._opened = np.full(len(lives.renamed), NEVER)

    def add(self, batch: Batch) -> None:
        lives = self._lives
        opens = np.flatnonzero((batch.flags & Flag.OPEN) != 0)
        place = lives.place[batch.named[opens]]
        opens, place = opens[place >= 0], place[place >= 0]
        start = batch.start[opens]
        turns = lives.turns(lives.renamed, place, start)
        behind = turns > 0
        np.minimum.at(self._opened, (lives.first[place] + turns - 1)[behind], start[behind])

    def result(self) -> Ints:
        return self._opened


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


_PACKAGE = "vani.analyzers.measures"
_ENTRY_POINTS = "vani.analyzers"
_OTHER_PASSES = frozenset({"survey", "busy"})
"""Names of the measures of the first and the last pass."""


def all_measures() -> list[Measure[Any, Any]]:
    """An instance of each measure.

    Raises
    ------
    InputError
        A plug-in cannot be loaded, or its measure has another one's name.
    """
    measures: list[Measure[Any, Any]] = []
    for module in pkgutil.iter_modules(import_module(_PACKAGE).__path__):
        defining = import_module(f"{_PACKAGE}.{module.name}")
        for candidate in vars(defining).values():
            own = isinstance(candidate, type) and candidate.__module__ == defining.__name__
            if own and hasattr(candidate, "chunk") and candidate is not Survey:
                measures.append(candidate())
    for point in plug_ins(_ENTRY_POINTS):
        try:
            measure = point.load()()
            name, *_ = measure.name, measure.chunk, measure.combine, measure.aggregate
        except Exception as error:
            raise InputError(
                f"the measure {point.value!r} cannot be loaded ({described(error)})",
                where=f"plug-in {point.name}",
                todo="fix it or uninstall it",
            ) from error
        if name in _OTHER_PASSES.union(m.name for m in measures):
            raise InputError(
                f"the measure {point.value!r} is called {name!r}, as another one is",
                where=f"plug-in {point.name}",
                todo="give it another name or uninstall it",
            )
        measures.append(measure)
    return measures


def extension_names() -> list[str]:
    """Names of the measures whose results the profile contains as extensions."""
    return [measure.name for measure in all_measures() if declared_result(measure) is None]
