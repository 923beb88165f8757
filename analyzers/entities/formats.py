"""Layout of arrays in files (table XI), if known from job.yaml or from the calls that created them.

Calls that create datasets and variables name their file by an identifier that another call returned, and Recorder
stores no return values. Such calls are assigned to a file only if it is the only one that its app accessed through the
library. In HDF5, a chunk's shape is an array whose address alone is in the trace, and a dataset's type is an
identifier.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vani.analyzers.entities.view import Notes, View
from vani.analyzers.measures.libraries import LibraryUse
from vani.calls import Layer
from vani.distinct import distinct
from vani.schema.dataset_facts import FormatAttributes

_MOST: Final = 100
"""Maximum number of examined files per app and library; among more, the file with the arrays cannot be found."""
_NETCDF_TYPES: Final = {
    "1": "int8", "2": "text", "3": "int16", "4": "int32", "5": "float32", "6": "float64", "7": "uint8", "8": "uint16",
    "9": "uint32", "10": "int64", "11": "uint64", "12": "text",
}  # fmt: skip
"""`nc_type` in netcdf.h and pnetcdf.h."""


def format_attributes(
    view: View, code: int, by_calls: dict[int, FormatAttributes]
) -> FormatAttributes | None:
    """Arrays of the file, from job.yaml or else from the calls that created them."""
    sampled = view.job.file_at(view.workload.paths[code]) if view.job is not None else None
    if sampled is not None and sampled.attributes is not None:
        return sampled.attributes
    return by_calls.get(code)


def attributes_by_calls(view: View) -> dict[int, FormatAttributes]:
    """Format attributes by file code, for files to which calls of HDF5, netCDF or PnetCDF can be assigned."""
    survey, libraries = view.measured.survey.files, view.measured.of(LibraryUse)
    attributes_by_file: dict[int, FormatAttributes] = {}
    if libraries is None or not view.knows_callers or not len(survey):
        return attributes_by_file
    used = libraries.files
    for layer, describe in ((Layer.HDF5, _of_hdf5), (Layer.NETCDF, _of_netcdf), (Layer.PNETCDF, _of_netcdf)):
        for app in range(len(view.workload.apps)):
            codes = distinct(used.file[(used.app == app) & (used.layer == layer) & (used.file >= 0)])
            moved = (survey.at(codes, "reads") + survey.at(codes, "writes")) > 0
            files_of_layer = codes[moved & np.isin(codes, view.files) & (view.interface_of_files[codes] == layer)]
            own = [code for code in files_of_layer[:_MOST].tolist() if not _is_mpis(view.workload.paths[code])]
            attributes = describe(view, app, layer) if len(own) == 1 and len(files_of_layer) <= _MOST else None
            if attributes is not None:
                attributes_by_file.setdefault(own[0], attributes)
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


def _is_mpis(path: str) -> bool:
    """Whether MPI made the file: Open MPI's shared memory in /tmp/ompi.HOST.UID, or ROMIO's shared file pointers."""
    return path.startswith("/tmp/ompi.") or ".shfp." in path.rpartition("/")[2]


def _of_hdf5(view: View, app: int, _: Layer) -> FormatAttributes | None:
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
    return FormatAttributes(
        # A name at two locations is in two groups, or the file was created twice.
        datasets=len(datasets) if len({name for _, name in datasets}) == len(datasets) else None,
        # Selections in memory are dataspaces as well, so several ranks are ambiguous.
        dims=int(next(iter(ranks))) if len(ranks) == 1 and len(next(iter(ranks))) < 4 else None,
        encoding=", ".join(words),
        chunks=None if view.facts_of(app, "H5Pset_chunk") else [],
    )


def _of_netcdf(view: View, app: int, layer: Layer) -> FormatAttributes | None:
    # nc_def_var(ncid, name, type, ndims, ...), ncmpi_def_var likewise.
    name = "nc_def_var" if layer == Layer.NETCDF else "ncmpi_def_var"
    variables = {(args[0], args[1]): args for _, args, _ in view.facts_of(app, name) if len(args) > 3}
    if not variables:
        return None
    types = {_NETCDF_TYPES.get(args[2]) for args in variables.values()}
    ranks = {int(args[3]) for args in variables.values() if args[3].isdecimal() and len(args[3]) < 5}
    chunked = view.facts_of(app, "nc_def_var_chunking") or layer == Layer.NETCDF
    return FormatAttributes(
        datasets=len(variables),
        dims=max(ranks, default=None),
        type=types.pop() if len(types) == 1 else None,
        encoding="netcdf",
        chunks=None if chunked else [],
    )
