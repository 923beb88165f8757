"""Libraries in use (tables VI and VII): a row per app and layer, file-system layers and those above them.

A file-system call counts once in every layer that it was made through, its own included: the row of posix has all of
posix's bytes, that of hdf5 what went through HDF5. `granularity.data` is the size that moves most bytes in data
operations made under the
layer, `granularity.metadata` the size of what moves beside it: the most common size of at most a tenth of it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from vani.analyzers.entities.view import View, layer_name
from vani.analyzers.keyed import Keyed
from vani.analyzers.measures.access_pattern import NAMES, WITHIN
from vani.calls import FileClass, Layer
from vani.schema.profile import ByteCounts, DataRepresentation, Granularity, Interface

__all__ = ["interfaces"]

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
            int(under.at(one, n)[0]) if len(under) else 0 for n in ("bytes_read", "bytes_written")
        )
        data_calls, collective = (
            int(calls.at(one, n)[0]) if len(calls) else 0 for n in ("data", "collective")
        )
        own_time = int(calls.at(one, "time")[0]) if len(calls) else 0
        time = int(under.at(one, "time")[0]) if layer <= Layer.STDIO and len(under) else own_time
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
                bytes=ByteCounts(read=read, written=written, total=read + written),
                files=int((view.world.file_class[files] == FileClass.DATASET).sum()),
                time_s=time / 1e9,
                collective_share=share,
                transfer=transfer,
                hints=_hints(view, app) if layer == Layer.MPIIO else None,
            )
        )
    if any(i.layer == "mpiio" and i.hints is None for i in found):
        view.notes["interfaces.hints"] = "MPI_Info_set is in no record (MPI tracing is off by default)"
    return found


def _granularity(sizes: object, key: int) -> Granularity:
    mine = sizes.first == key  # type: ignore[attr-defined]
    size, count = sizes.second[mine], sizes.count[mine]  # type: ignore[attr-defined]
    if not len(size):
        return Granularity(data=None, metadata=None)
    moved = size * count
    data = int(size[int(moved.argmax())])
    small = np.flatnonzero((size > 0) & (size * 10 <= data))
    metadata = int(size[small[int(count[small].argmax())]]) if len(small) else None
    return Granularity(data=data, metadata=metadata)


def _pattern(view: View, key: int) -> Literal["consecutive", "sequential", "strided", "random"] | None:
    layers: Keyed = view.measured.results["access_pattern"].layers
    if not len(layers):
        return None
    mine = (layers.keys // WITHIN == key // 16) & ((layers.keys % WITHIN >> key % 16 & 1) == 1)
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
