"""Writes Darshan logs of format 3.41 from the layout of its C structures, without Vani's code.

The logs are for tests and benchmarks, and checked with PyDarshan (`tests/history/test_generated_month.py`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np

__all__ = ["MPIIO", "POSIX", "STDIO", "Layout", "Log", "Record", "log_bytes", "record_id"]

_MAGIC = 6567223
_MODULES = 64
_BINS = [
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
]
_COMMON = ["FASTEST_RANK", "FASTEST_RANK_BYTES", "SLOWEST_RANK", "SLOWEST_RANK_BYTES"]
_STAMPS = [
    f"F_{what}_{end}_TIMESTAMP" for end in ("START", "END") for what in ("OPEN", "READ", "WRITE", "CLOSE")
]
_STDIO_STAMPS = [
    f"F_{what}_{end}_TIMESTAMP" for end in ("START", "END") for what in ("OPEN", "CLOSE", "WRITE", "READ")
]
_TIMES = ["F_FASTEST_RANK_TIME", "F_SLOWEST_RANK_TIME", "F_VARIANCE_RANK_TIME", "F_VARIANCE_RANK_BYTES"]


def _numbered(name: str) -> list[str]:
    return [name.replace("#", str(number)) for number in range(1, 5)]


@dataclass(frozen=True)
class Module:
    """Number and version of a module's records, and the names of its counters."""

    number: int
    version: int
    counters: tuple[str, ...]
    times: tuple[str, ...]


POSIX = Module(
    1,
    4,
    tuple(
        [
            "OPENS",
            "FILENOS",
            "DUPS",
            "READS",
            "WRITES",
            "SEEKS",
            "STATS",
            "MMAPS",
            "FSYNCS",
            "FDSYNCS",
            "RENAME_SOURCES",
            "RENAME_TARGETS",
            "RENAMED_FROM",
            "MODE",
            "BYTES_READ",
            "BYTES_WRITTEN",
            "MAX_BYTE_READ",
            "MAX_BYTE_WRITTEN",
            "CONSEC_READS",
            "CONSEC_WRITES",
            "SEQ_READS",
            "SEQ_WRITES",
            "RW_SWITCHES",
            "MEM_NOT_ALIGNED",
            "MEM_ALIGNMENT",
            "FILE_NOT_ALIGNED",
            "FILE_ALIGNMENT",
            "MAX_READ_TIME_SIZE",
            "MAX_WRITE_TIME_SIZE",
        ]
        + [f"SIZE_{side}_{one}" for side in ("READ", "WRITE") for one in _BINS]
        + [
            name
            for what in ("STRIDE#_STRIDE", "STRIDE#_COUNT", "ACCESS#_ACCESS", "ACCESS#_COUNT")
            for name in _numbered(what)
        ]
        + _COMMON
    ),
    (*_STAMPS, "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME", *_TIMES),
)
STDIO = Module(
    9,
    2,
    (
        *[
            "OPENS",
            "FDOPENS",
            "READS",
            "WRITES",
            "SEEKS",
            "FLUSHES",
            "BYTES_WRITTEN",
            "BYTES_READ",
            "MAX_BYTE_READ",
            "MAX_BYTE_WRITTEN",
        ],
        *_COMMON,
    ),
    ("F_META_TIME", "F_WRITE_TIME", "F_READ_TIME", *_STDIO_STAMPS, *_TIMES),
)
MPIIO = Module(
    2,
    3,
    tuple(
        [
            "INDEP_OPENS",
            "COLL_OPENS",
            "INDEP_READS",
            "INDEP_WRITES",
            "COLL_READS",
            "COLL_WRITES",
            "SPLIT_READS",
            "SPLIT_WRITES",
            "NB_READS",
            "NB_WRITES",
            "SYNCS",
            "HINTS",
            "VIEWS",
            "MODE",
            "BYTES_READ",
            "BYTES_WRITTEN",
            "RW_SWITCHES",
            "MAX_READ_TIME_SIZE",
            "MAX_WRITE_TIME_SIZE",
        ]
        + [f"SIZE_{side}_AGG_{one}" for side in ("READ", "WRITE") for one in _BINS]
        + [name for what in ("ACCESS#_ACCESS", "ACCESS#_COUNT") for name in _numbered(what)]
        + _COMMON
    ),
    (*_STAMPS, "F_READ_TIME", "F_WRITE_TIME", "F_META_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME", *_TIMES),
)
_LUSTRE = (8, 2)


@dataclass(frozen=True)
class Record:
    """A file as used by one rank, or by all (-1); other counters are 0."""

    module: Module
    path: str
    rank: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class Layout:
    """Stripes of a file, on the targets from `first` on."""

    path: str
    count: int
    size: int
    first: int = 0


@dataclass(frozen=True)
class Log:
    """One run."""

    exe: str
    processes: int
    start_s: int
    runtime_s: float
    uid: int = 1000
    job_id: int = 1
    mounts: Sequence[tuple[str, str]] = (("ext4", "/"), ("lustre", "/scratch"))
    records: Sequence[Record] = ()
    layouts: Sequence[Layout] = field(default=())


def record_id(path: str) -> int:
    """Any hash would do."""
    return int.from_bytes(blake2b(path.encode(), digest_size=8).digest(), "little")


def log_bytes(log: Log, *, level: int = 1) -> bytes:
    """The whole file."""
    names = list(dict.fromkeys([one.path for one in (*log.records, *log.layouts)]))
    table = b"".join(struct.pack("<Q", record_id(name)) + name.encode() + b"\0" for name in names)
    regions: dict[int, tuple[int, bytes]] = {}
    for module in (POSIX, MPIIO, STDIO):
        some = [one for one in log.records if one.module is module]
        if some:
            regions[module.number] = (module.version, b"".join(map(_record, some)))
    if log.layouts:
        regions[_LUSTRE[0]] = (_LUSTRE[1], b"".join(map(_layout, log.layouts)))
    end = log.start_s + log.runtime_s
    job = struct.pack(
        "<7q", log.uid, log.start_s, 0, int(end), round((end - int(end)) * 1e9), log.processes, log.job_id
    ) + b"lib_ver=3.4.4\n".ljust(1024, b"\0")
    told = "\n".join([log.exe, *(f"{kind}\t{folder}" for kind, folder in log.mounts)])
    body = zlib.compress(job + told.encode() + b"\0", level)
    begin = 32 + 16 * (1 + _MODULES) + 4 * _MODULES
    places = [(0, 0)] * (1 + _MODULES)
    versions = [0] * _MODULES
    for place, (version, content) in {-1: (0, table), **regions}.items():
        packed = zlib.compress(content, level)
        places[1 + place] = (begin + len(body), len(packed))
        body += packed
        if place >= 0:
            versions[place] = version
    head = b"3.41\0\0\0\0" + struct.pack("<qB7xQ", _MAGIC, 0, 0)
    head += b"".join(struct.pack("<QQ", *one) for one in places)
    return head + struct.pack(f"<{_MODULES}I", *versions) + body


def _record(one: Record) -> bytes:
    module = one.module
    counters = np.zeros(len(module.counters), "<i8")
    times = np.zeros(len(module.times), "<f8")
    for name, value in one.values.items():
        if name.startswith("F_"):
            times[module.times.index(name)] = value
        else:
            counters[module.counters.index(name)] = int(value)
    return struct.pack("<Qq", record_id(one.path), one.rank) + counters.tobytes() + times.tobytes()


def _layout(one: Layout) -> bytes:
    part = struct.pack("<7q16s", one.size, one.count, 0, 0, 0, -1, 0, b"")
    targets = struct.pack(f"<{one.count}q", *range(one.first, one.first + one.count))
    return struct.pack("<Qqqq", record_id(one.path), -1, 1, one.count) + part + targets
