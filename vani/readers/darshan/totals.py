"""The sums of a log's counters, without PyDarshan: enough to rank many runs, some ten times as fast.

Region by region as in `regions`, then the records of POSIX, STDIO, MPI-IO and Lustre as arrays. Older records have
other counters: a table has the position of each one. `counters` explains their meaning.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.calls import MOST_SUM
from vani.distinct import distinct
from vani.errors import TraceError
from vani.readers.darshan.record_columns import MOST_SECONDS, MPIIO, POSIX, STDIO, RecordColumns, RecordLayout
from vani.readers.darshan.record_ends import damaged_log, module_numbers
from vani.readers.darshan.regions import Header, header_of, inflated

__all__ = ["Log", "Totals", "open_log", "read_totals"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_WIDE = "3.41"
"""Since this version a job's times have nanoseconds, and there are 64 modules."""
_MOST_RANKS = 1 << 24
_LATEST = 1 << 33
"""Seconds after 1970: the year 2242."""
_MOST_STRIPES = 1 << 16
_KEPT = ("POSIX", "STDIO", "MPI-IO", "LUSTRE")
"""Modules whose records are added up, or looked at."""
_BESIDE = ("LUSTRE", "DXT_POSIX", "DXT_MPIIO", "HEATMAP")
"""Modules without counters."""


@dataclass(frozen=True)
class Totals:
    """Sums of a log's counters over files and processes; standard streams are left out.

    Attributes
    ----------
    digest
        SHA-256 of the whole file.
    exe
        The command, as far as the log keeps it; may be empty.
    start_s
        Since 1970.
    slowest_s
        Time in I/O calls of the slowest process. Where a file has one record of all processes, it has the time of
        the slowest one alone: then the least time that fits all records.
    writers
        Processes that wrote; None where a file has one record of all processes.
    file_system, mount
        Type and folder of the one that holds the file with the most I/O time; empty where none is known.
    stripes
        Lustre targets under that file; None where that is not known.
    complete
        No records were dropped while the program ran, and no counter is negative.
    """

    digest: str
    format: str
    uid: int
    job_id: int
    exe: str
    processes: int
    start_s: float
    runtime_s: float
    bytes_read: int
    bytes_written: int
    reads: int
    writes: int
    opens: int
    metadata: int
    collective: int
    independent: int
    files: int
    shared_files: int
    read_s: float
    write_s: float
    metadata_s: float
    slowest_s: float
    writers: int | None
    file_system: str
    mount: str
    stripes: int | None
    complete: bool


def open_log(path: Path) -> Log:
    """Read a log and inflate it.

    Raises
    ------
    UnknownFormatError
        It is no log, or of a version that is not read.
    TraceError
        It is damaged, or claims something impossible.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TraceError(f"cannot be read ({error.strerror})", where=path) from error
    return Log(path, content, header_of(path, content))


def read_totals(log: Log | Path) -> Totals:
    """Add up the counters of a log; raises as `open_log` does."""
    if isinstance(log, Path):
        log = open_log(log)
    path = log.path
    job = log.job()
    moving = [log.records("POSIX", job.processes, POSIX), log.records("STDIO", job.processes, STDIO)]
    through = log.records("MPI-IO", job.processes, MPIIO)
    spent = [module.read_s + module.write_s + module.metadata_s for module in moving]

    def total(*names: str) -> int:
        return _sum(path, [module.count(*names) for module in moving])

    def calls(*kinds: str) -> int:
        return _sum(
            path, [through.count(*(f"{kind}{side}" for kind in kinds for side in ("_reads", "_writes")))]
        )

    opens = max(0, total("opens") - total("filenos", "dups", "fdopens"))
    files, shared = _files(moving, job.processes)
    busiest = _busiest(moving, spent)
    mount, kind = job.mount_of(log.name_of(busiest))
    return Totals(
        digest=log.digest,
        format=log.version,
        uid=job.uid,
        job_id=job.job_id,
        exe=job.exe,
        processes=job.processes,
        start_s=job.start_s,
        runtime_s=job.runtime_s,
        bytes_read=total("bytes_read"),
        bytes_written=total("bytes_written"),
        reads=total("reads"),
        writes=total("writes"),
        opens=opens,
        metadata=opens + total("seeks", "stats", "renames"),
        collective=calls("coll", "split"),
        independent=calls("indep", "nb"),
        files=files,
        shared_files=shared,
        read_s=sum(float(module.read_s.sum()) for module in moving),
        write_s=sum(float(module.write_s.sum()) for module in moving),
        metadata_s=sum(float(module.metadata_s.sum()) for module in moving),
        slowest_s=_slowest(moving, spent, job.processes),
        writers=_writers(moving, job.processes),
        file_system=kind,
        mount=mount,
        stripes=log.stripes_of(busiest),
        complete=not log.lost_counters and not any(module.lost() for module in moving),
    )


@dataclass(frozen=True)
class _Job:
    """The job's own region."""

    uid: int
    job_id: int
    exe: str
    processes: int
    start_s: float
    runtime_s: float
    mounts: tuple[tuple[str, str], ...]
    """Folder and type, longest folders first."""

    def mount_of(self, name: str) -> tuple[str, str]:
        """Folder and type of the file system that a file lies on; empty where none is known."""
        for folder, kind in self.mounts if name.startswith("/") else ():
            if folder in ("/", name) or name.startswith(f"{folder}/"):
                return folder, kind
        return "", ""


class Log:
    """Regions of a log: all are inflated, those with counters are kept."""

    def __init__(self, path: Path, content: bytes, header: Header) -> None:
        self.path, self.version = path, header.version
        self._order = header.order
        self.digest = hashlib.sha256(content).hexdigest()
        wide = header.version >= _WIDE
        self._number, self._versions = module_numbers(header.version), header.versions
        (flags,) = struct.unpack_from(
            f"{self._order}{'Q' if wide else 'I'}", content, 24 if wide else 20
        )
        names = {0: "the job's region", 1: "the name table"}
        names |= {number + 2: name for name, number in self._number.items() if name in _KEPT}
        self._regions = {}
        for number in range(len(header.regions)):
            region = inflated(path, content, header, number, keep=number in names)
            if number in names:
                self._regions[names[number]] = region

        beside = sum(1 << number for name, number in self._number.items() if name in _BESIDE)
        self.lost_counters = bool(flags & ~beside)

    def job(self) -> _Job:
        """The job: user, command and times; raises TraceError where it claims something impossible."""
        region = self._regions["the job's region"]
        numbers = 7 if self.version >= _WIDE else 5
        begin = 8 * numbers + 1024
        if len(region) < begin:
            raise damaged_log(self.path, f"its job has {len(region):,} bytes, and {begin:,} are its least")
        uid, *times, processes, job_id = struct.unpack_from(f"{self._order}{numbers}q", region)
        start, end = (
            (times[0] + times[1] / 1e9, times[2] + times[3] / 1e9) if numbers == 7 else (times[0], times[1])
        )
        if not 0 < processes <= _MOST_RANKS:
            raise damaged_log(self.path, f"it claims {processes:,} processes")
        if not 0 <= start <= _LATEST:
            raise damaged_log(self.path, f"it claims to have begun {start:,.0f} s after 1970")
        if numbers == 5:
            # Whole seconds: the last one has begun.
            end += 1
        if not 0 <= end - start <= MOST_SECONDS:
            raise damaged_log(self.path, f"it claims to have run for {end - start:,.0f} s")
        text = region[begin:].split(b"\0", 1)[0].decode(errors="replace")
        exe, *lines = text.split("\n")
        mounts = [tuple(line.split("\t", 1)) for line in lines if "\t" in line]
        by_length = sorted(((folder, kind) for kind, folder in mounts), key=lambda mount: -len(mount[0]))
        return _Job(uid, job_id, exe, processes, float(start), float(end - start), tuple(by_length))

    def records(self, name: str, processes: int, layouts: Mapping[int, RecordLayout]) -> RecordColumns:
        """The records of a module; raises TraceError where they have another form."""
        region = self._regions.get(name, b"")
        version = self._versions[self._number[name]] if region else max(layouts)
        layout = layouts.get(version)
        if layout is None:
            raise damaged_log(self.path, f"{name} has records of version {version:,}, which is not known")
        columns = RecordColumns(region, layout, self._order)
        if len(columns) and not (int(columns.rank.min()) >= -1 and int(columns.rank.max()) < processes):
            wrong = int(columns.rank.max() if columns.rank.min() >= -1 else columns.rank.min())
            raise damaged_log(self.path, f"{name} has a record of rank {wrong:,} of {processes:,} processes")
        return columns

    def name_of(self, file: int | None) -> str:
        """The path of a file; empty where there is none."""
        table = self._regions["the name table"]
        at = -1 if file is None else table.find(struct.pack(f"{self._order}Q", file))
        if at < 0:
            return ""
        if self.version < "3.10":
            length = struct.unpack_from(f"{self._order}I", table, at + 8)[0] if at + 12 <= len(table) else 0
            return table[at + 12 : at + 12 + length].decode(errors="replace")
        return table[at + 8 :].split(b"\0", 1)[0].decode(errors="replace")

    def names(self) -> dict[int, str]:
        """The paths of all files."""
        if self.version < "3.10":
            return {}
        table, at, names = self._regions["the name table"], 0, {}
        while (end := table.find(b"\0", at + 8)) >= 0:
            (file,) = struct.unpack_from(f"{self._order}Q", table, at)
            names[file] = table[at + 8 : end].decode(errors="replace")
            at = end + 1
        return names

    def targets(self) -> dict[int, tuple[int, ...]]:
        """The Lustre targets of each file; of a composite layout those of all its components."""
        region = self._regions.get("LUSTRE", b"")
        numbers = np.frombuffer(region[: len(region) // 8 * 8], f"{self._order}i8").tolist()
        version = self._versions[self._number["LUSTRE"]]
        targets, at = {}, 0
        while version in (1, 2) and at + 7 <= len(numbers):
            if version == 1:
                first, count = at + 7, numbers[at + 6]
            else:
                # Seven numbers and a name of 16 bytes for each component.
                first, count = at + 4 + 9 * max(0, numbers[at + 2]), numbers[at + 3]
            if not 0 <= count <= _MOST_STRIPES or first + count > len(numbers):
                break
            targets[numbers[at] % (1 << 64)] = tuple(
                {target for target in numbers[first : first + count] if target >= 0}
            )
            at = first + count
        return targets

    def stripes_of(self, file: int | None) -> int | None:
        """Lustre targets under a file: of a composite layout those of its widest component."""
        region = self._regions.get("LUSTRE", b"")
        at = -1 if file is None else region.find(struct.pack(f"{self._order}Q", file))
        if at < 0:
            return None
        numbers = np.frombuffer(region[at : at + (len(region) - at) // 8 * 8], f"{self._order}i8")
        version = self._versions[self._number["LUSTRE"]]
        if version == 1:
            stripes = int(numbers[6]) if len(numbers) > 6 else 0
        elif version == 2 and len(numbers) >= 4:
            # Seven numbers and a name of 16 bytes each; the second number is the count.
            parts = numbers[4 : 4 + 9 * int(np.clip(numbers[2], 0, 1000))]
            stripes = int(parts[1::9].max()) if len(parts[1::9]) else 0
        else:
            stripes = 0
        return stripes if 0 < stripes <= _MOST_STRIPES else None


def _sum(path: Path, parts: list[Ints]) -> int:
    if sum(float(part.astype(np.float64).sum()) for part in parts) >= MOST_SUM:
        raise damaged_log(path, "its counters add up to more than can be counted")
    return sum(int(part.sum()) for part in parts)


def _files(moving: list[RecordColumns], processes: int) -> tuple[int, int]:
    """Files, and how many of them more than one process used."""
    ids = np.concatenate([module.id for module in moving])
    ranks = np.concatenate([module.rank for module in moving])
    files, place = np.unique(ids, return_inverse=True)
    least, most = np.full(len(files), processes), np.full(len(files), -1)
    np.minimum.at(least, place, ranks)
    np.maximum.at(most, place, ranks)
    shared = ((least == -1) | (least < most)) if processes > 1 else np.zeros(len(files), np.bool_)
    return len(files), int(shared.sum())


def _busiest(moving: list[RecordColumns], spent: list[Floats]) -> int | None:
    """The file with the most I/O time; among those without any the first."""
    ids = np.concatenate([module.id for module in moving])
    if not len(ids):
        return None
    files, place = np.unique(ids, return_inverse=True)
    return int(files[np.bincount(place, np.concatenate(spent)).argmax()])


def _slowest(moving: list[RecordColumns], spent: list[Floats], processes: int) -> float:
    if processes == 1:
        return float(sum(part.sum() for part in spent))
    ranks, times = [], []
    for module, part in zip(moving, spent, strict=True):
        rank, slowest = module.slowest
        of_all = module.rank < 0
        # One process cannot have more than the time of all together.
        ranks.append(np.where(of_all, rank, module.rank))
        times.append(np.where(of_all, np.minimum(slowest, part), part))
    rank, seconds = np.concatenate(ranks), np.concatenate(times)
    sound = (rank >= 0) & (rank < processes)
    # Not by rank itself: a log of one record may claim millions of processes.
    _, place = np.unique(rank[sound], return_inverse=True)
    least = np.bincount(place, seconds[sound]).max() if sound.any() else 0.0
    return max(float(least), float(sum(part.sum() for part in spent)) / processes)


def _writers(moving: list[RecordColumns], processes: int) -> int | None:
    writers = []
    for module in moving:
        wrote = module.count("writes") > 0
        if processes > 1 and bool((wrote & (module.rank < 0)).any()):
            return None
        writers.append(module.rank[wrote])
    return len(distinct(np.concatenate(writers)))
