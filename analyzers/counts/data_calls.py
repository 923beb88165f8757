"""Sizes, offsets and extents of data operations, from counts or from traced segments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.calls.access_classes import NAMES
from vani.analyzers.counts.rows import Rows
from vani.analyzers.counts.traced_segments import TracedSegments
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.transfer_size import SizeBins, SizeCounts
from vani.analyzers.tables.int_table import group
from vani.analyzers.tables.keys import pack, unpack
from vani.calls import Kind, Layer
from vani.counts import RunCounts
from vani.distinct import distinct

Ints = NDArray[np.int64]


def sizes(rows: Rows, runs: Sequence[RunCounts], segments: TracedSegments) -> SizeCounts:
    """Operations by the source's bins, and the sizes that are certain."""
    names, ends = next(((run.sizes.bins, run.sizes.ends) for run in runs), ((), np.empty(0, np.int64)))
    before, parts = 0, []
    read, write = [], []
    for run in runs:
        counted = run.sizes
        parts.append((counted.row + before, counted.kind, counted.size, counted.count))
        read.append(counted.read)
        write.append(counted.write)
        before += len(counted.read)
    row, kind, size, count = (np.concatenate(c) for c in zip(*parts, strict=True))
    # Segments that were kept individually need no proof.
    others = ~segments.whole[row, kind]
    row, kind, size, count = row[others], kind[others], size[others], count[others]
    whole = segments.of_whole
    exact = whole.sizes(whole.app)
    phase, file, side = (
        unpack(exact.first, segments.phase_file_widths) if len(exact.first) else [np.empty(0, np.int64)] * 3
    )
    binned = np.stack([np.concatenate(read), np.concatenate(write)], axis=1)
    at, of, place = np.nonzero(binned)
    return SizeCounts(
        np.concatenate([rows.phase[row], phase]).astype(np.int32),
        np.concatenate([rows.file[row], file]).astype(np.int32),
        np.concatenate([kind, side]).astype(np.int8),
        np.concatenate([size, exact.second]),
        np.concatenate([count, exact.count]),
        SizeBins(names, ends, rows.phase[at], rows.file[at], of, place, binned[at, of, place]),
    )


def pattern(rows: Rows, segments: TracedSegments) -> PatternCounts:
    """Access classes, as accurately as counts allow; `io.access_pattern` in the provenance states the accuracy.

    A process's first operation on a file has no predecessor, and if it begins at byte 0, no counter counts it. Each
    such stream therefore contributes one operation without a later offset, which is taken to continue something.
    """
    # If all calls were kept, the counters add nothing.
    known = segments.whole.all(axis=1) & rows.included & (rows["layer"] == Layer.POSIX)
    placed = np.where(known, 0, rows["placed"])
    consecutive, forward, strided = (
        np.where(known, 0, rows[name]) for name in ("consecutive", "forward", "strided")
    )
    # Single jumps between runs of consecutive operations do not form a row of three at one distance.
    strided = np.where(strided > consecutive, strided, 0)
    processes = np.where(rows.process < 0, rows.ranks, 1)
    streams = np.minimum(processes, rows["reads"]) + np.minimum(processes, rows["writes"])
    elsewhere = placed - np.minimum(placed, consecutive + forward)
    firsts = np.minimum(elsewhere, np.where(placed > 0, streams, 0))
    # A first operation not at byte 0 is counted as going forward. It gets the class of its successors.
    leading = np.minimum(forward - strided, streams - firsts) * (placed > 0)
    forward = forward - leading
    heirs = firsts + leading
    like_strided = strided > 0
    # Forward jumps between backward ones are as random as the latter.
    back = elsewhere - firsts
    forth = np.minimum(forward - strided, back)
    classes = {
        "consecutive": consecutive + np.where(like_strided, 0, heirs),
        "sequential": forward - strided - forth,
        "strided": strided + np.where(like_strided, heirs, 0),
        "random": back + forth,
    }
    within = np.left_shift(1, rows["layer"])
    steps = (rows["stride_count"] > 0) & ~known
    in_known_rows = _of_cells(segments, known)
    phase_files, apart = in_known_rows.classes(in_known_rows.app)
    nothing = np.empty(0, np.int64)
    app, file = unpack(phase_files.keys, segments.phase_file_widths[:2]) if len(phase_files) else (nothing, nothing)
    more = {name: phase_files[name] if len(phase_files) else app for name in NAMES}
    return PatternCounts(
        np.concatenate([rows.phase, app]),
        np.concatenate([rows.file, file]),
        {name: np.concatenate([classes[name], more[name]]) for name in NAMES},
        np.concatenate([np.where(rows.included, rows.app, 0), app]),
        np.concatenate([within, np.full(len(app), 1 << Layer.POSIX)]),
        {name: np.concatenate([np.where(rows.included, classes[name], 0), more[name]]) for name in NAMES},
        Strides(
            np.concatenate([rows.file[steps], apart.first]),
            np.concatenate([rows["stride"][steps], apart.second]),
            np.concatenate([rows["stride_count"][steps], apart.count]),
        ),
    )


def _of_cells(segments: TracedSegments, known: NDArray[np.bool_]) -> TracedSegments:
    """Calls on the files and in the runs of some rows."""
    rows = segments.rows
    widths = (len(rows.workload.process_base), max(1, rows.workload.files))
    phase_files = distinct(pack((rows.trace[known], rows.file[known]), widths))
    return segments.where(np.isin(pack((segments.trace, segments.file), widths), phase_files))


def touched(rows: Rows, segments: TracedSegments) -> Touched:
    """Upper bounds from bytes moved and furthest end, followed by the bytes that kept calls touched."""
    whole = segments.of_whole
    extents = whole.extents(whole.app)
    phase, file, side = (
        unpack(extents.group, segments.phase_file_widths) if len(extents) else [np.empty(0, np.int64)] * 3
    )
    widths = (len(rows.workload.apps) + 1, rows.workload.files)
    extents_of_sides = [(phase, file, side, extents.start, extents.end)]
    # Place them after all extents that are known to be touched, side by side.
    starts = np.int64(extents.end.max(initial=0))
    for kind, moved, end in (
        (Kind.READ, "bytes_read", "read_end"),
        (Kind.WRITE, "bytes_written", "write_end"),
    ):
        counted = ~(segments.whole[:, kind] & rows.included)
        phase_files = group(
            pack((rows.phase[counted], rows.file[counted]), widths),
            {"moved": rows[moved][counted], "end": rows[end][counted]},
            {"end": "max"},
        )
        if not len(phase_files):
            continue
        phase, file = unpack(phase_files.keys, widths)
        length = np.minimum(phase_files["moved"], phase_files["end"])
        # Side by side, because it is unknown which bytes of a file several apps share.
        start = np.cumsum(length) - length + starts
        extents_of_sides.append((phase, file, np.full(len(phase), int(kind)), start, start + length))
    return Touched.each_alone(*(np.concatenate(column) for column in zip(*extents_of_sides, strict=True)))
