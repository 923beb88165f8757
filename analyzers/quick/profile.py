"""The profile that needs neither times nor the order of calls: `vani profile --quick`.

Everything in it equals what the profile with time stamps says; all else is null, and `provenance` says why.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import NO_VALUE, Ends, Facts, Pairs, World
from vani.analyzers.characterise import excluded, world_of
from vani.analyzers.entities.apps import file_counts, interface_of_app
from vani.analyzers.entities.dataset import dataset
from vani.analyzers.entities.dependencies import NO_PROCESS_DEPENDENCIES
from vani.analyzers.entities.files import UNSIZED, files, is_output
from vani.analyzers.entities.folders import folders
from vani.analyzers.entities.interfaces import interfaces
from vani.analyzers.entities.machine import cores_used, gpus_used, job, middleware, storage
from vani.analyzers.entities.phase_rows import PhaseRows, each_alone
from vani.analyzers.entities.view import View
from vani.analyzers.intervals import Intervals
from vani.analyzers.iostats import Cells, empty_stats, stats_by
from vani.analyzers.keyed import Keyed, group
from vani.analyzers.measures.access_pattern import PatternResult
from vani.analyzers.measures.survey import SurveyResult, unfilled
from vani.analyzers.passes import Measured
from vani.analyzers.quick.counts import Counts, Trace, count
from vani.analyzers.quick.renamed import of_several_names, without_names
from vani.analyzers.self_check import check
from vani.schema.job import Job
from vani.schema.profile import (
    App,
    ByteCounts,
    Dataset,
    FileEntity,
    Generator,
    Granularity,
    Interface,
    IOStats,
    Middleware,
    Profile,
    RankBalance,
    SharedStorage,
    Storage,
    TraceEntity,
    Workflow,
)
from vani.schema.system import System
from vani.store.read import Store

__all__ = ["quick_profile"]

_NO_TIMES = "--quick does not read time stamps"
_NO_ORDER = "--quick counts calls and does not follow their order"
_NO_CALLERS = (
    "--quick does not read time stamps, which alone tell who called whom where no call depth is stored"
)
_TIMES = (
    "traces.span_s",
    "traces.repaired_times",
    "traces.clock_skew_s",
    "traces.complete",
    "workflow.runtime_s",
    "workflow.io_time_share",
    "workflow.io_time_share_slowest",
    "workflow.library_time_s",
    "apps.runtime_s",
    "apps.io_time_share",
    "apps.phase_gap_s",
    "apps.library_time_s",
    "apps.balance.slowest_rank",
    "apps.balance.slowest_io_time_s",
    "apps.balance.mean_io_time_s",
    "apps.balance.median_io_time_s",
    "apps.balance.slowest_call_rank",
    "apps.balance.slowest_call_time_s",
    "phases",
    "io.time_s",
    "io.busy_s",
    "io.time_share",
    "io.bandwidth",
    "io.past_end",
    "io.calls.time_s",
    "io.metadata_kinds",
    "folders.metadata_time_s",
    "interfaces.time_s",
    "files.first_s",
    "files.last_s",
)
_ORDER = ("io.footprint", "io.access_pattern", "interfaces.access_pattern", "files.stride")
_LOOKED_AT = 1000
"""Files whose first bytes are looked at; with more, those that matter by I/O time are, which is not known here."""

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class QuickView(View):
    """What was counted, in the form that entities take."""

    def __init__(self, measured: Measured, counts: Counts, job_: Job | None, system: System | None) -> None:
        super().__init__(measured, job_, system)
        self.counts = counts

    @property
    def knows_callers(self) -> bool:
        return not self.counts.untold_apps.any()

    def _time(self, group_of_phase: Ints, group_of_app: Ints) -> None:  # noqa: ARG002 - no phase has a time
        return None

    def _busy(self, group_of_phase: Ints) -> None:  # noqa: ARG002 - no phase has a time
        return None

    @property
    def timed(self) -> bool:
        return False

    def _app_busy(self) -> None:
        return None

    @cached_property
    def phase_rows(self) -> PhaseRows:
        # One phase stands for each app.
        return each_alone(self.facts)

    @cached_property
    def workload_stats(self) -> IOStats:
        groups = np.append(np.zeros(self.facts.phases, np.int64), -1)
        found = stats_by(self.measured, lambda cell: groups[self.cells.phase(cell)], time=None, busy=None)
        return found.get(0, empty_stats())

    @cached_property
    def file_stats(self) -> dict[int, IOStats]:
        listed = self.measured.listed
        number = np.full(self.world.files + 1, -1, np.int64)
        number[listed + 1] = listed
        return stats_by(self.measured, lambda cell: number[self.cells.file(cell) + 1], time=None, busy=None)

    @cached_property
    def untold(self) -> set[int]:
        """Files for which it is not known through which library they were accessed."""
        return set(self.counts.untold_files.tolist())


def quick_profile(
    traces: Sequence[Trace],
    names: Sequence[str],
    *,
    version: str,
    job_: Job | None = None,
    system: System | None = None,
    list_files: int | None = 100,
    refused: Sequence[tuple[str, str]] = (),
) -> Profile:
    """Characterise a workload by how often each call occurs.

    Parameters
    ----------
    traces, names
        One per trace, with the name of its app.
    list_files
        How many files are listed, those with most bytes; None for all.
    refused
        (path, why) of traces that could not be read.

    Raises
    ------
    SelfCheckError
        The numbers contradict each other.
    """
    world, contexts = world_of(traces, names, job_)
    world, counts = count(world, contexts, traces)
    view = QuickView(_measured(traces, world, counts, list_files), counts, job_, system)
    profile = _assemble(view, version, refused)
    check(profile)
    return profile


def _measured(traces: Sequence[Trace], world: World, counts: Counts, list_files: int | None) -> Measured:
    apps = np.arange(len(world.apps))
    nothing = np.empty(0, np.int64)
    unknown = np.zeros(world.files, np.bool_)
    facts = Facts(
        phase_start=np.zeros(len(apps), np.int64),
        phase_app=apps,
        first_phase=np.arange(len(apps) + 1),
        ends=Ends(unknown, nothing, unknown, nothing, nothing, 1),
        linked=unknown,
        linked_by_open=unknown,
        written_by_open=unknown,
        threaded=nothing,
    )
    return Measured(
        world=world,
        # Of a store only the tables are asked for.
        stores=cast("Sequence[Store]", traces),
        facts=facts,
        gap_ns=[None] * len(apps),
        survey=SurveyResult(Intervals(), counts.files, Keyed(), nothing),
        results=counts.results | {"access_pattern": PatternResult(Keyed(), Keyed(), Pairs())},
        listed=_listed(world, counts, list_files),
        busy=Keyed(),
    )


def _listed(world: World, counts: Counts, most: int | None) -> Ints:
    """Files of the data set that are listed: those with most bytes, then most calls, then by name."""
    used = counts.results["processes"].files
    if not len(used) or not len(counts.files):
        return np.empty(0, np.int64)
    found = used.keys[np.isin(used.keys, counts.files.keys)]
    found = found[~of_several_names(world)[found]]
    operations: Keyed = counts.results["operations"]
    cells = Cells(world.files, len(world.apps))
    by_file = operations.rekeyed(cells.file(operations.keys))
    moved = by_file.at(found, "bytes_read") + by_file.at(found, "bytes_written")
    calls = np.sum([by_file.at(found, n) for n in ("reads", "writes", "metadata")], axis=0)
    cut = np.lexsort((-calls, -moved))[:most] if most is not None else np.arange(len(found))
    order = sorted(cut.tolist(), key=lambda i: (-int(moved[i]), -int(calls[i]), world.paths[found[i]]))
    chosen: Ints = found[np.array(order, dtype=np.int64)]
    return chosen


def _assemble(view: QuickView, version: str, refused: Sequence[tuple[str, str]]) -> Profile:
    world = view.world
    cores = cores_used(view)
    files_of_all = file_counts(view, None)
    profile = Profile(
        generator=Generator(name="vani", version=version),
        traces=_traces(view),
        job=job(view),
        workflow=Workflow(
            apps=len(world.apps),
            processes=world.processes,
            cpu_cores_used_per_node=cores,
            gpus_used_per_node=gpus_used(view),
            runtime_s=None,
            io=view.workload_stats,
            files=files_of_all,
            app_dependencies=None if _apps_may_exchange(view) else [],
            io_time_share=None,
        ),
        apps=[_app(view, app) for app in range(len(world.apps))],
        # Phases are made of calls on files of the data set.
        phases=None if len(view.counts.files) else [],
        interfaces=_interfaces(view),
        middleware=_middleware(view, cores),
        storage=_storage(view),
        dataset=_dataset(view),
        folders=folders(view),
        files=_files(view),
        excluded=excluded(view),
        provenance={},
    )
    profile = profile.model_copy(update={"provenance": _provenance(view, profile, refused)})
    return without_names(profile) if of_several_names(world)[view.files].any() else profile


def _traces(view: QuickView) -> list[TraceEntity]:
    found = []
    for index, trace in enumerate(view.measured.stores):
        m = trace.manifest
        functions = view.counts.functions[index]
        found.append(
            TraceEntity(
                path=m.source,
                tool=m.tool,
                format=m.format,
                layout=m.layout,
                app=view.world.apps[view.world.app_of_trace[index]],
                ranks=m.ranks,
                records=sum(functions.values()),
                functions=dict(sorted(functions.items(), key=lambda item: (-item[1], item[0]))),
                start_unix_s=m.start_unix_s,
                span_s=None,
                repaired_times=None,
                clock_skew_s=None,
                complete=False if m.problems else None,
                problems=m.problems,
            )
        )
    return found


def _app(view: QuickView, app: int) -> App:
    traces = [t for t, a in enumerate(view.world.app_of_trace) if a == app]
    untold = bool(view.counts.untold_apps[app])
    return App(
        name=view.world.apps[app],
        instances=len(traces),
        processes=sum(view.measured.stores[t].manifest.ranks for t in traces),
        runtime_s=None,
        interface=None if untold else interface_of_app(view, app),  # type: ignore[arg-type]
        io=view.app_stats.get(app) or empty_stats(),
        files=file_counts(view, app),
        process_dependencies=None if _processes_may_exchange(view, app) else NO_PROCESS_DEPENDENCIES,
        balance=_balance(view, app),
        io_time_share=None,
        phase_gap_s=None,
    )


def _balance(view: QuickView, app: int) -> RankBalance | None:
    apps = np.array(view.world.app_of_trace)[view.trace_of_process]
    rows = np.flatnonzero(apps == app)
    if not len(rows):
        return None
    counts = view.counts
    moved = counts.process_bytes[rows]
    busiest = int(moved.argmax())
    return RankBalance(
        slowest_rank=None,
        slowest_io_time_s=None,
        mean_io_time_s=None,
        median_io_time_s=None,
        busiest_rank=int(rows[busiest] - view.world.process_base[int(view.trace_of_process[rows[busiest]])]),
        busiest_bytes=int(moved[busiest]),
        mean_bytes=int(moved.sum()) / len(rows),
        reading_processes=int((counts.process_reads[rows] > 0).sum()),
        writing_processes=int((counts.process_writes[rows] > 0).sum()),
    )


def _may_exchange(users: Keyed) -> Bools:
    """Where some process reads what another one writes, by file: in which order is not known."""
    pairs = users["readers"].astype(np.float64) * users["writers"]
    found: Bools = pairs > users["both"]
    return found


def _processes_may_exchange(view: QuickView, app: int) -> bool:
    users = view.counts.users
    if users is None or not len(users):
        return users is None
    mine = users.keys // (view.world.files + 1) == app
    return bool((_may_exchange(users) & mine).any())


def _exchanged(view: QuickView) -> set[int] | None:
    """Files (by last name) that may be exchanged between processes; None: any."""
    users = view.counts.users
    if users is None or not len(users):
        return None if users is None else set()
    by_file = users.rekeyed(users.keys % (view.world.files + 1) - 1)
    return set(by_file.keys[_may_exchange(by_file)].tolist())


def _apps_may_exchange(view: QuickView) -> bool:
    """Whether an app reads a file that another one writes."""
    users = view.counts.users
    if len(view.world.apps) < 2 or users is None or not len(users):
        return len(view.world.apps) > 1 and users is None
    file = users.keys % (view.world.files + 1)
    ones = {n: (users[n] > 0).astype(np.int64) for n in ("readers", "writers", "both")}
    ones["both"] = ones["readers"] & ones["writers"]
    return bool(_may_exchange(group(file, ones)).any())


def _interfaces(view: QuickView) -> list[Interface]:
    found = []
    for row in interfaces(view):
        known: dict[str, object] = {"time_s": None, "access_pattern": None}
        app = view.world.apps.index(row.app)
        if view.counts.untold_apps[app] and row.layer not in ("posix", "stdio"):
            known |= {
                "bytes": ByteCounts(read=None, written=None, total=None),
                "files": None,
                "granularity": Granularity(data=None, metadata=None),
            }
        found.append(row.model_copy(update=known))
    return found


def _middleware(view: QuickView, cores: int | None) -> Middleware:
    found = middleware(view, cores)
    if not found.libraries:
        return found
    unknown: dict[str, object] = {"access_pattern": None}
    view.notes["middleware.access_pattern"] = _NO_ORDER
    if view.counts.untold_apps.any():
        unknown["granularity"] = None
        view.notes["middleware.granularity"] = _NO_CALLERS
    return found.model_copy(update=unknown)


def _roles(view: QuickView) -> tuple[NDArray[np.int8], set[int]]:
    """Role of every file of the data set (see `roles`), and the files whose role hangs on the order of calls."""
    survey = view.counts.files
    codes = view.files
    exchanged = _exchanged(view)
    unknown = survey.at(codes, "removes") > 0
    if exchanged is None:
        unknown[:] = True
    else:
        unknown |= np.isin(view.world.final_name[codes], np.array(sorted(exchanged), np.int64))
    role = np.where(is_output(survey, codes), 2, np.where(survey.at(codes, "reads") > 0, 1, 0))
    found = np.zeros(view.world.files, np.int8)
    found[codes] = np.where(unknown, 0, role)
    return found, set(codes[unknown].tolist())


def _sizes(view: QuickView) -> tuple[Ints, set[int]]:
    """Size of every file of the data set (see `sizes`), and the files whose size hangs on offsets."""
    survey, codes = view.counts.files, view.files
    size = view.world.known_sizes[codes]
    unknown = (survey.at(codes, "writes") > 0) | (survey.at(codes, "resizes") > 0)
    if view.counts.libraries_set_lengths:
        # Of which files is known from the order of calls, by which handles are bound.
        unknown |= size != NO_VALUE
    found = np.full(view.world.files, NO_VALUE)
    # Nothing was written: it has the size that it had.
    found[codes] = np.where(unknown | (survey.at(codes, "unfollowed") > 0), NO_VALUE, size)
    found[survey.keys[unfilled(survey, view.world.known_sizes[survey.keys] != NO_VALUE)]] = NO_VALUE
    if (found[codes[~unknown]] == NO_VALUE).any():
        view.notes["files.size"] = UNSIZED
    return found, set(codes[unknown].tolist())


def _dataset(view: QuickView) -> Dataset:
    role_of, orderless = _roles(view)
    size_of, unplaced = _sizes(view)
    found = dataset(view, role_of, size_of)
    unknown: dict[str, object] = {}
    if orderless:
        unknown["roles"] = None
        view.notes["dataset.roles"] = view.notes["files.role"] = _NO_ORDER
    if unplaced:
        unknown |= {"size": None, "size_distribution": None}
        view.notes["dataset.size"] = view.notes["files.size"] = _NO_ORDER
        view.notes["dataset.size_distribution"] = _NO_ORDER
    if view.untold & set(view.files.tolist()):
        unknown["format"] = None
        view.notes["dataset.format"] = _NO_CALLERS
    elif len(view.files) > _LOOKED_AT and not _nothing_there(view):
        unknown["format"] = None
        view.notes["dataset.format"] = (
            f"--quick does not know the I/O time by which {_LOOKED_AT:,} files are chosen to be looked at"
        )
    return found.model_copy(update=unknown)


def _nothing_there(view: QuickView) -> bool:
    """Whether no file of the data set can be on this machine, so that none can be looked at."""
    if view.job is not None and view.job.dataset is not None and view.job.dataset.files:
        return False
    folders = {os.path.dirname(view.world.paths[code]) for code in view.files.tolist()}  # noqa: PTH120
    return len(folders) <= _LOOKED_AT and not any(_is_there(folder) for folder in folders)


def _is_there(folder: str) -> bool:
    try:
        return Path(folder or ".").exists()
    except (OSError, ValueError):
        return False


def _files(view: QuickView) -> list[FileEntity]:
    role_of, _ = _roles(view)
    size_of, _ = _sizes(view)
    found = []
    for code, row in zip(view.measured.listed.tolist(), files(view, role_of, size_of), strict=True):
        unknown: dict[str, object] = {"first_s": None, "last_s": None}
        if code in view.untold:
            unknown |= {"interface": None, "format": None}
            view.notes["files.interface"] = view.notes["files.format"] = _NO_CALLERS
        found.append(row.model_copy(update=unknown))
    return found


def _storage(view: QuickView) -> Storage:
    """Which file system is described hangs on the file with most I/O time, unless all lie on the same one."""
    found = storage(view)
    if view.job is None and view.system is None:
        return found
    places: set[tuple[object, object]] = set()
    codes = view.files.tolist()
    for code in codes[:_LOOKED_AT]:
        path = view.world.paths[code]
        if not path.startswith("/"):
            places.add((None, path))
            continue
        system = view.system.file_system_for(path) if view.system is not None else None
        mount = view.job.mount_of(path) if view.job is not None else None
        places.add((None if system is None else system.name, None if mount is None else mount.dir))
    if len(places) <= 1 and len(codes) <= _LOOKED_AT:
        return found
    for name in SharedStorage.model_fields:
        view.notes[f"storage.shared.{name}"] = (
            "--quick does not know which of the file systems in use has most I/O time"
        )
    nothing = SharedStorage(type=None, dir=None, parallel_servers=None, capacity=None, max_bandwidth=None)
    return found.model_copy(update={"shared": nothing})


def _provenance(view: QuickView, profile: Profile, refused: Sequence[tuple[str, str]]) -> dict[str, str]:
    notes = view.limits | view.notes
    notes["traces.records"] = (
        "calls that the grammars stand for; --quick does not look whether each of them has a time stamp"
    )
    notes.update(dict.fromkeys(_TIMES, _NO_TIMES))
    notes.update(dict.fromkeys(_ORDER, _NO_ORDER))
    if profile.workflow.app_dependencies is None:
        notes["workflow.app_dependencies"] = _NO_ORDER
    if any(app.process_dependencies is None for app in profile.apps):
        notes["apps.process_dependencies"] = _NO_ORDER
    if view.counts.untold_apps.any():
        for name in ("apps.interface", "interfaces.bytes", "interfaces.files", "interfaces.granularity"):
            notes[name] = _NO_CALLERS
    if profile.phases is not None:
        del notes["phases"]
    listed, total = len(profile.files), len(view.files)
    if listed < total:
        notes["files"] = f"the {listed} files with most bytes of {total:,}; --files all lists every one"
    operations: Keyed = view.measured.results["operations"]
    if len(operations) and operations["unsized"].any():
        notes["io.transfer_size"] = (
            f"the size of {int(operations['unsized'].sum()):,} operations is not in the trace: counted as unknown"
        )
    for path, why in refused:
        notes[f"traces[{path}]"] = f"left out: {why}"
    return notes
