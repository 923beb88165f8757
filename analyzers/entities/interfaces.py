"""Libraries in use (tables VI and VII): a row per app and layer, both for file-system layers and those above.

A file-system call counts once in every layer through which it was made, including its own: the row of posix has all
bytes of posix, and the row of hdf5 those that went through HDF5. `granularity.data` is the size that moves most bytes
in data operations under the layer. `granularity.metadata` is the size of other transfers: the most common size of at
most a tenth of it.


The middleware of table VII is the software between the program and the file system: MPI-IO, HDF5, PnetCDF and netCDF
if in use. Its granularity and access pattern describe the file-system calls that any of them makes,
each counted once, over all apps. If none is in use, there is no middleware to describe; the paper repeats table VI.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Sized
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from vani.analyzers.entities.io_stats import byte_counts
from vani.analyzers.entities.view import Notes, View, layer_name
from vani.analyzers.int_table import LAYERS, IntTable, pack, unpack
from vani.analyzers.measures.access_pattern import PatternCounts
from vani.analyzers.measures.accesses import LIBRARIES, POWERS, AccessTable, Requests, alignment_of
from vani.analyzers.measures.io_time import SpentTime
from vani.analyzers.measures.libraries import ANY_LIBRARY, LayerSizes, LibraryUse, under_any_library
from vani.analyzers.streams import NAMES
from vani.calls import FileClass, Kind, Layer
from vani.columns import Bools, Ints
from vani.schema.dataset_facts import libraries_loaded
from vani.schema.profile import Access, Amplification, ByteCounts, DataRepresentation, Granularity, Interface
from vani.units import counted, format_bytes

Pattern = Literal["consecutive", "sequential", "strided", "random"]
Transfer = Literal["collective", "independent", "mixed"]


def interfaces(view: View) -> tuple[list[Interface] | None, Notes]:
    """Rows by app, highest layer first; None if the source does not record which libraries were used."""
    use, entities = view.measured.of(LibraryUse), []
    notes = view.nulls(PatternCounts, "interfaces.access_pattern")
    notes |= view.nulls(SpentTime, "interfaces.time_s")
    if use is None:
        return None, notes | view.nulls(LibraryUse, "interfaces")
    rows = [(app, layer) for app, own in enumerate(use.used) for layer in np.flatnonzero(own)[::-1].tolist()]
    for app, layer in rows:
        if layer in _NOT_OF_IO:
            continue
        time = view.layer_time(app, layer)
        share, transfer = _collective(view, app, layer)
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
    notes |= _why_not_asked(view, entities)
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
_CALLER_UNKNOWN = {"bytes": byte_counts(None, None), "files": None, "granularity": _NO_GRANULARITY}
"""Attributes of a layer above the file system that are unknown if some calls' library is unknown."""


def _bytes(use: LibraryUse, app: int, layer: int) -> ByteCounts:
    read = None if use.read_unknown[app, layer] else int(use.bytes_read[app, layer])
    written = None if use.written_unknown[app, layer] else int(use.bytes_written[app, layer])
    return byte_counts(read, written)


def _requested(view: View, use: LibraryUse, app: int, layer: int) -> dict[str, Any]:
    """Bytes that a library's data calls request, and the ratio of moved bytes to them; null for file-system layers."""
    own = view.requests(app, layer)
    # HDF5 passes down filtered chunks instead of the requested bytes.
    filtered = own.from_below and view.facts_of(app, *_FILTERING)
    if layer not in LIBRARIES or not own.both("calls") or filtered:
        return {"asked": None, "amplification": None}
    requested = byte_counts(own.bytes(own.reads), own.bytes(own.writes))
    moved = _bytes(use, app, layer)
    later = own.reads["later"] > 0
    read, written = (
        _ratio(*sides)
        # Writes never move less than requested, so a missing part was not recorded.
        for sides in ((moved.read, requested.read, not later), (moved.written, requested.written, False))
    )
    sides = ((read, requested.read), (written, requested.written))
    if requested.read and _sieves_writes(view, use, app):
        # Sums of bytes cannot separate reads that the program requested from reads that writes made necessary.
        read = None
    complete = all(ratio is not None or wanted == 0 for ratio, wanted in sides)
    return {
        "asked": requested,
        "amplification": Amplification(
            read=read, written=written, total=_ratio(moved.total, requested.total, less=True) if complete else None
        ),
    }


_FILTERING = ("H5Pset_chunk", "H5Pset_deflate", "H5Pset_filter", "nc_def_var_chunking")
_SIEVED = 1.5
"""Data sieving writes back more than this share of the bytes requested of MPI-IO's writes."""


def _sieves_writes(view: View, use: LibraryUse, app: int) -> bool:
    own, moved = view.requests(app, Layer.MPIIO), _bytes(use, app, Layer.MPIIO).written
    written = own.bytes(own.writes)
    return bool(written) and moved is not None and moved >= _SIEVED * (written or 0)


def _ratio(moved: int | None, requested: int | None, less: bool) -> float | None:
    """Null if no bytes were requested, or if their transfer is not recorded: `less` states whether it may be less."""
    if not requested or not moved or (moved < requested and not less):
        return None
    return moved / requested


_ASKED, _AMPLIFICATION = "interfaces.asked", "interfaces.amplification"
_SIZE_UNKNOWN = {
    "mpiio": "the trace names some datatype without its size (MPI_TYPE_UNKNOWN)",
    "hdf5": "selections in dataspaces are not recorded, and the calls of MPI-IO below do not show them either",
    "pnetcdf": "counts are not recorded, and the calls of MPI-IO below do not show them either",
    "netcdf": "the trace has the first count of each call only, and the calls of MPI-IO below do not show them either",
}


def _why_not_asked(view: View, entities: Sequence[Interface]) -> Notes:
    rows = [row for row in entities if row.layer in _SIZE_UNKNOWN]
    unknown = dict.fromkeys(row.layer for row in rows if row.asked is None or row.asked.total is None)
    notes: Notes = {}
    if not rows:
        notes[_ASKED] = view.limits.get("interfaces.layer") or "no library above the file-system calls is in use"
    elif unknown:
        notes[_ASKED] = "; ".join(f"{layer}: {_SIZE_UNKNOWN[layer]}" for layer in unknown)
    elif any(view.requests(app, of).from_below for of in LIBRARIES for app, _ in enumerate(view.workload.apps)):
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


def accesses(view: View) -> tuple[list[Access] | None, Notes]:
    """Rows of all files together, then of the listed files; None if the source does not record data calls."""
    table = view.measured.of(AccessTable)
    if table is None:
        return None, view.nulls(AccessTable, "accesses")
    pattern = view.measured.of(PatternCounts)
    if pattern is not None and pattern.ordered is not None:
        table = replace(table, sums=IntTable.merged([table.sums, pattern.ordered]))
    listed = view.measured.listed
    place = np.full(view.workload.files + 1, -1, np.int64)
    place[listed + 1] = np.arange(1, len(listed) + 1)
    _, file, kind, layer = table.rows
    widths = (len(place), LAYERS, 2)
    of_all, of_file = (
        pack((at, LAYERS - 1 - layer, kind), widths) for at in (0 * file, np.maximum(place[file], 0))
    )
    sums = table.grouped(of_all) | table.grouped(np.where(place[file] < 0, -1, of_file))
    block, of_block = _block(view)
    notes = {
        "accesses.bytes": _NO_BYTES,
        "accesses.bytes_by_size": _NO_BYTES,
        "accesses.bytes_collective": _NO_BYTES,
        "accesses.time_by_size": "null where the sizes are those of the calls below, or some size is not known",
        "accesses.bytes_misaligned": f"{of_block}; {_NO_PLACE}",
        "accesses.bytes_sequential": _NO_PLACE,
    }
    if not view.timed:
        notes |= dict.fromkeys(("accesses.time_s", "accesses.time_by_size"), view.no_times)
    if not _knows_collective(view, table):
        notes["accesses.bytes_collective"] = "the library that made each call is not recorded"
    notes |= {f"accesses.{name}": why for name, why in table.notes.items()}
    rows = []
    for key in sorted(sums):
        at, above, side = (int(column[0]) for column in unpack(np.array([key]), widths))
        path = None if at == 0 else view.workload.paths[int(listed[at - 1])]
        rows.append(_access(view, table, path, LAYERS - 1 - above, side, sums[key], block))
    return rows, notes


_NO_BYTES = "null where the trace lacks the size of some call, and no call of MPI-IO below shows it"
_NO_PLACE = "null for libraries, whose positions are in views and data spaces, and where the trace lacks some offset"
_WITHOUT_LIBRARIES = ("strace", "wisio")
"""Tools that record no calls of libraries."""
_BLOCK = 4096


def _access(
    view: View, table: AccessTable, path: str | None, layer: int, kind: int, of: Counter[str], block: int
) -> Access:
    """One row; `of`: its sums by the names of `COLUMNS`."""
    requests, from_below = Requests(of), False
    bytes_ = of["bytes"] if of["bytes"] or of["calls"] > of["unsized"] else None
    collective = of["inside"] if _knows_collective(view, table) else None
    misaligned = ordered = None
    if layer in LIBRARIES:
        bytes_, collective, from_below = requests.bytes(of), requests.collective(of), requests.from_below
    elif bytes_ is not None:
        placed = _cells(of, "aligned", POWERS)
        if sum(placed.values()) == bytes_ and (table.alignment is None or block <= table.alignment):
            # Of a block that is no power of two, the largest one that divides it.
            least = int(alignment_of(np.array([block]))[0])
            misaligned = sum(amount for divides, amount in placed.items() if divides < least)
        if view.measured.of(PatternCounts) is not None and not of["unordered"]:
            ordered = of["ordered"]
    by_size, times = (
        {table.bins[cell]: amount for cell, amount in _cells(of, name, table.bins).items()}
        for name in ("below" if from_below else "size", "time")
    )
    is_whole = bytes_ is not None and sum(by_size.values()) == bytes_
    # Counts give the time of all sizes together.
    is_timed = view.timed and not from_below and abs(sum(times.values()) - of["time"]) <= 0.01 * of["time"]
    return Access(
        file=path,
        direction="write" if kind == Kind.WRITE else "read",
        layer=layer_name(layer),  # type: ignore[arg-type]
        calls=of["calls"],
        bytes=bytes_,
        time_s=of["time"] / 1e9 if view.timed else None,
        processes=of["all_callers" if path is None else "callers"] or None,
        # The grammars of a quick profile do not order calls, so it is unknown which call made another.
        bytes_collective=None if "file" in table.notes and layer != Layer.MPIIO else collective,
        bytes_by_size=by_size if is_whole else None,
        time_by_size={n: t / 1e9 for n, t in times.items()} if is_whole and of["time"] and is_timed else None,
        bytes_misaligned=misaligned,
        bytes_sequential=ordered,
    )


def _cells(of: Counter[str], name: str, cells: Sized) -> dict[int, int]:
    """Amounts by cell; `cells`: all cells, or all but the last."""
    return {cell: of[f"{name}{cell}"] for cell in range(len(cells) + 1) if f"{name}{cell}" in of}


def _knows_collective(view: View, table: AccessTable) -> bool:
    """Whether collective calls around file-system calls are recorded."""
    if "bytes_collective" in table.notes:
        return not any(app_sums["together"] for app_sums in table.grouped(0 * table.rows[0]).values())
    return view.knows_callers and all(trace.tool not in _WITHOUT_LIBRARIES for trace in view.measured.traces)


def _block(view: View) -> tuple[int, str]:
    """Block of the file system with the data in bytes, and its source."""
    path = next((view.workload.paths[code] for code in view.measured.listed.tolist()), "")
    for gpfs in view.of_job("gpfs") or ():
        if gpfs.block_size and path.startswith(gpfs.dir.rstrip("/") + "/"):
            return gpfs.block_size, f"block of {format_bytes(gpfs.block_size)}, {view.job_name}"
    system = None if view.system is None or not path else view.system.file_system_for(path)
    if view.system is not None and system is not None and system.block_size:
        return system.block_size, f"block of {format_bytes(system.block_size)}, system: {view.system.name}"
    return _BLOCK, "pages of 4 KiB: the file system's block is not known"


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
    loaded = libraries_loaded(view.workload.paths[code] for code in view.measured.processes.files.file.tolist())
    known = names + [name for name in loaded if name not in names]
    sizes = _granularity(use.sizes, ANY_LIBRARY)
    pattern = _most_frequent(view, lambda _, within: under_any_library(within))
    of, notes, unrecorded = ", ".join(names), dict[str, str](), view.limits.get("interfaces.layer")
    for attribute, measured in (("granularity", sizes.data), ("access_pattern", pattern)):
        if unrecorded is not None and not names:
            note = unrecorded
        elif not names:
            note = "no library above the file-system calls is in use (table VII: granularity and pattern do not change)"
        elif measured is None:
            note = f"no traced file-system call moves data within calls of {of}"
        else:
            note = f"of the file-system calls made within calls of {of}"
        notes[f"middleware.{attribute}"] = note
    if unrecorded is not None and not known:
        notes["middleware.libraries"] = unrecorded
    if known != names:
        notes["middleware.libraries"] = "libraries whose calls are traced, and loaded ones that read and write data"
    if names:
        notes |= view.nulls(PatternCounts, "middleware.access_pattern")
    if names and not view.knows_callers:
        notes["middleware.granularity"] = view.measured.why(LibraryUse)
        return known, None, pattern, notes
    libraries = known if unrecorded is None else known or None
    return libraries, None if sizes.data is None else sizes, pattern, notes


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


def _most_frequent(view: View, chosen: Callable[[Ints, Ints], Bools]) -> Pattern | None:
    """The most frequent class of data operations of the chosen apps and layers, by start offset."""
    pattern_counts = view.measured.of(PatternCounts)
    if pattern_counts is None:
        return None
    rows = chosen(pattern_counts.app, pattern_counts.within)
    counts = [int(pattern_counts.under[name][rows].sum()) for name in NAMES]
    return NAMES[counts.index(max(counts))] if sum(counts) else None  # type: ignore[return-value]


def _collective(view: View, app: int, layer: int) -> tuple[float | None, Transfer | None]:
    own = view.requests(app, layer)
    if layer == Layer.HDF5:
        # H5Pset_dxpl_mpio(dxpl, mode): 0 independent, 1 collective (H5FD_mpio_xfer_t).
        modes = {args[1] for _, args, _ in view.facts_of(app, "H5Pset_dxpl_mpio") if len(args) > 1}
        transfers: set[Transfer] = {"collective" if mode == "1" else "independent" for mode in modes}
        if not transfers:
            if not view.facts_of(app, "H5Pset_fapl_mpio"):
                return None, None
            # No call that sets a mode was recorded. Not all traces would have it, but requests to MPI-IO show it.
            return None, _of_mpiio(view, app, own.both("calls"))
        return None, "mixed" if len(transfers) > 1 else next(iter(transfers))
    if layer == Layer.NETCDF:
        # nc_var_par_access(ncid, varid, access): NC_INDEPENDENT is 0, NC_COLLECTIVE 1 (netcdf_par.h).
        modes = {args[2] for _, args, _ in view.facts_of(app, "nc_var_par_access") if len(args) > 2}
        by_mode: dict[str, Transfer] = {"0": "independent", "1": "collective"}
        known = [by_mode[mode] for mode in modes if mode in by_mode]
        return None, known[0] if len(known) == 1 == len(modes) else "mixed" if known else None
    if layer in (Layer.MPIIO, Layer.PNETCDF) and own.both("calls"):
        share = own.collective_share
        return share, "collective" if share == 1 else "independent" if share == 0 else "mixed"
    return None, None


def _of_mpiio(view: View, app: int, transfers: int) -> Transfer | None:
    """The mode of HDF5 transfers if no call sets it: each collective transfer is a collective MPI-IO call.

    File metadata moves in independent calls as well, so independent calls prove nothing. None if the
    collective calls may come from PnetCDF.
    """
    together = view.requests(app, Layer.MPIIO).both("together")
    if not together:
        return "independent"
    if view.requests(app, Layer.PNETCDF).both("calls"):
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
    totals = Counter[int]()
    for text, count in values:
        if text.isdecimal() and len(text) < 4:
            totals[int(text)] += count
    return max(totals, key=lambda v: (totals[v], v), default=None)


def _hints(view: View, app: int) -> dict[str, str] | None:
    hints = {args[1]: args[2] for _, args, _ in view.facts_of(app, "MPI_Info_set") if len(args) > 2}
    pairs = zip(view.measured.traces, view.workload.app_of_trace, strict=True)
    passes_none = all(trace.hints_passed == 0 for trace, of in pairs if of == app)
    return hints if hints or passes_none else None
