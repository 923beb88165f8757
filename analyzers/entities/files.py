"""Files (table XI), their roles and formats, and the data set (table X).

The layout of arrays in files is known from job.yaml or from the calls that created them. Calls that create datasets
and variables name their file by an identifier that another call returned, and Recorder stores no return values. Such
calls are assigned to a file only if it is the only one that its app accessed through the library. In HDF5, a chunk's
shape is an array whose address alone is in the trace, and a dataset's type is an identifier.

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

import os
import stat
from collections import Counter
from pathlib import Path
from typing import Any, Final

import numpy as np

from vani.analyzers.entities.dependencies import exchanged_files
from vani.analyzers.entities.io_stats import histogram, sizes_of
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.int_table import NO_VALUE, IntTable, exact_sum, group, stable_order
from vani.analyzers.measurements import PossibleExchanges
from vani.analyzers.measures.access_pattern import PatternCounts, Strides
from vani.analyzers.measures.extents import Touched
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.lengths import FileLengths
from vani.analyzers.measures.libraries import LibraryUse
from vani.analyzers.measures.survey import unfilled
from vani.analyzers.workload import Workload
from vani.calls import FileClass, Layer
from vani.columns import Bools, Int8s, Ints, distinct
from vani.counts import FileLayout
from vani.schema import dataset_facts
from vani.schema.job import Job
from vani.schema.profile import Dataset, FileEntity, SizeDistribution
from vani.schema.profile.storage import Role


def formats_on_disk(workload: Workload, used: Ints, listed: Ints) -> dict[int, str]:
    """Formats by file code, for listed files and those that determine the data set's formats.

    Contains only files whose first bytes are readable and have a known format.

    Parameters
    ----------
    used
        Codes of the files that any process used, ascending.
    """
    codes = used[workload.file_class[used] == FileClass.DATASET]
    wanted = distinct(telling_formats(codes, listed), listed).tolist()
    heads = ((code, _head(workload.paths[code])) for code in wanted)
    return {code: name for code, head in heads if head and (name := dataset_facts.format_of_head(head)) is not None}


def telling_formats(codes: Ints, listed: Ints) -> Ints:
    """Files whose first bytes determine the data set's formats: all, or the first listed ones if there are many."""
    return codes if len(codes) <= dataset_facts.MAX_LOOKED_AT else listed[:dataset_facts.MAX_LOOKED_AT]


def _head(path: str) -> bytes:
    """First bytes of a regular file; empty if there is none. Never blocks on a pipe."""
    try:
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return b""
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(handle, dataset_facts.HEAD_BYTES)
    except OSError:
        return b""
    finally:
        os.close(handle)


_NETCDF_TYPES: Final = {
    "1": "int8", "2": "text", "3": "int16", "4": "int32", "5": "float32", "6": "float64", "7": "uint8", "8": "uint16",
    "9": "uint32", "10": "int64", "11": "uint64", "12": "text",
}  # fmt: skip
"""`nc_type` in netcdf.h and pnetcdf.h."""


def format_attributes(
    view: View, code: int, by_calls: dict[int, dataset_facts.FormatAttributes]
) -> dataset_facts.FormatAttributes | None:
    """Arrays of the file, from job.yaml or else from the calls that created them."""
    sampled = view.job.file_at(view.workload.paths[code]) if view.job is not None else None
    if sampled is not None and sampled.attributes is not None:
        return sampled.attributes
    return by_calls.get(code)


def attributes_by_calls(view: View) -> dict[int, dataset_facts.FormatAttributes]:
    """Format attributes by file code, for files to which calls of HDF5, netCDF or PnetCDF can be assigned."""
    survey, libraries = view.measured.survey.files, view.measured.of(LibraryUse)
    attributes_by_file: dict[int, dataset_facts.FormatAttributes] = {}
    if libraries is None or not view.knows_callers or not len(survey):
        return attributes_by_file
    used = libraries.files
    for layer, describe in ((Layer.HDF5, _of_hdf5), (Layer.NETCDF, _of_netcdf), (Layer.PNETCDF, _of_netcdf)):
        for app in range(len(view.workload.apps)):
            codes = distinct(used.file[(used.app == app) & (used.layer == layer) & (used.file >= 0)])
            moved = (survey.at(codes, "reads") + survey.at(codes, "writes")) > 0
            files_of_layer = codes[moved & np.isin(codes, view.files) & (view.interface_of_files[codes] == layer)]
            attributes = describe(view, app, layer) if len(files_of_layer) == 1 else None
            if attributes is not None:
                attributes_by_file.setdefault(int(files_of_layer[0]), attributes)
    return attributes_by_file


def note_attributes(view: View) -> Notes:
    """State the source of file attributes, and why others are null, independent of which files are listed."""
    notes = [
        f"{view.job_name}, else the calls that make arrays, where one file of an app is accessed through the library",
        "null: no call shows in which file it makes an array"
        if view.knows_callers
        else "null: which library made a call is not known without time stamps",
    ]
    if view.job is None or view.job.dataset is None:
        notes.append("`vani collect --dataset` reads the headers of files")
    elif "dataset.attributes" in view.job.unknown:
        notes.append(view.job.unknown["dataset.attributes"])
    return {"files.format_attributes": "; ".join(notes)}


def _of_hdf5(view: View, app: int, _: Layer) -> dataset_facts.FormatAttributes | None:
    # H5Dcreate(location, name, ...): all ranks create a dataset together, so equal names are the same dataset.
    datasets = {
        (args[0], args[1]) for _, args, _ in view.facts_of(app, "H5Dcreate1", "H5Dcreate2") if len(args) > 1
    }
    if not datasets:
        return None
    ranks = {args[0] for _, args, _ in view.facts_of(app, "H5Screate_simple") if args and args[0].isdecimal()}
    levels = {args[1] for _, args, _ in view.facts_of(app, "H5Pset_deflate") if len(args) > 1}
    others = view.facts_of(app, "H5Pset_filter")
    words = ["hdf5", *(["gzip"] if levels else []), *(["filter"] if others else [])]
    return dataset_facts.FormatAttributes(
        # A name at two locations is in two groups, or the file was created twice.
        datasets=len(datasets) if len({name for _, name in datasets}) == len(datasets) else None,
        # Selections in memory are dataspaces as well, so several ranks are ambiguous.
        dims=int(next(iter(ranks))) if len(ranks) == 1 and len(next(iter(ranks))) < 4 else None,
        encoding=", ".join(words),
        chunks=None if view.facts_of(app, "H5Pset_chunk") else [],
    )


def _of_netcdf(view: View, app: int, layer: Layer) -> dataset_facts.FormatAttributes | None:
    # nc_def_var(ncid, name, type, ndims, ...), ncmpi_def_var likewise.
    name = "nc_def_var" if layer == Layer.NETCDF else "ncmpi_def_var"
    variables = {(args[0], args[1]): args for _, args, _ in view.facts_of(app, name) if len(args) > 3}
    if not variables:
        return None
    types = {_NETCDF_TYPES.get(args[2]) for args in variables.values()}
    ranks = {int(args[3]) for args in variables.values() if args[3].isdecimal() and len(args[3]) < 5}
    chunked = view.facts_of(app, "nc_def_var_chunking") or layer == Layer.NETCDF
    return dataset_facts.FormatAttributes(
        datasets=len(variables),
        dims=max(ranks, default=None),
        type=types.pop() if len(types) == 1 else None,
        encoding="netcdf",
        chunks=None if chunked else [],
    )


UNSIZED = (
    "null for files that were only read; that were made without a recorded write (formatted output, mmap, "
    "copy_file_range and sendfile leave no record; they may be empty); or that were written at unrecorded places"
)
"""Provenance texts of null sizes."""

ROLES: tuple[Role | None, ...] = (None, "input", "output", "intermediate", "temporary")


def roles(view: View) -> tuple[Int8s, Bools]:
    """Role of every file of the data set as an index into `ROLES`, that of None if it was only opened; shape (files,).

    Also returns a mask, of the same shape, of the files whose role depends on an unknown order of calls.
    """
    codes = view.files
    role: Int8s = np.where(view.surveyed("reads") > 0, 1, 0).astype(np.int8)
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


def _is_output(view: View) -> Bools:
    """Files that the run wrote, as far as this is known without the order of calls."""
    reads, writes, makes, empties, resizes = (
        view.surveyed(n) > 0 for n in ("reads", "writes", "makes", "empties", "resizes")
    )
    return writes | resizes | empties | (makes & ~reads)


def sizes(view: View) -> tuple[Ints, Notes]:
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
    by_name = dataset_facts.format_of_name(path)
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


def layouts_after(job: Job) -> dict[str, FileLayout]:
    """Layouts of files on CephFS by path, as `vani trace` found them after the run."""
    known = {file.path: file.layout for file in job.files_after if file.layout is not None}
    return {path: FileLayout(of.stripe_count, of.stripe_unit, 1, of.object_size) for path, of in known.items()}


def files(view: View, role_of: Int8s, size_of: Ints) -> tuple[list[FileEntity], Notes]:
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
    notes |= view.nulls(SpentTime, "files.first_s", "files.last_s") | view.nulls(PatternCounts, "files.stride")
    survey = measured.survey.files
    # Opens by their flags, which not every source stores.
    flagged = {
        name: survey.at(measured.listed, name).tolist()
        for name in ("direct_opens", "synchronous_opens", "synchronous_writes")
        if name in survey.columns
    }
    if "synchronous_writes" in flagged:
        # Where the tracer does not follow descriptors, all opens together decide.
        waits, opens, writes = (survey.at(measured.listed, n) for n in ("synchronous_opens", "opens", "writes"))
        all_wait = (waits > 0) & (waits == opens)
        flagged["synchronous_writes"] = np.where(all_wait, writes, flagged["synchronous_writes"]).tolist()
    # A removal at the end makes no room for another file.
    remains = role_of[measured.listed] != ROLES.index("temporary")
    creations = np.zeros(len(measured.listed), np.int64)
    if {"makes", "removes"} <= set(survey.columns):
        creations = np.minimum(survey.at(measured.listed, "makes"), survey.at(measured.listed, "removes") + remains)
    renamed = np.bincount(view.workload.renames.new, minlength=view.workload.files)[measured.listed]
    # Without the order of calls, a removed file may remain or not.
    unordered = (creations > 1) & (view.links is None)
    if unordered.any():
        notes["files.generations"] = view.why_no_links
    generations = np.where(unordered, 0, np.maximum(creations, renamed)).tolist()
    numbers = {
        **{name: users.at(measured.listed, name).tolist() for name in users.columns},
        **{name: times.at(measured.listed, name).tolist() for name in times.columns},
    }
    after = {} if view.job is None else layouts_after(view.job)
    for i, code in enumerate(measured.listed.tolist()):
        columns_of_file = {name: column[i] for name, column in numbers.items()}
        layer = int(interface[code]) if interface[code] >= 0 else None
        caller_known = code not in without_caller
        layout = measured.layouts.get(code) or after.get(view.workload.paths[code])
        more: dict[str, Any] = {name: columns_of_file[name] for name in ("processes", "readers", "writers", "opens")}
        more |= {name: getattr(layout, name, None) for name in _OF_LAYOUT}
        more |= {name: counts[i] or None for name, counts in flagged.items()}
        moved = columns_of_file["reads"] + columns_of_file["writes"]
        entities.append(
            FileEntity(
                path=view.workload.paths[code],
                format=format_of_file(view, code, layer if moved else None) if caller_known else None,
                size=int(size_of[code]) if size_of[code] != NO_VALUE else None,
                role=ROLES[role_of[code]],
                access="shared" if columns_of_file["processes"] >= 2 else "file_per_process",
                **more,
                generations=generations[i] if generations[i] > 1 else None,
                interface=None if layer is None or not caller_known else layer_name(layer),  # type: ignore[arg-type]
                stride=strides.get(code),
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


_OF_LAYOUT: Final = ("stripe_count", "stripe_size", "components", "object_size")
_NOT_SAMPLED = "a trace contains no values: `vani collect --dataset` reads a sample of them, for --job"
_AT_ONCE = 1 << 16


def dataset(view: View, role_of: Int8s, without_role: Bools, size_of: Ints) -> tuple[Dataset, Notes]:
    """Formats, size, number and roles of the files; I/O is the workload's.

    Parameters
    ----------
    role_of, without_role, size_of
        As returned by `roles` and `sizes`.
    """
    codes = view.files
    formats, of_formats = _formats(view, codes)
    early = len(codes) > dataset_facts.MAX_LOOKED_AT
    notes: Notes = dict(of_formats) if early else {}
    sizes = size_of[codes]
    known = sizes[sizes != NO_VALUE]
    roles, names = np.bincount(role_of[codes], minlength=len(ROLES)).tolist(), [role or "unused" for role in ROLES]
    no_roles = bool(without_role[codes].any())
    no_sizes, of_lengths = _explain_lengths(view, sizes)
    notes |= of_lengths
    missing = len(codes) - len(known)
    notes["dataset.size"] = "from writes, truncations and job.yaml, for the files whose size is known" + (
        f" ({len(known):,} of {len(codes):,}; see files.size)" if missing else ""
    )
    sample = view.of_job("dataset")

    def source(name: str) -> str:
        if view.job is None or getattr(sample, name) is not None:
            return view.job_name
        return f"{view.job_name}: {view.job.unknown.get(f'dataset.{name}', 'no reason given')}"

    notes["dataset.distribution"] = _NOT_SAMPLED if sample is None else source("distribution")
    if sample is not None:
        notes["dataset.compression"] = source("compression")
    if no_roles:
        notes |= dict.fromkeys(("dataset.roles", "files.role"), view.why_no_links)
    if no_sizes:
        of_sizes = ("dataset.size", "files.size", "dataset.size_distribution")
        notes |= dict.fromkeys(of_sizes, view.measured.why(FileLengths)) | of_lengths
    entity = Dataset(
        format=None if formats is None else dict(sorted(formats.items(), key=lambda f: (-f[1], f[0]))),
        size=exact_sum(known) if len(known) and not no_sizes else None,
        files=len(codes),
        io=view.workload_stats,
        roles=None if no_roles else {role: n for role, n in sorted(zip(names, roles, strict=True)) if n},
        size_distribution=None if no_sizes else size_distribution(known),
        distribution=sample.distribution if sample is not None else None,
        compression=sample.compression if sample is not None else None,
    )
    return entity, notes if early else notes | of_formats


def size_distribution(known: Ints) -> SizeDistribution:
    """Distribution of the known file sizes, in bytes."""
    ones = np.ones(len(known), np.int64)
    sizes = sizes_of(known, ones)
    of_sizes = {name: getattr(sizes, name) if sizes else None for name in ("min", "p50", "p90", "max")}
    return SizeDistribution(known=len(known), **of_sizes, histogram=histogram(known, ones))


def _explain_lengths(view: View, sizes: Ints) -> tuple[bool, Notes]:
    """Remarks on sizes that depend on unknown facts, and reasons for null sizes."""
    lengths = view.measured.of(FileLengths)
    if lengths is None or view.measured.results.why(FileLengths) is None:
        return lengths is None, {}
    hidden = lengths.uncertain[view.files]
    unsized = bool((sizes[~hidden] == NO_VALUE).any())
    return bool(hidden.any()), {"files.size": UNSIZED} if unsized else {}


def _formats(view: View, codes: Ints) -> tuple[Counter[str] | None, Notes]:
    """Number of files per format; None if a file's format is unknown."""
    measured = view.measured
    if np.isin(codes, view.files_without_caller).any():
        return None, {"dataset.format": measured.why(LibraryUse)}
    if "dataset.format" in measured.unknown:
        return None, {"dataset.format": measured.unknown["dataset.format"]}
    moved = (view.surveyed("reads") + view.surveyed("writes")) > 0
    layers = np.where(moved, view.interface_of_files[codes], -1)
    looked_at = np.isin(codes, telling_formats(codes, measured.listed))
    formats: Counter[str] = Counter()
    for at in range(0, len(codes), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        for code, layer, look in zip(
            codes[some].tolist(), layers[some].tolist(), looked_at[some].tolist(), strict=True
        ):
            formats[_format(view, code, layer if layer >= 0 else None, look=look)] += 1
    if len(codes) <= dataset_facts.MAX_LOOKED_AT:
        return formats, {}
    most = f"{dataset_facts.MAX_LOOKED_AT:,}"
    return formats, {"dataset.format": f"by library and suffix for all but the {most} files with most I/O time"}


def _format(view: View, code: int, layer: int | None, *, look: bool) -> str:
    if look:
        return format_of_file(view, code, layer)
    return format_by_library(layer) or dataset_facts.format_of_name(view.workload.paths[code]) or "bin"
