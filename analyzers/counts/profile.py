"""The profile of runs counted per process and file, without calls: each attribute is exact, bounded or null."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa

from vani.analyzers import measurements
from vani.analyzers.assemble import assemble
from vani.analyzers.characterise import workload_of
from vani.analyzers.counts import wording
from vani.analyzers.counts.phases import HeatPhases, phases_of_calls, phases_of_heat
from vani.analyzers.counts.results import accesses, exchanges_of, library_use, pattern, sizes, touched
from vani.analyzers.counts.rows import Rows, TracedSegments, flushes_apart, look_ups
from vani.analyzers.counts.times import bounds_of, busy_times, moved_by_process, spent_time
from vani.analyzers.entities.files import formats_on_disk
from vani.analyzers.entities.view import View
from vani.analyzers.int_table import How, IntTable, group, pack, unpack
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.operations import FileUsers, OperationCounts, ProcessCounts
from vani.analyzers.measures.survey import ENDS_OF_FILES, SurveyedFiles
from vani.analyzers.passes.measure_workload import extension_names
from vani.analyzers.workload import Context, Workload
from vani.calls import RENAMES
from vani.columns import Bools, Ints, distinct, small_table
from vani.counts import Beside, FileLayout, RunCounts
from vani.schema.job import Job
from vani.schema.profile import Profile
from vani.schema.system import System

LAYOUT = ("files.stripe_count", "files.stripe_size", "files.components")
NO_LAYOUTS = "the log has no records of Lustre"
NO_NODES = "counts name no nodes"
_STANDS_FOR = ("autofs", "rootfs", "dvs")
"""Mount types that are followed by a mount of another type in the same folder."""


def layouts_of(contexts: Sequence[Context], runs: Sequence[RunCounts]) -> dict[int, FileLayout]:
    """Layouts by file of the workload; the last given run takes precedence."""
    return {
        int(context.file_codes[file]): layout
        for context, run in zip(contexts, runs, strict=True)
        for file, layout in (run.layouts or {}).items()
    }


def mounts_of(runs: Sequence[RunCounts]) -> list[tuple[str, str]]:
    """(folder, type), each folder once, with the type that stores data if other types point to it."""
    types: dict[str, str] = {}
    for run in runs:
        for folder, kind in run.mounts:
            if types.get(folder, _STANDS_FOR[0]) in _STANDS_FOR:
                types[folder] = kind
    return list(types.items())


def nodes_of(runs: Sequence[RunCounts]) -> int | None:
    """Number of distinct nodes of all runs; None if those of some run are unknown."""
    names: set[str] = set()
    for run in runs:
        if run.hosts is None:
            return None
        names.update(run.hosts)
    return len(names) or None


def targets_of(
    contexts: Sequence[Context], runs: Sequence[RunCounts], rows: Rows
) -> measurements.FilesOnTargets | None:
    """Files of the data set on their targets, with each file's traffic; None if no log has targets."""
    known = [(c, run.targets) for c, run in zip(contexts, runs, strict=True) if run.targets is not None]
    if not known:
        return None
    file = np.concatenate([context.file_codes[targets.file] for context, targets in known]).astype(np.int64)
    target = np.concatenate([targets.target for _, targets in known])
    # Several logs may name the same file, which counts once.
    pairs = np.unique(np.stack([file, target], axis=1), axis=0)
    file, target = pairs[:, 0], pairs[:, 1]
    files, own = max(1, rows.workload.files), rows.included
    on_data = np.zeros(files, np.bool_)
    on_data[rows.file[own]] = True
    file, target = file[on_data[file]], target[on_data[file]]
    processes = np.where(rows.process < 0, rows.ranks, 1)
    moved = rows["bytes_read"] + rows["bytes_written"]
    read, write = (
        np.bincount(rows.file[own], rows[name][own], files)
        / np.maximum(1, np.bincount(rows.file[own], np.where(rows[calls] > 0, processes, 0)[own], files))
        for name, calls in (("read_ns", "reads"), ("write_ns", "writes"))
    )
    stripes = np.maximum(1, np.bincount(file, minlength=files))
    share = np.bincount(rows.file[own], moved[own], files) / stripes
    of_system = {
        int(context.file_codes[code]): count for context, targets in known for code, count in targets.of_system.items()
    }
    moved_there, read_there, write_there = (
        np.round(column[file]).astype(np.int64) for column in (share, read, write)
    )
    return measurements.FilesOnTargets(file, target, moved_there, read_there, write_there, of_system)


@dataclass(frozen=True)
class CountedRun:
    """One run as its tracer recorded it."""

    facts: measurements.TraceFacts
    files: pa.Table
    """`vani.calls.FILES`."""
    counts: RunCounts

    @property
    def function_names(self) -> dict[int, str]:
        return {}

    @property
    def renames(self) -> pa.Table:
        """Empty, because renames are not counted individually."""
        return small_table([()] * 4, RENAMES)


def counted_profile(
    runs: Sequence[CountedRun],
    names: Sequence[str],
    *,
    version: str,
    job_: Job | None = None,
    system: System | None = None,
    list_files: int | None = 100,
    refused: Sequence[tuple[str, str]] = (),
    copies: Sequence[tuple[str, str]] = (),
) -> tuple[Profile, View]:
    """Characterise a workload by its counts.

    Parameters
    ----------
    runs, names
        One per log, with the name of its app.
    list_files
        Maximum number of listed files, those with most I/O time; None for all.
    refused
        (path, reason) of logs that could not be read.
    copies
        (path, path of the log) of a log's copies, which count once.

    Raises
    ------
    SelfCheckError
        The numbers contradict each other.
    """
    workload, contexts = workload_of([run.facts for run in runs], runs, names, job_)
    counts = [run.counts for run in runs]
    rows = Rows.of(workload, contexts, counts)
    segments = TracedSegments.of(rows, contexts, counts)
    rows, hidden = flushes_apart(rows, segments)
    segments = replace(segments, rows=rows)
    measured = _measurements(workload, contexts, runs, rows, segments, list_files)
    measured = _with_flushes(measured, rows, hidden)
    if copies:
        originals = ", ".join(f"{path} is a copy of {of}" for path, of in copies)
        measured = replace(measured, remarks={**measured.remarks, "traces.path": f"copies count once: {originals}"})
    calls = phases_of_calls(segments, measured.traces)
    heat = phases_of_heat(rows, counts, measured.traces) if calls is None else None
    bounds = bounds_of(rows, segments, counts, measured)
    if calls is not None:
        measured = _with_phases(measured, calls.phases.gap_ns, wording.PHASES_OF_CALLS)
    elif isinstance(heat, HeatPhases):
        measured = _with_phases(measured, heat.gap_ns, wording.PHASES_OF_HEAT)
        bounds |= heat.bounds
    elif heat is not None:
        why = f"{measured.unknown['phases']}; {heat}"
        measured = replace(measured, unknown={**measured.unknown, "phases": why})
    view = View(measured, job_, system)
    phases = heat.phases if isinstance(heat, HeatPhases) else None
    profile = assemble(
        view,
        version=version,
        refused=refused,
        bounds=bounds,
        of_phases=phases if calls is None else View(calls, job_, system),
    )
    return _without_unsound(profile, counts), view


_UNSOUND = "null for files whose records contradict themselves or claim too much: see traces[].problems"


def _without_unsound(profile: Profile, counts: Sequence[RunCounts]) -> Profile:
    """The profile with nulls where a file's record contradicts itself; sums cover all other records."""
    unsound = {path: what for run in counts for path, what in run.unsound.items()}
    if not any(file.path in unsound for file in profile.files):
        return profile
    files = []
    for file in profile.files:
        moved, touched, sizes, size = file.io.bytes, file.io.footprint, file.io.transfer_size, file.size
        for what, side in unsound.get(file.path, ()):
            if what == "bytes":
                moved = moved.model_copy(update={side: None, "total": None})
            if what == "extents":
                size = None
            if what != "sizes":
                touched = touched.model_copy(update={side: None})
            else:
                sizes = sizes.model_copy(update={"read" if side == "read" else "write": None})
        io = file.io.model_copy(update={"bytes": moved, "footprint": touched, "transfer_size": sizes})
        files.append(file.model_copy(update={"io": io, "size": size}))
    attributes = {"bytes": "files.io.bytes", "sizes": "files.io.transfer_size", "extents": "files.io.footprint"}
    notes = {attributes[what]: _UNSOUND for kinds in unsound.values() for what, _ in kinds}
    return profile.model_copy(update={"files": files, "provenance": profile.provenance | notes})


def _with_flushes(measured: measurements.Measurements, rows: Rows, hidden: Bools) -> measurements.Measurements:
    """Remarks on flushes without their own time, and on how the time of others was determined."""
    measured = replace(measured, hidden_flushes=(rows.phase[hidden], rows.file[hidden]))
    if (hidden == (rows["syncs"] > 0)).all():
        return measured
    return _with_known(measured, "sync_time", wording.FLUSHES_APART)


def _with_phases(
    measured: measurements.Measurements, gap_ns: Sequence[int | None], remarks: Mapping[str, str]
) -> measurements.Measurements:
    measured = replace(measured, phases=replace(measured.phases, gap_ns=gap_ns))
    return _with_known(measured, "phases", remarks)


def _with_known(
    measured: measurements.Measurements, attribute: str, remarks: Mapping[str, str]
) -> measurements.Measurements:
    """With remarks in place of the reason why an attribute is unknown."""
    unknown = {name: why for name, why in measured.unknown.items() if name != attribute}
    return replace(measured, unknown=unknown, remarks={**measured.remarks, **remarks})


def _measurements(
    workload: Workload,
    contexts: Sequence[Context],
    runs: Sequence[CountedRun],
    rows: Rows,
    segments: TracedSegments,
    list_files: int | None,
) -> measurements.Measurements:
    apps = np.arange(len(workload.apps))
    processes = _processes(rows, segments)
    spent = spent_time(rows)
    listed = _listed(rows, processes, list_files)
    counts = [run.counts for run in runs]
    layouts, nodes = layouts_of(contexts, counts), nodes_of(counts)
    # If all reads and writes were kept, they need no bounds.
    every = wording.REMARKS | wording.KEPT if len(segments) and segments.whole[rows.included].all() else wording.REMARKS
    remarks = every if layouts else every | dict.fromkeys(LAYOUT, NO_LAYOUTS)
    lost = frozenset[Beside]().union(*(run.dropped for run in counts))
    remarks = remarks | dict.fromkeys(LAYOUT if "layouts" in lost else (), wording.DROPPED["layouts"])
    if "many_segments" in lost:
        remarks = remarks | {"traces.records": f"{remarks['traces.records']}; {wording.DROPPED['many_segments']}"}
    causes = [wording.DROPPED[what] for what in ("segments", "many_segments", "heat") if what in lost]
    extensions = _extensions()
    results = [
        spent,
        busy_times(rows, listed, spent, segments),
        moved_by_process(rows, segments),
        sizes(rows, counts, segments),
        pattern(rows, segments),
        accesses(rows, contexts, counts, segments),
        touched(rows, segments),
        _lengths(rows),
        exchanges_of(rows),
        library_use(rows, contexts, counts),
        look_ups(rows),
    ]
    return measurements.Measurements(
        workload=workload,
        traces=[run.facts for run in runs],
        phases=measurements.Phases(np.zeros(len(apps), np.int64), apps, [None] * len(apps)),
        listed=listed,
        survey=SurveyedFiles(_survey(rows), records_creation=False),
        operations=_operations(rows),
        processes=processes,
        results=measurements.Results(results, unknown=wording.UNKNOWN, otherwise=wording.OTHERWISE),
        formats_on_disk=formats_on_disk(workload, processes.files.file, listed),
        unknown=wording.UNKNOWN_ATTRIBUTES | {"phases": "; ".join((wording.UNKNOWN_ATTRIBUTES["phases"], *causes))},
        layouts=layouts,
        mounts=mounts_of(counts),
        targets=targets_of(contexts, counts, rows),
        not_counted=[
            (workload.apps[context.app], missed)
            for context, run in zip(contexts, counts, strict=True)
            for missed in run.not_counted
        ],
        nodes=nodes,
        remarks=remarks | {f"extensions.{name}": wording.OTHERWISE for name in extensions},
        extensions=dict.fromkeys(extensions),
    )


@cache
def _extensions() -> tuple[str, ...]:
    """Names of measures from plug-ins; they are searched for once, in all installed distributions."""
    return tuple(extension_names())


_NEVER = np.iinfo(np.int64).max


def _operations(rows: Rows) -> OperationCounts:
    widths = (len(rows.workload.apps) + 1, rows.workload.files)
    names = ("reads", "writes", "metadata", "syncs", "bytes_read", "bytes_written", "opens")
    columns = {name: rows[name] for name in names}
    columns |= {"first": np.where(rows["first_ns"] > 0, rows["first_ns"], _NEVER), "last": rows["last_ns"]}
    table = group(pack((rows.phase, rows.file), widths), columns, {"first": "min", "last": "max"})
    phase, file = unpack(table.keys, widths)
    known = {name: table[name] for name in columns}
    known["first"] = np.where(known["first"] == _NEVER, 0, known["first"])
    return OperationCounts.of(phase, file, known)


def _processes(rows: Rows, segments: TracedSegments) -> ProcessCounts:
    """Ranks with a record of the file; if one record covers all ranks, all of them.

    The number of readers is known if every rank moved the same number of bytes; otherwise it is at most the reads.
    """
    workload, names = rows.workload, ("processes", "readers", "writers")
    used = (rows["opens"] > 0) | (rows["reads"] > 0) | (rows["writes"] > 0)
    alone, together = used & (rows.process >= 0), used & (rows.process < 0)
    of_process, of_trace = (workload.files, workload.processes), (workload.files, len(workload.process_base))
    largest: dict[str, How] = dict.fromkeys(names, "max")
    did = {"readers": (rows["reads"] > 0)[alone], "writers": (rows["writes"] > 0)[alone]}
    by_process = group(pack((rows.file[alone], rows.process[alone]), of_process), did, largest)
    file, process = unpack(by_process.keys, of_process)
    single = {"processes": np.ones(len(file), np.int64)} | {name: by_process[name] for name in names[1:]}
    trace = np.searchsorted(np.array(workload.process_base), process, side="right") - 1
    movers = rows.movers[together]
    reduced = {
        "processes": rows.ranks[together],
        "readers": np.minimum(rows["reads"][together], movers),
        "writers": np.minimum(rows["writes"][together], movers),
    }
    # A file may have a record of all ranks in one layer and of single ranks in another.
    counts = group(pack((file, trace), of_trace), single)
    of_all = group(pack((rows.file[together], rows.trace[together]), of_trace), reduced, largest)
    both = IntTable.merged([counts, of_all], largest)
    code, trace = unpack(both.keys, of_trace)
    total = group(code, {name: both[name] for name in names})
    # Exact if all calls on the file were kept, in all runs.
    users = [
        np.where(
            np.isin(total.keys, rows.file[~segments.whole[:, kind]]),
            total[name],
            segments.users(kind).at(total.keys, "processes"),
        )
        for kind, name in enumerate(names[1:])
    ]
    of_app = (len(workload.apps), workload.files)
    app = np.array(workload.app_of_trace, np.int64)[trace]
    used_app, used_file = unpack(distinct(pack((app, code), of_app)), of_app)
    ranks = np.diff([*workload.process_base, workload.processes])
    in_phase = np.bincount(workload.app_of_trace, ranks, len(workload.apps)).astype(np.int64)
    return ProcessCounts(FileUsers(total.keys, total["processes"], *users), used_app, used_file, in_phase)


def _survey(rows: Rows) -> IntTable:
    included, nothing = rows.included, np.zeros(len(rows), np.int64)
    counted = ("reads", "writes", "metadata", "syncs", "opens", "bytes_read", "bytes_written")
    # A file opened but never read or written was queried or created, but that is not counted. Neither are removals:
    # without their column, they are unknown.
    uncounted = ("makes", "empties", "looks", "resizes", "streams", "unfollowed", "unsized_reads", "unsized_writes")
    columns = {name: rows[name] for name in counted} | dict.fromkeys(uncounted, nothing)
    columns |= {"metadata_time": rows["metadata_ns"], "time": rows.time_ns}
    # A record of all ranks counts as the first and the last rank; it does not show which of them wrote.
    columns |= rows.users
    wrote = rows["writes"] > 0
    columns["first_writer"] = np.where(wrote, columns["first_process"], _NEVER)
    columns["last_writer"] = np.where(wrote, columns["last_process"], -1)
    return group(rows.file[included], {n: c[included] for n, c in columns.items()}, ENDS_OF_FILES)


def _listed(rows: Rows, processes: ProcessCounts, most: int | None) -> Ints:
    """Files of the data set that any process used, sorted by I/O time, then bytes (descending), then name."""
    workload, included = rows.workload, rows.included
    columns = {"time": rows.time_ns, "bytes": rows["bytes_read"] + rows["bytes_written"]}
    by_file = group(rows.file[included], {name: column[included] for name, column in columns.items()})
    candidates = np.intersect1d(processes.files.file, by_file.keys)
    time, moved = by_file.at(candidates, "time"), by_file.at(candidates, "bytes")
    return measurements.files_with_most(workload.paths, candidates, most, time, moved)


def _lengths(rows: Rows) -> FileLengths:
    """Lengths of written files: the furthest end of a write or read; files that were not written have none."""
    files = rows.workload.files
    length = rows.workload.known_sizes.copy()
    reach = np.zeros(files, np.int64)
    np.maximum.at(reach, rows.file, np.maximum(rows["write_end"], rows["read_end"]))
    written = np.zeros(files, np.bool_)
    written[rows.file[rows["bytes_written"] > 0]] = True
    return FileLengths(np.where(written, np.maximum(reach, length), length), np.zeros(files, np.bool_))
