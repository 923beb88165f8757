"""Writes Darshan logs of every version from 3.00 to 3.41 in both byte orders, with records of every version.

It follows the layout of the C structures of each release, and uses none of Vani's code. Numbers are random;
`RandomLog` has the expected result of a reader in the form of the newest records, as `darshan-util` converts them.
"""

from __future__ import annotations

import bz2
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

__all__ = ["VERSIONS", "RandomLog", "random_log"]

_BEFORE_3_20 = ["POSIX", "MPI-IO", "H5F", "PNETCDF_FILE", "BG/Q", "LUSTRE", "STDIO", "DXT_POSIX", "DXT_MPIIO", "MDHIM",
                "APXC", "APMPI", "HEATMAP"]  # fmt: skip
_BEFORE_3_41 = [*_BEFORE_3_20[:3], "H5D", *_BEFORE_3_20[3:]]
_NOW = [*_BEFORE_3_41[:5], "PNETCDF_VAR", *_BEFORE_3_41[5:], "DFS", "DAOS"]
_RECORDS = {
    "3.00": {"POSIX": 1, "MPI-IO": 1, "H5F": 1, "PNETCDF_FILE": 1},
    "3.10": {"POSIX": 3, "MPI-IO": 2, "STDIO": 1, "H5F": 2, "PNETCDF_FILE": 2, "LUSTRE": 1, "DXT_POSIX": 1, "DXT_MPIIO": 1},
    "3.20": {"POSIX": 4, "MPI-IO": 3, "STDIO": 2, "H5F": 3, "H5D": 1, "PNETCDF_FILE": 2, "LUSTRE": 1, "DXT_POSIX": 1,
             "DXT_MPIIO": 2},
    "3.21": {"POSIX": 2, "MPI-IO": 3, "STDIO": 2, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 2, "LUSTRE": 1, "DXT_POSIX": 1,
             "DXT_MPIIO": 2, "HEATMAP": 1},
    "3.41": {"POSIX": 4, "MPI-IO": 3, "STDIO": 2, "H5F": 3, "H5D": 2, "PNETCDF_FILE": 3, "PNETCDF_VAR": 1, "LUSTRE": 2,
             "DXT_POSIX": 2, "DXT_MPIIO": 3, "HEATMAP": 1, "APMPI": 1},
}  # fmt: skip
"""By version of the log; version 2 of POSIX records comes from intermediate releases, which wrote 3.10."""
VERSIONS = tuple(_RECORDS)
_SIZES = {
    "POSIX": {1: (68, 15), 2: (64, 15), 3: (64, 17), 4: (69, 17)},
    "MPI-IO": {1: (51, 15), 2: (51, 15), 3: (51, 17)},
    "STDIO": {1: (13, 15), 2: (14, 15)},
    "H5F": {1: (1, 2), 2: (1, 4), 3: (3, 5)},
    "H5D": {1: (94, 17), 2: (94, 17)},
    "PNETCDF_FILE": {1: (2, 2), 2: (2, 4), 3: (9, 8)},
    "PNETCDF_VAR": {1: (120, 17)},
}
"""Counters and times of each version of records."""
_RANKS = 7

Numbers = list[int]
Times = list[float]


def _posix(version: int, counters: Numbers, times: Times) -> tuple[Numbers, Times]:
    if version == 1:
        counters = counters[:6] + counters[10:]
    if version < 3:
        times = [*times[:3], -1.0, -1.0, *times[3:]]
    if version < 4:
        counters = [counters[0], -1, -1, *counters[1:]]
        counters = [*counters[:10], -1, -1, 0, *counters[10:]]
    return counters, times


def _mpiio(version: int, counters: Numbers, times: Times) -> tuple[Numbers, Times]:
    return counters, times if version == 3 else [*times[:3], -1.0, -1.0, *times[3:]]


def _stdio(version: int, counters: Numbers, times: Times) -> tuple[Numbers, Times]:
    return (counters if version == 2 else [counters[0], -1, *counters[1:]]), times


def _h5f(version: int, counters: Numbers, times: Times) -> tuple[Numbers, Times]:
    if version == 1:
        times = [times[0], -1.0, -1.0, times[1]]
    return (counters, times) if version == 3 else ([counters[0], -1, -1], [*times, -1.0])


def _pnetcdf_file(version: int, counters: Numbers, times: Times) -> tuple[Numbers, Times]:
    if version == 3:
        return counters, times
    if version == 1:
        times = [times[0], -1.0, -1.0, times[1]]
    return [-1, sum(counters), *[-1] * 7], [*times[:2], -1.0, *times[2:], -1.0, -1.0, -1.0]


_LIFT: dict[str, Callable[[int, Numbers, Times], tuple[Numbers, Times]]] = {
    "POSIX": _posix, "MPI-IO": _mpiio, "STDIO": _stdio, "H5F": _h5f, "PNETCDF_FILE": _pnetcdf_file,
}  # fmt: skip


@dataclass
class RandomLog:
    """A log and its content."""

    content: bytes = b""
    exe: str = ""
    start_s: float = 0.0
    runtime_s: float = 0.0
    mounts: list[tuple[str, str]] = field(default_factory=list)
    """Folder and type, longest first."""
    metadata: dict[str, str] = field(default_factory=dict)
    partial: list[str] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    records: dict[str, list[tuple[int, int, Numbers, Times]]] = field(default_factory=dict)
    """By module: id of the file, rank, counters and times in the order of the newest version."""
    mixed: int = 0
    components: list[tuple[int, Numbers]] = field(default_factory=list)
    """Id of a file and the numbers of a component of its layout."""
    targets: set[tuple[int, int]] = field(default_factory=set)
    calls: dict[str, list[tuple[int, int, str, list[tuple[int, int, float, float]], int]]] = field(default_factory=dict)
    """By module of DXT: id, rank, host, calls, and how many of these write."""
    heat: list[tuple[int, int, float, Numbers, Numbers]] = field(default_factory=list)
    """Id, rank, width, bytes read and bytes written."""


def random_log(version: str, order: str, compression: int, seed: int, *, few_bins: bool = True) -> RandomLog:
    """Write a log.

    Parameters
    ----------
    order
        Byte order, as in `struct`.
    compression
        0: zlib, 1: bzip2, 2: none.
    few_bins
        A process has one bin less than others in its heat map, for which `darshan-util` shifts the reads by one
        bin.
    """
    random = np.random.default_rng(seed)
    log = RandomLog(exe=f"/bin/app{seed} -x", mounts=[("/lustre/scratch", "lustre"), ("/home", "nfs"), ("/", "ext4")])
    log.metadata = {"lib_ver": "3.x", "h": "romio_no_indep_rw=true;cb_nodes=4"}
    ids = [int(random.integers(1, 1 << 64, dtype=np.uint64)) for _ in range(9)]
    log.names = {id_: f"/lustre/scratch/out.{number}" for number, id_ in enumerate(ids)}
    log.names[ids[-1]] = "heatmap:POSIX"
    numbers = {name: at + 1 for at, name in enumerate(_NOW if version >= "3.41" else _BEFORE_3_41 if version >= "3.20" else _BEFORE_3_20)}
    regions: dict[str, tuple[int, bytes]] = {}
    for module, of_records in _RECORDS[version].items():
        if module in _SIZES:
            body = _counted(log, random, order, module, of_records, ids)
        elif module == "LUSTRE":
            body = _layouts(log, random, order, of_records, ids)
        elif module.startswith("DXT"):
            body = _calls(log, random, order, module, of_records, ids)
        elif module == "HEATMAP":
            body = _heat(log, random, order, ids[-1], few_bins)
        else:
            body = random.bytes(333)
        regions[module] = (of_records, body)
    log.partial = sorted(str(name) for name in random.choice(list(regions), 2, replace=False))
    flags = sum(1 << numbers[name] for name in log.partial)
    names = b"".join(
        struct.pack(f"{order}QI", id_, len(name)) + name.encode()
        if version == "3.00"
        else struct.pack(f"{order}Q", id_) + name.encode() + b"\0"
        for id_, name in log.names.items()
    )
    log.content = _container(log, version, order, compression, flags, names, {numbers[n]: r for n, r in regions.items()}, random)
    return log


def _container(
    log: RandomLog, version: str, order: str, compression: int, flags: int, names: bytes,
    regions: dict[int, tuple[int, bytes]], random: np.random.Generator,
) -> bytes:  # fmt: skip
    wide = version >= "3.41"
    modules = 64 if wide else 16
    start, length = 1_700_000_000 + int(random.integers(10**6)), int(random.integers(1, 5000))
    if wide:
        at, until = int(random.integers(10**9)), int(random.integers(10**9))
        times = (start, at, start + length, until)
        log.start_s = start + at / 1e9
        log.runtime_s = (start + length + until / 1e9) - log.start_s
    else:
        times = (start, start + length - 1)
        log.start_s, log.runtime_s = float(start), float(length)
    job = struct.pack(f"{order}{3 + len(times)}q", 1234, *times, _RANKS, 77)
    job += "".join(f"{name}={value}\n" for name, value in log.metadata.items()).encode().ljust(1024, b"\0")
    # Mounts may be in any order in the log.
    job += "\n".join([log.exe, *(f"{kind}\t{folder}" for folder, kind in log.mounts[::-1])]).encode() + b"\0"

    def packed(content: bytes) -> bytes:
        cut = len(content) // 3
        # Each process writes its own stream.
        parts = [content[:cut], content[cut:]] if cut else [content]
        pack = {0: zlib.compress, 1: bz2.compress, 2: bytes}[compression]
        return b"".join(pack(part) for part in parts)

    begin = (32 if wide else 24) + 16 * (1 + modules) + 4 * modules
    places, versions, body = [(0, 0)] * (1 + modules), [0] * modules, packed(job)
    for number, (of_records, content) in {-1: (0, names), **regions}.items():
        region = packed(content)
        places[1 + number] = (begin + len(body), len(region))
        body += region
        if number >= 0:
            versions[number] = of_records
    head = version.encode().ljust(8, b"\0") + struct.pack(f"{order}qB{'7xQ' if wide else '3xI'}", 6567223, compression, flags)
    head += b"".join(struct.pack(f"{order}QQ", *place) for place in places)
    return head + struct.pack(f"{order}{modules}I", *versions) + body


def _counted(
    log: RandomLog, random: np.random.Generator, order: str, module: str, version: int, ids: list[int]
) -> bytes:
    integers, floats = _SIZES[module][version]
    part = module in ("H5D", "PNETCDF_VAR")
    names_file = part and (module, version) != ("H5D", 1)
    body, records = b"", []
    for id_ in ids[:-1]:
        rank = int(random.integers(-1, _RANKS))
        counters = random.integers(-1, 1 << 40, integers).tolist()
        times = random.uniform(0, 9, floats).tolist()
        streams = module == "POSIX" and version == 1 and bool(random.integers(2))
        if module == "POSIX" and version == 1:
            counters[6] = int(streams)
        file = ids[int(random.integers(len(ids)))]
        body += struct.pack(f"{order}Qq", id_, rank) + (struct.pack(f"{order}Q", file) if names_file else b"")
        body += struct.pack(f"{order}{integers}q{floats}d", *counters, *times)
        if streams:
            log.mixed += 1
            continue
        lifted = _LIFT[module](version, counters, times) if module in _LIFT else (counters, times)
        records.append((file if names_file else 0 if part else id_, rank, *lifted))
    log.records[module] = records
    return body


def _layouts(log: RandomLog, random: np.random.Generator, order: str, version: int, ids: list[int]) -> bytes:
    body = b""
    for id_ in ids[:4]:
        if version == 1:
            count, size = int(random.integers(1, 6)), 1 << 20
            osts = random.integers(0, 99, count).tolist()
            body += struct.pack(f"{order}Qq5q{count}q", id_, -1, 99, 3, 0, size, count, *osts)
            log.components.append((id_, [size, count, -1, -1, 0, -1, -1]))
        else:
            used = [[1 << 20, 1 + at, 2, 3, at << 30, (at + 1) << 30, at] for at in range(int(random.integers(1, 4)))]
            unused = [[-1, 2, 0, 0, 0, 0, 0]] if random.integers(2) else []
            count = sum(part[1] for part in used)
            osts = random.integers(0, 99, count).tolist()
            more = [-1, -1] if unused else []
            body += struct.pack(f"{order}Qqqq", id_, -1, len(used + unused), count + len(more))
            body += b"".join(struct.pack(f"{order}7q16s", *part, b"pool") for part in used + unused)
            body += struct.pack(f"{order}{count + len(more)}q", *osts, *more)
            log.components += [(id_, part) for part in used]
        log.targets |= {(id_, target) for target in osts}
    return body


def _calls(
    log: RandomLog, random: np.random.Generator, order: str, module: str, version: int, ids: list[int]
) -> bytes:
    with_threads = version > (1 if module == "DXT_POSIX" else 2)
    body, records = b"", []
    for number in range(40):
        writes, reads = (int(n) for n in random.integers(0, 9, 2))
        host = f"node{number}"
        calls = []
        id_, rank = ids[int(random.integers(len(ids)))], int(random.integers(_RANKS))
        body += struct.pack(f"{order}Qqq64sqq", id_, rank, -1, host.encode(), writes, reads)
        for _ in range(writes + reads):
            offset, length = (int(n) for n in random.integers(0, 1 << 40, 2))
            start, end = (float(t) for t in random.uniform(0, 9, 2))
            body += struct.pack(f"{order}qqdd", offset, length, start, end)
            body += struct.pack(f"{order}Q", 140) if with_threads else b""
            calls.append((-1 if (module, version) == ("DXT_MPIIO", 1) else offset, length, start, end))
        records.append((id_, rank, host, calls, writes))
    log.calls[module] = records
    return body


def _heat(log: RandomLog, random: np.random.Generator, order: str, id_: int, few_bins: bool) -> bytes:
    body = b""
    for rank in range(_RANKS):
        # One process has too many, another one too few.
        bins = 20 + (rank == 2) - (few_bins and rank == 4)
        written, read = (random.integers(0, 1 << 30, bins).tolist() for _ in range(2))
        body += struct.pack(f"{order}Qqdqqq{2 * bins}q", id_, rank, 0.5, bins, 0, 0, *written, *read)
        shown = [[*side, 0][:20] for side in (read, written)]
        log.heat.append((id_, rank, 0.5, *shown))
    return body
