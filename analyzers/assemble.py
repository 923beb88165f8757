"""Builds a checked profile from measurements of any source.

Which names are one file depends on the order of calls, which a source may not know.
A name may denote several files in sequence (`workload.py`), so neither their number nor
anything about a single one is reported. All other attributes count their calls.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from vani.analyzers.entities.apps import apps, file_counts, phases, share_of_run, traces
from vani.analyzers.entities.dependencies import app_dependencies, early_reads
from vani.analyzers.entities.file_groups import folders, locks, lookups, patterns
from vani.analyzers.entities.files import dataset, files, roles, sizes
from vani.analyzers.entities.interfaces import accesses, interfaces
from vani.analyzers.entities.io_stats import MEMORY_SPEED, empty_stats, impossible_rates, nulls_of_stats
from vani.analyzers.entities.machine import cores_used, gpus_used, job, middleware, storage
from vani.analyzers.entities.unseen import unseen
from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.extents import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.libraries import LibraryCallTimes, LibraryTimes
from vani.analyzers.self_check import refuse_contradictions
from vani.analyzers.workload import BUCKETS, Workload
from vani.calls import FileClass
from vani.columns import Bools, distinct
from vani.models.verdict import decided
from vani.schema.profile import Excluded, FileCounts, Generator, Phase, Profile, Workflow
from vani.units import format_number


def of_several_names(workload: Workload) -> Bools:
    """Names among which files were renamed, shape (files,)."""
    names = np.bincount(workload.final_name, minlength=workload.files)
    several: Bools = names[workload.final_name] > 1
    return several


def without_names(profile: Profile, why: str) -> Profile:
    """The profile without attributes that depend on which names are one file, and with the reason."""
    counts = FileCounts(total=None, shared=None, file_per_process=None)
    unknown = dict.fromkeys(("files", "format", "size", "roles", "size_distribution"))
    notes = dict.fromkeys(
        ("workflow.files", "apps.files", "interfaces.files", *(f"dataset.{n}" for n in unknown), "folders", "patterns"),
        why,
    )
    notes["files"] = f"without renamed files: {why}"
    return profile.model_copy(
        update={
            "workflow": profile.workflow.model_copy(update={"files": counts}),
            "apps": [app.model_copy(update={"files": counts}) for app in profile.apps],
            "interfaces": None
            if profile.interfaces is None
            else [row.model_copy(update={"files": None}) for row in profile.interfaces],
            "dataset": profile.dataset.model_copy(update=unknown),
            "folders": None,
            "patterns": None,
            "provenance": profile.provenance | notes,
        }
    )


Part = TypeVar("Part")


def assemble(
    view: View,
    *,
    version: str,
    refused: Sequence[tuple[str, str]] = (),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    of_phases: View | list[Phase] | None = None,
) -> Profile:
    """Build the profile from measurements.

    Parameters
    ----------
    version
        Vani's version.
    refused
        (path, reason) of traces that could not be read.
    bounds
        Smallest and largest possible value by attribute, for sources that only give bounds.
    of_phases
        Measurements of phases, if they differ from `view`; or the phases themselves.

    Raises
    ------
    SelfCheckError
        The numbers contradict each other.
    """
    notes = view.limits

    def noted(section: tuple[Part, Notes]) -> Part:
        notes.update(section[1])
        return section[0]

    role_of, without_role = roles(view)
    size_of = noted(sizes(view))
    cores = noted(cores_used(view))
    profile = Profile(
        generator=Generator(name="vani", version=version),
        traces=noted(traces(view)),
        job=noted(job(view)),
        workflow=noted(_workflow(view, cores)),
        apps=noted(apps(view)),
        phases=of_phases if isinstance(of_phases, list) else noted(phases(of_phases or view)),
        interfaces=noted(interfaces(view)),
        accesses=noted(accesses(view)),
        middleware=noted(middleware(view, cores)),
        storage=noted(storage(view)),
        dataset=noted(dataset(view, role_of, without_role, size_of)),
        folders=noted(folders(view, size_of)),
        lookups=noted(lookups(view)),
        locks=noted(locks(view)),
        patterns=noted(patterns(view, size_of)),
        files=noted(files(view, role_of, size_of)),
        excluded=_excluded(view),
        extensions=dict(view.measured.extensions),
        bounds=dict(bounds or {}),
        provenance={},
    )
    notes |= view.measured.remarks
    notes |= nulls_of_stats(view.measured)
    if "sync_time" in view.measured.unknown:
        notes |= dict.fromkeys(("io.time_s.sync", "io.busy_s.sync"), view.measured.unknown["sync_time"])
    for explain in (_of_links, _of_files, _of_measures, _of_clocks, _of_rates):
        notes |= explain(view, profile)
    notes |= {f"traces[{path}]": f"left out: {why}" for path, why in refused}
    profile = profile.model_copy(update={"provenance": notes, "unseen": noted(unseen(view))})
    profile = profile.model_copy(update={"verdict": decided(profile)})
    if of_several_names(view.workload)[view.files].any():
        profile = without_names(profile, view.measured.unknown["renames"])
    refuse_contradictions(profile)
    return profile


def _workflow(view: View, cores: int | None) -> tuple[Workflow, Notes]:
    workload, io, times = view.workload, view.workload_stats, view.process_time
    dependencies, notes = app_dependencies(view)
    gpus, of_gpus = gpus_used()
    run_ns = None if view.run_ns is None else workload.span_ns
    slowest = None if times is None else int(times.max(initial=0))
    entity = Workflow(
        apps=len(workload.apps),
        processes=workload.processes,
        cpu_cores_used_per_node=cores,
        gpus_used_per_node=gpus,
        runtime_s=None if run_ns is None else run_ns / 1e9,
        io=io,
        files=file_counts(view, None),
        app_dependencies=dependencies,
        io_time_share=share_of_run(io, run_ns),
        io_time_share_slowest=min(1.0, slowest / run_ns) if run_ns and slowest is not None else None,
        library_time_s=view.library_time(None),
    )
    notes |= view.nulls(BusyTimes, "workflow.io_time_share")
    for of_libraries in (LibraryTimes, LibraryCallTimes):
        notes |= view.nulls(of_libraries, "workflow.library_time_s")
    notes |= view.nulls(SpentTime, "workflow.io_time_share_slowest")
    if run_ns is None:
        notes["workflow.runtime_s"] = view.no_times
    return entity, of_gpus | notes


def _excluded(view: View) -> Excluded:
    """Remarks on calls that are counted separately."""
    operations = view.measured.operations
    apart = (operations.phase == len(view.measured.phases)) & (operations.file >= 0)
    excluded_files = distinct(operations.file[apart])
    others = excluded_files[view.workload.file_class[excluded_files] != FileClass.DATASET]
    return Excluded(files=len(others), io=view.row_stats.get(view.phase_rows.rows, empty_stats()))


def _of_links(view: View, profile: Profile) -> Notes:
    """Reasons why dependencies are null."""
    notes = dict[str, str]()
    if profile.workflow.app_dependencies is None:
        notes["workflow.app_dependencies"] = view.why_no_links
    if any(app.process_dependencies is None for app in profile.apps):
        notes["apps.process_dependencies"] = view.why_no_links
    return notes


def _of_files(view: View, profile: Profile) -> Notes:
    """Remarks on the listed files, their names, and the accuracy of their ends."""
    notes: Notes = {}
    moments = view.measured.survey.moments
    if moments < BUCKETS:
        known = f"ends of files that are written all the time are known at {moments} moments of the run"
        notes["io.past_end"] = "; ".join(filter(None, (view.limits.get("io.past_end"), known)))
    if view.workload.lives is not None:
        notes["files.path"] = "renamed files have their last name"
    listed, total = len(profile.files), len(view.files)
    if listed < total:
        most = "I/O time" if view.timed else "bytes"
        notes["files"] = f"the {listed} files with most {most} of {total:,}; --files all lists every one"
    return notes


def _of_measures(view: View, _: Profile) -> Notes:
    """Remarks on how phases were found, and on attributes that calls do not provide."""
    measured, notes = view.measured, dict[str, str]()
    if view.timed and "phases" not in measured.unknown:
        notes["apps.phase_gap_s"] = _GAP_GIVEN if measured.phases.gap_given else _GAP_FOUND
    footprint = measured.of(Touched)
    if footprint is not None and footprint.others.unplaced.any():
        unplaced = int(footprint.others.unplaced.sum())
        notes["io.footprint"] = f"at least: {unplaced:,} operations have a place that the trace does not record"
    if footprint is not None and footprint.given_up:
        notes["io.footprint"] = "more separate extents than are kept in memory (1 million)"
    unsized = int(measured.operations.unsized.sum())
    if unsized:
        notes["io.transfer_size"] = (f"the size of {unsized:,} operations is not in the trace: counted as unknown")
    return notes


_GAP_GIVEN = "given with --phase-gap"
_GAP_FOUND = (
    "found from the data: the widest range of thresholds (on a logarithmic scale) that "
    "gives the same phases, and in it the geometric middle; half a second or a thousandth of the run at least"
)


def _of_clocks(view: View, profile: Profile) -> Notes:
    """Remarks on the accuracy with which times of several traces, or of one trace's ranks, can be compared."""
    notes: Notes = {}
    starts = [trace.start_unix_s for trace in profile.traces]
    if view.timed and len(starts) > 1 and None in starts:
        notes["workflow.runtime_s"] = (
            "some trace does not store its start: all are taken to start at the same time"
        )
    skews = [trace.clock_skew_s for trace in profile.traces if trace.clock_skew_s]
    if skews:
        notes["traces.clock_skew_s"] = (
            f"the ranks' clocks disagree by at least {max(skews):.6g} s: order between ranks is known only to that"
        )
    return notes


def _of_rates(view: View, _: Profile) -> Notes:
    """Remarks on impossible bandwidths, and on data that was read before it was written."""
    notes: Notes = {}
    blocks = [view.workload_stats, *view.app_stats.values(), *view.row_stats.values(), *view.file_stats.values()]
    for direction in dict.fromkeys(name for block in blocks for name in impossible_rates(block)):
        notes[f"io.bandwidth.{direction}"] = (
            f"no rate where each process would have moved more than {format_number(MEMORY_SPEED / 1e9)} GB/s, which no "
            "memory delivers: calls requested more than they moved (bytes are requests), or the clock is too "
            "coarse for "
            "calls this short"
        )
    early = early_reads(view)
    return notes if early is None else notes | {"workflow.app_dependencies": early}
