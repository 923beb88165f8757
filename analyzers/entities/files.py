"""Files (table XI) and their roles.

A file is

- temporary, if its removal is the last event in the run;
- intermediate, if one process (or app) wrote it and another read it later;
- output, if the run wrote it, set its length, emptied it (O_TRUNC), or created it (O_CREAT) and did not read it: calls
  that fill a file may leave no record (formatted output, mmap, copy_file_range, sendfile);
- input, if the run only read it.

Its size is its size at the end of the run, from job.yaml and from what was written since it was last emptied or
truncated (`measures/lengths.py`). The size is unknown for files that were only read, for which the furthest requested
offset is a guess; for files that were created or emptied without a recorded write since then (they may be empty); for
files written at unrecorded offsets, or possibly through a descriptor that the tracer does not follow; and if several
processes wrote to a file and truncated it at about the same time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.dependencies import exchanged_files
from vani.analyzers.entities.formats import attributes_by_calls, format_attributes, note_attributes
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.measurements import PossibleExchanges
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.footprint import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.measures.survey import unfilled
from vani.analyzers.tables.factorized import stable_order
from vani.analyzers.tables.int_table import NO_VALUE, IntTable, group
from vani.calls import Layer
from vani.schema.formats import format_of_name
from vani.schema.profile import FileEntity
from vani.schema.profile.dataset import Role

UNSIZED = (
    "null for files that were only read; that were made without a recorded write (formatted output, mmap, "
    "copy_file_range and sendfile leave no record; they may be empty); or that were written at unrecorded places"
)
"""Provenance texts of null sizes."""

ROLES: tuple[Role | None, ...] = (None, "input", "output", "intermediate", "temporary")


def roles(view: View) -> tuple[NDArray[np.int8], NDArray[np.bool_]]:
    """Role of every file of the data set as an index into `ROLES`, that of None if it was only opened; shape (files,).

    Also returns a mask, of the same shape, of the files whose role depends on an unknown order of calls.
    """
    codes = view.files
    role: NDArray[np.int8] = np.where(view.surveyed("reads") > 0, 1, 0).astype(np.int8)
    role[_is_output(view)] = 2
    unknown = np.zeros(len(codes), np.bool_)
    if view.links is None:
        possible = view.measured.of(PossibleExchanges)
        unknown = view.measured.survey.removed(codes)
        if possible is None or possible.files is None:
            unknown[:] = True
        else:
            unknown |= np.isin(view.workload.final_name[codes], possible.files)
        role[unknown] = 0
        if possible is not None:
            handed_on = np.isin(view.workload.final_name[codes], possible.exchanged)
            role[handed_on], unknown[handed_on] = 3, False
    else:
        gone, used = view.surveyed("last_remove", -1), view.surveyed("last_use", -1)
        exchanged = np.array(sorted(exchanged_files(view)), np.int64)
        role[np.isin(view.workload.final_name[codes], exchanged)] = 3
        role[(gone >= 0) & (gone >= used)] = 4
    role_of, without_role = np.zeros(view.workload.files, np.int8), np.zeros(view.workload.files, np.bool_)
    role_of[codes], without_role[codes] = role, unknown
    return role_of, without_role


def _is_output(view: View) -> NDArray[np.bool_]:
    """Files that the run wrote, as far as this is known without the order of calls."""
    reads, writes, makes, empties, resizes = (
        view.surveyed(n) > 0 for n in ("reads", "writes", "makes", "empties", "resizes")
    )
    return writes | resizes | empties | (makes & ~reads)


def sizes(view: View) -> tuple[NDArray[np.int64], Notes]:
    """Final size of every file of the data set, `NO_VALUE` if unknown; shape (files,)."""
    workload, survey, lengths = view.workload, view.measured.survey.files, view.measured.of(FileLengths)
    if lengths is None:
        return np.full(workload.files, NO_VALUE), {}
    size = np.where(lengths.uncertain, NO_VALUE, lengths.length)
    footprint = view.measured.of(Touched)
    if footprint is not None and len(footprint.others.file):
        others = footprint.others
        appended = np.zeros(workload.files + 1, np.int64)
        np.add.at(appended, others.file + 1, others.appended)
        more = appended[1:]
        # Appended data comes last; the length before it is unknown unless the run created the file.
        begun = (size != NO_VALUE) | (survey.at(np.arange(workload.files), "makes") > 0)
        size = np.where((more > 0) & begun, np.where(size != NO_VALUE, size, 0) + more, size)
    if len(survey):
        unknown = unfilled(survey, workload.known_sizes[survey.keys] != NO_VALUE) | (survey["unfollowed"] > 0)
        size[survey.keys[unknown]] = NO_VALUE
    # If the source lacks some lengths, the data set's size is null, too: see `dataset`.
    whole = view.measured.results.why(FileLengths) is None
    return size, {"files.size": UNSIZED} if whole and (size[view.files] == NO_VALUE).any() else {}


def format_of_file(view: View, code: int, layer: int | None) -> str:
    """Format by a file's first bytes if it still exists, or else by job.yaml, by the library used, or by suffix."""
    path = view.workload.paths[code]
    sampled = view.job.file_at(path) if view.job is not None else None
    if sampled is not None and sampled.format:
        return sampled.format
    by_name = format_of_name(path)
    format_ = view.measured.formats_on_disk.get(code)
    if format_ is not None:
        # NetCDF-4 files are HDF5 files, and npz files are zip files: the name distinguishes them.
        return by_name if by_name in ("netcdf", "npz") and format_ in ("hdf5", "zip") else format_
    return format_by_library(layer) or by_name or "bin"


def format_by_library(layer: int | None) -> str | None:
    """Format of a library's files."""
    if layer == Layer.HDF5:
        return "hdf5"
    return "netcdf" if layer in (Layer.NETCDF, Layer.PNETCDF) else None


def files(
    view: View, role_of: NDArray[np.int8], size_of: NDArray[np.int64]
) -> tuple[list[FileEntity], Notes]:
    """The listed files, most I/O time first; `role_of` and `size_of` as returned by `roles` and `sizes`."""
    measured, interface = view.measured, view.interface_of_files
    use, operations = measured.processes, measured.operations
    users = IntTable(use.files.file, {n: getattr(use.files, n) for n in ("processes", "readers", "writers")})
    apps_of: dict[int, list[str]] = {}
    listed = np.isin(use.used_file, measured.listed)
    for app, code in zip(use.used_app[listed].tolist(), use.used_file[listed].tolist(), strict=True):
        apps_of.setdefault(code, []).append(view.workload.apps[app])
    patterns = measured.of(PatternCounts)
    strides = {} if patterns is None else most_common_strides(patterns.strides)
    columns = {n: getattr(operations, n) for n in ("reads", "writes", "opens", "first", "last")}
    times = group(operations.file, columns, {"first": "min", "last": "max"})
    by_calls = attributes_by_calls(view)
    without_caller = set(view.files_without_caller.tolist())
    entities, notes = [], note_attributes(view)
    notes |= view.nulls(SpentTime, "files.first_s", "files.last_s") | view.nulls(
        PatternCounts, "files.stride"
    )
    survey = measured.survey.files
    # Opens by their flags, which not every source stores.
    flagged = {
        name: survey.at(measured.listed, name).tolist()
        for name in ("direct_opens", "synchronous_opens")
        if name in survey.columns
    }
    numbers = {
        **{name: users.at(measured.listed, name).tolist() for name in users.columns},
        **{name: times.at(measured.listed, name).tolist() for name in times.columns},
    }
    for i, code in enumerate(measured.listed.tolist()):
        columns_of_file = {name: column[i] for name, column in numbers.items()}
        layer = int(interface[code]) if interface[code] >= 0 else None
        caller_known = code not in without_caller
        layout = measured.layouts.get(code)
        moved = columns_of_file["reads"] + columns_of_file["writes"]
        entities.append(
            FileEntity(
                path=view.workload.paths[code],
                format=format_of_file(view, code, layer if moved else None) if caller_known else None,
                size=int(size_of[code]) if size_of[code] != NO_VALUE else None,
                role=ROLES[role_of[code]],
                access="shared" if columns_of_file["processes"] >= 2 else "file_per_process",
                processes=columns_of_file["processes"],
                readers=columns_of_file["readers"],
                writers=columns_of_file["writers"],
                opens=columns_of_file["opens"],
                **{name: opens[i] or None for name, opens in flagged.items()},
                interface=None if layer is None or not caller_known else layer_name(layer),  # type: ignore[arg-type]
                stride=strides.get(code),
                stripe_count=None if layout is None else layout.stripe_count,
                stripe_size=None if layout is None else layout.stripe_size,
                components=None if layout is None else layout.components,
                apps=apps_of.get(code, []),
                io=view.file_stats[code],
                first_s=max(0, columns_of_file["first"]) / 1e9 if view.timed else None,
                last_s=max(0, columns_of_file["last"]) / 1e9 if view.timed else None,
                format_attributes=format_attributes(view, code, by_calls),
            )
        )
        if not caller_known:
            notes |= dict.fromkeys(("files.interface", "files.format"), measured.why(LibraryUse))
    return entities, notes


def most_common_strides(strides: Strides) -> dict[int, int]:
    """Most common distance between each file's strided operations, in bytes; the shortest if several are tied."""
    if not len(strides.file):
        return {}
    order = stable_order(strides.file)
    file, stride, count = strides.file[order], strides.stride[order], strides.count[order]
    firsts = np.flatnonzero(np.append(True, file[1:] != file[:-1]))
    lengths = np.diff(np.append(firsts, len(file)))
    most = np.repeat(np.maximum.reduceat(count, firsts), lengths)
    distance = np.where(count == most, np.abs(stride), np.iinfo(np.int64).max)
    rows = np.flatnonzero(distance == np.repeat(np.minimum.reduceat(distance, firsts), lengths))
    # In reversed order, each file's first entry is assigned last, so it counts.
    return dict(zip(file[rows][::-1].tolist(), stride[rows][::-1].tolist(), strict=True))
