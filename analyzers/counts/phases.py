"""Phases of traced segments, found like those of complete traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.access_classes import NAMES
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.counts.wording import OTHERWISE, UNKNOWN
from vani.analyzers.measurements import Measurements, Phases, Results, TraceFacts
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.busy_time import WIDTH, BusyTimes
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.processes import FileUsers, ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles, join_busy, pause_floor_ns
from vani.analyzers.measures.transfer_size import SizeCounts
from vani.analyzers.phases.activity import Cells, bucket_ns
from vani.analyzers.phases.phase_cuts import begins
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.intervals import merge
from vani.analyzers.tables.keys import ALL_KINDS, KINDS, LAYERS, pack, unpack
from vani.analyzers.workload.survey_findings import BUCKETS, MOMENTS
from vani.calls import Kind, Layer
from vani.distinct import distinct

Ints = NDArray[np.int64]


def phases_of_calls(segments: TracedSegments, traces: Sequence[TraceFacts]) -> Measurements | None:
    """Phases in the traced segments, which consist only of POSIX reads and writes.

    None if there are no segments, or if some counted calls were not kept.
    """
    rows = segments.rows
    posix = rows.included & (rows["layer"] == Layer.POSIX)
    if not len(segments) or not segments.whole[posix].all():
        return None
    phases = found_phases(segments)
    count = len(phases)
    phase = phase_of_calls(segments, phases)
    nothing = np.empty(0, np.int64)
    extents, sizes = segments.extents(phase), segments.sizes(phase)
    of_phase, of_file, side = unpack(extents.group, segments.phase_file_widths) if len(extents) else (nothing,) * 3
    of_sizes = unpack(sizes.first, segments.phase_file_widths)
    spent = np.zeros((count + 1, KINDS + 1), np.int64)
    spent[:count] = segments.spent(phase, count)
    busy = np.zeros((count + 1, WIDTH), np.int64)
    # Rounded times may add up to less than the union.
    busy[:count] = np.minimum(segments.busy(phase, count), spent[:count, [*range(KINDS), Kind.WRITE, ALL_KINDS]])
    workload, apps = rows.workload, len(rows.workload.apps)
    results = [
        SpentTime(
            nothing,
            nothing,
            nothing,
            nothing,
            spent,
            np.zeros((apps, KINDS + 1), np.int64),
            np.zeros(workload.processes, np.int64),
            np.zeros((apps, LAYERS), np.int64),
        ),
        BusyTimes(
            busy, np.zeros((apps, WIDTH), np.int64), np.empty((0, WIDTH), np.int64), np.zeros(WIDTH, np.int64)
        ),
        SizeCounts(
            of_sizes[0].astype(np.int32),
            of_sizes[1].astype(np.int32),
            of_sizes[2].astype(np.int8),
            sizes.second,
            sizes.count,
        ),
        _pattern(segments, phase),
        Touched.each_alone(of_phase, of_file, side, extents.start, extents.end),
    ]
    members = np.unique(np.stack([phase, segments.process]), axis=1)[0]
    return Measurements(
        workload=workload,
        traces=traces,
        phases=phases,
        listed=nothing,
        survey=SurveyedFiles(IntTable()),
        operations=_operations(segments, phase),
        processes=ProcessCounts(
            FileUsers(*(nothing,) * 4),
            nothing,
            nothing,
            np.bincount(members, minlength=count).astype(np.int64),
        ),
        results=Results(results, unknown=UNKNOWN, otherwise=OTHERWISE),
    )


def found_phases(segments: TracedSegments) -> Phases:
    workload, floor = segments.rows.workload, pause_floor_ns(segments.rows.workload)
    busy = join_busy(merge(segments.app, segments.start, np.maximum(segments.end, segments.start + 1)), floor)
    cells, of_cells = _activity(segments), np.array(workload.app_of_trace)
    bases = np.array(workload.process_base, np.int64)
    starts: list[Ints] = []
    gaps: list[int | None] = []
    for app in range(len(workload.apps)):
        of_app = busy.group == app
        gap, begin = None, busy.start[of_app]
        if len(begin):
            trace = np.searchsorted(bases, cells.process, side="right") - 1
            begin, gap = begins(
                begin,
                busy.end[of_app],
                cells.where(of_cells[trace] == app),
                runs=_runs(segments, app),
                floor_ns=floor,
            )
        starts.append(begin)
        gaps.append(gap)
    apps = np.repeat(np.arange(len(starts)), [len(start) for start in starts])
    return Phases(np.concatenate([np.empty(0, np.int64), *starts]), apps, gaps)


def _runs(segments: TracedSegments, app: int) -> Ints:
    """Start times of the app's runs; of runs that overlap in time, only the first."""
    workload = segments.rows.workload
    traces = distinct(segments.trace[segments.app == app])
    spans = merge(
        np.zeros(len(traces), np.int64),
        np.array([segments.start[segments.trace == trace].min() for trace in traces.tolist()], np.int64),
        np.array([segments.end[segments.trace == trace].max() + 1 for trace in traces.tolist()], np.int64),
    )
    begun = np.array(workload.shift_ns, np.int64)[traces]
    return np.array([begun[begun <= start].max(initial=0) for start in spans.start.tolist()], np.int64)


def _activity(segments: TracedSegments) -> Cells:
    moment = np.minimum(segments.start // bucket_ns(segments.rows.workload.span_ns), BUCKETS)
    ones, nothing = np.ones(len(segments), np.int64), np.zeros(len(segments), np.int64)
    reads = segments.kind == Kind.READ
    table = group(
        pack((segments.process, moment), MOMENTS),
        {
            "start": segments.start,
            "end": segments.end,
            "read": np.where(reads, segments.size, 0),
            "written": np.where(reads, 0, segments.size),
            "data": ones,
            "opens": nothing,
            "calls": ones,
        },
        {"start": "min", "end": "max"},
    )
    return Cells.of(table, distinct(segments.process))


def phase_of_calls(segments: TracedSegments, phases: Phases) -> Ints:
    """Phase of each call: the app's last phase that begins no later than the call."""
    phase = np.zeros(len(segments), np.int64)
    for app in distinct(segments.app).tolist():
        of_app, own = segments.app == app, np.flatnonzero(phases.app == app)
        place = np.searchsorted(phases.start_ns[own], segments.start[of_app], side="right") - 1
        phase[of_app] = own[np.maximum(place, 0)]
    return phase


def _operations(segments: TracedSegments, phase: Ints) -> OperationCounts:
    reads = (segments.kind == Kind.READ).astype(np.int64)
    widths = segments.phase_file_widths[:2]
    columns = {
        "reads": reads,
        "writes": 1 - reads,
        "bytes_read": segments.size * reads,
        "bytes_written": segments.size * (1 - reads),
        "first": segments.start,
        "last": segments.end,
    }
    cells = group(pack((phase, segments.file), widths), columns, {"first": "min", "last": "max"})
    of_phase, file = unpack(cells.keys, widths)
    nothing = np.zeros(len(cells), np.int64)
    known = {f.name: cells[f.name] if f.name in columns else nothing for f in fields(OperationCounts)}
    return OperationCounts(**known | {"phase": of_phase, "file": file})


def _pattern(segments: TracedSegments, phase: Ints) -> PatternCounts:
    cells, _ = segments.classes(phase)
    of_phase, file = unpack(cells.keys, segments.phase_file_widths[:2])
    nothing = np.empty(0, np.int64)
    return PatternCounts(
        of_phase,
        file,
        {name: cells[name] for name in NAMES},
        nothing,
        nothing,
        dict.fromkeys(NAMES, nothing),
        Strides(nothing, nothing, nothing),
    )
