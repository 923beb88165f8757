"""Findings of the survey that the second pass needs: phases, listed files, and files that link processes."""

from collections.abc import Sequence

import numpy as np

from vani.analyzers.activity import Cells
from vani.analyzers.int_table import IntTable
from vani.analyzers.intervals import Intervals
from vani.analyzers.measurements import files_with_most
from vani.analyzers.measures.survey import SurveyResult, ends_of
from vani.analyzers.phase_starts import begins
from vani.analyzers.workload import SurveyFindings, Workload
from vani.calls import FileClass
from vani.columns import Bools, Int32s, Ints
from vani.store.read import Store


def findings_of(
    workload: Workload,
    stores: Sequence[Store],
    survey: SurveyResult,
    busy: Intervals,
    floor: int,
    phase_gap_s: float | None,
    listed: Ints,
) -> tuple[SurveyFindings, list[int | None]]:
    """Findings of the survey for the second pass, and the gap in ns that separates each app's phases.

    Parameters
    ----------
    busy
        When each app was busy, ignoring pauses up to `floor` ns.
    phase_gap_s
        Pause that separates phases; None derives it from the data.
    listed
        Codes of the listed files.
    """
    starts: list[Ints] = []
    apps, firsts = [], [0]
    gaps: list[int | None] = []
    trace_of_process = np.searchsorted(workload.process_base, np.arange(workload.processes), side="right") - 1
    app_of_process = np.array(workload.app_of_trace, np.int64)[trace_of_process]
    for app in range(len(workload.apps)):
        own = busy.group == app
        start, end = busy.start[own], busy.end[own]
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
        operations = survey.files["reads"] + survey.files["writes"]
        linked_calls = int(operations[linked[survey.files.keys]].sum())
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


def _runs(workload: Workload, stores: Sequence[Store], app: int) -> Ints:
    """Start times of an app's traces; of traces that overlap in time, only the first."""
    spans = sorted(
        (shift + store.manifest.begin_ns, shift + store.manifest.span_ns)
        for shift, store, own_app in zip(workload.shift_ns, stores, workload.app_of_trace, strict=True)
        if own_app == app
    )
    starts, reached = [], -1
    for start, end in spans:
        if start > reached:
            starts.append(start)
        reached = max(reached, end)
    return np.array(starts, np.int64)


def exchanged(workload: Workload, files: IntTable) -> tuple[Bools, ...]:
    """Files (by last name) that were written, read, recreated without a traced write, opened without a traced read.

    Formatted stream I/O leaves no records, but the opens around it do.
    """
    final = workload.final_name[files.keys]

    def with_any(column: str) -> Bools:
        is_any = np.zeros(workload.files, np.bool_)
        is_any[final[files[column] > 0]] = True
        return is_any

    written, read = with_any("writes"), with_any("reads")
    opened_to_read = with_any("looks") & with_any("makes") & ~read
    return written, read, with_any("empties") & ~written, opened_to_read


def _of_several(workload: Workload, files: IntTable) -> Bools:
    """Files (by last name) that several processes used in calls."""
    final = workload.final_name[files.keys]
    lowest, highest = np.full(workload.files, workload.processes), np.full(workload.files, -1)
    np.minimum.at(lowest, final, files["first_process"])
    np.maximum.at(highest, final, files["last_process"])
    several: Bools = highest > lowest
    return several


def _used(files: IntTable) -> Ints:
    """Codes of the data set's files that any process opened or accessed."""
    return files.keys[files["uses"] > 0] if len(files) else np.empty(0, np.int64)


def files_to_list(workload: Workload, survey: IntTable, most: int | None) -> Ints:
    """The data set files to list: those with most time first, then by name."""
    files = _used(survey)
    return files_with_most(workload.paths, files, most, survey.at(files, "time"))


def _listed_as(workload: Workload, survey: IntTable, listed: Ints) -> Int32s | None:
    """See `SurveyFindings.listed_as`."""
    if len(listed) == len(_used(survey)):
        return None
    in_dataset = workload.file_class == FileClass.DATASET
    listed_as = np.where(in_dataset, -1, np.arange(workload.files)).astype(np.int32)
    listed_as[listed] = listed
    return np.append(listed_as, np.int32(-1))
