"""Rows of the profile's table of accesses: parts of them in bytes and seconds, and ratios between layers.

| ratio | of | to |
|---|---|---|
| `collective` | bytes in collective calls of MPI-IO | bytes requested of MPI-IO |
| `sieving` | bytes moved by the file system | bytes requested of MPI-IO |
| `filling` | bytes moved by the file system | bytes requested of the outermost library above MPI-IO |
| `conversion` | bytes requested of MPI-IO | bytes requested of that library, which may convert or compress them |
| `fan_out` | calls of the file system | data calls of MPI-IO |

Re-reading is `data_files.Access.times`, since distinct bytes belong to the file, not to a layer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from vani.units import MiB, parse_bytes

if TYPE_CHECKING:
    from vani.schema.profile import Access, App, Profile

REQUEST: Final = MiB
"""About a millisecond at 1 GB/s (our choice), the latency of a busy parallel file system."""

_JOINING: Final = ("pnetcdf", "mpiio")
_ABOVE_MPIIO: Final = ("netcdf", "pnetcdf", "hdf5")
_FILE_SYSTEM: Final = ("posix", "stdio")
_LIBRARIES: Final = frozenset({"mpiio", *_ABOVE_MPIIO})


class Part(NamedTuple):
    """Some calls of one direction on a file."""

    share: float
    """Share of the direction's bytes."""
    time_share: float | None
    """Share of the direction's seconds; None without times."""
    time_s: float | None

    def is_notable(self, least: float, requests: float = 0.0) -> bool:
        """True if it has this share of the bytes or of the seconds.

        Without times by size, a request costs as much as moving `REQUEST` bytes; `requests`: how many the part has for
        each byte of the direction.
        """
        if self.time_share is not None:
            return max(self.share, self.time_share) >= least
        return (self.share + requests * REQUEST) / (1 + requests * REQUEST) >= least


def data_calls(profile: Profile, path: str, *, reads: bool) -> Sequence[Access]:
    """The table's rows of the file system's calls on a file in one direction: of POSIX and stdio."""
    return Traffic.on(profile, [path], reads=reads).of(*_FILE_SYSTEM)


_latest: list[tuple[object, Mapping[str | None, Sequence[Access]]]] = []


def _by_file(profile: Profile) -> Mapping[str | None, Sequence[Access]]:
    """The table's rows by path; those of the last table are remembered."""
    for table, rows in _latest:
        if table is profile.accesses:
            return rows
    by_path: defaultdict[str | None, list[Access]] = defaultdict(list)
    for row in profile.accesses or ():
        by_path[row.file].append(row)
    _latest[:] = [(profile.accesses, by_path)]
    return by_path


def layers_of(profile: Profile) -> Mapping[str, Mapping[str, int]]:
    """Most processes that make data calls of each layer on each file."""
    layers: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in profile.accesses or ():
        if row.file is not None:
            own = layers[row.file]
            own[row.layer] = max(own.get(row.layer, 0), row.processes or 0)
    return layers


def joint_files(profile: Profile) -> set[str]:
    """Files that several processes access through MPI-IO, which may join their requests."""
    return {path for path, own in layers_of(profile).items() if max(own.get(name, 0) for name in _JOINING) > 1}


def through_libraries(profile: Profile, app: App) -> bool:
    """True if libraries request data in the files with most bytes of an app."""
    layers = layers_of(profile)
    sizes = [(file.path, 1 + (file.io.bytes.total or 0)) for file in profile.files if app.name in file.apps]
    through = sum(size for path, size in sizes if not _LIBRARIES.isdisjoint(layers.get(path, ())))
    return 2 * through >= sum(size for _, size in sizes) > 0


@dataclass(frozen=True)
class Traffic:
    """Rows of the table on some files, in one direction or both. A ratio is None if a part of it is not known."""

    rows: Sequence[Access]

    @staticmethod
    def on(profile: Profile, paths: Collection[str | None], *, reads: bool | None = None) -> Traffic:
        """Rows on files; the path None means all files of the data set."""
        direction = {True: "read", False: "write"}.get(reads)  # type: ignore[arg-type]
        # Rules look at one file after the other.
        rows = _by_file(profile).get(next(iter(paths)), ()) if len(paths) == 1 else profile.accesses or ()
        return Traffic([row for row in rows if row.file in paths and direction in (None, row.direction)])

    @staticmethod
    def of_app(profile: Profile, app: App, *, reads: bool | None = None) -> Traffic:
        """Rows on an app's files; of several apps, on their listed files."""
        if len(profile.apps) == 1:
            return Traffic.on(profile, [None], reads=reads)
        return Traffic.on(profile, {file.path for file in profile.files if app.name in file.apps}, reads=reads)

    def of(self, *layers: str) -> Sequence[Access]:
        """Rows of these layers."""
        return [row for row in self.rows if row.layer in layers]

    @property
    def moved(self) -> int:
        """Bytes that the file system moved."""
        return sum(row.bytes or 0 for row in self.of(*_FILE_SYSTEM))

    @property
    def requested(self) -> int | None:
        """Bytes requested of MPI-IO; None without its calls, or if some size is not known."""
        return _known(self.of("mpiio"))

    @property
    def callers(self) -> int:
        """Most processes that make calls of MPI-IO."""
        return max((row.processes or 0 for row in self.of("mpiio")), default=0)

    @property
    def at_once(self) -> int | None:
        """Bytes of one usual call of MPI-IO by each of `callers`; None if not known."""
        calls = sum(row.calls for row in self.of("mpiio"))
        return None if not self.requested else self.requested * self.callers // calls

    @property
    def collective(self) -> float | None:
        """Share of collective calls in the bytes requested of MPI-IO, or moved below it if those are not known."""
        for layers in (("mpiio",), ("pnetcdf",), _FILE_SYSTEM if self.of(*_JOINING) else ()):
            rows = self.of(*layers)
            whole = _known(rows)
            if whole and all(row.bytes_collective is not None for row in rows):
                return sum(row.bytes_collective or 0 for row in rows) / whole
        return None

    @property
    def sieving(self) -> float | None:
        return self.moved / self.requested if self.requested else None

    @property
    def of_library(self) -> int | None:
        """Bytes requested of the outermost library above MPI-IO; None without one, or if some size is not known."""
        return _known(next((rows for name in _ABOVE_MPIIO if (rows := self.of(name))), ()))

    @property
    def filling(self) -> float | None:
        return self.moved / self.of_library if self.of_library else None

    @property
    def conversion(self) -> float | None:
        return self.requested / self.of_library if self.requested and self.of_library else None

    @property
    def fan_out(self) -> float | None:
        calls = sum(row.calls for row in self.of("mpiio"))
        return sum(row.calls for row in self.of(*_FILE_SYSTEM)) / calls if calls else None


def _known(rows: Sequence[Access]) -> int | None:
    """Bytes of all rows together; None if there are none, or if some are not known."""
    return sum(row.bytes or 0 for row in rows) if rows and all(row.bytes is not None for row in rows) else None


def small_part(rows: Sequence[Access], limit: int) -> Part | None:
    """Calls of less than `limit` bytes; None if the table does not show them."""
    moved = sum(row.bytes or 0 for row in rows)
    if not moved or any(row.bytes_by_size is None for row in rows):
        return None
    small = sum(_below(row.bytes_by_size, limit) for row in rows)
    if any(row.time_s is None for row in rows):
        return Part(small / moved, None, None)
    timed = all(row.time_by_size is not None for row in rows)
    time_s = sum(row.time_s or 0.0 for row in rows)
    spent = sum(_below(row.time_by_size, limit) for row in rows) if timed else time_s * small / moved
    return Part(small / moved, spent / time_s if timed and time_s else None, spent)


def small_time_share(rows: Sequence[Access], limit: int) -> float:
    """Share of calls below `limit` bytes in the time, or in the bytes where times are not known; 0 if unknown."""
    part = small_part(rows, limit)
    if part is None:
        return 0.0
    return part.share if part.time_share is None else part.time_share


def random_part(rows: Sequence[Access], limit: int) -> Part | None:
    """Calls out of order, which have less than `limit` bytes; None if the table does not show them."""
    moved = sum(row.bytes or 0 for row in rows)
    if not moved or any(row.bytes_sequential is None for row in rows):
        return None
    random = moved - sum(row.bytes_sequential or 0 for row in rows)
    small = small_part(rows, limit)
    if small is None or not small.share:
        time_s = None if any(row.time_s is None for row in rows) else sum(row.time_s or 0.0 for row in rows)
        return Part(random / moved, None, None if time_s is None else time_s * random / moved)
    # Of the small calls, those out of order take their share of the bytes.
    factor = min(1.0, random / moved / small.share)
    times = (None if time is None else time * factor for time in (small.time_share, small.time_s))
    return Part(random / moved, *times)


def misaligned_share(rows: Sequence[Access], least: int) -> float | None:
    """Share of the bytes at no multiple of a block, in calls that mostly have `least` bytes; None if unknown."""
    moved = sum(row.bytes or 0 for row in rows)
    small = small_part(rows, least)
    if not moved or small is None or any(row.bytes_misaligned is None for row in rows):
        return None
    return max(0.0, sum(row.bytes_misaligned or 0 for row in rows) / moved - small.share)


def _below(by_size: Mapping[str, float] | None, limit: int) -> float:
    """Upper bound: a bin of counts that contains the limit is below it."""
    begins = ((parse_bytes(re.split("[-_+]", name)[0]), amount) for name, amount in (by_size or {}).items())
    return sum(amount for begin, amount in begins if begin < limit)
