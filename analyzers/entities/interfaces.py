"""Libraries in use (tables VI and VII): a row per app and layer, file-system layers and those above them.

A file-system call counts once in every layer that it was made through, its own included: the row of posix has all of
posix's bytes, that of hdf5 what went through HDF5. `granularity.data` is the size that moves most bytes in data
operations made under the
layer, `granularity.metadata` the size of what moves beside it: the most common size of at most a tenth of it.

The middleware of table VII is what stands between the program and the file system: MPI-IO, HDF5, PnetCDF and netCDF
as far as they are in use. Its granularity and access pattern are those of the file-system calls that any of them makes,
each counted once, over all apps. Where none is in use there is no middleware to describe; the paper repeats table VI.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.base import Pairs
from vani.analyzers.entities.view import View, layer_name
from vani.analyzers.keyed import Keyed
from vani.analyzers.measures.access_pattern import NAMES, WITHIN
from vani.analyzers.measures.libraries import ABOVE_FILE_SYSTEM, ANY_LIBRARY, under_any_library
from vani.calls import FileClass, Layer
from vani.schema.profile import ByteCounts, DataRepresentation, Granularity, Interface

__all__ = ["interfaces", "middleware_access"]

Pattern = Literal["consecutive", "sequential", "strided", "random"]
Transfer = Literal["collective", "independent", "mixed"]


def interfaces(view: View) -> list[Interface]:
    """Rows by app, highest layer first."""
    result = view.measured.results["libraries"]
    under: Keyed = result.under
    calls: Keyed = result.calls
    keys = np.unique(np.concatenate((under.keys, calls.keys)))
    keys = keys[(keys % 16 != Layer.MPI) & (keys % 16 != Layer.GPU) & (keys % 16 != Layer.USER)]
    found = []
    for key in sorted(keys.tolist(), key=lambda k: (k // 16, -(k % 16))):
        one = np.array([key])
        app, layer = key // 16, key % 16
        read, written = (
            _moved(under, one, direction) for direction in (("reads", "bytes_read"), ("writes", "bytes_written"))
        )
        data_calls, collective = (
            int(calls.at(one, n)[0]) if len(calls) else 0 for n in ("data", "collective")
        )
        time = view.layer_time(app, layer)
        share, transfer = _collective(view, app, layer, data_calls, collective)
        mine = (result.files.first == key) & (result.files.second >= 0)
        files = result.files.second[mine]
        found.append(
            Interface(
                layer=layer_name(layer),  # type: ignore[arg-type]
                app=view.world.apps[app],
                granularity=_granularity(result.data, key),
                access_pattern=_pattern(view, key),
                data_representation=_representation(view, app, layer),
                calls=int(calls.at(one, "calls")[0]) if len(calls) else 0,
                bytes=ByteCounts(
                    read=read,
                    written=written,
                    total=None if read is None or written is None else read + written,
                ),
                files=int((view.world.file_class[files] == FileClass.DATASET).sum()),
                time_s=None if time is None else time / 1e9,
                collective_share=share,
                transfer=transfer,
                hints=_hints(view, app) if layer == Layer.MPIIO else None,
            )
        )
    if any(i.layer == "mpiio" and i.hints is None for i in found):
        view.notes["interfaces.hints"] = "MPI_Info_set is in no record (MPI tracing is off by default)"
    return found


def _moved(under: Keyed, key: NDArray[np.int64], direction: tuple[str, str]) -> int | None:
    """Bytes that calls under a layer moved; None where the size of no such call is known."""
    calls, moved = direction
    if not len(under):
        return 0
    count, unsized, size = (int(under.at(key, n)[0]) for n in (calls, f"unsized_{calls}", moved))
    return None if count and count == unsized else size


def middleware_access(view: View) -> tuple[list[str], Granularity | None, Pattern | None]:
    """Libraries in use above the file-system calls, and the size and place of the transfers that they make.

    Granularity and pattern are null, and `view.notes` says why, where no library is in use or none moves data.
    """
    result = view.measured.results["libraries"]
    used = {
        key % 16 for table in (result.under, result.calls) for key in (table.keys.tolist() if len(table) else ())
    }
    names = [layer_name(layer) for layer in ABOVE_FILE_SYSTEM if layer in used]
    sizes = _granularity(result.data, ANY_LIBRARY)
    pattern = _most_frequent(view, lambda keys: under_any_library(keys % WITHIN))
    of = ", ".join(names)
    for attribute, found in (("granularity", sizes.data), ("access_pattern", pattern)):
        if not names:
            note = "no library above the file-system calls is in use (table VII: granularity and pattern do not change)"
        elif found is None:
            note = f"no traced file-system call moves data within calls of {of}"
        else:
            note = f"of the file-system calls made within calls of {of}"
        view.notes[f"middleware.{attribute}"] = note
    return names, None if sizes.data is None else sizes, pattern


def _granularity(sizes: Pairs, key: int) -> Granularity:
    """Of the app and layer `key`; of a layer alone over all apps."""
    mine = sizes.first % 16 == key if key == ANY_LIBRARY else sizes.first == key
    size, count = sizes.second[mine], sizes.count[mine]
    if not len(size):
        return Granularity(data=None, metadata=None)
    if key == ANY_LIBRARY:
        size, place = np.unique(size, return_inverse=True)
        count = np.bincount(place, weights=count).astype(np.int64)
    moved = size * count
    data = int(size[int(moved.argmax())])
    small = np.flatnonzero((size > 0) & (size * 10 <= data))
    metadata = int(size[small[int(count[small].argmax())]]) if len(small) else None
    return Granularity(data=data, metadata=metadata)


def _pattern(view: View, key: int) -> Pattern | None:
    return _most_frequent(
        view, lambda keys: (keys // WITHIN == key // 16) & ((keys % WITHIN >> key % 16 & 1) == 1)
    )


def _most_frequent(view: View, chosen: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Pattern | None:
    """Where most data operations begin, of those under the chosen app * WITHIN + layers."""
    layers: Keyed = view.measured.results["access_pattern"].layers
    if not len(layers):
        return None
    mine = chosen(layers.keys)
    counts = [int(layers[n][mine].sum()) for n in NAMES]
    return NAMES[counts.index(max(counts))] if sum(counts) else None  # type: ignore[return-value]


def _collective(
    view: View, app: int, layer: int, data: int, collective: int
) -> tuple[float | None, Transfer | None]:
    if layer == Layer.HDF5:
        # H5Pset_dxpl_mpio(dxpl, mode): 0 independent, 1 collective (H5FD_mpio_xfer_t).
        modes = {args[1] for _, args, _ in view.facts_of(app, "H5Pset_dxpl_mpio") if len(args) > 1}
        found: set[Transfer] = {"collective" if mode == "1" else "independent" for mode in modes}
        if not found:
            if not view.facts_of(app, "H5Pset_fapl_mpio"):
                return None, None
            # No call that sets a mode was recorded. Not all traces would have it: what MPI-IO was asked for tells.
            return None, _of_mpiio(view, app, data)
        return None, "mixed" if len(found) > 1 else next(iter(found))
    if layer in (Layer.MPIIO, Layer.PNETCDF) and data:
        share = collective / data
        return share, "collective" if share == 1 else "independent" if share == 0 else "mixed"
    return None, None


def _of_mpiio(view: View, app: int, transfers: int) -> Transfer | None:
    """How HDF5 transfers data whose mode no call sets: each collective transfer is a collective call of MPI-IO.

    Metadata of the file goes beside them in independent calls, which therefore prove nothing. None where the
    collective calls may be those of PnetCDF.
    """
    calls: Keyed = view.measured.results["libraries"].calls
    together, others = (
        int(calls.at(np.array([app * 16 + layer]), column)[0])
        for layer, column in ((Layer.MPIIO, "collective"), (Layer.PNETCDF, "data"))
    )
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
        # nc_def_var(ncid, name, type, ndims, ...), ncmpi_def_var alike.
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
    found = {args[1]: args[2] for _, args, _ in view.facts_of(app, "MPI_Info_set") if len(args) > 2}
    return found or None
