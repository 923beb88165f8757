"""The sentence about time in I/O libraries that follows the verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vani.errors import one_line
from vani.models.io_time import io_time
from vani.models.library_part import library_part
from vani.units import format_share

if TYPE_CHECKING:
    from vani.schema.profile import Profile

_NEARLY_ALL = 0.99
LIBRARIES = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}


def library_words(profile: Profile) -> str:
    """How long the slowest process is inside I/O libraries, if that is much longer than in the file system."""
    times = profile.workflow.library_time_s
    if profile.workflow.runtime_s is None or not times:
        return ""
    time = io_time(profile)
    if not time.is_in_libraries or time.caller is None:
        return ""
    name = max(times, key=lambda layer: (times[layer].total, layer))
    outside = times[name].outside_file_system / times[name].total if times[name].total else 0.0
    part = "nearly all" if outside >= _NEARLY_ALL else format_share(outside)
    of = f" of {one_line(time.caller.app)}" if len(profile.apps) > 1 else ""
    who, library = f"rank {time.caller.rank}{of}", LIBRARIES.get(name, name)
    share = format_share(time.of_run(time.caller.time_s))
    if any(entry.kind == "mpiio_calls_missing" for entry in profile.unseen or ()):
        return f"{who} is inside {library} calls for at least {share} of the run: its data calls were not recorded."
    if not profile.workflow.io.ops.all:
        return f"{who} is inside {library} calls for {share} of the run: what these called was not recorded."
    what = library_part(profile, time)
    words = what.words if what is not None else "exchange and waiting between processes"
    return f"{who} is inside {library} calls for {share} of the run; {part} of that time is {words}, not storage."
