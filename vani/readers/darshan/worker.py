"""Reads logs with PyDarshan, in a process of its own: `python -m vani.readers.darshan.worker IN OUT`.

PyDarshan ends the interpreter on some damaged logs. The names of logs come through the pipe IN; for each, OUT gets
JSON (a dictionary with `error`, or with the content of the log) and, if there was no error, arrays in numpy's format.
"""

from __future__ import annotations

import io
import json
import resource
import sys
from collections.abc import Iterator
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

__all__ = ["MODULES", "main"]

MODULES = ("POSIX", "STDIO", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
"""Modules whose records are counters."""
_MOST_MEMORY = 8 << 30
_LONGEST = 4096
"""Bytes of a command line, as Darshan keeps it."""


def main(incoming: int, outgoing: int) -> None:
    """Answer until the pipe is closed."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    names, answers = Connection(incoming, writable=False), Connection(outgoing, readable=False)
    while True:
        try:
            path = names.recv_bytes().decode(errors="surrogateescape")
        except EOFError:
            return
        try:
            answer, arrays = _read(path)
        except Exception as error:
            answers.send_bytes(json.dumps({"error": f"{type(error).__name__}: {error}"}).encode())
            continue
        answers.send_bytes(json.dumps(answer).encode())
        answers.send_bytes(arrays)


def _read(path: str) -> tuple[dict[str, Any], bytes]:
    from darshan.backend import cffi_backend as backend  # noqa: PLC0415 - slow

    log = backend.log_open(path)
    if not log["handle"]:
        raise ValueError("PyDarshan cannot open it")
    try:
        modules = backend.log_get_modules(log)
        answer: dict[str, Any] = {
            "job": _job(backend, log),
            "metadata": _metadata(backend, log),
            "exe": _exe(backend, log),
            "mounts": _mounts(backend, log),
            "partial": sorted(name for name, about in modules.items() if about["partial_flag"]),
            "modules": sorted(modules),
            "counters": {},
        }
        names = _names(backend, log)
        answer["names"] = list(names.values())
        arrays = {"ids": np.array(list(names), np.uint64)}
        for module in MODULES:
            if module not in modules:
                continue
            # The record is copied while it exists.
            records = [
                backend._make_generic_record([record], module, "numpy")
                for record in _records(backend, log, module)
            ]
            if modules[module]["len"] and not records:
                raise ValueError(f"{module} holds no whole record")
            answer["counters"][module] = [backend.counter_names(module), backend.fcounter_names(module)]
            of_file = "file_rec_id" if module in ("H5D", "PNETCDF_VAR") else "id"
            arrays |= {
                f"{module}.id": np.array([r[of_file] for r in records], np.uint64),
                f"{module}.rank": np.array([r["rank"] for r in records], np.int64),
                f"{module}.counters": np.array([r["counters"] for r in records], np.int64),
                f"{module}.fcounters": np.array([r["fcounters"] for r in records], np.float64),
            }
        arrays |= _layouts(backend, log) if "LUSTRE" in modules else {}
        if "DXT_POSIX" in modules:
            hosts, segments = _segments(backend, log)
            answer["hosts"] = hosts
            arrays |= segments
        arrays |= _heat(backend, log) if "HEATMAP" in modules else {}
    finally:
        backend.log_close(log)
    packed = io.BytesIO()
    np.savez(packed, allow_pickle=False, **arrays)
    return answer, packed.getvalue()


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


def _layouts(backend: Any, log: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Components of the layout of each file, a row each, under the names of their counters."""
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
    columns = {f"LUSTRE.{name}": table[:, i] for i, name in enumerate(names)}
    return columns | {
        "LUSTRE.id": np.array(ids, np.uint64),
        "TARGETS.id": np.repeat(
            np.array([id_ for id_, _ in on_targets], np.uint64), [len(some) for _, some in on_targets]
        ),
        "TARGETS.target": np.concatenate([np.empty(0, np.int64), *(some for _, some in on_targets)]),
    }


def _segments(backend: Any, log: Any) -> tuple[list[str], dict[str, np.ndarray[Any, Any]]]:
    """Names of hosts, a record each; records with their counts of writes and reads; calls, writes before reads."""
    hosts, records, calls = [], [], []
    for record in _records(backend, log, "DXT_POSIX"):
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
        "DXT.id": np.array(id_, np.uint64),
        "DXT.rank": np.array(rank, np.int64),
        "DXT.writes": np.array(writes, np.int64),
        "DXT.reads": np.array(reads, np.int64),
        **{f"DXT.{name}": together[name] for name in _SEGMENT.names or ()},
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
        "HEATMAP.id": np.array(ids, np.uint64),
        "HEATMAP.rank": np.array(ranks, np.int64),
        "HEATMAP.width": np.array(widths, np.float64),
        **{
            f"HEATMAP.{name}": np.array([np.pad(bins, (0, longest - len(bins))) for bins in side], np.int64)
            for name, side in (("read", reads), ("write", writes))
        },
    }


def _records(backend: Any, log: Any, module: str) -> Iterator[Any]:
    """Records of a module in the library's memory: each is gone when the next is asked for."""
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


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
