"""The profile that needs neither times nor the order of calls: `vani profile --quick`.

All values in it equal those of the profile with time stamps; others are null, and `provenance` gives the reason.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vani.analyzers.assemble import assemble, of_several_names
from vani.analyzers.characterise import workload_of
from vani.analyzers.entities.files import formats_on_disk
from vani.analyzers.entities.view import View
from vani.analyzers.int_table import NO_VALUE, IntTable, group, unpack
from vani.analyzers.measurements import Measurements, Phases, PossibleExchanges, Results, files_with_most
from vani.analyzers.measures import operations
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.accesses import Accesses
from vani.analyzers.measures.busy_time import BusyTimes
from vani.analyzers.measures.extents import ExchangeCounts, ProcessExtents, Touched
from vani.analyzers.measures.io_time import ClockSkew, SpentTime
from vani.analyzers.measures.lengths import BeyondEnds, FileLengths
from vani.analyzers.measures.libraries import Libraries, LibraryCallTimes, LibraryTimes, LibraryUse
from vani.analyzers.measures.survey import SurveyedFiles
from vani.analyzers.passes.measure_workload import extension_names
from vani.analyzers.quick.counts import Counts, Trace, count
from vani.analyzers.workload import SurveyFindings, Workload
from vani.calls import FileClass
from vani.columns import Bools, Ints
from vani.schema import unknown
from vani.schema.dataset_facts import MAX_LOOKED_AT
from vani.schema.job import Job
from vani.schema.profile import Profile
from vani.schema.system import System

_UNKNOWN: dict[type[object], str] = {
    **dict.fromkeys((SpentTime, BusyTimes, LibraryCallTimes, LibraryTimes, BeyondEnds, ClockSkew), unknown.NO_TIMES),
    **dict.fromkeys((PatternCounts, Touched, ExchangeCounts, ProcessExtents, FileLengths), unknown.NO_ORDER),
    LibraryUse: unknown.NO_CALLERS,
}
"""Reasons for everything measured in decoded calls, with `NO_CALLS` for additions."""
_NO_ACCESSES = {
    "file": f"without renamed files, and for libraries all files together: {unknown.NO_ORDER}",
    **dict.fromkeys(("bytes_collective", "bytes_misaligned", "bytes_sequential"), unknown.NO_ORDER),
}
_UNKNOWN_ATTRIBUTES = {"times": unknown.NO_TIMES, "renames": unknown.NO_NAMES, "storage.shared": unknown.NO_RANKING}
_REMARKS = {
    "traces.records": "calls that the grammars describe; --quick does not check whether each of them has a time stamp"
}



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
    """Characterise a workload by the number of occurrences of each call.

    Parameters
    ----------
    traces, names
        One per trace, with the name of its app.
    list_files
        Maximum number of listed files, those with most bytes; None for all.
    refused
        (path, reason) of traces that could not be read.

    Raises
    ------
    SelfCheckError
        The numbers contradict each other.
    """
    workload, contexts = workload_of([trace.facts for trace in traces], traces, names, job_)
    apps = np.arange(len(workload.apps))
    # One phase represents each app.
    findings = SurveyFindings(0 * apps, apps, np.arange(len(apps) + 1))
    workload, counts = count(workload, contexts, traces, findings)
    measured = _measurements(workload, traces, counts, findings, list_files)
    if _formats_are_sampled(measured, job_):
        measured = replace(measured, unknown=_UNKNOWN_ATTRIBUTES | {"dataset.format": unknown.NO_CHOICE})
    return assemble(View(measured, job_, system), version=version, refused=refused)


def _measurements(
    workload: Workload,
    traces: Sequence[Trace],
    counts: Counts,
    findings: SurveyFindings,
    list_files: int | None,
) -> Measurements:
    counted = operations.Operations().aggregate(counts.sums, workload, findings)
    processes = operations.Processes().aggregate(counts.sums, workload, findings)
    listed = _listed(workload, counts, counted, processes.files.file, list_files)
    extensions = extension_names()
    libraries = Libraries().aggregate(counts.sums, workload, findings)
    results = [
        operations.TransferSize().aggregate(counts.sums, workload, findings),
        replace(Accesses().aggregate(counts.sums, workload, findings), notes=_NO_ACCESSES),
        operations.CallCosts().aggregate(counts.sums, workload, findings),
        counts.totals,
        replace(
            libraries, caller_unknown=counts.caller_unknown, caller_unknown_files=counts.caller_unknown_files
        ),
        _lengths(workload, counts, processes),
        _possible_exchanges(workload, counts),
    ]
    return Measurements(
        workload=workload,
        traces=[
            replace(
                trace.facts,
                records=sum(functions.values()),
                functions=dict(sorted(functions.items(), key=lambda item: (-item[1], item[0]))),
            )
            for trace, functions in zip(traces, counts.functions, strict=True)
        ],
        phases=Phases(findings.phase_start, findings.phase_app, [None] * findings.phases),
        listed=listed,
        survey=SurveyedFiles(counts.files),
        operations=counted,
        processes=processes,
        results=Results(results, unknown=_UNKNOWN, otherwise=unknown.NO_CALLS),
        formats_on_disk=formats_on_disk(workload, processes.files.file, listed),
        unknown=_UNKNOWN_ATTRIBUTES,
        remarks=_REMARKS | {f"extensions.{name}": unknown.NO_CALLS for name in extensions},
        extensions=dict.fromkeys(extensions),
    )


def _of_data_set(workload: Workload, processes: operations.ProcessCounts) -> Ints:
    used = processes.files.file
    in_dataset: Ints = used[workload.file_class[used] == FileClass.DATASET]
    return in_dataset


def _listed(
    workload: Workload, counts: Counts, counted: operations.OperationCounts, used: Ints, most: int | None
) -> Ints:
    """The data set files to list of the used ones, sorted by bytes, then calls (descending), then name."""
    if not len(used) or not len(counts.files):
        return np.empty(0, np.int64)
    candidates = used[np.isin(used, counts.files.keys)]
    candidates = candidates[~of_several_names(workload)[candidates]]
    columns = {n: getattr(counted, n) for n in ("reads", "writes", "metadata", "bytes_read", "bytes_written")}
    by_file = group(counted.file, columns)
    moved = by_file.at(candidates, "bytes_read") + by_file.at(candidates, "bytes_written")
    calls = np.sum([by_file.at(candidates, n) for n in ("reads", "writes", "metadata")], axis=0)
    return files_with_most(workload.paths, candidates, most, moved, calls)


def _lengths(workload: Workload, counts: Counts, processes: operations.ProcessCounts) -> FileLengths:
    """Lengths of files that were not written; those of others depend on offsets."""
    codes, survey = _of_data_set(workload, processes), counts.files
    length = np.full(workload.files, NO_VALUE)
    length[codes] = workload.known_sizes[codes]
    uncertain = np.zeros(workload.files, np.bool_)
    uncertain[codes] = (survey.at(codes, "writes") > 0) | (survey.at(codes, "resizes") > 0)
    if counts.libraries_set_lengths:
        # Their files are known only from the order of calls, which binds handles.
        uncertain |= length != NO_VALUE
    return FileLengths(length, uncertain)


def _may_exchange(users: IntTable) -> Bools:
    """Files in which some process reads data that another one writes, in an unknown order."""
    pairs = users["readers"].astype(np.float64) * users["writers"]
    may_exchange: Bools = pairs > users["both"]
    return may_exchange


def _possible_exchanges(workload: Workload, counts: Counts) -> PossibleExchanges:
    apps, users = len(workload.apps), counts.users
    if users is None:
        return PossibleExchanges(apps > 1, np.ones(apps, np.bool_), None)
    app, file = unpack(users.keys, (apps, workload.files + 1))
    by_file = users.rekeyed(file - 1)
    of_apps = {n: (users[n] > 0).astype(np.int64) for n in ("readers", "writers", "both")}
    of_apps["both"] = of_apps["readers"] & of_apps["writers"]
    return PossibleExchanges(
        between_apps=bool(_may_exchange(group(file, of_apps)).any()),
        processes=np.bincount(app, _may_exchange(users), apps) > 0,
        files=by_file.keys[_may_exchange(by_file)],
    )


def _formats_are_sampled(measured: Measurements, job_: Job | None) -> bool:
    """Whether the formats of the data set depend on which of its files are examined."""
    codes = _of_data_set(measured.workload, measured.processes)
    if len(codes) <= MAX_LOOKED_AT:
        return False
    if job_ is not None and job_.dataset is not None and job_.dataset.files:
        return True
    folders = {os.path.dirname(measured.workload.paths[code]) for code in codes.tolist()}  # noqa: PTH120
    return len(folders) > MAX_LOOKED_AT or any(_is_there(folder) for folder in folders)


def _is_there(folder: str) -> bool:
    try:
        return Path(folder or ".").exists()
    except (OSError, ValueError):
        return False
