"""Sums of a log's counters over files and processes: enough to rank many runs.

They come from POSIX, STDIO, MPI-IO and Lustre records as arrays. `counters` explains each counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vani.calls import MOST_SUM
from vani.distinct import distinct
from vani.readers.darshan.log import Log
from vani.readers.darshan.open import open_log
from vani.readers.darshan.record_columns import RecordColumns
from vani.readers.darshan.record_ends import damaged_log

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Totals:
    """Sums of a log's counters over files and processes, without the standard streams.

    Attributes
    ----------
    digest
        SHA-256 of the whole file.
    exe
        The command as stored in the log, which may cut it off; may be empty.
    start_s
        Start in seconds since 1970.
    slowest_s
        I/O time of the slowest process. A file with one record for all processes only has the time of its slowest one:
        the result is then the least time that fits all records.
    writers
        Processes that wrote; None if a file has one record for all processes.
    file_system, mount
        Type and folder of the file system with the file of most I/O time; empty if unknown.
    stripes
        Lustre targets of that file; None if unknown.
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


def read_totals(log: Log | Path) -> Totals:
    """Add up a log's counters; raises like `vani.readers.darshan.open.open_log`.

    Given a path, it reads only the regions that have these counters.
    """
    if isinstance(log, Path):
        log = open_log(log, whole=False)
    path, job = log.path, log.job
    moving = [log.records("POSIX"), log.records("STDIO")]
    through = log.records("MPI-IO")
    spent = [module.read_s + module.write_s + module.metadata_s for module in moving]

    def total(*names: str) -> int:
        return _sum(path, [module.total(*names) for module in moving])

    def calls(*kinds: str) -> int:
        return _sum(
            path, [through.total(*(f"{kind}{side}" for kind in kinds for side in ("_READS", "_WRITES")))]
        )

    opens = max(0, total("OPENS") - total("FILENOS", "DUPS", "FDOPENS"))
    files, shared, busiest = _files(moving, spent, job.processes)
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
        bytes_read=total("BYTES_READ"),
        bytes_written=total("BYTES_WRITTEN"),
        reads=total("READS"),
        writes=total("WRITES"),
        opens=opens,
        metadata=opens + total("SEEKS", "STATS", "RENAME_SOURCES"),
        collective=calls("COLL", "SPLIT"),
        independent=calls("INDEP", "NB"),
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
        complete=not log.lost_counters and not log.mixed() and not any(module.lost() for module in moving),
    )


def _sum(path: Path, parts: list[tuple[int, float]]) -> int:
    if sum(rough for _, rough in parts) >= MOST_SUM:
        raise damaged_log(path, "its counters add up to more than can be counted")
    return sum(exact for exact, _ in parts)


def _files(moving: list[RecordColumns], spent: list[Floats], processes: int) -> tuple[int, int, int | None]:
    """File count, shared file count, and the index of the file with most I/O time (the first if none has any)."""
    ids = np.concatenate([module.id for module in moving])
    if not len(ids):
        return 0, 0, None
    ranks = np.concatenate([module.rank for module in moving])
    files, place = np.unique(ids, return_inverse=True)
    least, most = np.full(len(files), processes), np.full(len(files), -1)
    np.minimum.at(least, place, ranks)
    np.maximum.at(most, place, ranks)
    shared = int(((least == -1) | (least < most)).sum()) if processes > 1 else 0
    return len(files), shared, int(files[np.bincount(place, np.concatenate(spent)).argmax()])


def _slowest(moving: list[RecordColumns], spent: list[Floats], processes: int) -> float:
    if processes == 1:
        return float(sum(part.sum() for part in spent))
    ranks, times = [], []
    for module, part in zip(moving, spent, strict=True):
        rank, slowest = module.slowest
        of_all = module.rank < 0
        # One process cannot spend more time than all of them together.
        ranks.append(np.where(of_all, rank, module.rank))
        times.append(np.where(of_all, np.minimum(slowest, part), part))
    rank, seconds = np.concatenate(ranks), np.concatenate(times)
    sound = (rank >= 0) & (rank < processes)
    # Not indexed by rank: a log with a single record may claim millions of processes.
    _, place = np.unique(rank[sound], return_inverse=True)
    least = np.bincount(place, seconds[sound]).max() if sound.any() else 0.0
    return max(float(least), float(sum(part.sum() for part in spent)) / processes)


def _writers(moving: list[RecordColumns], processes: int) -> int | None:
    writers = []
    for module in moving:
        wrote = module.count("WRITES") > 0
        if processes > 1 and bool((wrote & (module.rank < 0)).any()):
            return None
        writers.append(module.rank[wrote])
    return len(distinct(np.concatenate(writers)))
