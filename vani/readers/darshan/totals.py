"""Sums of a log over files and processes, its written files, and times of storage targets: enough to rank runs.

They come from POSIX, STDIO, MPI-IO and Lustre records as arrays. `counters` explains each counter.

These logs are uncompressed, have free space after the records in the last region, and lack the job's end.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from vani.calls import MAX_SUM
from vani.columns import Floats, Ints, distinct
from vani.readers.darshan.log import Log, mount_of, open_log
from vani.readers.darshan.record_layouts import damaged_log
from vani.readers.darshan.records import Module, Records, read_records

_OF_ALL: Final = -1
_STREAMS: Final = np.array([0xCC7A12A8F35A0099, 0xDCEFD8E1E1999787, 0x6473749C774423AF], np.uint64)
"""Ids of the standard streams: hashes of their names."""
_MAX_STRIPES: Final = 1 << 16


def _moving(records: Records) -> list[Module]:
    """The records of POSIX and STDIO, without those of the standard streams."""
    modules = (records.modules[name] for name in ("POSIX", "STDIO") if name in records.modules)
    return [module.where((module.id[:, None] != _STREAMS).all(axis=1)) for module in modules]


def _stripes(records: Records) -> dict[int, int]:
    """Number of Lustre targets of each file; for a composite layout, of its widest component."""
    stripes: dict[int, int] = {}
    if records.layouts is not None:
        columns = (records.layouts[name].tolist() for name in ("id", "LUSTRE_COMP_STRIPE_COUNT"))
        for file, count in zip(*columns, strict=True):
            stripes[file] = max(stripes.get(file, 0), count if count <= _MAX_STRIPES else 0)
    return stripes


@dataclass(frozen=True)
class CreatedFiles:
    """Written files in the order of their first opens; each array has shape (files,).

    Attributes
    ----------
    sizes
        Bytes up to the end of the last byte written.
    ranks
        The process that wrote the file; -1 for several.
    stripes
        Lustre targets; 0 if the log does not record them.
    """

    paths: tuple[str, ...]
    sizes: Ints
    ranks: Ints
    stripes: Ints


def read_created(records: Records) -> CreatedFiles:
    """Files that a run wrote without reading them first; a log does not show whether they existed before."""
    processes = records.ranks
    parts = []
    for module in _moving(records):
        opened, read, wrote = (module.seconds(f"{kind}_START_TIMESTAMP") for kind in ("OPEN", "READ", "WRITE"))
        wrote_bytes = module.count("BYTES_WRITTEN")
        end = np.where(wrote_bytes > 0, module.count("MAX_BYTE_WRITTEN") + 1, 0)
        # Logs of programs that write without seeking may lack the offset of the last byte.
        end = np.where(end > 1, end, wrote_bytes)
        created = (end > 0) & ~((read > 0) & (read < wrote))
        parts.append((module.id[created], module.rank[created], end[created], opened[created]))
    ids, ranks, ends, opened = (np.concatenate(column) for column in zip(*parts, strict=True))
    files, place = np.unique(ids, return_inverse=True)
    size, first = np.zeros(len(files), np.int64), np.full(len(files), np.inf)
    least, most = np.full(len(files), processes), np.full(len(files), _OF_ALL)
    np.maximum.at(size, place, ends)
    np.minimum.at(first, place, opened)
    np.minimum.at(least, place, ranks)
    np.maximum.at(most, place, ranks)
    rank = np.where(least == most, most, _OF_ALL) if processes > 1 else np.zeros(len(files), np.int64)
    order = np.lexsort((files, rank, first))
    names, stripes = dict(zip(records.ids.tolist(), records.names, strict=True)), _stripes(records)
    codes = files[order].tolist()
    return CreatedFiles(
        tuple(names.get(file, "") for file in codes),
        size[order],
        rank[order],
        np.array([stripes.get(file, 0) for file in codes], dtype=np.int64),
    )


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


def read_totals(log: Log | Path, records: Records | None = None) -> Totals:
    """Add up a log's counters; raises like `vani.readers.darshan.log.open_log`.

    Given a path, it reads only the regions that have these counters. `records`: those of `log`, if they are read.
    """
    if isinstance(log, Path):
        log = open_log(log, whole=False)
    path, job = log.path, log.job
    if records is None:
        records = read_records(log, for_sums=True)
    moving, through = _moving(records), records.modules["MPI-IO"]
    read_s, write_s, metadata_s = ([m.seconds(f"{kind}_TIME") for m in moving] for kind in ("READ", "WRITE", "META"))
    spent = [read + write + metadata for read, write, metadata in zip(read_s, write_s, metadata_s, strict=True)]

    def total(*names: str) -> int:
        return _sum(path, [module.count(*names) for module in moving])

    def calls(*kinds: str) -> int:
        return _sum(path, [through.count(*(f"{kind}{side}" for kind in kinds for side in ("_READS", "_WRITES")))])

    opens = max(0, total("OPENS") - total("FILENOS", "DUPS", "FDOPENS"))
    files, shared, busiest = _files(moving, spent, job.processes)
    name = next((name for file, name in zip(records.ids.tolist(), records.names, strict=True) if file == busiest), "")
    mount, kind = mount_of(name, job.mounts)
    lost = any((module.raw(name) < 0).any() for module in moving for name in _COUNTED)
    return Totals(
        digest=log.digest,
        format=log.version,
        **{name: getattr(job, name) for name in ("uid", "job_id", "exe", "processes", "start_s", "runtime_s")},
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
        read_s=sum(float(part.sum()) for part in read_s),
        write_s=sum(float(part.sum()) for part in write_s),
        metadata_s=sum(float(part.sum()) for part in metadata_s),
        slowest_s=_slowest(moving, spent, job.processes),
        writers=_writers(moving, job.processes),
        file_system=kind,
        mount=mount,
        stripes=_stripes(records).get(-1 if busiest is None else busiest) or None,
        complete=not log.lost_counters and not records.mixed and not lost,
    )


_COUNTED: Final = ("OPENS", "READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN")
"""Counters without which sums are incomplete."""


def _sum(path: Path, counts: Sequence[Ints]) -> int:
    # As floats, sums that exceed 64 bits do not wrap.
    if sum(count.sum(dtype=np.float64) for count in counts) >= MAX_SUM:
        raise damaged_log(path, "its counters add up to more than can be counted")
    return sum(int(count.sum()) for count in counts)


def _files(moving: list[Module], spent: list[Floats], processes: int) -> tuple[int, int, int | None]:
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


def _slowest(moving: list[Module], spent: list[Floats], processes: int) -> float:
    if processes == 1:
        return float(sum(part.sum() for part in spent))
    ranks, times = [], []
    for module, part in zip(moving, spent, strict=True):
        rank, slowest = module.raw("SLOWEST_RANK"), module.seconds("SLOWEST_RANK_TIME")
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


def _writers(moving: list[Module], processes: int) -> int | None:
    ranks = np.concatenate([module.rank[module.count("WRITES") > 0] for module in moving])
    return None if processes > 1 and (ranks < 0).any() else len(distinct(ranks))


_MAX_TARGETS: Final = 8
"""Maximum number of targets per file: files on more show little about any one of them (our choice)."""
_MAX_FILES: Final = 100_000
"""Maximum number of files that are looked up."""


def target_times(records: Records, mount: str) -> str | None:
    """The times of files on each target of one file system; None if the log names no targets.

    A file on n targets adds 1/n of its figures to each.

    Returns
    -------
    str or None
        JSON: a list of [target, files, seconds of the slowest process in reads and writes, bytes moved], each a sum.
    """
    modules = _moving(records)
    if records.targets is None or not len(records.targets["id"]) or not modules:
        return None
    spent = []
    for module in modules:
        data, slowest = module.seconds("READ_TIME") + module.seconds("WRITE_TIME"), module.seconds("SLOWEST_RANK_TIME")
        # A record shared by all processes has the time of the slowest one.
        spent.append(np.where((module.rank < 0) & (slowest > 0), np.minimum(slowest, data), data))
    files, place = np.unique(np.concatenate([module.id for module in modules]), return_inverse=True)
    moved = np.concatenate([module.count("BYTES_READ", "BYTES_WRITTEN") for module in modules])
    seconds, size = np.zeros(len(files)), np.bincount(place, moved, len(files))
    np.maximum.at(seconds, place, np.concatenate(spent))
    targets, names = dict[int, list[int]](), dict(zip(records.ids.tolist(), records.names, strict=True))
    for file, target in zip(records.targets["id"].tolist(), records.targets["target"].tolist(), strict=True):
        targets.setdefault(file, []).append(target)
    mounts = sorted(records.mounts, key=lambda entry: -len(entry[0]))
    of_target: dict[int, Floats] = {}
    for number, file in enumerate(files[:_MAX_FILES].tolist()):
        own = targets.get(file, ())
        if not 0 < len(own) <= _MAX_TARGETS or not size[number] or mount_of(names.get(file, ""), mounts)[0] != mount:
            continue
        share = np.array([1.0, seconds[number], size[number]]) / len(own)
        for target in own:
            of_target[target] = of_target.get(target, np.zeros(3)) + share
    rows = [[target, *(round(float(value), 6) for value in of_target[target])] for target in sorted(of_target)]
    return json.dumps(rows, separators=(",", ":")) if rows else None
