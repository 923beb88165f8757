"""Phases of traced segments, and of heat maps.

They are found like those of complete traces. A heat map records the bytes that each process moved per time bin, so
its phases are accurate to one bin. A bin in which a process moved bytes is treated as a call of the bin's length.
Facts about calls (their number, duration, size and start offset) are null.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vani.analyzers.activity import Cells, bucket_ns
from vani.analyzers.counts.rows import Rows, TracedSegments
from vani.analyzers.counts.wording import OTHERWISE, UNKNOWN
from vani.analyzers.entities.io_stats import byte_counts, empty_stats
from vani.analyzers.entities.view import PhaseRows, rows_of
from vani.analyzers.int_table import ALL_KINDS, KINDS, LAYERS, IntTable, group, pack, unpack
from vani.analyzers.intervals import merge
from vani.analyzers.measurements import Measurements, Phases, Results, TraceFacts
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.busy_time import WIDTH, BusyTimes
from vani.analyzers.measures.extents import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.operations import OperationCounts, ProcessCounts, SizeCounts
from vani.analyzers.measures.survey import SurveyedFiles, join_busy, pause_floor_ns
from vani.analyzers.phase_starts import begins
from vani.analyzers.streams import NAMES
from vani.analyzers.workload import BUCKETS, MOMENTS
from vani.calls import Kind, Layer
from vani.columns import Ints, distinct
from vani.counts import RunCounts
from vani.schema.profile import ByKind, Footprint, PastEnd, Phase, PhaseIO


def phases_of_calls(segments: TracedSegments, traces: Sequence[TraceFacts]) -> Measurements | None:
    """Phases in the traced segments, which consist only of POSIX reads and writes.

    None if there are no segments, or if some counted calls were not kept.
    """
    rows, workload, apps = segments.rows, segments.rows.workload, len(segments.rows.workload.apps)
    posix = rows.included & (rows["layer"] == Layer.POSIX)
    if not len(segments) or not segments.whole[posix].all():
        return None
    phases = found_phases(segments)
    phase, count = phase_of_calls(segments, phases), len(phases)
    nothing, excluded = np.empty(0, np.int64), ((0, 1), (0, 0))
    extents, sizes, (cells, _) = segments.extents(phase), segments.sizes(phase), segments.classes(phase)
    spent = segments.spent(phase, count)
    # Rounded times may add up to less than the union.
    busy = np.minimum(segments.busy(phase, count), spent[:, [*range(KINDS), Kind.WRITE, ALL_KINDS]])
    times = (np.zeros(shape, np.int64) for shape in ((apps, KINDS + 1), workload.processes, (apps, LAYERS)))
    unions = (np.zeros(shape, np.int64) for shape in ((apps, WIDTH), (0, WIDTH), WIDTH))
    of_phase, file, side = unpack(extents.group, segments.phase_file_widths)
    size_phase, size_file, size_side = unpack(sizes.first, segments.phase_file_widths)
    class_phase, class_file = unpack(cells.keys, segments.phase_file_widths[:2])
    no_strides = Strides(nothing, nothing, nothing)
    results = [
        SpentTime(nothing, nothing, nothing, nothing, np.pad(spent, excluded), *times),
        BusyTimes(np.pad(busy, excluded), *unions),
        SizeCounts.of(size_phase, size_file, size_side, sizes.second, sizes.count),
        PatternCounts(
            class_phase,
            class_file,
            {name: cells[name] for name in NAMES},
            nothing,
            nothing,
            dict.fromkeys(NAMES, nothing),
            no_strides,
        ),
        Touched.each_alone(of_phase, file, side, extents.start, extents.end),
    ]
    reads = (segments.kind == Kind.READ).astype(np.int64)
    return _measured(segments, phase, phases, traces, {"reads": reads, "writes": 1 - reads}, results)


def _measured(
    segments: TracedSegments,
    phase: Ints,
    phases: Phases,
    traces: Sequence[TraceFacts],
    columns: Mapping[str, Ints],
    results: Sequence[object] = (),
) -> Measurements:
    """Operations (with `columns` of each segment) and processes of phases, by which similar phases are recognised."""
    reads, widths = segments.kind == Kind.READ, segments.phase_file_widths[:2]
    of_segments = {
        "bytes_read": np.where(reads, segments.size, 0),
        "bytes_written": np.where(reads, 0, segments.size),
        "first": segments.start,
        "last": segments.end,
        **columns,
    }
    cells = group(pack((phase, segments.file), widths), of_segments, {"first": "min", "last": "max"})
    of_phase, file = unpack(cells.keys, widths)
    members = np.unique(np.stack([phase, segments.process]), axis=1)[0]
    return Measurements(
        workload=segments.rows.workload,
        traces=traces,
        phases=phases,
        listed=np.empty(0, np.int64),
        survey=SurveyedFiles(IntTable()),
        operations=OperationCounts.of(of_phase, file, {name: cells[name] for name in of_segments}),
        processes=ProcessCounts.of_phases(np.bincount(members, minlength=len(phases))),
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


_ONE_WAY = 0.95
_FILES = 0.95
"""Minimum share of a layer's bytes that must be on data set files, because a heat map counts all other files, too.
Layers below it are ignored if they move no more bytes on other files than all layers do on data set files."""


@dataclass(frozen=True)
class HeatPhases:
    """Phases in a heat map."""

    phases: list[Phase]
    gap_ns: Sequence[int | None]
    """Pause that separates phases, by app."""
    bounds: Mapping[str, tuple[float, float]]
    """Bounds in seconds, by attribute of the profile."""


def phases_of_heat(rows: Rows, runs: Sequence[RunCounts], traces: Sequence[TraceFacts]) -> HeatPhases | str:
    """Phases of all runs; or a sentence that states why heat maps do not show them."""
    moved = _as_calls(rows, runs)
    if isinstance(moved, str):
        return moved
    phases = found_phases(moved)
    phase = phase_of_calls(moved, phases)
    # The number of calls is unknown, so one represents all calls of a phase in a direction.
    reads = moved.kind == Kind.READ
    firsts = np.zeros(len(moved), np.int64)
    firsts[np.unique(np.stack([phase, moved.kind]), axis=1, return_index=True)[1]] = 1
    columns = {"reads": np.where(reads, firsts, 0), "writes": np.where(reads, 0, firsts)}
    return _entities(moved, phase, rows_of(_measured(moved, phase, phases, traces, columns)), phases)


def _as_calls(rows: Rows, runs: Sequence[RunCounts]) -> TracedSegments | str:
    """A call for each process, direction and bin in which bytes were moved."""
    workload, parts = rows.workload, []
    for trace, run in enumerate(runs):
        heat = run.heat
        if heat is None:
            return "the log contains no heat map of all processes"
        layers = _layers_of_files(rows, trace)
        if layers is None:
            return "the heat map does not separate files from standard streams, which moved many of the bytes"
        chosen = np.isin(heat.layer, layers)
        shift, base = workload.shift_ns[trace], workload.process_base[trace]
        for kind, bytes_ in ((Kind.READ, heat.read), (Kind.WRITE, heat.written)):
            some = chosen & (bytes_ > 0)
            count = int(some.sum())
            begin = heat.stretch[some] * heat.width_ns
            file = offset = np.zeros(count, np.int64)
            of_trace, app = np.full(count, trace), np.full(count, workload.app_of_trace[trace])
            # The last bin may extend beyond the end of the run.
            start, end = np.minimum(begin, max(0, run.span_ns - 1)), np.minimum(begin + heat.width_ns, run.span_ns)
            process, kinds = heat.rank[some] + base, np.full(count, int(kind))
            parts.append((of_trace, app, file, process, kinds, offset, bytes_[some], start + shift, end + shift))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    if not len(columns[0]):
        return "the heat map contains no bytes of files"
    return TracedSegments(rows, *columns)


def _layers_of_files(rows: Rows, trace: int) -> list[int] | None:
    """Layers that mostly move bytes of files; None if some layer moves much for files but more for streams."""
    moved, of_trace = rows["bytes_read"] + rows["bytes_written"], rows.trace == trace
    of_run = int(moved[of_trace & rows.included].sum())
    layers = []
    for layer in distinct(rows["layer"][of_trace]).tolist():
        of_layer = of_trace & (rows["layer"] == layer)
        of_files = int(moved[of_layer & rows.included].sum())
        if of_files >= _FILES * int(moved[of_layer].sum()):
            layers.append(layer)
        elif of_files > (1 - _FILES) * of_run:
            return None
    return layers


def _entities(moved: TracedSegments, phase: Ints, rows: PhaseRows, phases: Phases) -> HeatPhases:
    row = rows.row[phase]
    widths = (rows.rows, 2)
    sums = group(pack((row, moved.kind), widths), {"bytes": moved.size})
    of_row, side = unpack(sums.keys, widths)
    bytes_ = np.zeros(widths, np.int64)
    bytes_[of_row, side] = sums["bytes"]
    # The first byte was moved before the end of the first bin, and the last one after the start of the last bin.
    begun, ending = np.full(len(phases), np.iinfo(np.int64).max), np.zeros(len(phases), np.int64)
    np.minimum.at(begun, phase, moved.end)
    np.maximum.at(ending, phase, moved.start)
    entities: list[Phase] = []
    bounds: dict[str, tuple[float, float]] = {}
    for number, (members, attributes) in enumerate(rows.described(phases, moved.rows.workload.apps)):
        read, written = bytes_[number].tolist()
        kind, io = _kind(read, written), _io(read, written)
        entities.append(Phase(**attributes, kind=kind, dominant=None, io=io, frequency=None))
        start, end = rows.start[members], rows.end[members]
        last, least = int(end.argmax()), np.maximum(0, ending[members] - begun[members])
        bounds |= {
            f"phases[{number}].start_s": _seconds(start[0], begun[members[0]]),
            f"phases[{number}].end_s": _seconds(ending[members[last]], end[last]),
            f"phases[{number}].runtime_s": _seconds(least.sum(), (end - start).sum()),
        }
    return HeatPhases(entities, phases.gap_ns, bounds)


def _seconds(low: int | np.int64, high: int | np.int64) -> tuple[float, float]:
    return int(low) / 1e9, int(high) / 1e9


def _kind(read: int, written: int) -> Literal["read", "write", "mixed"]:
    whole = read + written
    return "read" if read >= _ONE_WAY * whole else "write" if written >= _ONE_WAY * whole else "mixed"


def _io(read: int, written: int) -> PhaseIO:
    """Bytes, and zero for other values of a direction in which nothing was moved."""
    unknown = ByKind(read=None, write=None, metadata=None, sync=None, total=None)
    known = {
        "bytes": byte_counts(read, written),
        "footprint": Footprint(read=None, written=None),
        "past_end": PastEnd(read=None),
        "ops": None,
        "time_s": unknown,
        "busy_s": unknown,
        "calls": None,
    }
    return PhaseIO.of(empty_stats()).model_copy(update=known)
