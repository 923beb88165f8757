"""Phases of data calls that were kept one by one: found as those of whole traces are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.access_classes import NAMES
from vani.analyzers.activity import Cells, bucket_ns
from vani.analyzers.counts.kept import KeptCalls
from vani.analyzers.counts.wording import OTHERWISE, UNKNOWN
from vani.analyzers.facts import BUCKETS, MOMENTS
from vani.analyzers.intervals import merge
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.keys import ALL_KINDS, KINDS, LAYERS, pack, unpack
from vani.analyzers.measurements import Measurements, Phases, Results, TraceFacts
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.busy_time import WIDTH, BusyTimes
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.processes import FileUsers, ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles, join_busy, pause_floor_ns
from vani.analyzers.measures.transfer_size import SizeCounts
from vani.analyzers.phase_cuts import begins
from vani.calls import Kind, Layer
from vani.distinct import distinct

__all__ = ["found_phases", "phase_of_calls", "phases_of_calls"]

Ints = NDArray[np.int64]


def phases_of_calls(kept: KeptCalls, traces: Sequence[TraceFacts]) -> Measurements | None:
    """What the kept calls tell of phases: reads and writes of POSIX, and nothing else.

    None where there are none, or where some of those that were counted were not kept.
    """
    rows = kept.rows
    posix = rows.included & (rows["layer"] == Layer.POSIX)
    if not len(kept) or not kept.whole[posix].all():
        return None
    phases = found_phases(kept)
    count = len(phases)
    phase = phase_of_calls(kept, phases)
    nothing = np.empty(0, np.int64)
    extents, sizes = kept.extents(phase), kept.sizes(phase)
    of_phase, of_file, side = unpack(extents.group, kept.cell_widths) if len(extents) else (nothing,) * 3
    of_sizes = unpack(sizes.first, kept.cell_widths)
    spent = np.zeros((count + 1, KINDS + 1), np.int64)
    spent[:count] = kept.spent(phase, count)
    busy = np.zeros((count + 1, WIDTH), np.int64)
    # Rounding of times that are added up may leave less than the union.
    busy[:count] = np.minimum(kept.busy(phase, count), spent[:count, [*range(KINDS), Kind.WRITE, ALL_KINDS]])
    world, apps = rows.world, len(rows.world.apps)
    results = [
        SpentTime(
            nothing,
            nothing,
            nothing,
            nothing,
            spent,
            np.zeros((apps, KINDS + 1), np.int64),
            np.zeros(world.processes, np.int64),
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
        _pattern(kept, phase),
        Touched.each_alone(of_phase, of_file, side, extents.start, extents.end),
    ]
    members = np.unique(np.stack([phase, kept.process]), axis=1)[0]
    return Measurements(
        world=world,
        traces=traces,
        phases=phases,
        listed=nothing,
        survey=SurveyedFiles(Keyed()),
        operations=_operations(kept, phase),
        processes=ProcessCounts(
            FileUsers(*(nothing,) * 4),
            nothing,
            nothing,
            np.bincount(members, minlength=count).astype(np.int64),
        ),
        results=Results(results, unknown=UNKNOWN, otherwise=OTHERWISE),
    )


def found_phases(kept: KeptCalls) -> Phases:
    world, floor = kept.rows.world, pause_floor_ns(kept.rows.world)
    busy = join_busy(merge(kept.app, kept.start, np.maximum(kept.end, kept.start + 1)), floor)
    cells, of_cells = _activity(kept), np.array(world.app_of_trace)
    bases = np.array(world.process_base, np.int64)
    starts: list[Ints] = []
    gaps: list[int | None] = []
    for app in range(len(world.apps)):
        mine = busy.group == app
        gap, begin = None, busy.start[mine]
        if len(begin):
            trace = np.searchsorted(bases, cells.process, side="right") - 1
            begin, gap = begins(
                begin,
                busy.end[mine],
                cells.where(of_cells[trace] == app),
                runs=_runs(kept, app),
                floor_ns=floor,
            )
        starts.append(begin)
        gaps.append(gap)
    apps = np.repeat(np.arange(len(starts)), [len(one) for one in starts])
    return Phases(np.concatenate([np.empty(0, np.int64), *starts]), apps, gaps)


def _runs(kept: KeptCalls, app: int) -> Ints:
    """When runs of the app begin, of those that overlap in time the first."""
    world = kept.rows.world
    traces = distinct(kept.trace[kept.app == app])
    spans = merge(
        np.zeros(len(traces), np.int64),
        np.array([kept.start[kept.trace == one].min() for one in traces.tolist()], np.int64),
        np.array([kept.end[kept.trace == one].max() + 1 for one in traces.tolist()], np.int64),
    )
    begun = np.array(world.shift_ns, np.int64)[traces]
    return np.array([begun[begun <= start].max(initial=0) for start in spans.start.tolist()], np.int64)


def _activity(kept: KeptCalls) -> Cells:
    moment = np.minimum(kept.start // bucket_ns(kept.rows.world.span_ns), BUCKETS)
    ones, nothing = np.ones(len(kept), np.int64), np.zeros(len(kept), np.int64)
    reads = kept.kind == Kind.READ
    table = group(
        pack((kept.process, moment), MOMENTS),
        {
            "start": kept.start,
            "end": kept.end,
            "read": np.where(reads, kept.size, 0),
            "written": np.where(reads, 0, kept.size),
            "data": ones,
            "opens": nothing,
            "calls": ones,
        },
        {"start": "min", "end": "max"},
    )
    return Cells.of(table, distinct(kept.process))


def phase_of_calls(kept: KeptCalls, phases: Phases) -> Ints:
    """Phase of each call: the last one of its app that begins no later."""
    found = np.zeros(len(kept), np.int64)
    for app in distinct(kept.app).tolist():
        mine, own = kept.app == app, np.flatnonzero(phases.app == app)
        place = np.searchsorted(phases.start_ns[own], kept.start[mine], side="right") - 1
        found[mine] = own[np.maximum(place, 0)]
    return found


def _operations(kept: KeptCalls, phase: Ints) -> OperationCounts:
    reads = (kept.kind == Kind.READ).astype(np.int64)
    widths = kept.cell_widths[:2]
    columns = {
        "reads": reads,
        "writes": 1 - reads,
        "bytes_read": kept.size * reads,
        "bytes_written": kept.size * (1 - reads),
        "first": kept.start,
        "last": kept.end,
    }
    cells = group(pack((phase, kept.file), widths), columns, {"first": "min", "last": "max"})
    of_phase, file = unpack(cells.keys, widths)
    nothing = np.zeros(len(cells), np.int64)
    known = {f.name: cells[f.name] if f.name in columns else nothing for f in fields(OperationCounts)}
    return OperationCounts(**known | {"phase": of_phase, "file": file})


def _pattern(kept: KeptCalls, phase: Ints) -> PatternCounts:
    cells, _ = kept.classes(phase)
    of_phase, file = unpack(cells.keys, kept.cell_widths[:2])
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
