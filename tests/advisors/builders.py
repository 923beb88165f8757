"""Profiles and systems with good defaults, so that a test states only what matters to it."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

import numpy as np

from vani.analyzers.entities.files import size_distribution
from vani.schema.profile import Profile
from vani.schema.system import System
from vani.units import MiB


def io_stats(
    *,
    read: int | None = 0,
    written: int | None = 0,
    footprint_read: int | None = -1,
    footprint_written: int | None = -1,
    transfer: int = MiB,
    time_s: float = 0.0,
    busy_s: float | None = None,
    metadata_s: float = 0.0,
    metadata_ops: int = 0,
    metadata_kinds: dict[str, Sequence[float]] | None = None,
    sync_s: float = 0.0,
    sync_ops: int = 0,
    past_end: int | None = None,
    consecutive: float | None = 1.0,
    strided: float = 0.0,
    random: float = 0.0,
) -> dict[str, Any]:
    """An IOSTATS block. Times: `time_s` is data time summed over processes, in the direction of the bytes.

    A footprint of -1 means that each byte is touched once. `metadata_kinds` maps kinds to calls and seconds; the
    others are 0.
    """
    reads, writes = (read or 0) // transfer, (written or 0) // transfer
    whole = max(1, (read or 0) + (written or 0))
    share = (read or 0) / whole
    busy = time_s if busy_s is None else busy_s

    def kinds(data: float, metadata: float, sync: float, total: float) -> dict[str, float]:
        return {
            "read": data * share,
            "write": data * (1 - share),
            "metadata": metadata,
            "sync": sync,
            "total": total,
        }

    def sizes(count: int) -> dict[str, Any] | None:
        if not count:
            return None
        same = dict.fromkeys(("min", "p50", "p90", "max"), transfer)
        return same | {"common": [[transfer, count]], "histogram": {}}

    pattern = None
    if consecutive is not None:
        rest = 1.0 - consecutive - strided - random
        pattern = {"consecutive": consecutive, "sequential": rest, "strided": strided, "random": random}
    return {
        "bytes": {
            "read": read,
            "written": written,
            "total": None if read is None or written is None else read + written,
        },
        "footprint": {
            "read": read if footprint_read == -1 else footprint_read,
            "written": written if footprint_written == -1 else footprint_written,
        },
        "past_end": {"read": past_end},
        "ops": {"read": reads, "write": writes, "metadata": metadata_ops, "sync": sync_ops},
        "time_s": kinds(time_s, metadata_s, sync_s, time_s + metadata_s + sync_s),
        "busy_s": kinds(busy, min(metadata_s, busy), min(sync_s, busy), busy),
        "ops_share": None,
        "time_share": None,
        "bandwidth": {"read": None, "write": None},
        "transfer_size": {"read": sizes(reads), "write": sizes(writes)},
        "access_pattern": pattern,
        "metadata_kinds": None
        if metadata_kinds is None
        else {name: _cost(*metadata_kinds.get(name, (0, 0.0))) for name in METADATA_KINDS},
    }


METADATA_KINDS = ("open", "close", "stat", "seek", "directory", "remove", "other")


def _cost(count: float, time_s: float) -> dict[str, float]:
    return {"count": int(count), "time_s": time_s}


def shared(path: str = "/lustre/run/out.h5", **settings: Any) -> dict[str, Any]:
    """A file of several processes, all of which do the same to it."""
    return file(path, **({"processes": 8} | settings))


def file(
    path: str = "/lustre/run/out.0",
    *,
    processes: int = 1,
    readers: int | None = None,
    writers: int | None = None,
    opens: int | None = None,
    size: int | None = None,
    role: str | None = None,
    stride: int | None = None,
    first_s: float = 0.0,
    last_s: float | None = None,
    apps: Sequence[str] = ("ior",),
    interface: str = "posix",
    format: str = "bin",
    asked: dict[str, int] | None = None,
    callers: int | None = None,
    **io: Any,
) -> dict[str, Any]:
    """A file of the data set; further settings are those of `io_stats`.

    `asked`: bytes `read` and `written` that are requested of its library, by default those that move. `callers`: processes
    that call the library, by default those that use the file.
    """
    stats = io_stats(**io)
    reads, writes = io.get("read", 0) != 0, io.get("written", 0) != 0
    return {
        "path": path,
        "format": format,
        "size": size,
        "role": role or ("input" if reads and not writes else "output"),
        "access": "shared" if processes > 1 else "file_per_process",
        "processes": processes,
        "readers": (processes if reads else 0) if readers is None else readers,
        "writers": (processes if writes else 0) if writers is None else writers,
        "opens": processes if opens is None else opens,
        "interface": interface,
        "stride": stride,
        "apps": list(apps),
        "asked": asked or {},
        "callers": processes if callers is None else callers,
        "io": stats,
        "first_s": first_s,
        "last_s": first_s + stats["busy_s"]["total"] if last_s is None else last_s,
    }


def profile(
    files: Sequence[dict[str, Any]] = (),
    *,
    processes: int = 8,
    runtime_s: float = 100.0,
    slowest_s: float | None = 50.0,
    busy_s: float = 60.0,
    calls_s: float | None = None,
    nodes: int | None = None,
    file_system: str | None = None,
    directory: str | None = None,
    provenance: dict[str, str] | None = None,
    app: str = "ior",
    interfaces: Sequence[dict[str, Any]] | None = (),
    phases: Sequence[dict[str, Any]] = (),
    functions: dict[str, int] | None = None,
    folders: Sequence[dict[str, Any]] | None = None,
    patterns: Sequence[dict[str, Any]] | None = None,
    accesses: Sequence[dict[str, Any]] = (),
    change: dict[str, Any] | None = None,
) -> Profile:
    """A run of one app that spends half of its time in I/O.

    `interfaces` and `phases` contain settings of the functions with these names, `functions` the calls of its one
    trace. `calls_s` is the slowest process's time in MPI-IO calls, of which `slowest_s` are in file-system calls;
    None: no library is called. `folders` are settings of `folder`, by default the folders of the files. `accesses` are
    settings of `access` for all files together, by default those of the files. `change` finally sets values by path (`apps[0].balance.slowest_rank`).
    """
    shares = {one.get("layer", "mpiio"): one.get("collective_share") for one in interfaces or ()}
    of_files = [row for one in files for row in accesses_of(one, shares)]
    files = [{name: value for name, value in one.items() if name not in ("asked", "callers")} for one in files]
    # The operations on the files are a part of all operations.
    whole = sum(one["io"]["time_s"]["total"] or 0.0 for one in files)
    io = io_stats(time_s=max(busy_s * processes / 2, whole), busy_s=busy_s)
    # At any moment some process reads and another one writes.
    io["busy_s"] |= {"read": busy_s, "write": busy_s}
    for kind in ("sync", "metadata"):
        own = [one["io"]["busy_s"][kind] or 0.0 for one in files]
        io["busy_s"][kind] = max([io["busy_s"][kind] or 0.0, *own])
    counts = {"total": len(files), "shared": 0, "file_per_process": 0}
    balance = None
    if slowest_s is not None:
        balance = {
            "slowest_rank": 3,
            "slowest_io_time_s": slowest_s,
            "slowest_call_rank": 3,
            "slowest_call_time_s": slowest_s if calls_s is None else calls_s,
            "mean_io_time_s": 0.9 * slowest_s,
            "median_io_time_s": 0.9 * slowest_s,
            "busiest_rank": 3,
            "busiest_bytes": 0,
            "mean_bytes": 0.0,
            "reading_processes": 0,
            "writing_processes": 0,
        }
    libraries = {}
    if calls_s is not None:
        total = calls_s * processes
        libraries = {"mpiio": {"total": total, "outside_file_system": total * 0.9, "slowest": calls_s}}
    share = busy_s / runtime_s if runtime_s else None
    slowest_share = slowest_s / runtime_s if runtime_s and slowest_s is not None else None
    tree = {
        "schema": "vani.profile/4",
        "generator": {"name": "vani", "version": "0"},
        "traces": [] if functions is None else [trace(functions, app, processes)],
        "job": {
            "nodes": nodes,
            "cpu_cores_per_node": None,
            "gpus_per_node": None,
            "node_local_bb_dirs": None,
            "shared_bb_dirs": None,
            "pfs_dirs": None,
            "time_limit_s": None,
            "scheduler": None,
        },
        "workflow": {
            "apps": 1,
            "processes": processes,
            "cpu_cores_used_per_node": None,
            "gpus_used_per_node": None,
            "runtime_s": runtime_s,
            "io": io,
            "files": counts,
            "app_dependencies": [],
            "io_time_share": None if share is None else min(1.0, share),
            "io_time_share_slowest": None if slowest_share is None else min(1.0, slowest_share),
            "library_time_s": libraries,
        },
        "apps": [
            {
                "name": app,
                "instances": 1,
                "processes": processes,
                "runtime_s": runtime_s,
                "interface": "posix",
                "io": io,
                "files": counts,
                "process_dependencies": {"edges": 0, "files": 0, "pattern": "none"},
                "balance": balance,
                "io_time_share": None if share is None else min(1.0, share),
                "phase_gap_s": None,
                "library_time_s": libraries,
            }
        ],
        "phases": [
            phase(index, **({"processes": processes, "app": app} | one)) for index, one in enumerate(phases)
        ],
        "interfaces": None
        if interfaces is None
        else [interface(**({"app": app} | one)) for one in interfaces],
        "middleware": {"extra_cores_per_node": None, "memory_per_node": None, "libraries": []},
        "storage": {
            "node_local": {
                "dir": None,
                "capacity_per_node": None,
                "parallel_ops": None,
                "max_bandwidth_per_node": None,
            },
            "shared": {
                "type": file_system,
                "dir": directory,
                "parallel_servers": None,
                "capacity": None,
                "max_bandwidth": None,
            },
        },
        "dataset": {
            "format": {},
            "size": None,
            "files": len(files),
            "io": io,
            "roles": {},
            "size_distribution": {
                "known": 0,
                "min": None,
                "p50": None,
                "p90": None,
                "max": None,
                "histogram": {},
            },
        },
        "folders": folders_of(files, processes) if folders is None else [folder(**one) for one in folders],
        "patterns": None if patterns is None else [name_pattern(**settings) for settings in patterns],
        "files": files,
        "accesses": [*([access(**one) for one in accesses] or in_all(of_files)), *of_files],
        "excluded": {"files": 0, "io": io_stats()},
        "provenance": provenance or {},
    }
    for path, value in (change or {}).items():
        put(tree, path, value)
    return Profile.model_validate(tree)


_FILE_SYSTEM = ("posix", "stdio")


def access(
    layer: str = "mpiio",
    *,
    file: str | None = None,
    direction: str = "write",
    bytes: int | None = 0,
    collective: int | None = None,
    calls: int = 1,
    processes: int | None = 8,
    time_s: float | None = None,
) -> dict[str, Any]:
    """A row of the table of accesses; of all files by default."""
    unknown = ("bytes_by_size", "time_by_size", "bytes_misaligned", "bytes_sequential")
    return dict.fromkeys(unknown) | {
        "file": file,
        "direction": direction,
        "layer": layer,
        "calls": calls,
        "bytes": None if bytes is None else int(bytes),
        "time_s": time_s,
        "processes": processes,
        "bytes_collective": None if collective is None else int(collective),
    }


def accesses_of(one: dict[str, Any], shares: dict[str, float | None]) -> list[dict[str, Any]]:
    """Rows for a file: its own layer, MPI-IO where the run uses it, and the file system; `shares`: collective ones."""
    layers = [one["interface"]]
    if layers[0] not in _FILE_SYSTEM:
        layers += ["mpiio"] * ("mpiio" in shares and layers[0] != "mpiio") + ["posix"]
    rows = []
    for direction, done, users in (("read", "read", "readers"), ("write", "written", "writers")):
        moved, calls = one["io"]["bytes"][done], one["io"]["ops"][direction]
        for layer in layers:
            is_library, share = layer not in _FILE_SYSTEM, shares.get(layer)
            wanted = one["asked"].get(done, moved) if is_library else moved
            if wanted == 0 and (is_library or not calls):
                continue
            rows.append(
                access(
                    layer,
                    file=one["path"],
                    direction=direction,
                    bytes=wanted,
                    collective=None if share is None or wanted is None else round(share * wanted),
                    calls=calls,
                    processes=one["callers"] if is_library else one[users] or None,
                    time_s=one["io"]["time_s"][direction],
                )
            )
    return rows


def in_all(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of all files together."""
    kinds = {(row["layer"], row["direction"]): [] for row in rows}
    for row in rows:
        kinds[row["layer"], row["direction"]].append(row)
    return [
        some[0] | {"file": None} | {
            name: None if None in (values := [row[name] for row in some]) else sum(values)
            for name in ("bytes", "bytes_collective", "calls", "time_s")
        }
        for some in kinds.values()
    ]  # fmt: skip


def folder(
    path: str = "/lustre/d",
    *,
    files: int = 1,
    creates: int | None = None,
    removes: int | None = 0,
    opens: int | None = None,
    makers: int | None = 1,
    read: int | None = 0,
    written: int | None = 0,
    metadata_s: float | None = 0.0,
    time_s: float | None = None,
    sizes: Sequence[int] | None = (),
) -> dict[str, Any]:
    """A folder; `sizes` are the known sizes of its files, where a single number stands for all."""
    if sizes is not None:
        sizes = list(sizes) * files if len(sizes) == 1 else sizes
    return {
        "path": path,
        "files": files,
        "creates": files if creates is None else creates,
        "entries": files,
        "bytes": {
            "read": read,
            "written": written,
            "total": None if read is None or written is None else read + written,
        },
        "metadata_time_s": metadata_s,
        "time_s": metadata_s if time_s is None else time_s,
        "opens": files if opens is None else opens,
        "removes": removes,
        "makers": makers,
        "sizes": None if sizes is None else size_distribution(np.array(sizes, np.int64)).model_dump(),
    }


def name_pattern(
    pattern: str,
    *,
    files: int = 1,
    read: int | None = 0,
    written: int | None = 0,
    time_s: float | None = 0.0,
    metadata_s: float | None = 0.0,
    processes: int | None = 1,
    opens: int | None = None,
    size: int | None = None,
) -> dict[str, Any]:
    """A name pattern whose files are opened once, and read or written in one call each."""
    return {
        "pattern": pattern,
        "files": files,
        "bytes": {"read": read, "written": written, "total": (read or 0) + (written or 0)},
        "time_s": time_s,
        "metadata_time_s": metadata_s,
        "processes": processes,
        "writers": processes if written else 0,
        "shared": files if (processes or 0) > 1 else 0,
        "reads": files if read else 0,
        "writes": files if written else 0,
        "opens": files if opens is None else opens,
        "size": size,
    }


def folders_of(files: Sequence[dict[str, Any]], processes: int) -> list[dict[str, Any]]:
    """The folders of some files, whose private files are created by processes in turn."""
    inside: dict[str, list[dict[str, Any]]] = {}
    for one in files:
        inside.setdefault(posixpath.dirname(one["path"]) or ".", []).append(one)

    def size(one: dict[str, Any]) -> int | None:
        return one["size"] if one["size"] is not None else one["io"]["footprint"]["written"]

    found = []
    for path, some in inside.items():
        made = [one for one in some if one["role"] != "input" and one["writers"]]
        found.append(
            folder(
                path,
                files=len(some),
                creates=len(made),
                removes=sum(one["role"] == "temporary" for one in some),
                opens=sum(one["opens"] for one in some),
                makers=min(processes, sum(one["processes"] for one in made)),
                read=sum(one["io"]["bytes"]["read"] or 0 for one in some),
                written=sum(one["io"]["bytes"]["written"] or 0 for one in some),
                metadata_s=sum(one["io"]["time_s"]["metadata"] or 0 for one in some),
                time_s=sum(one["io"]["time_s"]["total"] or 0 for one in some),
                sizes=[known for one in made if (known := size(one)) is not None],
            )
        )
    return found


def put(tree: Any, path: str, value: Any) -> None:
    """Set `a[0].b` in a tree of dicts and lists."""
    *folders, last = path.replace("[", ".").replace("]", "").split(".")
    for name in folders:
        tree = tree[int(name)] if isinstance(tree, list) else tree[name]
    tree[last] = value


def interface(
    layer: str = "mpiio",
    *,
    app: str = "ior",
    data: int | None = MiB,
    metadata: int | None = None,
    access_pattern: str | None = "consecutive",
    dims: int | None = None,
    chunked: bool | None = None,
    collective_share: float | None = None,
    transfer: str | None = None,
    hints: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A layer in use."""
    return {
        "layer": layer,
        "app": app,
        "granularity": {"data": data, "metadata": metadata},
        "access_pattern": access_pattern,
        "data_representation": {"dims": dims, "chunked": chunked},
        "calls": 0,
        "bytes": {"read": None, "written": None, "total": None},
        "files": 1,
        "time_s": 0.0,
        "collective_share": collective_share,
        "transfer": transfer,
        # Cases contain numbers for hints that are text.
        "hints": hints and {k: v if isinstance(v, str) else f"{v:.0f}" for k, v in hints.items()},
    }


def phase(
    index: int,
    *,
    app: str,
    processes: int,
    start_s: float = 0.0,
    end_s: float = 1.0,
    kind: str = "write",
    frequency: str = "bulk",
    **io: Any,
) -> dict[str, Any]:
    """A phase; further settings are those of `io_stats`."""
    return {
        "app": app,
        "index": index,
        "start_s": start_s,
        "end_s": end_s,
        "runtime_s": end_s - start_s,
        "kind": kind,
        "processes": processes,
        "io": io_stats(**io),
        "frequency": {"kind": frequency, "ops_per_process": 1.0, "size": None},
    }


def trace(functions: dict[str, int], app: str, ranks: int) -> dict[str, Any]:
    """A complete trace of an app."""
    return {
        "path": f"/traces/{app}",
        "tool": "recorder",
        "format": "3.0",
        "app": app,
        "ranks": ranks,
        "records": sum(functions.values()),
        "functions": functions,
        "complete": True,
        "problems": [],
    }


def system(
    file_system: str | None = "lustre",
    *,
    mount: str | None = "/lustre",
    targets: int | None = 48,
    target_rate: float | None = 500e6,
    max_rate: float | None = None,
    stripe_count: int | None = 1,
    stripe_size: int | None = MiB,
    node_local: str | None = None,
    generic: bool = False,
    change: dict[str, Any] | None = None,
    **more: Any,
) -> System:
    """A machine with one file system, or none for `file_system=None`; further keys belong to the file system.

    `change` finally sets values by path (`forwarding.choices`).
    """
    disks = []
    if file_system is not None:
        disks.append(
            {
                "name": "scratch",
                "type": file_system,
                "mounts": [mount] if mount else [],
                "targets": targets,
                "bandwidth_per_target": {"read": target_rate, "write": target_rate},
                "max_bandwidth": {"read": max_rate, "write": max_rate},
                "stripe_count": stripe_count,
                "stripe_size": stripe_size,
            }
            | more
        )
    near = [{"name": "shm", "kind": "node_local", "type": "tmpfs", "dir": node_local}] if node_local else []
    tree: dict[str, Any] = {
        "name": "testbed",
        "generic": generic,
        "compute": {},
        "file_systems": disks,
        "burst_buffers": near,
    }
    for path, value in (change or {}).items():
        put(tree, path, value)
    return System.model_validate(tree)
