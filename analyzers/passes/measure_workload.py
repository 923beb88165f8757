"""Runs the measures over the stores: a first pass for what others need to know, a second for the rest, then windows.

Each partition is read once per pass for all its measures. What passes between is small.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.formats_on_disk import formats_on_disk
from vani.analyzers.extensions import Plain, plain
from vani.analyzers.measurements import Measurements, Phases, PossibleExchanges, Results, TraceFacts
from vani.analyzers.measures import busy_time
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.processes import ProcessCounts
from vani.analyzers.measures.survey import Survey, SurveyResult, ends_of, join_busy, pause_floor_ns
from vani.analyzers.passes.measure import AnyMeasure, Together, one_of_many
from vani.analyzers.passes.run_pass import run_pass, tasks_of
from vani.analyzers.passes.timed_calls import TimedCalls
from vani.analyzers.phases.activity import Cells
from vani.analyzers.phases.phase_cuts import begins
from vani.analyzers.tables.int_table import IntTable
from vani.analyzers.tables.intervals import Intervals
from vani.analyzers.workload.renamed_files import Openings, lives_of
from vani.analyzers.workload.survey_findings import SurveyFindings
from vani.analyzers.workload.workload import Context, Workload
from vani.calls import FileClass
from vani.engine.executor import Executor
from vani.errors import InputError
from vani.plug_ins import described, plug_ins
from vani.store.manifest import Manifest
from vani.store.partial_results import PartialResults
from vani.store.read import Store

__all__ = ["exchanged", "measure", "measures", "trace_facts", "with_names"]

_ENTRY_POINTS = "vani.analyzers"
_OTHER_PASSES = frozenset({"survey", "busy"})
"""Names of what is measured in the first and in the last pass."""
_ORDER_IS_KNOWN = "the order of calls is known"

Partial = TypeVar("Partial")
Result = TypeVar("Result")


def measures() -> list[AnyMeasure]:
    """The measures of the second pass: those of the package, and those that are installed as plug-ins."""
    package = import_module("vani.analyzers.measures")
    found: list[AnyMeasure] = []
    for module in pkgutil.iter_modules(package.__path__):
        members = vars(import_module(f"vani.analyzers.measures.{module.name}"))
        for name in members.get("__all__", ()):
            candidate = members[name]
            if isinstance(candidate, type) and hasattr(candidate, "begin") and candidate is not Survey:
                found.append(one_of_many(candidate()))
    for point in plug_ins(_ENTRY_POINTS):
        try:
            loaded = point.load()()
            name, _ = loaded.name, loaded.finish
        except Exception as error:
            raise InputError(
                f"the measure {point.value!r} cannot be loaded ({described(error)})",
                where=f"plug-in {point.name}",
                todo="mend it or uninstall it",
            ) from error
        if name in _OTHER_PASSES.union(m.name for m in found):
            raise InputError(
                f"the measure {point.value!r} is called {name!r}, as another one is",
                where=f"plug-in {point.name}",
                todo="give it another name or uninstall it",
            )
        found.append(one_of_many(loaded))
    return found


class _Recalled(Protocol):
    """See `PartialResults.of`."""

    def __call__(
        self, name: str, about: Sequence[NDArray[Any] | str], make: Callable[[], Partial], /
    ) -> Partial: ...


def _made(name: str, about: Sequence[NDArray[Any] | str], make: Callable[[], Partial]) -> Partial:
    """Where nothing is recalled."""
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
) -> Measurements:
    """Measure a workload.

    Parameters
    ----------
    stores, contexts
        One per trace.
    phase_gap_s
        Pause that separates phases; None finds it from the data.
    list_files
        How many files to look at one by one, those with most I/O time; None for all.
    known
        What the passes found before, and where to put what they find.

    Raises
    ------
    CallsNeeded
        What is known does not serve, and the stores have no calls.
    """
    recalled: _Recalled = _made if known is None else known.of
    workload, contexts = with_names(workload, stores, contexts, executor, recalled)
    tasks = tasks_of(stores)
    survey = recalled("survey", (), lambda: run_pass(Survey(), None, tasks, executor, stores, contexts, "survey"))
    floor = pause_floor_ns(workload)
    busy = join_busy(survey.busy, floor)
    listed = _important(workload, survey.files, list_files)
    findings, gaps = _findings(workload, stores, survey, busy, floor, phase_gap_s, listed)
    wanted = Together(measures())
    # All else that findings hold follows from the survey.
    about: list[NDArray[Any] | str] = [one.name for one in wanted.measures]
    about += [findings.phase_start, findings.phase_app, listed]
    times = TimedCalls(workload, tasks, findings, listed, executor, stores, contexts)
    collected = recalled("measure", about, lambda: times.noted_beside(wanted))
    total = recalled("overlap", about, times.busy)
    results, extensions = _by_type(wanted.measures, wanted.finish(collected, workload, findings))
    results.append(busy_time.finish(total, findings.phases, len(listed), len(workload.apps)))
    every = Results(results, unknown={PossibleExchanges: _ORDER_IS_KNOWN})
    processes = _certain(every, ProcessCounts)
    return Measurements(
        workload=workload,
        traces=[trace_facts(store.manifest) for store in stores],
        phases=Phases(findings.phase_start, findings.phase_app, gaps, gap_given=phase_gap_s is not None),
        listed=listed,
        survey=Survey().finish(survey, workload, findings),
        operations=_certain(every, OperationCounts),
        processes=processes,
        results=every,
        formats_on_disk=formats_on_disk(workload, processes.files.file, listed),
        extensions=extensions,
    )


def _by_type(
    measured: Sequence[AnyMeasure], results: Sequence[object]
) -> tuple[list[object], dict[str, Plain]]:
    """Results of a declared type, and by name those of other measures."""
    typed: list[object] = []
    others: dict[str, Plain] = {}
    for one, result in zip(measured, results, strict=True):
        if one.result is None:
            others[one.name] = plain(result, one.name)
        elif type(result) is one.result:
            typed.append(result)
        else:
            raise TypeError(f"{one.name} gives {type(result).__name__} and declares {one.result.__name__}")
    return typed, others


def _certain(results: Results, wanted: type[Result]) -> Result:
    found = results.of(wanted)
    assert found is not None
    return found


def trace_facts(manifest: Manifest) -> TraceFacts:
    """What a store tells of its trace."""
    return TraceFacts(
        source=manifest.source,
        tool=manifest.tool,
        format=manifest.format,
        layout=manifest.layout,
        ranks=manifest.ranks,
        records=manifest.records,
        functions=manifest.functions,
        start_unix_s=manifest.start_unix_s,
        begin_ns=manifest.begin_ns,
        span_ns=manifest.span_ns,
        repaired_times=manifest.repaired_times,
        complete=manifest.complete,
        problems=manifest.problems,
        limits=manifest.limits,
        facts=manifest.facts,
    )


def with_names(
    workload: Workload,
    stores: Sequence[Store],
    contexts: Sequence[Context],
    executor: Executor,
    recalled: _Recalled = _made,
) -> tuple[Workload, Sequence[Context]]:
    """The workload with what its names stand for, which takes a look at all opens where files are renamed."""
    lives = lives_of(workload.renames, workload.files)
    if lives is None:
        return workload, contexts
    openings = Openings(lives)
    opened = recalled(
        "names",
        (),
        lambda: run_pass(openings, None, tasks_of(stores), executor, stores, contexts, "survey"),
    )
    workload = replace(workload, lives=openings.placed(opened))
    return workload, [replace(context, workload=workload) for context in contexts]


def _findings(
    workload: Workload,
    stores: Sequence[Store],
    survey: SurveyResult,
    busy: Intervals,
    floor: int,
    phase_gap_s: float | None,
    listed: NDArray[np.int64],
) -> tuple[SurveyFindings, list[int | None]]:
    starts: list[NDArray[np.int64]] = []
    apps, firsts = [], [0]
    gaps: list[int | None] = []
    trace_of_process = np.searchsorted(workload.process_base, np.arange(workload.processes), side="right") - 1
    app_of_process = np.array(workload.app_of_trace, np.int64)[trace_of_process]
    for app in range(len(workload.apps)):
        mine = busy.group == app
        start, end = busy.start[mine], busy.end[mine]
        gap: int | None = None
        if len(start):
            start, gap = begins(
                start,
                end,
                Cells.of(survey.activity.cells, np.flatnonzero(app_of_process == app)),
                runs=_runs(workload, stores, app),
                floor_ns=floor,
                gap_ns=None if phase_gap_s is None else round(phase_gap_s * 1e9),
            )
        starts.append(start)
        apps.append(np.full(len(start), app, np.int64))
        firsts.append(firsts[-1] + len(start))
        gaps.append(gap)
    linked = by_open = written_by_open = np.zeros(workload.files, np.bool_)
    linked_calls = 0
    if len(survey.files):
        written, read, opened_new, opened_read = exchanged(workload, survey.files)
        several = _of_several(workload, survey.files)
        linked = ((written | opened_new) & (read | opened_read) & several)[workload.final_name]
        by_open, written_by_open = (opened_new | opened_read)[workload.final_name], opened_new[workload.final_name]
        mine = linked[survey.files.keys]
        linked_calls = int((survey.files["reads"] + survey.files["writes"])[mine].sum())
    findings = SurveyFindings(
        np.concatenate(starts),
        np.concatenate(apps),
        np.array(firsts),
        ends_of(workload, survey),
        linked,
        by_open,
        written_by_open,
        survey.threaded,
        _listed_as(workload, survey.files, listed),
        linked_calls,
    )
    return findings, gaps


def _runs(workload: Workload, stores: Sequence[Store], app: int) -> NDArray[np.int64]:
    """When the traces of an app begin, of those that overlap in time the first."""
    spans = sorted(
        (shift + store.manifest.begin_ns, shift + store.manifest.span_ns)
        for shift, store, of in zip(workload.shift_ns, stores, workload.app_of_trace, strict=True)
        if of == app
    )
    found, reached = [], -1
    for start, end in spans:
        if start > reached:
            found.append(start)
        reached = max(reached, end)
    return np.array(found, np.int64)


def exchanged(workload: Workload, files: IntTable) -> tuple[NDArray[np.bool_], ...]:
    """Files (by last name) that were written, read, made anew without a traced write, opened without a traced read.

    Formatted output and input of streams leaves no records, the opens around it do.
    """
    final = workload.final_name[files.keys]

    def some(column: str) -> NDArray[np.bool_]:
        found = np.zeros(workload.files, np.bool_)
        found[final[files[column] > 0]] = True
        return found

    written, read = some("writes"), some("reads")
    return written, read, some("empties") & ~written, some("looks") & some("makes") & ~read


def _of_several(workload: Workload, files: IntTable) -> NDArray[np.bool_]:
    """Files (by last name) that several processes called."""
    final = workload.final_name[files.keys]
    lowest, highest = np.full(workload.files, workload.processes), np.full(workload.files, -1)
    np.minimum.at(lowest, final, files["first_process"])
    np.maximum.at(highest, final, files["last_process"])
    found: NDArray[np.bool_] = highest > lowest
    return found


def _used(files: IntTable) -> NDArray[np.int64]:
    """Codes of the files of the data set that a process opened or accessed."""
    return files.keys[files["uses"] > 0] if len(files) else np.empty(0, np.int64)


def _important(workload: Workload, survey: IntTable, most: int | None) -> NDArray[np.int64]:
    """Files of the data set that are listed: those that cost most time, then by name."""
    files = _used(survey)
    if not len(files):
        return files
    time = survey.at(files, "time")
    chosen = np.arange(len(files)) if most is None else np.argsort(-time, kind="stable")[: max(0, most)]
    order = sorted(chosen.tolist(), key=lambda i: (-int(time[i]), workload.paths[int(files[i])]))
    return files[np.array(order, dtype=np.int64)]


def _listed_as(workload: Workload, survey: IntTable, listed: NDArray[np.int64]) -> NDArray[np.int32] | None:
    """See `SurveyFindings.listed_as`."""
    if len(listed) == len(_used(survey)):
        return None
    found = np.where(workload.file_class == FileClass.DATASET, -1, np.arange(workload.files)).astype(np.int32)
    found[listed] = listed
    return np.append(found, np.int32(-1))
