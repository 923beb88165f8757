"""The time in I/O calls that libraries spend outside file-system calls, and its likely use.

No storage setting shortens it. Its kind follows from the functions in which processes spend most time: collective
data calls exchange data first and end together; all processes also open, size and close files together; the time of
HDF5 or netCDF above MPI-IO is their own work. The time of a function includes the calls inside it, so the largest part
determines the kind.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.errors import one_line
from vani.models.io_time import IOTime
from vani.units import format_count, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import LibraryCall, LibraryTime, Profile

LEAST: Final = 0.5
"""Least share of a library's time to attribute to MPI-IO below it: most of it."""

LibraryKind = Literal["exchange", "opening", "independent", "data", "metadata", "unknown"]
_NAMES: Final = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}
_DATA: Final = ("MPI_File_read", "MPI_File_write", "MPI_File_iread", "MPI_File_iwrite")
_DATA_ABOVE: Final = ("H5Dread", "H5Dwrite", "nc_get", "nc_put", "ncmpi_get", "ncmpi_put", "ncmpi_wait")
_WORDS: Final[Mapping[LibraryKind, str]] = {
    "exchange": "exchange of data and waiting for the slowest process in collective calls",
    "opening": "waiting for each other in calls that all processes make together, such as opening and closing",
    "independent": "packing of data and locks in independent calls",
    "data": "compression, conversion or copying of data",
    "metadata": "the library's own metadata",
    "unknown": "exchange and waiting between processes",
}


@dataclass(frozen=True)
class LibraryPart:
    """Seconds that the process with most time in I/O calls spends in libraries, and their use.

    `words` is a noun phrase with the costliest function and its time summed over processes.
    """

    seconds: float
    kind: LibraryKind
    words: str


def library_part(profile: Profile, time: IOTime) -> LibraryPart | None:
    """The part outside file-system calls; None if no library spends time there or it is unknown."""
    if not profile.workflow.io.ops.all and not time.slowest_s:
        # The file-system calls of the libraries were not recorded.
        return None
    seconds = time.calls_s - time.slowest_s
    app = next((app for app in profile.apps if time.caller is not None and app.name == time.caller.app), None)
    times = (
        {str(layer): spent for layer, spent in (app.library_time_s or {}).items()} if app is not None else {}
    )
    if app is None or not times or seconds <= 0:
        return None
    layer = _layer(times)
    kind, call = _largest(times[layer], layer)
    words = _WORDS[kind]
    if kind in ("data", "metadata") and app.processes > 1 and "mpiio" in times:
        words += ", or waiting for each other"
    if call is not None:
        of = f"{format_seconds(call.time_s)} of {format_seconds(times[layer].total)}"
        words += f" ({one_line(call.name)} of {_NAMES.get(layer, layer)}: {format_count(call.count)} calls, {of})"
    return LibraryPart(seconds, kind, words)


def _layer(times: Mapping[str, LibraryTime]) -> str:
    """The outermost library, or MPI-IO if it takes most of that library's time."""
    outer = max(times, key=lambda layer: (times[layer].total, layer))
    below = times.get("mpiio")
    if below is not None and below.outside_file_system > LEAST * times[outer].outside_file_system:
        return "mpiio"
    return outer


def _largest(time: LibraryTime, layer: str) -> tuple[LibraryKind, LibraryCall | None]:
    """The kind of call with most time, and the costliest function of that kind."""
    sums: defaultdict[LibraryKind, float] = defaultdict(float)
    first: dict[LibraryKind, LibraryCall] = {}
    for call in time.calls or ():
        kind = _kind(call.name, layer)
        sums[kind] += call.time_s
        first.setdefault(kind, call)
    # Independent calls consist mostly of the file-system calls inside them, which are not part of this time.
    sums["independent"] -= time.total - time.outside_file_system
    most = max(first, key=lambda kind: sums[kind], default=None)
    return ("unknown", None) if most is None else (most, first[most])


def _kind(name: str, layer: str) -> LibraryKind:
    if layer != "mpiio":
        return "data" if name.startswith(_DATA_ABOVE) else "metadata"
    if not name.startswith(_DATA):
        return "opening"
    return "exchange" if "_all" in name or "_ordered" in name else "independent"
