"""From stores to a profile: the world, the passes, the entities, the self-check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vani.analyzers.base import BUCKETS, NO_VALUE, Context, World
from vani.analyzers.entities.apps import apps, file_counts, share_of_run
from vani.analyzers.entities.dataset import dataset
from vani.analyzers.entities.dependencies import app_dependencies, early_reads
from vani.analyzers.entities.files import files, roles, sizes
from vani.analyzers.entities.folders import folders
from vani.analyzers.entities.interfaces import interfaces
from vani.analyzers.entities.machine import cores_used, gpus_used, job, middleware, storage
from vani.analyzers.entities.phases import phases
from vani.analyzers.entities.view import View
from vani.analyzers.iostats import MEMORY_SPEED, impossible_rates
from vani.analyzers.keyed import Keyed
from vani.analyzers.measures.clocks import skew_ns
from vani.analyzers.names import renames_of
from vani.analyzers.passes import measure
from vani.analyzers.self_check import check
from vani.calls import MOST_SUM, FileClass
from vani.columns import Texts, to_numpy
from vani.engine.run import Engine
from vani.errors import InputError
from vani.schema.profile import Excluded, Generator, Profile, TraceEntity, Workflow
from vani.store.manifest import Manifest
from vani.store.read import Store

if TYPE_CHECKING:
    from vani.schema.job import Job
    from vani.schema.system import System

Codes = NDArray[np.int64]

__all__ = ["Options", "Tables", "characterise", "excluded", "world_of"]


@dataclass(frozen=True)
class Options:
    """What a user can choose. `list_files`: how many files are listed, None for all."""

    phase_gap_s: float | None = None
    list_files: int | None = 100


class Tables(Protocol):
    """What a store tells of its trace before a call is read."""

    @property
    def manifest(self) -> Manifest: ...

    @property
    def files(self) -> pa.Table: ...

    @property
    def renames(self) -> pa.Table: ...

    @property
    def function_names(self) -> dict[int, str]: ...


def world_of(stores: Sequence[Tables], names: Sequence[str], job_: Job | None) -> tuple[World, list[Context]]:
    """Number files, apps and processes over all traces, and put the traces on one clock.

    Parameters
    ----------
    names
        Name of the app of each trace.
    """
    paths, classes, local = _numbered([s.files for s in stores])
    starts = [s.manifest.start_unix_s for s in stores]
    known = [s for s in starts if s is not None]
    origin = min(known) if known and len(known) == len(stores) else None
    shifts = [0 if origin is None or s is None else round((s - origin) * 1e9) for s in starts]
    # The workload begins with its first call where a clock was set back behind the start of the first trace.
    early = min(shift + s.manifest.begin_ns for shift, s in zip(shifts, stores, strict=True))
    shifts = [shift - min(0, early) for shift in shifts]
    order: dict[str, int] = {}
    for index in sorted(range(len(stores)), key=lambda i: (shifts[i], i)):
        order.setdefault(names[index], len(order))
    ranks = [s.manifest.ranks for s in stores]
    functions, own_functions = _functions([s.function_names for s in stores])
    sizes_known = np.full(len(paths), NO_VALUE)
    if job_ is not None and job_.dataset is not None:
        for code, path in enumerate(paths):
            size = job_.size_of(path)
            if size is not None:
                sizes_known[code] = size
    world = World(
        paths=paths,
        file_class=classes,
        apps=tuple(order),
        app_of_trace=tuple(order[n] for n in names),
        process_base=tuple(int(b) for b in np.cumsum([0, *ranks])[:-1]),
        processes=sum(ranks),
        shift_ns=tuple(shifts),
        span_ns=max(shift + s.manifest.span_ns for shift, s in zip(shifts, stores, strict=True)),
        known_sizes=sizes_known,
        final_name=np.arange(len(paths)),
        functions=functions,
        renames=renames_of([s.renames for s in stores], local, shifts, paths, classes),
    )
    return world, [
        Context(world, i, own, functions_)
        for i, (own, functions_) in enumerate(zip(local, own_functions, strict=True))
    ]


_NAMELESS = "(unknown)"


def _functions(tables: Sequence[dict[int, str]]) -> tuple[tuple[str, ...], list[NDArray[np.int32]]]:
    """Names of the functions of all traces, and the position of each trace's own codes among them."""
    names: dict[str, int] = {_NAMELESS: 0}
    local = []
    for table in tables:
        codes = np.zeros(max(table, default=-1) + 2, np.int32)
        for code, name in table.items():
            codes[code] = names.setdefault(name, len(names))
        local.append(codes)
    return tuple(names), local


def _numbered(tables: Sequence[pa.Table]) -> tuple[Texts, NDArray[np.int8], list[Codes]]:
    """Paths of all traces in order of first sight, the class of each, and codes of each trace's own paths."""
    if len(tables) == 1:
        # The paths of one trace are distinct.
        (table,) = tables
        classes = to_numpy(table["class"].combine_chunks())
        return Texts(table["path"]), classes, [np.arange(len(table), dtype=np.int64)]
    columns = [table["path"].combine_chunks() for table in tables]
    encoded = pa.chunked_array(columns).dictionary_encode().combine_chunks()
    every = to_numpy(encoded.indices).astype(np.int64)
    classes = np.full(len(encoded.dictionary), max(FileClass), np.int8)
    kinds = np.concatenate([to_numpy(table["class"].combine_chunks()) for table in tables])
    # What one trace only looked for and another one used is a file of the data set.
    np.minimum.at(classes, every, kinds)
    cuts = np.cumsum([len(column) for column in columns])[:-1]
    return Texts(encoded.dictionary), classes, np.split(every, cuts)


def characterise(
    stores: Sequence[Store],
    names: Sequence[str],
    engine: Engine,
    *,
    version: str,
    job_: Job | None = None,
    system: System | None = None,
    options: Options | None = None,
    refused: Sequence[tuple[str, str]] = (),
) -> tuple[Profile, View]:
    """Characterise a workload.

    Parameters
    ----------
    stores, names
        One per trace, with the name of its app.
    refused
        (path, why) of traces that could not be read.

    Returns
    -------
    profile, view
        The profile, checked; and what was measured, for graphs.

    Raises
    ------
    InputError
        The calls of all traces move more bytes, or take more time, than 64 bits count.
    SelfCheckError
        The numbers contradict each other.
    """
    for name, unit in (("bytes", "bytes"), ("time_ns", "ns")):
        total = sum(getattr(store.manifest, name) for store in stores)
        if total >= MOST_SUM:
            raise InputError(
                f"the calls of all {len(stores)} traces have {total:.3g} {unit} together, more than can be counted",
                todo="give fewer traces, or trace the runs again",
            )
    options = options or Options()
    world, contexts = world_of(stores, names, job_)
    measured = measure(
        world, stores, contexts, engine, phase_gap_s=options.phase_gap_s, list_files=options.list_files
    )
    view = View(measured, job_, system)
    profile = _assemble(view, version, options, refused)
    check(profile)
    return profile, view


def _assemble(view: View, version: str, options: Options, refused: Sequence[tuple[str, str]]) -> Profile:
    world = view.world
    role_of, size_of = roles(view), sizes(view)
    cores = cores_used(view)
    counts = file_counts(view, None)
    slowest = int(view.process_time.max(initial=0))
    profile = Profile(
        generator=Generator(name="vani", version=version),
        traces=_traces(view),
        job=job(view),
        workflow=Workflow(
            apps=len(world.apps),
            processes=world.processes,
            cpu_cores_used_per_node=cores,
            gpus_used_per_node=gpus_used(view),
            runtime_s=world.span_ns / 1e9,
            io=view.workload_stats,
            files=counts,
            app_dependencies=app_dependencies(view),
            io_time_share=share_of_run(view.workload_stats, world.span_ns),
            io_time_share_slowest=min(1.0, slowest / world.span_ns) if world.span_ns > 0 else None,
            library_time_s=view.library_time(None),
        ),
        apps=apps(view),
        phases=phases(view),
        interfaces=interfaces(view),
        middleware=middleware(view, cores),
        storage=storage(view),
        dataset=dataset(view, role_of, size_of),
        folders=folders(view),
        files=files(view, role_of, size_of),
        excluded=excluded(view),
        provenance={},
    )
    return profile.model_copy(update={"provenance": _provenance(view, options, refused, len(view.files))})


def _traces(view: View) -> list[TraceEntity]:
    found = []
    for index, store in enumerate(view.measured.stores):
        m = store.manifest
        skew = skew_ns(view.measured.results["clocks"], index, m.ranks)
        found.append(
            TraceEntity(
                path=m.source,
                tool=m.tool,
                format=m.format,
                layout=m.layout,
                app=view.world.apps[view.world.app_of_trace[index]],
                ranks=m.ranks,
                records=m.records,
                functions=m.functions,
                start_unix_s=m.start_unix_s,
                span_s=(m.span_ns - m.begin_ns) / 1e9,
                repaired_times=m.repaired_times,
                clock_skew_s=None if skew is None else skew / 1e9,
                complete=m.complete,
                problems=m.problems,
            )
        )
    return found


def excluded(view: View) -> Excluded:
    """What is counted apart."""
    operations: Keyed = view.measured.results["operations"]
    phase, file = view.cells.phase(operations.keys), view.cells.file(operations.keys)
    mine = np.unique(file[(phase == view.excluded_phase) & (file >= 0)])
    others = mine[view.world.file_class[mine] != FileClass.DATASET] if len(mine) else mine
    return Excluded(files=len(others), io=view.excluded_stats)


def _provenance(
    view: View, options: Options, refused: Sequence[tuple[str, str]], files_total: int
) -> dict[str, str]:
    notes = view.limits | view.notes
    level = view.measured.survey.level
    if level:
        known = (
            f"ends of files that are written all the time are known at {BUCKETS >> level} moments of the run"
        )
        notes["io.past_end"] = "; ".join(filter(None, (notes.get("io.past_end"), known)))
    if view.world.lives is not None:
        notes["files.path"] = "files that were renamed are told under their last name"
    listed = len(view.measured.listed)
    if listed < files_total:
        notes["files"] = (
            f"the {listed} files with most I/O time of {files_total:,}; --files all lists every one"
        )
    given = options.phase_gap_s is not None
    notes["apps.phase_gap_s"] = (
        "given with --phase-gap"
        if given
        else "found from the data: the widest range of thresholds (on a logarithmic scale) that "
        "gives the same phases, and in it the geometric middle; half a second or a thousandth of the run at least"
    )
    unplaced = view.measured.results["footprint"].others
    if len(unplaced) and unplaced["unplaced"].any():
        notes["io.footprint"] = (
            f"at least: {int(unplaced['unplaced'].sum()):,} operations lie where the trace cannot tell"
        )
    if view.measured.results["footprint"].given_up:
        notes["io.footprint"] = "more separate extents than are kept in memory (1 million)"
    unsized = view.measured.results["operations"]
    if len(unsized) and unsized["unsized"].any():
        notes["io.transfer_size"] = (
            f"the size of {int(unsized['unsized'].sum()):,} operations is not in the trace: counted as unknown"
        )
    starts = [s.manifest.start_unix_s for s in view.measured.stores]
    if len(starts) > 1 and any(s is None for s in starts):
        notes["workflow.runtime_s"] = (
            "some trace does not store its start: all are taken to start at the same time"
        )
    skews = [t.clock_skew_s for t in _traces(view) if t.clock_skew_s]
    if skews:
        notes["traces.clock_skew_s"] = (
            f"the ranks' clocks disagree by at least {max(skews):.6g} s: order between ranks is known only to that"
        )
    blocks = [
        view.workload_stats,
        *view.app_stats.values(),
        *view.row_stats.values(),
        *view.file_stats.values(),
    ]
    for direction in {name for block in blocks for name in impossible_rates(block)}:
        notes[f"io.bandwidth.{direction}"] = (
            f"no rate where each process would have moved more than {MEMORY_SPEED / 1e9:.3g} GB/s, which no memory "
            "delivers: calls asked for more than they moved (bytes are requests), or the clock is too coarse for "
            "calls this short"
        )
    early = early_reads(view)
    if early is not None:
        notes["workflow.app_dependencies"] = early
    for path, why in refused:
        notes[f"traces[{path}]"] = f"left out: {why}"
    return notes
