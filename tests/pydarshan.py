"""Records of a log as PyDarshan reads them: the oracle for Vani's own reader.

Only for undamaged logs: PyDarshan ends the interpreter on some damaged ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vani.readers.darshan.records import MODULES, Module, Records

__all__ = ["pydarshan_calls", "pydarshan_records"]

_LONGEST = 4096
"""Length of a command line in bytes, as Darshan stores it."""


def pydarshan_records(path: Path) -> Records:
    """All records; the targets of a file system are unknown."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - an extra of tests

    log = backend.log_open(str(path))
    assert log["handle"], "PyDarshan cannot open it"
    try:
        modules = backend.log_get_modules(log)
        job, names = _job(backend, log), _names(backend, log)
        layouts, targets = _layouts(backend, log) if "LUSTRE" in modules else (None, None)
        hosts, calls = _segments(backend, log, "DXT_POSIX") if "DXT_POSIX" in modules else ([], None)
        return Records(
            version=job["log_ver"],
            exe=_exe(backend, log),
            ranks=job["nprocs"],
            start_s=job["start_time_sec"] + job["start_time_nsec"] / 1e9,
            end_s=job["start_time_sec"] + job["start_time_nsec"] / 1e9 + job["run_time"],
            mounts=tuple(_mounts(backend, log)),
            partial=tuple(sorted(name for name, about in modules.items() if about["partial_flag"])),
            ids=np.array(list(names), np.uint64),
            names=list(names.values()),
            modules={name: _module(backend, log, name) for name in MODULES if name in modules},
            layouts=layouts,
            calls=calls,
            hosts=hosts,
            heat=_heat(backend, log) if "HEATMAP" in modules else None,
            user=job["uid"],
            job_id=job["jobid"],
            metadata=dict(_metadata(backend, log)),
            targets=targets,
        )
    finally:
        backend.log_close(log)


def pydarshan_calls(path: Path, module: str) -> tuple[dict[str, Any], list[str]] | None:
    """Calls and hosts of a DXT module; None if the log has none."""
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - an extra of tests

    log = backend.log_open(str(path))
    try:
        if module not in backend.log_get_modules(log):
            return None
        hosts, calls = _segments(backend, log, module)
        return calls, hosts
    finally:
        backend.log_close(log)


def _module(backend: Any, log: Any, name: str) -> Module:
    # The record must be copied while it exists.
    records = [backend._make_generic_record([record], name, "numpy") for record in _records(backend, log, name)]
    of_file = "file_rec_id" if name in ("H5D", "PNETCDF_VAR") else "id"
    integers, floats = backend.counter_names(name), backend.fcounter_names(name)
    counters = np.array([r["counters"] for r in records], np.int64).reshape(-1, len(integers))
    times = np.array([r["fcounters"] for r in records], np.float64).reshape(-1, len(floats))
    return Module(
        np.array([r[of_file] for r in records], np.uint64),
        np.array([r["rank"] for r in records], np.int64),
        {column: counters[:, i] for i, column in enumerate(integers)},
        {column: times[:, i] for i, column in enumerate(floats)},
        "MPIIO" if name == "MPI-IO" else name,
    )


_SEGMENT = np.dtype([("offset", "i8"), ("length", "i8"), ("start", "f8"), ("end", "f8")])


def _text(backend: Any, text: Any) -> str:
    """Text of the log; names on file systems may have any encoding."""
    decoded: str = backend.ffi.string(text).decode(errors="backslashreplace")
    return decoded


def _job(backend: Any, log: Any) -> dict[str, Any]:
    job, length = backend.ffi.new("struct darshan_job *"), backend.ffi.new("double *")
    if backend.libdutil.darshan_log_get_job(log["handle"], job) < 0:
        raise ValueError("the job's region cannot be read")
    backend.libdutil.darshan_log_get_job_runtime(log["handle"], job[0], length)
    names = ("start_time_sec", "start_time_nsec", "nprocs", "uid", "jobid")
    return {
        "log_ver": _text(backend, backend.ffi.cast("char *", log["handle"])),
        "run_time": length[0],
        **{name: getattr(job[0], name) for name in names},
    }


def _metadata(backend: Any, log: Any) -> list[tuple[str, str]]:
    job = backend.ffi.new("struct darshan_job *")
    if backend.libdutil.darshan_log_get_job(log["handle"], job) < 0:
        return []
    lines = (line.partition("=") for line in _text(backend, job.metadata).split("\n"))
    return [(name.strip(), value.strip()) for name, equals, value in lines if equals]


def _exe(backend: Any, log: Any) -> str:
    text = backend.ffi.new("char[]", _LONGEST)
    backend.libdutil.darshan_log_get_exe(log["handle"], text)
    return _text(backend, text)


def _mounts(backend: Any, log: Any) -> list[tuple[str, str]]:
    mounts, count = backend.ffi.new("struct darshan_mnt_info **"), backend.ffi.new("int *")
    backend.libdutil.darshan_log_get_mounts(log["handle"], mounts, count)
    some = [mounts[0][i] for i in range(count[0])]
    pairs = [(_text(backend, mount.mnt_path), _text(backend, mount.mnt_type)) for mount in some]
    backend.libdutil.darshan_free(mounts[0])
    return pairs


def _names(backend: Any, log: Any) -> dict[int, str]:
    records, count = backend.ffi.new("struct darshan_name_record **"), backend.ffi.new("int *")
    backend.libdutil.darshan_log_get_name_records(log["handle"], records, count)
    names = {}
    for number in range(count[0]):
        names[records[0][number].id] = _text(backend, records[0][number].name)
        backend.libdutil.darshan_free(records[0][number].name)
    backend.libdutil.darshan_free(records[0])
    return names


def _layouts(backend: Any, log: Any) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, np.ndarray[Any, Any]]]:
    """Components of each file's layout, one row each, under the names of their counters; targets of each file."""
    ids, rows = [], []
    on_targets: list[tuple[int, np.ndarray[Any, Any]]] = []
    for record in _records(backend, log, "LUSTRE"):
        if record.num_stripes > 0:
            stripes = backend.ffi.buffer(record.ost_ids, 8 * record.num_stripes)
            on_targets.append((record.base_rec.id, np.unique(np.frombuffer(stripes, np.int64))))
        for number in range(record.num_comps):
            ids.append(record.base_rec.id)
            counters = backend.ffi.buffer(record.comps[number].counters)
            rows.append(np.frombuffer(counters, np.int64).copy())
    names = backend.counter_names("LUSTRE_COMP")
    table = np.array(rows, np.int64).reshape(-1, len(names))
    columns = {name: table[:, i] for i, name in enumerate(names)} | {"id": np.array(ids, np.uint64)}
    with_targets = np.array([id_ for id_, _ in on_targets], np.uint64)
    return columns, {
        "id": np.repeat(with_targets, [len(some) for _, some in on_targets]),
        "target": np.concatenate([np.empty(0, np.int64), *(some for _, some in on_targets)]),
    }


def _segments(backend: Any, log: Any, module: str) -> tuple[list[str], dict[str, np.ndarray[Any, Any]]]:
    """Host names, one per record; records with their counts of writes and reads; calls, writes before reads."""
    hosts, records, calls = [], [], []
    for record in _records(backend, log, module):
        count = record.write_count + record.read_count
        at = backend.ffi.addressof(record)
        begin = backend.ffi.cast("char *", at) + backend.ffi.sizeof("struct dxt_file_record")
        calls.append(
            np.frombuffer(backend.ffi.buffer(begin, count * _SEGMENT.itemsize), _SEGMENT, count).copy()
        )
        hosts.append(backend.ffi.string(record.hostname).decode(errors="replace"))
        records.append((record.base_rec.id, record.base_rec.rank, record.write_count, record.read_count))
    id_, rank, writes, reads = zip(*records, strict=True) if records else ((),) * 4
    together = np.concatenate([np.empty(0, _SEGMENT), *calls])
    return hosts, {
        "id": np.array(id_, np.uint64),
        "rank": np.array(rank, np.int64),
        "writes": np.array(writes, np.int64),
        "reads": np.array(reads, np.int64),
        **{name: together[name] for name in _SEGMENT.names or ()},
    }


def _heat(backend: Any, log: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Bytes in each bin: a row per record, padded with 0."""
    ids, ranks, widths = [], [], []
    reads: list[np.ndarray[Any, Any]] = []
    writes: list[np.ndarray[Any, Any]] = []
    for record in _records(backend, log, "HEATMAP"):
        ids.append(record.base_rec.id)
        ranks.append(record.base_rec.rank)
        widths.append(record.bin_width_seconds)
        for side, bins in ((reads, record.read_bins), (writes, record.write_bins)):
            moved = np.frombuffer(backend.ffi.buffer(bins, 8 * record.nbins), np.int64, record.nbins)
            side.append(moved.copy())
    longest = max((len(bins) for bins in reads), default=0)
    return {
        "id": np.array(ids, np.uint64),
        "rank": np.array(ranks, np.int64),
        "width": np.array(widths, np.float64),
        **{
            name: np.array([np.pad(bins, (0, longest - len(bins))) for bins in side], np.int64)
            for name, side in (("read", reads), ("write", writes))
        },
    }


def _records(backend: Any, log: Any, module: str) -> Iterator[Any]:
    """Records of a module in the library's memory; each is gone when the next one is requested."""
    number, kind = backend.log_get_modules(log)[module]["idx"], backend._structdefs[module]
    while True:
        pointer = backend.ffi.new("void **")
        status = backend.libdutil.darshan_log_get_record(log["handle"], number, pointer)
        if status < 0:
            raise ValueError(f"a record of {module} cannot be read")
        if not status:
            return
        try:
            yield backend.ffi.cast(kind, pointer)[0][0]
        finally:
            backend.libdutil.darshan_free(pointer[0])


