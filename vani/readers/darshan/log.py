"""A log, read region by region: the job, the file names, and the modules' records."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.errors import UnknownFormatError
from vani.readers.darshan.record_columns import MOST_SECONDS, RecordColumns
from vani.readers.darshan.record_ends import GROWING, checked_records, damaged_log, record_parts
from vani.readers.darshan.record_layouts import LAYOUTS, RecordLayout, module_numbers
from vani.readers.darshan.regions import LogFile

Ints = NDArray[np.int64]

_WIDE: Final = "3.41"
"""First version in which a job's times have nanoseconds."""
_MOST_RANKS: Final = 1 << 24
_LATEST: Final = 1 << 33
"""Latest plausible time in seconds since 1970: the year 2242."""
_MOST_STRIPES: Final = 1 << 16
_METADATA: Final = 1024
_JOB: Final = 4096
"""Maximum size of the job region that Darshan reads, in bytes."""
_STREAMED: Final = ("DXT_POSIX", "DXT_MPIIO")
"""Modules with regions that may exceed memory; they are inflated again each time they are read."""


@dataclass(frozen=True)
class Job:
    """Contents of the job region."""

    uid: int
    job_id: int
    exe: str
    processes: int
    start_s: float
    """Seconds since 1970."""
    runtime_s: float
    mounts: tuple[tuple[str, str], ...]
    """Folder and type of each mount, longest folders first."""
    metadata: Mapping[str, str]

    def mount_of(self, name: str) -> tuple[str, str]:
        """Folder and type of the file system that contains a file; empty if unknown."""
        return mount_of(name, self.mounts)


def mount_of(name: str, mounts: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Folder and type of the first mount that contains a file; empty if none does. `mounts` begins with the longest."""
    for folder, kind in mounts if name.startswith("/") else ():
        if folder in ("/", name) or name.startswith(f"{folder}/"):
            return folder, kind
    return "", ""


def job_of(path: Path, numbers: tuple[int, int, int], times: tuple[float, float], notes: bytes, text: bytes) -> Job:
    """Build the job from its stored fields; raises TraceError if it claims something impossible.

    Parameters
    ----------
    numbers
        User, job, and number of processes.
    times
        Start and end.
    notes
        Lines of `name=value`.
    text
        The command, then a line with the type and folder of each mount.
    """
    uid, job_id, processes = numbers
    start, end = times
    if not 0 < processes <= _MOST_RANKS:
        raise damaged_log(path, f"it claims {processes:,} processes")
    if not 0 <= start <= _LATEST:
        raise damaged_log(path, f"it claims to have started {start:,.0f} s after 1970")
    if not 0 <= end - start <= MOST_SECONDS:
        raise damaged_log(path, f"it claims to have run for {end - start:,.0f} s")
    exe, *lines = _text(text).split("\n")
    mounts = [(folder, kind) for kind, _, folder in (line.partition("\t") for line in lines) if kind and folder]
    pairs = (line.partition("=") for line in _text(notes).split("\n"))
    return Job(
        uid,
        job_id,
        exe,
        processes,
        start,
        end - start,
        tuple(sorted(mounts, key=lambda mount: -len(mount[0]))),
        {name.strip(): value.strip() for name, equals, value in pairs if equals},
    )


class Log:
    """Regions of a log, inflated and checked on first use. All except DXT calls are then kept."""

    def __init__(self, file: LogFile) -> None:
        self._file, header = file, file.header
        self.path, self.version, self.digest = file.path, header.version, file.digest
        self._order = header.order
        self._number, self._versions = module_numbers(header.version), header.versions
        self._places = {file.name(number): number for number, (_, length) in enumerate(header.regions) if length}
        self._regions: dict[str, bytes] = {}

    def check(self) -> None:
        """Inflate and check all regions.

        Raises
        ------
        TraceError
            A region does not inflate completely, or ends inside a record.
        """
        for name, number in self._places.items():
            if name not in _STREAMED and (number < 2 or name in LAYOUTS or name in GROWING):
                self._region(name)
            else:
                for _ in self._pieces(name, number, keep=False):
                    pass

    def _region(self, name: str) -> bytes:
        """The whole content of a region; empty if the log does not have it."""
        region = self._regions.get(name)
        if region is None:
            number = self._places.get(name)
            region = b"" if number is None else b"".join(self._pieces(name, number, keep=True))
            self._regions[name] = region
        return region

    def _pieces(self, name: str, number: int, *, keep: bool) -> Iterator[bytes]:
        pieces = self._file.pieces(number, keep=keep)
        if name not in self._number:
            return pieces
        return checked_records(self.path, name, self._versions[number - 2], self._order, pieces)

    def has(self, module: str) -> bool:
        """Whether the log has a module's region."""
        return module in self._number and module in self._places

    @property
    def is_big_endian(self) -> bool:
        """Whether the log was written on a big-endian machine."""
        return self._order == ">"

    @property
    def partial(self) -> tuple[str, ...]:
        """Modules that dropped some records while the program ran, sorted by name."""
        flags = self._file.header.flags
        return tuple(sorted(name for name, at in self._number.items() if flags >> at & 1 and self.has(name)))

    @property
    def lost_counters(self) -> bool:
        """Whether records with counters were dropped."""
        without_counters = sum(1 << number for name, number in self._number.items() if name in GROWING)
        return bool(self._file.header.flags & ~without_counters)

    @cached_property
    def job(self) -> Job:
        """The job: user, command and times; raises TraceError if it claims something impossible."""
        region = self._region("the job's region")[:_JOB]
        numbers = 7 if self.version >= _WIDE else 5
        begin = 8 * numbers + _METADATA
        if len(region) < begin:
            raise damaged_log(self.path, f"its job has {len(region):,} bytes, and {begin:,} are its least")
        uid, *times, processes, job_id = struct.unpack_from(f"{self._order}{numbers}q", region)
        notes, text = region[8 * numbers : begin], region[begin:]
        if numbers == 7:
            start, end = times[0] + times[1] / 1e9, times[2] + times[3] / 1e9
        else:
            # Times are whole seconds, so the run ended before the next one.
            start, end = float(times[0]), float(times[1] + 1)
        return job_of(self.path, (uid, job_id, processes), (start, end), notes, text)

    def rows(self, module: str) -> tuple[NDArray[Any], RecordLayout]:
        """The records of a module with counters: one row of 8-byte words each, in the log's byte order.

        Raises
        ------
        TraceError
            Records have another form, or an invalid rank.
        """
        layouts, region = LAYOUTS[module], self._region(module)
        version = self._versions[self._number[module]] if region else max(layouts)
        layout = self._known(module, layouts, version)
        rows = np.frombuffer(region, f"{self._order}i8").reshape(-1, layout.size // 8)
        if "FOPENS" in layout.at:
            # Darshan 3.0 added stream calls to these records: `darshan-util` drops them.
            rows = rows[rows[:, layout.first + layout.at["FOPENS"]] <= 0]
        self._check_ranks(module, rows[:, 1])
        return rows, layout

    def _check_ranks(self, module: str, ranks: NDArray[Any]) -> None:
        if not len(ranks):
            return
        processes, least, most = self.job.processes, int(ranks.min()), int(ranks.max())
        if least < -1 or most >= processes:
            wrong = least if least < -1 else most
            raise damaged_log(self.path, f"{module} has a record of rank {wrong:,} of {processes:,} processes")

    def refuse_moments(self) -> None:
        """Raise UnknownFormatError if call times are not relative to the start of the run; here they always are."""

    def mixed(self) -> int:
        """Number of POSIX records that `rows` drops because stream calls were added to them."""
        region, layout = self._region("POSIX"), LAYOUTS["POSIX"][1]
        if not region or self._versions[self._number["POSIX"]] != 1:
            return 0
        rows = np.frombuffer(region, f"{self._order}i8").reshape(-1, layout.size // 8)
        return int((rows[:, layout.first + layout.at["FOPENS"]] > 0).sum())

    def _known(self, module: str, versions: Mapping[int, Any], version: int) -> Any:
        if version not in versions:
            raise UnknownFormatError(
                f"is a Darshan log whose {module} has records of version {version:,}, which is not known",
                where=self.path,
                todo="update Vani" if version > max(versions) else "copy it again, or leave it out",
            )
        return versions[version]

    def records(self, module: str) -> RecordColumns:
        """Records of POSIX, STDIO or MPI-IO as columns, for sums; raises like `rows`."""
        return RecordColumns(*self.rows(module))

    def parts(self, module: str) -> Iterator[tuple[bool, bytes]]:
        """Pieces of the records of a module without counters: see `record_parts`."""
        if not self.has(module):
            return iter(())
        number = self._number[module]
        growing = self._known(module, GROWING[module], self._versions[number])
        streamed = module in _STREAMED
        pieces = self._file.pieces(number + 2, keep=False) if streamed else iter((self._region(module),))
        return record_parts(self.path, module, growing, self._order, pieces)

    def numbers(self, part: bytes, kind: str = "i8") -> NDArray[Any]:
        """The 8-byte numbers in a part, in this machine's byte order; incomplete trailing bytes are dropped."""
        stored = np.frombuffer(part, f"{self._order}{kind}", len(part) // 8)
        return stored.astype(stored.dtype.newbyteorder("="), copy=False)

    def version_of(self, module: str) -> int:
        """Version of a module's records."""
        return self._versions[self._number[module]]

    def name_of(self, file: int | None) -> str:
        """The path of a file; empty for None. Faster than `names` for one file."""
        table = self._region("the name table")
        at = -1 if file is None else table.find(struct.pack(f"{self._order}Q", file))
        if at < 0:
            return ""
        if self.version < "3.10":
            length = struct.unpack_from(f"{self._order}I", table, at + 8)[0] if at + 12 <= len(table) else 0
            return _text(table[at + 12 : at + 12 + length])
        return _text(table[at + 8 :].split(b"\0", 1)[0])

    def names(self) -> dict[int, str]:
        """The paths of all files, by id, in log order; a file with several names gets the first valid one.

        Raises
        ------
        TraceError
            The table ends inside a name.
        """
        table, at, names = self._region("the name table"), 0, dict[int, str]()
        number, length = struct.Struct(f"{self._order}Q"), struct.Struct(f"{self._order}QI")
        while at < len(table):
            if self.version < "3.10":
                begin = at + length.size
                end = begin + (length.unpack_from(table, at)[1] if begin <= len(table) else 0)
                behind = end
            else:
                begin, end = at + number.size, table.find(b"\0", at + number.size)
                behind = end + 1
            if begin > len(table) or not begin <= end <= len(table):
                raise damaged_log(self.path, "the name table ends inside a name")
            (file,) = number.unpack_from(table, at)
            if not names.get(file):
                names[file] = _text(table[begin:end])
            at = behind
        return names

    def targets(self) -> dict[int, tuple[int, ...]]:
        """The Lustre targets of each file; for a composite layout, those of all its components."""
        region = self._region("LUSTRE")
        numbers = np.frombuffer(region[: len(region) // 8 * 8], f"{self._order}i8").tolist()
        version = self.version_of("LUSTRE") if region else 0
        targets, at = {}, 0
        while version in (1, 2) and at + 7 <= len(numbers):
            if version == 1:
                first, count = at + 7, numbers[at + 6]
            else:
                # Each component has seven numbers and a 16-byte name.
                first, count = at + 4 + 9 * max(0, numbers[at + 2]), numbers[at + 3]
            if not 0 <= count <= _MOST_STRIPES or first + count > len(numbers):
                break
            targets[numbers[at] % (1 << 64)] = tuple(
                {target for target in numbers[first : first + count] if target >= 0}
            )
            at = first + count
        return targets

    def stripes_of(self, file: int | None) -> int | None:
        """Number of Lustre targets of a file; for a composite layout, of its widest component."""
        region = self._region("LUSTRE")
        at = -1 if file is None else region.find(struct.pack(f"{self._order}Q", file))
        if at < 0:
            return None
        numbers = np.frombuffer(region[at : at + (len(region) - at) // 8 * 8], f"{self._order}i8")
        version = self.version_of("LUSTRE")
        if version == 1:
            stripes = int(numbers[6]) if len(numbers) > 6 else 0
        elif version == 2 and len(numbers) >= 4:
            # Each component has seven numbers and a 16-byte name; the second number is its stripe count.
            parts = numbers[4 : 4 + 9 * int(np.clip(numbers[2], 0, 1000))]
            stripes = int(parts[1::9].max()) if len(parts[1::9]) else 0
        else:
            stripes = 0
        return stripes if 0 < stripes <= _MOST_STRIPES else None


def _text(content: bytes) -> str:
    """Text up to the first zero byte; file names may have any encoding."""
    return content.split(b"\0", 1)[0].decode(errors="backslashreplace")
