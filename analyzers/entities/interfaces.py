"""Libraries in use (tables VI and VII): a row per app and layer, both for file-system layers and those above.

A file-system call counts once in every layer through which it was made, including its own: the row of posix has all
bytes of posix, and the row of hdf5 those that went through HDF5. `granularity.data` is the size that moves most bytes
in data operations under the layer. `granularity.metadata` is the size of other transfers: the most common size of at
most a tenth of it.


The middleware of table VII is the software between the program and the file system: MPI-IO, HDF5, PnetCDF and netCDF
if in use. Its granularity and access pattern describe the file-system calls that any of them makes,
each counted once, over all apps. If none is in use, there is no middleware to describe; the paper repeats table VI.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.io_stats import byte_counts
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.int_table import NO_VALUE
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.libraries import (
    ANY_LIBRARY,
    LIBRARIES,
    LayerSizes,
    LibraryUse,
    under_any_library,
)
from vani.analyzers.streams import NAMES
from vani.calls import FileClass, Layer
from vani.schema.profile import Amplification, ByteCounts, DataRepresentation, Granularity, Interface
from vani.units import counted

Ints = NDArray[np.int64]
Pattern = Literal["consecutive", "sequential", "strided", "random"]
Transfer = Literal["collective", "independent", "mixed"]


def interfaces(view: View) -> tuple[list[Interface] | None, Notes]:
    """Rows by app, highest layer first; None if the source does not record which libraries were used."""
    use, entities = view.measured.of(LibraryUse), []
    notes = view.nulls(PatternCounts, "interfaces.access_pattern") | view.nulls(
        SpentTime, "interfaces.time_s"
    )
    if use is None:
        return None, notes | view.nulls(LibraryUse, "interfaces")
    rows = [(app, layer) for app, own in enumerate(use.used) for layer in np.flatnonzero(own)[::-1].tolist()]
    for app, layer in rows:
        if layer in _NOT_OF_IO:
            continue
        time = view.layer_time(app, layer)
        share, transfer = _collective(view, use, app, layer)
        row = Interface(
            layer=layer_name(layer),  # type: ignore[arg-type]
            app=view.workload.apps[app],
            granularity=_granularity(use.sizes, layer, app),
            access_pattern=_pattern(view, app, layer),
            data_representation=_representation(view, app, layer),
            calls=int(use.calls[app, layer]),
            bytes=_bytes(use, app, layer),
            **_requested(view, use, app, layer),
            files=_files(view, use, app, layer),
            time_s=None if time is None else time / 1e9,
            collective_share=share,
            transfer=transfer,
            hints=_hints(view, app) if layer == Layer.MPIIO else None,
        )
        if use.caller_unknown[app] and layer not in (Layer.POSIX, Layer.STDIO):
            row = row.model_copy(update=_CALLER_UNKNOWN)
        entities.append(row)
    notes |= _why_not_asked(use, entities)
    if any(i.layer == "mpiio" and i.hints is None for i in entities):
        notes["interfaces.hints"] = "MPI_Info_set is in no record (MPI tracing is off by default)"
    counts = [trace.hints_passed for trace in view.measured.traces if trace.hints_passed is not None]
    if counts:
        notes["interfaces.hints"] = f"Darshan counts {counted(sum(counts), 'open')} and views with hints, not which"
    if not view.knows_callers:
        of_callers = ("interfaces.bytes", "interfaces.files", "interfaces.granularity")
        notes |= dict.fromkeys(of_callers, view.measured.why(LibraryUse))
    return entities, notes


_NOT_OF_IO = (Layer.MPI, Layer.GPU, Layer.USER)
_NO_GRANULARITY = Granularity(data=None, metadata=None)
_CALLER_UNKNOWN = {
    "bytes": byte_counts(None, None),
    "files": None,
    "granularity": _NO_GRANULARITY,
}
"""Attributes of a layer above the file system that are unknown if some calls' library is unknown."""


def _bytes(use: LibraryUse, app: int, layer: int) -> ByteCounts:
    read = None if use.read_unknown[app, layer] else int(use.bytes_read[app, layer])
    written = None if use.written_unknown[app, layer] else int(use.bytes_written[app, layer])
    return byte_counts(read, written)


def _requested(view: View, use: LibraryUse, app: int, layer: int) -> dict[str, Any]:
    """Bytes that a library's data calls request, and the ratio of moved bytes to them; null for file-system layers."""
    if layer not in LIBRARIES or not use.data_calls[app, layer] or _is_stored_otherwise(view, use, app, layer):
        return {"asked": None, "amplification": None}
    requested = _sides(use.requested.read[app, layer], use.requested.written[app, layer])
    moved = _bytes(use, app, layer)
    later = bool(use.requested.read_later[app, layer])
    read, written = (
        _ratio(*sides)
        # Writes never move less than requested, so a missing part was not recorded.
        for sides in ((moved.read, requested.read, not later), (moved.written, requested.written, False))
    )
    sides = ((read, requested.read), (written, requested.written))
    if requested.read and _sieves_writes(use, app):
        # Sums of bytes cannot separate reads that the program requested from reads that writes made necessary.
        read = None
    complete = all(ratio is not None or wanted == 0 for ratio, wanted in sides)
    return {
        "asked": requested,
        "amplification": Amplification(
            read=read, written=written, total=_ratio(moved.total, requested.total, less=True) if complete else None
        ),
    }


_SIEVED = 1.5
"""Data sieving writes back more than this share of the bytes requested of MPI-IO's writes."""


def _sieves_writes(use: LibraryUse, app: int) -> bool:
    written, moved = int(use.requested.written[app, Layer.MPIIO]), _bytes(use, app, Layer.MPIIO).written
    return written > 0 and moved is not None and moved >= _SIEVED * written


def _sides(read: int, written: int) -> ByteCounts:
    return byte_counts(*(None if side == NO_VALUE else int(side) for side in (read, written)))


def _ratio(moved: int | None, requested: int | None, less: bool) -> float | None:
    """Null if no bytes were requested, or if their transfer is not recorded: `less` states whether it may be less."""
    if not requested or not moved or (moved < requested and not less):
        return None
    return moved / requested


def _is_stored_otherwise(view: View, use: LibraryUse, app: int, layer: int) -> bool:
    """Whether HDF5 passes down filtered chunks instead of the requested bytes."""
    return bool(use.requested.from_below[app, layer]) and bool(
        view.facts_of(app, "H5Pset_chunk", "H5Pset_deflate", "H5Pset_filter", "nc_def_var_chunking")
    )


_ASKED, _AMPLIFICATION = "interfaces.asked", "interfaces.amplification"
_SIZE_UNKNOWN = {
    "mpiio": "the trace names some datatype without its size (MPI_TYPE_UNKNOWN)",
    "hdf5": "selections in dataspaces are not recorded, and the calls of MPI-IO below do not show them either",
    "pnetcdf": "counts are not recorded, and the calls of MPI-IO below do not show them either",
    "netcdf": "the trace has the first count of each call only, and the calls of MPI-IO below do not show them either",
}


def _why_not_asked(use: LibraryUse, entities: Sequence[Interface]) -> Notes:
    rows = [row for row in entities if row.layer in _SIZE_UNKNOWN]
    unknown = dict.fromkeys(row.layer for row in rows if row.asked is None or row.asked.total is None)
    notes: Notes = {}
    if not rows:
        notes[_ASKED] = "no library above the file-system calls is in use"
    elif unknown:
        notes[_ASKED] = "; ".join(f"{layer}: {_SIZE_UNKNOWN[layer]}" for layer in unknown)
    elif use.requested.from_below.any():
        notes[_ASKED] = "for HDF5, PnetCDF and netCDF: the bytes their data calls request from MPI-IO"
    if _ASKED in notes:
        notes[_AMPLIFICATION] = notes[_ASKED]
    elif any(row.amplification is None or row.amplification.total is None for row in rows):
        notes[_AMPLIFICATION] = "calls return before their data moves, or what moves it is in no record"
    return notes


def _files(view: View, use: LibraryUse, app: int, layer: int) -> int:
    """Number of data set files that calls under the layer used."""
    used = use.files
    files = used.file[(used.app == app) & (used.layer == layer) & (used.file >= 0)]
    return int((view.workload.file_class[files] == FileClass.DATASET).sum())


def middleware_access(view: View) -> tuple[list[str] | None, Granularity | None, Pattern | None, Notes]:
    """Libraries in use above the file-system calls, and the size and pattern of the transfers that they make.

    Granularity and pattern are null if no library is in use, none moves data, or the source does not record it; the
    libraries are null if the source does not name them.
    """
    use = view.measured.of(LibraryUse)
    if use is None:
        of_libraries = (f"middleware.{name}" for name in ("libraries", "granularity", "access_pattern"))
        return None, None, None, view.nulls(LibraryUse, *of_libraries)
    names = [layer_name(layer) for layer in LIBRARIES if use.used[:, layer].any()]
    sizes = _granularity(use.sizes, ANY_LIBRARY)
    pattern = _most_frequent(view, lambda _, within: under_any_library(within))
    of, notes = ", ".join(names), dict[str, str]()
    for attribute, measured in (("granularity", sizes.data), ("access_pattern", pattern)):
        if not names:
            note = "no library above the file-system calls is in use (table VII: granularity and pattern do not change)"
        elif measured is None:
            note = f"no traced file-system call moves data within calls of {of}"
        else:
            note = f"of the file-system calls made within calls of {of}"
        notes[f"middleware.{attribute}"] = note
    if names:
        notes |= view.nulls(PatternCounts, "middleware.access_pattern")
    if names and not view.knows_callers:
        notes["middleware.granularity"] = view.measured.why(LibraryUse)
        return names, None, pattern, notes
    return names, None if sizes.data is None else sizes, pattern, notes


def _granularity(sizes: LayerSizes, layer: int, app: int | None = None) -> Granularity:
    """Sizes of a layer and an app, or (None) of all apps."""
    of_layer = sizes.layer == layer if app is None else (sizes.layer == layer) & (sizes.app == app)
    size, count = sizes.size[of_layer], sizes.count[of_layer]
    if not len(size):
        return _NO_GRANULARITY
    if app is None:
        size, place = np.unique(size, return_inverse=True)
        count = np.bincount(place, weights=count).astype(np.int64)
    moved = size * count
    data = int(size[int(moved.argmax())])
    small = np.flatnonzero((size > 0) & (size * 10 <= data))
    metadata = int(size[small[int(count[small].argmax())]]) if len(small) else None
    return Granularity(data=data, metadata=metadata)


def _pattern(view: View, app: int, layer: int) -> Pattern | None:
    return _most_frequent(view, lambda apps, within: (apps == app) & ((within >> layer & 1) == 1))


def _most_frequent(view: View, chosen: Callable[[Ints, Ints], NDArray[np.bool_]]) -> Pattern | None:
    """The most frequent class of data operations of the chosen apps and layers, by start offset."""
    pattern_counts = view.measured.of(PatternCounts)
    if pattern_counts is None:
        return None
    rows = chosen(pattern_counts.app, pattern_counts.within)
    counts = [int(pattern_counts.under[name][rows].sum()) for name in NAMES]
    return NAMES[counts.index(max(counts))] if sum(counts) else None  # type: ignore[return-value]


def _collective(view: View, use: LibraryUse, app: int, layer: int) -> tuple[float | None, Transfer | None]:
    data, collective = int(use.data_calls[app, layer]), int(use.collective_calls[app, layer])
    if layer == Layer.HDF5:
        # H5Pset_dxpl_mpio(dxpl, mode): 0 independent, 1 collective (H5FD_mpio_xfer_t).
        modes = {args[1] for _, args, _ in view.facts_of(app, "H5Pset_dxpl_mpio") if len(args) > 1}
        transfers: set[Transfer] = {"collective" if mode == "1" else "independent" for mode in modes}
        if not transfers:
            if not view.facts_of(app, "H5Pset_fapl_mpio"):
                return None, None
            # No call that sets a mode was recorded. Not all traces would have it, but requests to MPI-IO show it.
            return None, _of_mpiio(use, app, data)
        return None, "mixed" if len(transfers) > 1 else next(iter(transfers))
    if layer == Layer.NETCDF:
        # nc_var_par_access(ncid, varid, access): NC_INDEPENDENT is 0, NC_COLLECTIVE 1 (netcdf_par.h).
        modes = {args[2] for _, args, _ in view.facts_of(app, "nc_var_par_access") if len(args) > 2}
        by_mode: dict[str, Transfer] = {"0": "independent", "1": "collective"}
        known = [by_mode[mode] for mode in modes if mode in by_mode]
        return None, known[0] if len(known) == 1 == len(modes) else "mixed" if known else None
    if layer in (Layer.MPIIO, Layer.PNETCDF) and data:
        share = collective / data
        return share, "collective" if share == 1 else "independent" if share == 0 else "mixed"
    return None, None


def _of_mpiio(use: LibraryUse, app: int, transfers: int) -> Transfer | None:
    """The mode of HDF5 transfers if no call sets it: each collective transfer is a collective MPI-IO call.

    File metadata moves in independent calls as well, so independent calls prove nothing. None if the
    collective calls may come from PnetCDF.
    """
    together, others = use.collective_calls[app, Layer.MPIIO], use.data_calls[app, Layer.PNETCDF]
    if not together:
        return "independent"
    if others:
        return None
    return "collective" if together >= transfers else "mixed"


def _representation(view: View, app: int, layer: int) -> DataRepresentation:
    if layer == Layer.HDF5:
        ranks = _most_common([(args[0], n) for _, args, n in view.facts_of(app, "H5Screate_simple") if args])
        created = view.facts_of(app, "H5Dcreate1", "H5Dcreate2")
        chunked = bool(view.facts_of(app, "H5Pset_chunk")) if created else None
        return DataRepresentation(dims=ranks, chunked=chunked)
    if layer in (Layer.NETCDF, Layer.PNETCDF):
        # nc_def_var(ncid, name, type, ndims, ...), ncmpi_def_var likewise.
        name = "nc_def_var" if layer == Layer.NETCDF else "ncmpi_def_var"
        dims = _most_common([(args[3], n) for _, args, n in view.facts_of(app, name) if len(args) > 3])
        return DataRepresentation(dims=dims)
    return DataRepresentation(dims=None)


def _most_common(values: list[tuple[str, int]]) -> int | None:
    totals: dict[int, int] = {}
    for text, count in values:
        if text.isdecimal() and len(text) < 4:
            totals[int(text)] = totals.get(int(text), 0) + count
    return max(totals, key=lambda v: (totals[v], v)) if totals else None


def _hints(view: View, app: int) -> dict[str, str] | None:
    hints = {args[1]: args[2] for _, args, _ in view.facts_of(app, "MPI_Info_set") if len(args) > 2}
    pairs = zip(view.measured.traces, view.workload.app_of_trace, strict=True)
    passes_none = all(trace.hints_passed == 0 for trace, of in pairs if of == app)
    return hints if hints or passes_none else None
