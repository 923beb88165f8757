"""Results of measures, from counts or from traced segments.

Exchanges: counts record on a common clock when a run first writes a file and when it last reads one: a run that reads
a file after another run's first write to it, or at the same time, depends on it. The order within a run is not
counted.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vani.analyzers.counts.rows import Rows, TracedSegments
from vani.analyzers.counts.wording import ACCESSES
from vani.analyzers.entities.flows import spread
from vani.analyzers.int_table import LAYERS, IntTable, SumsBuilder, count_pairs, group, pack, unpack
from vani.analyzers.measurements import PossibleExchanges
from vani.analyzers.measures.access_pattern import LARGE, PatternCounts, Strides
from vani.analyzers.measures.accesses import AccessTable, add_cells, add_columns, alignment_of, widths_of
from vani.analyzers.measures.extents import Touched
from vani.analyzers.measures.libraries import ByLayer, Libraries, LibraryUse
from vani.analyzers.measures.operations import SizeBins, SizeCounts
from vani.analyzers.streams import NAMES
from vani.analyzers.workload import Context, SurveyFindings, Workload
from vani.calls import FileClass, Kind, Layer
from vani.columns import Bools, Ints, distinct
from vani.counts import RunCounts
from vani.schema.profile import AppDependency

_OUTERMOST_FIRST = (Layer.HDF5, Layer.PNETCDF, Layer.MPIIO)
_NEVER = np.iinfo(np.int64).max
_SIDES = (("reads", "bytes_read", "read"), ("writes", "bytes_written", "write"))
"""Columns of rows by direction: number, bytes, and the direction in other names."""


def sizes(rows: Rows, runs: Sequence[RunCounts], segments: TracedSegments) -> SizeCounts:
    """Operations by the source's bins, and the sizes that are certain."""
    names, ends = next(((run.sizes.bins, run.sizes.ends) for run in runs), ((), np.empty(0, np.int64)))
    row, kind, size, count = _certain_sizes(runs)
    # Segments that were kept individually need no proof.
    others = ~segments.whole[row, kind]
    row, kind, size, count = row[others], kind[others], size[others], count[others]
    whole = segments.of_whole
    exact = whole.sizes(whole.app)
    phase, file, side = unpack(exact.first, segments.phase_file_widths)
    binned = np.stack([np.concatenate([getattr(run.sizes, n) for run in runs]) for n in ("read", "write")], axis=1)
    at, of, place = np.nonzero(binned)
    return SizeCounts.of(
        np.concatenate([rows.phase[row], phase]),
        np.concatenate([rows.file[row], file]),
        np.concatenate([kind, side]),
        np.concatenate([size, exact.second]),
        np.concatenate([count, exact.count]),
        SizeBins(names, ends, rows.phase[at], rows.file[at], of, place, binned[at, of, place]),
    )


def _certain_sizes(runs: Sequence[RunCounts]) -> tuple[Ints, Ints, Ints, Ints]:
    """Row, kind, size and count of operations whose size is certain, of all runs."""
    ends = np.cumsum([len(run.sizes.read) for run in runs])
    row = np.concatenate([run.sizes.row + end - len(run.sizes.read) for run, end in zip(runs, ends, strict=True)])
    kind, size, count = (np.concatenate([getattr(run.sizes, n) for run in runs]) for n in ("kind", "size", "count"))
    return row, kind, size, count


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
    app, file = unpack(phase_files.keys, segments.phase_file_widths[:2])
    more = {name: phase_files[name] for name in NAMES}
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


def _of_cells(segments: TracedSegments, known: Bools) -> TracedSegments:
    """Calls on the files and in the runs of some rows."""
    rows = segments.rows
    widths = (len(rows.workload.process_base), max(1, rows.workload.files))
    phase_files = distinct(pack((rows.trace[known], rows.file[known]), widths))
    return segments.where(np.isin(pack((segments.trace, segments.file), widths), phase_files))


def accesses(
    rows: Rows, contexts: Sequence[Context], runs: Sequence[RunCounts], segments: TracedSegments
) -> AccessTable:
    """Data calls by layer, file and direction, as far as counts show them."""
    workload, widths, sums = rows.workload, widths_of(rows.workload), SumsBuilder()
    certain, used = _bytes_of_bins(rows, runs), [np.empty((6, 0), np.int64)]
    sized, side_of_size, _, count = _certain_sizes(runs)
    posix, streams = rows["layer"] == Layer.POSIX, np.where(rows.process < 0, rows.ranks, 1)
    for kind, (calls, moved, side) in enumerate(_SIDES):
        own = rows.included & (rows[calls] > 0)
        key = pack((rows.app, rows.file + 1, kind, rows["layer"]), widths)
        columns = {"calls": rows[calls], "bytes": rows[moved], "time": rows[f"{side}_ns"]}
        add_columns(sums, key[own], **{name: column[own] for name, column in columns.items()})
        movers = np.minimum(rows[calls], rows.movers)
        users = (rows.trace, rows.file, 0 * key + kind, rows["layer"], rows.process, movers)
        used.append(np.stack(users)[:, own])
        # Segments that were kept individually need no proof.
        at = np.flatnonzero(own & posix & ~segments.whole[:, kind])
        row, cell = np.nonzero(certain[kind][at])
        size = certain[kind][at][row, cell]
        add_cells(sums, key[at][row], "size", cell, size)
        off, number = rows["unaligned"], rows["reads"] + rows["writes"]
        # Where all calls have one direction and size, their number shows their bytes.
        alike = np.isin(np.arange(len(rows)), sized[(side_of_size == kind) & (count == number[sized])])
        known = (rows["alignment"] > 0) & (off >= 0) & ((off == 0) | (off == number) | (alike & (off < number)))
        known &= own & posix & ~segments.whole[:, kind]
        missed = (rows[moved] // np.maximum(1, number) * off)[known]
        missed = np.where((off == number)[known], rows[moved][known], missed)
        add_cells(sums, key[known], "aligned", 0 * missed, missed)
        add_cells(sums, key[known], "aligned", alignment_of(rows["alignment"][known]), rows[moved][known] - missed)
        binned = np.concatenate([getattr(run.sizes, side) for run in runs])
        smaller = binned[:, : int(np.searchsorted(runs[0].sizes.ends, LARGE)) + 1].sum(axis=1)
        in_order = (rows[f"ordered_{calls}"] + streams >= rows[calls]) | (posix & (smaller == 0))
        at = np.flatnonzero(own & ~(posix & segments.whole[:, kind]))
        add_columns(sums, key[at], **{
            name: np.where(sure, rows[moved], 0)[at] for name, sure in (("ordered", in_order), ("unordered", ~in_order))
        })
    whole = segments.of_whole
    key = pack((whole.app, whole.file + 1, whole.kind, Layer.POSIX), widths)
    names, ends = next(((run.sizes.bins, run.sizes.ends) for run in runs), ((), np.empty(0, np.int64)))
    cell = np.searchsorted(ends, whole.size, side="left")
    add_cells(sums, key, "size", cell, whole.size)
    add_cells(sums, key, "time", cell, whole.end - whole.start)
    add_cells(sums, key, "aligned", alignment_of(whole.offset), whole.size)
    add_columns(sums, key, ordered=np.where(whole.is_ordered, whole.size, 0))
    ranks = np.diff([*workload.process_base, workload.processes])
    for trace, (context, run) in enumerate(zip(contexts, runs, strict=True)):
        file = np.append(context.file_codes, -1)[run.requests["file"]]
        own = np.append(workload.file_class == FileClass.DATASET, True)[file]
        of = {name: column[own] for name, column in run.requests.items()}
        file, calls, size, together = file[own], of["calls"], of["bytes"], of["together"]
        columns = {
            "calls": calls,
            "bytes": np.maximum(size, 0),
            "unsized": np.where(size < 0, calls, 0),
            "time": of["time_ns"],
            "collective": np.where(together == calls, np.maximum(size, 0), 0),
            "together": together,
            "mixed": ((together > 0) & (together < calls)).astype(np.int64),
        }
        add_columns(sums, pack((context.app, file + 1, of["kind"], of["layer"]), widths), **columns)
        process = np.where(of["rank"] < 0, -1, of["rank"] + workload.process_base[trace])
        most = np.minimum(calls, ranks[trace])
        used.append(np.stack([0 * file + trace, file, of["kind"], of["layer"], process, most]))
    alignments = rows["alignment"][rows.included & posix]
    _add_callers(sums, np.concatenate(used, axis=1), widths, workload)
    least = int(alignments[alignments > 0].min(initial=_NEVER))
    return AccessTable(widths, sums.result()["accesses"], names, least, ACCESSES)


def _add_callers(sums: SumsBuilder, used: Ints, widths: tuple[int, int, int, int], workload: Workload) -> None:
    """Add processes by file, and of all files.

    `used`: trace, file, direction, layer, process (-1: all of its trace), and the most processes that the row can mean.
    """
    of_trace = (len(workload.process_base), *widths[1:])
    for name, rows in (("callers", used[:, used[1] >= 0]), ("all_callers", used)):
        trace, file, kind, layer, process, most = rows
        key = pack((trace, file + 1 if name == "callers" else 0, kind, layer), of_trace)
        alone = process >= 0
        pairs = count_pairs(key[alone], process[alone])
        single = group(pairs.first, {"processes": np.ones(len(pairs.first), np.int64)})
        together = group(key[~alone], {"processes": most[~alone]}, {"processes": "max"})
        # A file may have a record of all ranks in one layer and of single ranks in another.
        both = IntTable.merged([single, together], {"processes": "max"})
        row = pack((0 * both.keys, *unpack(both.keys, of_trace)[1:]), widths)
        add_columns(sums, row, **{name: both["processes"]})


def _bytes_of_bins(rows: Rows, runs: Sequence[RunCounts]) -> Ints:
    """Bytes of reads and of writes, by row and bin, shape (2, rows, bins); all 0 where they are not certain."""
    row, kind, size, count = _certain_sizes(runs)
    binned = np.stack([np.concatenate([getattr(run.sizes, n) for run in runs]) for n in ("read", "write")])
    cell = np.searchsorted(runs[0].sizes.ends, size, side="left")
    operations, moved = np.zeros((2, *binned.shape), np.int64)
    np.add.at(operations, (kind, row, cell), count)
    np.add.at(moved, (kind, row, cell), count * size)
    unknown = binned > operations
    # Where one bin alone has unknown sizes, it has the rest of the bytes.
    rest = np.stack([rows["bytes_read"], rows["bytes_written"]]) - np.where(unknown, 0, moved).sum(axis=2)
    moved = np.where(unknown, rest[..., None], moved)
    sure = (unknown.sum(axis=2) <= 1) & (rest >= 0)
    return np.where(sure[..., None], moved, 0)


def touched(rows: Rows, segments: TracedSegments) -> Touched:
    """Upper bounds from bytes moved and furthest end, followed by the bytes that kept calls touched."""
    whole = segments.of_whole
    extents = whole.extents(whole.app)
    phase, file, side = unpack(extents.group, segments.phase_file_widths)
    widths = (len(rows.workload.apps) + 1, rows.workload.files)
    extents_of_sides = [(phase, file, side, extents.start, extents.end)]
    # Place them after all extents that are known to be touched, side by side.
    starts = np.int64(extents.end.max(initial=0))
    for kind, moved, end in ((Kind.READ, "bytes_read", "read_end"), (Kind.WRITE, "bytes_written", "write_end")):
        counted = ~(segments.whole[:, kind] & rows.included)
        columns = {"moved": rows[moved][counted], "end": rows[end][counted]}
        phase_files = group(pack((rows.phase[counted], rows.file[counted]), widths), columns, {"end": "max"})
        phase, file = unpack(phase_files.keys, widths)
        length = np.minimum(phase_files["moved"], phase_files["end"])
        # Side by side, because it is unknown which bytes of a file several apps share.
        start = np.cumsum(length) - length + starts
        extents_of_sides.append((phase, file, np.full(len(phase), int(kind)), start, start + length))
    return Touched.each_alone(*(np.concatenate(column) for column in zip(*extents_of_sides, strict=True)))


def exchanges_of(rows: Rows) -> PossibleExchanges:
    """Written files; whether they were finally removed is not counted."""
    workload, apps = rows.workload, len(rows.workload.apps)
    users, of_runs = _by_run(rows)
    trace, file = unpack(users.keys, of_runs)
    app = np.array(workload.app_of_trace, np.int64)[trace]
    writer, reader = np.flatnonzero(users["writes"] > 0), np.flatnonzero(users["reads"] > 0)
    # Each writer with each reader of the file: files shared by many runs have few writers.
    reader = reader[np.argsort(file[reader], kind="stable")]
    begin = np.searchsorted(file[reader], file[writer], side="left")
    row, at = spread(begin, np.searchsorted(file[reader], file[writer], side="right") - begin)
    producer, consumer = writer[row], reader[at]
    later = (trace[producer] != trace[consumer]) & (users["read"][consumer] >= users["written"][producer])
    producer, consumer = producer[later], consumer[later]
    # Apps in which several processes of a run use a file that the run both reads and writes.
    within = np.zeros(apps, np.bool_)
    both = (users["reads"] > 0) & (users["writes"] > 0)
    within[app[both & ((users["alone"] < users["rows"]) | (users["rows"] > 1))]] = True
    return PossibleExchanges(
        between_apps=False,
        processes=within,
        files=distinct(file[writer]),
        exchanged=distinct(file[producer]),
        dependencies=_dependencies(workload, users, app, file, producer, consumer) if apps > 1 else [],
    )


def _by_run(rows: Rows) -> tuple[IntTable, tuple[int, int]]:
    """Reads, writes, bytes, the first write and the end of the last read by run and file, and the widths of keys."""
    moving = rows.included & ((rows["reads"] > 0) | (rows["writes"] > 0))
    columns = {name: rows[name][moving] for name in ("reads", "writes", "bytes_read", "bytes_written")}
    # If the time of the first write is unknown, the first call on the file is a lower bound.
    first = np.where(rows["write_first_ns"] > 0, rows["write_first_ns"], rows["first_ns"])[moving]
    last = np.where(rows["read_last_ns"] > 0, rows["read_last_ns"], rows["last_ns"])[moving]
    columns |= {
        "written": np.where(columns["writes"] > 0, first, _NEVER),
        "read": np.where(columns["reads"] > 0, last, -1),
        "alone": (rows.process[moving] >= 0).astype(np.int64),
        "rows": np.ones(len(first), np.int64),
    }
    widths = (len(rows.workload.process_base), max(1, rows.workload.files))
    key = pack((rows.trace[moving], rows.file[moving]), widths)
    return group(key, columns, {"written": "min", "read": "max"}), widths


def _dependencies(
    workload: Workload, users: IntTable, app: Ints, file: Ints, producer: Ints, consumer: Ints
) -> list[AppDependency]:
    apps, files = len(workload.apps), workload.files
    other = app[producer] != app[consumer]
    producer, consumer = producer[other], consumer[other]
    # Each file once per pair of apps, with the bytes that all their runs moved.
    widths = (apps, apps, files)
    from_, to, of = unpack(distinct(pack((app[producer], app[consumer], file[producer]), widths)), widths)
    moved = group(pack((app, file), (apps, files)), {n: users[n] for n in ("bytes_read", "bytes_written")})
    columns = {
        "files": np.ones(len(of), np.int64),
        "bytes_written": moved.at(pack((from_, of), (apps, files)), "bytes_written"),
        "bytes_read": moved.at(pack((to, of), (apps, files)), "bytes_read"),
    }
    table = group(pack((from_, to), (apps, apps)), columns)
    return [
        AppDependency(
            producer=workload.apps[from_app],
            consumer=workload.apps[to_app],
            files_by_extents=None,
            **{name: int(table[name][i]) for name in columns},
        )
        for i, (from_app, to_app) in enumerate(zip(*unpack(table.keys, (apps, apps)), strict=True))
    ]


def library_use(rows: Rows, contexts: Sequence[Context], runs: Sequence[RunCounts]) -> LibraryUse:
    """Attribute all file-system calls on a file that a library knows to that library."""
    workload, apps = rows.workload, len(rows.workload.apps)
    widths, sums = (apps, LAYERS), SumsBuilder()
    known: dict[tuple[int, int], set[int]] = {}
    for context, run in zip(contexts, runs, strict=True):
        for library, files in run.through.items():
            key = pack((np.array([context.app]), library), widths)
            sums.add("calls", key, {"calls": np.array([sum(files.values())])})
            codes = {int(context.file_codes[code]) for code in files if code >= 0}
            known.setdefault((context.app, library), set()).update(codes)
    included = np.flatnonzero(rows.included)
    nothing = np.zeros(len(included), np.int64)
    app, file, layer = rows.app[included], rows.file[included], rows["layer"][included]
    counts = {name: rows[name][included] for name in ("reads", "writes", "bytes_read", "bytes_written")}
    data = counts["reads"] + counts["writes"]
    own_calls = data + (rows["metadata"] + rows["syncs"])[included]
    within, outermost = 1 << layer, layer.copy()
    for library in reversed(_OUTERMOST_FIRST):
        mask = _is_known(known, app, file, library)
        within, outermost = within | mask << library, np.where(mask, library, outermost)
    sums.add("calls", pack((app, layer), widths), {"calls": own_calls})
    columns = counts | {"unsized_reads": nothing, "unsized_writes": nothing}
    by_layer = ByLayer(sums, apps, app)
    by_layer.add(within, outermost, file, columns, calls=own_calls, uses=data + rows["opens"][included])
    # Sizes that are certain.
    row, _, size, count = _certain_sizes(runs)
    place = np.full(len(rows), -1, np.int64)
    place[included] = np.arange(len(included))
    is_included = place[row] >= 0
    at = place[row[is_included]]
    replace(by_layer, app=app[at]).add_sizes(within[at], size[is_included], count[is_included])
    no_phases = SurveyFindings(nothing[:0], nothing[:0], np.zeros(apps + 1, np.int64))
    return Libraries().aggregate(sums.result(), workload, no_phases)


def _is_known(known: dict[tuple[int, int], set[int]], app: Ints, file: Ints, layer: int) -> Bools:
    is_known = np.zeros(len(app), np.bool_)
    for (of_app, of_layer), codes in known.items():
        if of_layer == layer and codes:
            is_known |= (app == of_app) & np.isin(file, np.fromiter(codes, np.int64, len(codes)))
    return is_known
