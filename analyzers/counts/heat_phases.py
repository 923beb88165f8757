"""Phases of a heat map, which records the bytes that each process moved per time bin: accurate to one bin.

A bin in which a process moved bytes is treated as a call of the bin's length, and phases of such calls are found
like those of complete traces. Facts about calls (their number, duration, size and
start offset) are null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.counts.phases import found_phases, phase_of_calls
from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.counts.wording import OTHERWISE, UNKNOWN
from vani.analyzers.entities.io_stats import empty_stats
from vani.analyzers.entities.phase_rows import PhaseRows, period_s, rows_of
from vani.analyzers.measurements import Measurements, Phases, Results, TraceFacts
from vani.analyzers.measures.operations import OperationCounts
from vani.analyzers.measures.processes import FileUsers, ProcessCounts
from vani.analyzers.measures.survey import SurveyedFiles
from vani.analyzers.tables.int_table import IntTable, group
from vani.analyzers.tables.keys import pack, unpack
from vani.calls import Kind
from vani.counts import RunCounts
from vani.distinct import distinct
from vani.schema.profile import ByKind, ByteCounts, Footprint, PastEnd, Phase, PhaseIO, Repeats

Ints = NDArray[np.int64]
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
    phase_rows = rows_of(_measured(moved, phase, phases, traces))
    return _entities(moved, phase, phase_rows, phases)


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
            parts.append(
                [
                    np.full(count, trace),
                    np.full(count, workload.app_of_trace[trace]),
                    np.zeros(count, np.int64),
                    heat.rank[some] + base,
                    np.full(count, int(kind)),
                    np.zeros(count, np.int64),
                    bytes_[some],
                    # The last bin may extend beyond the end of the run.
                    np.minimum(begin, max(0, run.span_ns - 1)) + shift,
                    np.minimum(begin + heat.width_ns, run.span_ns) + shift,
                ]
            )
    columns = [np.concatenate(c) for c in zip(*parts, strict=True)] if parts else [np.empty(0, np.int64)] * 9
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


def _measured(moved: TracedSegments, phase: Ints, phases: Phases, traces: Sequence[TraceFacts]) -> Measurements:
    """The facts by which similar phases are recognised: bytes, directions and processes."""
    count, nothing = len(phases), np.empty(0, np.int64)
    reads = moved.kind == Kind.READ
    columns = {
        "bytes_read": np.where(reads, moved.size, 0),
        "bytes_written": np.where(reads, 0, moved.size),
        "first": moved.start,
        "last": moved.end,
    }
    cells = group(phase, columns, {"first": "min", "last": "max"})
    # The number of calls is unknown, so one represents all calls of a direction.
    some = {"reads": (cells["bytes_read"] > 0), "writes": (cells["bytes_written"] > 0)}
    none = np.zeros(len(cells), np.int64)
    known = {name: cells[name] for name in columns} | {n: c.astype(np.int64) for n, c in some.items()}
    operations = {f.name: known.get(f.name, none) for f in fields(OperationCounts)} | {"phase": cells.keys}
    members = np.unique(np.stack([phase, moved.process]), axis=1)[0]
    return Measurements(
        workload=moved.rows.workload,
        traces=traces,
        phases=phases,
        listed=nothing,
        survey=SurveyedFiles(IntTable()),
        operations=OperationCounts(**operations),
        processes=ProcessCounts(
            FileUsers(*(nothing,) * 4), nothing, nothing, np.bincount(members, minlength=count)
        ),
        results=Results([], unknown=UNKNOWN, otherwise=OTHERWISE),
    )


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
    index: dict[int, int] = {}
    for number in range(rows.rows):
        members = np.flatnonzero(rows.row == number)
        app = int(phases.app[members[0]])
        index[app] = index.get(app, -1) + 1
        start, end = rows.start[members], rows.end[members]
        length, last = int((end - start).sum()), int(end.argmax())
        entities.append(
            Phase(
                app=moved.rows.workload.apps[app],
                index=index[app],
                start_s=int(start[0]) / 1e9,
                end_s=int(end[last]) / 1e9,
                runtime_s=length / 1e9,
                repeats=Repeats(count=len(members), period_s=period_s(start)),
                kind=_kind(*bytes_[number].tolist()),
                dominant=None,
                processes=int(rows.processes[members].max()),
                io=_io(*bytes_[number].tolist()),
                frequency=None,
            )
        )
        least = np.maximum(0, ending[members] - begun[members])
        bounds |= {
            f"phases[{number}].start_s": _seconds(start[0], begun[members[0]]),
            f"phases[{number}].end_s": _seconds(ending[members[last]], end[last]),
            f"phases[{number}].runtime_s": _seconds(least.sum(), length),
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
        "bytes": ByteCounts(read=read, written=written, total=read + written),
        "footprint": Footprint(read=None, written=None),
        "past_end": PastEnd(read=None),
        "ops": None,
        "time_s": unknown,
        "busy_s": unknown,
        "calls": None,
    }
    return PhaseIO.of(empty_stats()).model_copy(update=known)
