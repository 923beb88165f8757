"""The most seconds of a run that faster I/O could save.

"The I/O time" of a run has three readings, which can all be recomputed from the profile:

- busy: length of the union of all file-system calls of all processes, `workflow.io.busy_s.total`. Outside it no process
  is in such a call, so no change to storage can save more. It is far too high if many processes do a little I/O each at
  different times.
- slowest: time of the slowest process in file-system calls, the largest `apps[].balance.slowest_io_time_s`. It is
  the saving if the run waits for that process, as bulk-synchronous programs usually do.
- calls: time of the slowest process in outermost I/O calls, the largest `apps[].balance.slowest_call_time_s`. Calls
  into libraries include everything inside them (exchange, waiting, aggregation). If it is unknown, the file-system
  calls take its place. Look-ups of names that are no files of the data set are in no file-system call above: their mean
  over the processes is added to all three.

Several traces form a workflow whose steps may wait for each other or run at the same time, so the time of one process
means little. For a workflow, "slowest" equals "busy". "Calls" adds to it, for each app that calls an I/O library, the
time by which its slowest process, once per instance, is longer in outermost calls than the app is in file-system calls.

The time in I/O calls that libraries spend outside file-system calls, and its likely use.

No storage setting shortens it. Its kind follows from the functions in which processes spend most time: collective
data calls exchange data first and end together; all processes also open, size and close files together; the time of
HDF5 or netCDF above MPI-IO is their own work. The time of a function includes the calls inside it, so the largest part
determines the kind.

The files that cost a run most: a name pattern, or a folder if the names have no pattern, or if its names are looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from vani.errors import one_line
from vani.models.run_time import seconds
from vani.units import format_count, format_seconds

if TYPE_CHECKING:
    from vani.schema.profile import (
        App,
        ByteCounts,
        FileEntity,
        Folder,
        IOStats,
        LibraryCall,
        LibraryTime,
        LookUp,
        NamePattern,
        Profile,
    )


# Removing 5 % of a run makes it 1.05 times as fast, which does not show between runs of the same job: Xie et al.
# (section IV-D) saw write times differ by a factor above 1.3 between repetitions for 10 % (Cetus) and 50 % (Titan)
# of their samples. The workloads in the Vani paper that gained from tuning spent 11 % to 75 % in I/O (table I).
HARDLY = 0.05
"""I/O below this share of the run hardly matters."""
LEAST_RUN_S: Final = 1.0
"""Shortest run to judge: starting MPI and loading libraries takes some tenths of a second (general knowledge)."""
LEAST_IO_S: Final = 0.1
"""Least I/O to judge (our choice): less is cold caches and the first lookup of a directory."""

# Our choice: two processes that each take a twentieth of a run meet for longer.
_APART: Final = 1.005

# A library comes before those that it calls.
_OUTERMOST_FIRST: Final = ("netcdf", "pnetcdf", "hdf5", "mpiio")
_NAMES: Final = {"netcdf": "NetCDF", "pnetcdf": "PnetCDF", "hdf5": "HDF5", "mpiio": "MPI-IO"}
# Least share of the longest library's time for a library to be mentioned.
_NAMED: Final = 0.1


@dataclass(frozen=True)
class Slowest:
    """The process with most time of a kind, and the profile path of that time."""

    app: str
    rank: int | None
    """None if every process has the same time."""
    time_s: float
    where: str


@dataclass(frozen=True)
class IOTime:
    """The readings in seconds (see the module): slowest_s <= busy_s <= runtime_s, slowest_s <= calls_s <= runtime_s."""

    runtime_s: float
    busy_s: float
    slowest_s: float
    """The most seconds that all storage settings together can save."""
    calls_s: float
    """The most seconds that all changes to I/O together can save."""
    slowest: Slowest | None
    """The process with most time in file-system calls; None if the profile does not have it."""
    caller: Slowest | None
    """The process with most time in outermost I/O calls."""
    libraries: tuple[str, ...]
    """Display names of the I/O libraries that take time."""
    traces: int
    """Number of traces of the workload."""
    lookups_s: float
    """The part of each of them in look-ups of names that are no files of the data set."""
    calls_most_s: float
    """Upper bound of `calls_s` if the profile has bounds of busy times, otherwise `calls_s`."""

    @property
    def share(self) -> float:
        """`calls_s` as a share of the run, 0..1; 0 for a run that took no time."""
        return self.of_run(self.calls_s)

    @property
    def is_short(self) -> bool:
        """True if the run is too short to judge. A long run with next to no I/O is not."""
        if not self.calls_s:
            return False
        return self.runtime_s < LEAST_RUN_S or (self.calls_s < LEAST_IO_S and self.share >= HARDLY)

    @property
    def is_in_libraries(self) -> bool:
        """True if the slowest process spends most of its I/O time in libraries rather than in the file system."""
        below = max(self.of_run(self.busy_s), self.of_run(self.slowest_s))
        return bool(self.libraries) and self.share >= HARDLY and self.share >= 2 * below

    def of_run(self, time_s: float) -> float:
        """A time as a share of the run, 0..1; 0 for a run that took no time."""
        return min(1.0, time_s / self.runtime_s) if self.runtime_s else 0.0


def io_time(profile: Profile) -> IOTime:
    """Read the I/O times from a profile that has times."""
    profile = with_commands_as_instances(profile)
    runtime = seconds(profile.workflow.runtime_s)
    lookups_s = outside_s(profile) / max(1, profile.workflow.processes)
    busy = min(seconds(profile.workflow.io.busy_s.total) + lookups_s, runtime)
    traces = sum(app.instances for app in profile.apps)
    slowest = _worst(
        (app, f"apps[{index}].balance.slowest_io_time_s", b.slowest_rank, b.slowest_io_time_s)
        for index, app in enumerate(profile.apps)
        if (b := app.balance) is not None
    )
    caller = _worst(
        (app, f"apps[{index}].balance.slowest_call_time_s", b.slowest_call_rank, b.slowest_call_time_s)
        for index, app in enumerate(profile.apps)
        if (b := app.balance) is not None
    )
    of_files = busy if traces > 1 or slowest is None else min(busy, slowest.time_s + lookups_s)
    if traces > 1:
        of_calls = busy + sum(_in_libraries(app) for app in profile.apps)
    else:
        of_calls = max(of_files, caller.time_s + lookups_s) if caller is not None else of_files
    return IOTime(
        runtime_s=runtime,
        busy_s=busy,
        slowest_s=of_files,
        lookups_s=lookups_s,
        calls_s=min(of_calls, runtime),
        slowest=slowest,
        caller=caller,
        libraries=_libraries(profile),
        traces=traces,
        calls_most_s=min(
            max(of_calls, profile.bounds.get("workflow.io.busy_s.total", (0.0, 0.0))[1]), runtime
        ),
    )


def in_turn(profile: Profile, apps: Iterable[str] | None = None) -> bool:
    """True if the processes of each app (by default all) are commands of a shell that do I/O one after another.

    Then no two processes of an app are in a call at the same time, and the run waits for all of them. Of the workers of
    a program in Python, one alone may do I/O while the others wait.
    """
    if {trace.layout for trace in profile.traces} != {"processes"}:
        return False
    chosen = [app for app in profile.apps if (apps is None or app.name in apps) and app.balance is not None]
    return any(app.processes > 1 for app in chosen) and all(map(_takes_turns, chosen))


def _takes_turns(app: App) -> bool:
    is_python = app.name.endswith(".py") or app.name.startswith("python")
    time = app.processes * ((app.balance and app.balance.mean_io_time_s) or 0.0)
    return app.processes == 1 or (not is_python and time <= _APART * seconds(app.io.busy_s.total))


def with_commands_as_instances(profile: Profile) -> Profile:
    """The profile with each of the processes that run one after another as an instance of its app."""
    apps = [
        app.model_copy(update={"instances": app.processes}) if in_turn(profile, [app.name]) else app
        for app in profile.apps
    ]
    return profile.model_copy(update={"apps": apps})


def _worst(candidates: Iterable[tuple[App, str, int | None, float | None]]) -> Slowest | None:
    known = [
        Slowest(app.name, rank, time_s, where)
        for app, where, rank, time_s in candidates
        if time_s is not None
    ]
    # The app's name breaks ties, so the result does not depend on the order of apps.
    return max(known, key=lambda slowest: (slowest.time_s, slowest.app), default=None)


def _in_libraries(app: App) -> float:
    """The most seconds that an app of a workflow spends in library calls outside file-system calls."""
    if app.balance is None or app.balance.slowest_call_time_s is None or not app.library_time_s:
        return 0.0
    within = app.instances * app.balance.slowest_call_time_s
    return max(0.0, min(within, seconds(app.runtime_s)) - seconds(app.io.busy_s.total))


def _libraries(profile: Profile) -> tuple[str, ...]:
    by_layer = profile.workflow.library_time_s or {}
    times = {layer: by_layer[layer].slowest for layer in _OUTERMOST_FIRST if layer in by_layer}
    most = max(times.values(), default=0.0)
    return tuple(_NAMES[layer] for layer, time in times.items() if time > 0 and time >= _NAMED * most)


def io_seconds(profile: Profile) -> float | None:
    """The I/O time of a run as one number, the longer of "calls" and "busy"; None if times are unknown."""
    busy = profile.workflow.io.busy_s.total
    if profile.workflow.runtime_s is None or busy is None:
        return None
    return max(io_time(profile).calls_s, busy)


_AGAIN: Final = 2.0
"""Least reads of each byte that show a cache that is too small (our choice)."""
LEAST: Final = 0.5
"""Least share of a library's time to attribute to MPI-IO below it: most of it."""

LibraryKind = Literal["exchange", "opening", "independent", "data", "metadata", "unknown"]
_LIBRARIES: Final = {"mpiio": "MPI-IO", "hdf5": "HDF5", "pnetcdf": "PnetCDF", "netcdf": "netCDF"}
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
    times = ({str(layer): spent for layer, spent in (app.library_time_s or {}).items()} if app is not None else {})
    if app is None or not times or seconds <= 0:
        return None
    layer = _layer(times)
    kind, call = _largest(times[layer], layer)
    words = _WORDS[kind]
    if kind == "data" and (times_read := _read_again(profile)) >= _AGAIN:
        words += f", of the same chunks {format_count(round(times_read))} times, which a larger chunk cache avoids"
    if kind in ("data", "metadata") and app.processes > 1 and "mpiio" in times:
        words += ", or waiting for each other"
    if call is not None:
        of = f"{format_seconds(call.time_s)} of {format_seconds(times[layer].total)}"
        words += f" ({one_line(call.name)} of {_LIBRARIES.get(layer, layer)}: {format_count(call.count)} calls, {of})"
    return LibraryPart(seconds, kind, words)


def _read_again(profile: Profile) -> float:
    """How often a process reads each byte of the file of HDF5 or netCDF that is read most often; 0 if unknown."""
    return max(
        (
            (file.io.bytes.read or 0) / file.readers / file.io.footprint.read
            for file in profile.files
            if file.format in ("hdf5", "netcdf") and file.readers and file.io.footprint.read
        ),
        default=0.0,
    )


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


_PLAIN: Final = 0.5
"""Least share of the costliest folder's time that a pattern needs to show where the time goes; else the folder does."""


@dataclass(frozen=True)
class Costliest:
    """The files with most I/O time, or with most bytes if no time is known.

    `group` is a row of `profile.patterns` or `profile.folders`. Profiles of an older Vani have no patterns; for these
    it is a row of `profile.files`.
    """

    name: str
    files: int
    share: float | None
    """Share of the I/O time, 0..1; None if unknown."""
    group: NamePattern | Folder | FileEntity | LookUp
    time_s: float
    """Seconds in all calls, summed over processes; 0 if unknown."""


def costliest(profile: Profile) -> Costliest | None:
    """The files that cost most, or the folder whose names are looked up; None if the run used no files."""
    files, row = _files(profile), max(profile.lookups or (), key=lambda row: row.time_s or 0.0, default=None)
    if row is None or not row.time_s or (files is not None and row.time_s <= files.time_s):
        return files
    return Costliest(row.folder, row.names, lookup_share(profile, row), row, row.time_s)


def outside_s(profile: Profile) -> float:
    """Seconds of look-ups that no I/O time contains, summed over processes."""
    return sum(row.excluded_s or 0.0 for row in profile.lookups or ())


def lookup_share(profile: Profile, row: LookUp) -> float | None:
    """Share of a row of look-ups in the time of I/O and of all look-ups, 0..1; None if times are unknown."""
    whole = calls_s(profile.workflow.io) + outside_s(profile)
    return min(1.0, row.time_s / whole) if row.time_s is not None and whole else None


def _files(profile: Profile) -> Costliest | None:
    pattern = max(profile.patterns or (), key=_cost, default=None)
    if pattern is None:
        return _of_file(profile)
    folder = max(profile.folders or (), key=_cost, default=None)
    if folder is not None and _less(pattern, folder):
        return Costliest(folder.path, folder.files, _part_of_io(profile, folder.time_s), folder, folder.time_s or 0.0)
    share = _part_of_io(profile, pattern.time_s)
    return Costliest(pattern.pattern, pattern.files, share, pattern, pattern.time_s or 0.0)


def calls_s(io: IOStats) -> float:
    """Seconds in all calls, summed over processes and their threads.

    `time_s.total` and each kind of call count the simultaneous calls of a process's threads once, so the kinds
    together may exceed the total.

    """
    time = io.time_s
    return max(time.total or 0.0, sum(part or 0.0 for part in (time.read, time.write, time.metadata, time.sync)))


def _of_file(profile: Profile) -> Costliest | None:
    if not profile.files:
        return None
    file = profile.files[0]
    time_s = file.io.time_s.total
    return Costliest(file.path, 1, _part_of_io(profile, time_s), file, time_s or 0.0)


def _cost(group: NamePattern | Folder) -> tuple[float, int, int]:
    return group.time_s or 0.0, _moved(group.bytes), group.opens or 0


def _less(pattern: NamePattern, folder: Folder) -> bool:
    for part, whole in zip(_cost(pattern), _cost(folder), strict=True):
        if whole:
            return part < _PLAIN * whole
    return False


def _moved(moved: ByteCounts) -> int:
    return (moved.read or 0) + (moved.written or 0)


def _part_of_io(profile: Profile, time: float | None) -> float | None:
    whole = calls_s(profile.workflow.io)
    return min(1.0, time / whole) if time is not None and whole else None
