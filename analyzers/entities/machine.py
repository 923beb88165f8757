"""Job, middleware and storage (tables II, VII, VIII, IX): facts that a trace cannot contain.

They come from job.yaml (`vani collect`) and system.yaml; values in neither are null, and provenance states that. So do
the file systems that the run used, unless its trace names them.
"""

from __future__ import annotations

import posixpath
import shlex
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from vani.analyzers.entities.interfaces import middleware_access
from vani.analyzers.entities.view import Notes, View
from vani.calls import FileClass
from vani.schema.memory_file_systems import IN_MEMORY
from vani.schema.profile import (
    JobEntity,
    Middleware,
    Mount,
    NodeLocalStorage,
    SharedStorage,
    Storage,
    TargetUse,
)

if TYPE_CHECKING:
    from vani.analyzers.measurements import TraceFacts
    from vani.counts import JobFacts
    from vani.schema.system import BurstBuffer, FileSystem, System



NOT_A_KIND: Final = ("autofs", "dvs", "rootfs")
"""Types of mounts that point to file systems of other types."""
_SLOWEST: Final = 10
"""Maximum number of targets that a profile lists individually."""
_KEY: Final = "storage.mounts"
_BY_TABLE: Final = "the mount table of the logs, which has room for some mounts alone, and of these no /"
_NO_TABLE: Final = "the trace has no mount table: pass job.yaml of `vani collect` with --job"

Codes = NDArray[np.int64]


def mount_above(path: str, table: list[tuple[str, str]]) -> tuple[str, str] | None:
    """Folder and type of the mount in a mount table that contains a path; None if only / does."""
    containing = [
        (folder, kind)
        for folder, kind in table
        if folder != "/" and f"{path}/".startswith(f"{folder.rstrip('/')}/") and kind not in NOT_A_KIND
    ]
    return max(containing, key=lambda mount: len(mount[0]), default=None)


def mounts(view: View) -> tuple[list[Mount] | None, Notes]:
    """Every file system with a file of the data set; the trace's mounts take precedence over those in job.yaml."""
    table = list(view.measured.mounts)
    of_job = [(mount.dir, mount.type) for mount in (view.job.mounts if view.job is not None else None) or ()]
    if not table and not of_job:
        return None, {_KEY: _NO_TABLE}
    place_of_folder: dict[str, tuple[str, str] | None] = {}
    files: dict[tuple[str, str], list[int]] = {}
    for code in view.files.tolist():
        folder = posixpath.dirname(view.workload.paths[code])
        if folder not in place_of_folder:
            place_of_folder[folder] = _place(folder, table, of_job)
        place = place_of_folder[folder]
        if place is not None:
            files.setdefault(place, []).append(code)
    rows = [_mount(view, *place, np.array(codes)) for place, codes in sorted(files.items())]
    return rows, {_KEY: _BY_TABLE if table else view.job_name}


def _place(folder: str, table: list[tuple[str, str]], of_job: list[tuple[str, str]]) -> tuple[str, str] | None:
    if not folder.startswith("/"):
        return None
    place = mount_above(folder, table)
    if place is None and of_job:
        containing = [m for m in of_job if f"{folder}/".startswith(f"{m[0].rstrip('/')}/")]
        place = max(containing, key=lambda mount: len(mount[0]), default=None)
    return None if place is None else (place[0], place[1].lower())


def _mount(view: View, folder: str, kind: str, codes: Codes) -> Mount:
    on_targets = view.measured.targets
    if on_targets is None:
        return Mount(dir=folder, type=kind)
    own = np.isin(on_targets.file, codes)
    if not own.any():
        return Mount(dir=folder, type=kind)
    target, place = np.unique(on_targets.target[own], return_inverse=True)
    files = np.bincount(place)
    moved = np.bincount(place, on_targets.bytes[own])
    read, write = (np.bincount(place, of[own]) / files / 1e9 for of in (on_targets.read_ns, on_targets.write_ns))
    slowest = np.argsort(-(read + write), kind="stable")[:_SLOWEST].tolist()
    target_counts = Counter(on_targets.of_system[code] for code in codes.tolist() if code in on_targets.of_system)
    return Mount(
        dir=folder,
        type=kind,
        targets=max(target_counts, default=None),
        used_targets=len(target),
        median_read_s=float(np.median(read)),
        median_write_s=float(np.median(write)),
        slowest_targets=[
            TargetUse(
                target=int(target[i]),
                files=int(files[i]),
                bytes=int(moved[i]),
                read_s=float(read[i]),
                write_s=float(write[i]),
            )
            for i in slowest
        ],
    )


_NO_JOB = "not in the trace: run `vani collect` inside the job and pass job.yaml with --job"
_OF_JOB_ALONE = ("nodes", "time_limit_s")
_IN_JOB_YAML = {"id": "job_id"}
"""Attributes with another name in job.yaml."""
_CORES = "workflow.cpu_cores_used_per_node"
_LOOKED_AT = 1000
_SERVED = ("nfs", "cifs", "9p")
"""Types of file systems with a single server, which are shared but not parallel."""
_OF_LOGS = "by the nodes that the logs name"
_OF_MOUNTS = "by the mount table of the logs"
_NO_HEADER = "not in the trace"
_NO_SYSTEM = "not in the trace: name the machine with --system (`vani systems` lists them)"


def job(view: View) -> tuple[JobEntity, Notes]:
    """Job configuration from job.yaml, completed from the machine's description."""
    job_yaml = view.job
    of_machine = _of_machine(view.system) if view.system is not None else {}
    values, notes = _of_header(view)
    for name in JobEntity.model_fields:
        value = getattr(job_yaml, _IN_JOB_YAML.get(name, name), None) if job_yaml is not None else None
        if value is None and name in JobEntity.optional_keys:
            # They do not describe the machine, so a profile loses nothing without them.
            continue
        if value is not None:
            note = view.job_name
        elif name == "nodes" and (traced := _nodes(view)) is not None:
            value, note = traced, _OF_LOGS
        elif of_machine.get(name) is not None:
            value, note = of_machine[name], f"system: {view.system.name}"  # type: ignore[union-attr]
        else:
            note = (
                _NO_JOB if job_yaml is None else f"{view.job_name}: {job_yaml.unknown.get(name, 'no reason given')}"
            ) + _silent(view.system, name)
        values[name] = value
        notes[f"job.{name}"] = note
    return JobEntity(**values), notes


def _nodes(view: View) -> int | None:
    """Number of nodes in the logs or traces; None if one of them does not name its nodes."""
    if view.measured.nodes is not None:
        return view.measured.nodes
    named = [
        next((args for name, args, _ in trace.facts if name == "hosts"), ()) for trace in view.measured.traces
    ]
    return len({host for hosts in named for host in hosts}) if named and all(named) else None


def _of_header(view: View) -> tuple[dict[str, Any], Notes]:
    """Id, user and command of the job from the traces; null if several traces differ."""
    jobs = [_with_command(trace) for trace in view.measured.traces]
    values: dict[str, Any] = {}
    notes: Notes = {}
    for name in JobEntity.optional_keys:
        recorded = dict.fromkeys(getattr(job, name) for job in jobs if getattr(job, name) is not None)
        values[name] = next(iter(recorded)) if len(recorded) == 1 else None
        notes[f"job.{name}"] = (
            next(job.source for job in jobs if getattr(job, name) is not None)
            if len(recorded) == 1
            else f"the traces have {len(recorded):,} of them"
            if recorded
            else _NO_HEADER
        )
    if not any(values.values()):
        return {}, {}
    return values, notes


def _with_command(trace: TraceFacts) -> JobFacts:
    """The job from a trace's header, with the command of its first `execve`."""
    command = next((args for name, args, _ in trace.facts if name == "execve"), None)
    return trace.job if command is None else replace(trace.job, command=shlex.join(command))


def _of_machine(system: System) -> dict[str, Any]:
    """Resources that a machine gives each of its jobs; empty if the system does not describe a particular machine."""
    if system.generic:
        return {}
    near = {
        kind: [buffer.dir for buffer in system.burst_buffers if buffer.kind == kind and buffer.dir]
        for kind in ("node_local", "shared")
    }
    return {
        "cpu_cores_per_node": system.compute.cores_per_node,
        "gpus_per_node": system.compute.gpus_per_node,
        "memory_per_node": system.compute.memory_per_node,
        "scheduler": system.scheduler,
        # A description may list only some of the directories.
        "node_local_bb_dirs": near["node_local"] or None,
        "shared_bb_dirs": near["shared"] or None,
        "pfs_dirs": [
            mount
            for file_system in system.file_systems
            if file_system.type not in _SERVED
            for mount in file_system.mounts
        ]
        or None,
    }


def _silent(system: System | None, name: str) -> str:
    if system is None or name in _OF_JOB_ALONE:
        return ""
    if system.generic:
        return f"; system: {system.name} is of no machine in particular"
    return f"; system: {system.name} does not give it"


def cores_used(view: View) -> tuple[int | None, Notes]:
    """Processes per node, which is the number of cores that they occupy, one each."""
    job_nodes = view.job.nodes if view.job is not None else None
    nodes = job_nodes or _nodes(view)
    if not nodes:
        return None, {_CORES: _NO_JOB}
    # Workflow instances may run in sequence, so only the largest certainly ran on a node at once.
    most = max((trace.ranks for trace in view.measured.traces), default=0)
    per_node = max(view.job.processes_per_node) if view.job and view.job.processes_per_node else None
    note = (
        f"{view.job_name}: processes per node"
        if per_node
        else f"processes of the largest trace / nodes of {view.job_name if job_nodes else 'the logs'}"
    )
    return per_node or -(-most // nodes), {_CORES: note}


def gpus_used() -> tuple[None, Notes]:
    """GPUs in use, which only calls of a GPU layer could show."""
    why = "the trace contains no GPU calls, and job.yaml states only allocated GPUs"
    return None, {"workflow.gpus_used_per_node": why}


def middleware(view: View, cores: int | None) -> tuple[Middleware, Notes]:
    """A node's cores and memory left for middleware, the libraries in use, and their requests."""
    job_yaml, notes = view.job, dict[str, str]()
    total = job_yaml.cpu_cores_per_node if job_yaml is not None else None
    if total is None and view.system is not None:
        total = view.system.compute.cores_per_node
    memory = job_yaml.memory_per_node if job_yaml is not None else None
    if memory is None and view.system is not None:
        memory = view.system.compute.memory_per_node
        if memory is not None:
            notes["middleware.memory_per_node"] = (
                f"system: {view.system.name} (memory of a node, not what is free)"
            )
    elif memory is not None:
        notes["middleware.memory_per_node"] = view.job_name
    if memory is None:
        notes["middleware.memory_per_node"] = _NO_JOB
    extra = None if total is None or cores is None else max(0, total - cores)
    notes["middleware.extra_cores_per_node"] = (
        _NO_JOB if extra is None else "cores per node - cores used per node"
    )
    libraries, granularity, pattern, of_access = middleware_access(view)
    notes["middleware.libraries"] = (
        "libraries whose calls are traced; buffering layers below leave no calls in a Recorder trace"
    )
    entity = Middleware(
        extra_cores_per_node=extra,
        memory_per_node=memory,
        libraries=libraries,
        granularity=granularity,
        access_pattern=pattern,
    )
    return entity, notes | of_access


def storage(view: View) -> tuple[Storage, Notes]:
    """Node-local storage, and the file system with most bytes of the data set."""
    node_local, notes = _node_local(view)
    shared, more = _shared(view)
    why = view.measured.unknown.get("storage.shared")
    if (
        why is not None
        and (view.job is not None or view.system is not None)
        and not _on_one_file_system(view)
    ):
        more |= {f"storage.shared.{name}": why for name in SharedStorage.model_fields}
        shared = SharedStorage(type=None, dir=None, parallel_servers=None, capacity=None, max_bandwidth=None)
    used, of_mounts = mounts(view)
    return Storage(node_local=node_local, shared=shared, mounts=used), notes | more | of_mounts


def _on_one_file_system(view: View) -> bool:
    """Whether all files of the data set are on the same file system."""
    places: set[tuple[object, object]] = set()
    codes = view.files.tolist()
    for code in codes[:_LOOKED_AT]:
        path = view.workload.paths[code]
        if not path.startswith("/"):
            places.add((None, path))
            continue
        system = view.system.file_system_for(path) if view.system is not None else None
        mount = view.job.mount_of(path) if view.job is not None else None
        places.add((None if system is None else system.name, None if mount is None else mount.dir))
    return len(places) <= 1 and len(codes) <= _LOOKED_AT


def _node_local(view: View) -> tuple[NodeLocalStorage, Notes]:
    notes: Notes = {}
    near: BurstBuffer | None = view.system.node_local() if view.system is not None else None
    dirs = view.job.node_local_bb_dirs if view.job is not None else None
    name = f"system: {view.system.name}" if view.system is not None else ""
    directory = near.dir if near is not None and near.dir else (dirs[0] if dirs else None)
    notes["storage.node_local.dir"] = (
        name if near is not None and near.dir else view.job_name if dirs else _NO_SYSTEM
    )
    mount = view.job.mount_of(directory) if view.job is not None and directory else None
    kind, source_of_kind = (near.type, name) if near is not None else (None, _NO_SYSTEM)
    if mount is not None and (near is None or near.dir is None):
        kind, source_of_kind = mount.type, view.job_name
    in_memory = near.in_memory if near is not None else kind in IN_MEMORY
    capacity = near.capacity_per_node if near is not None else None
    source = name
    if capacity is None and mount is not None:
        capacity, source = mount.capacity, view.job_name
    memory = view.job.memory_per_node if view.job is not None else None
    if in_memory and capacity is not None and memory is not None and memory < capacity:
        # A file's pages on tmpfs count as memory of the job that wrote it (cgroups, memory controller).
        capacity, source = (
            memory,
            f"{view.job_name}: the job's memory, which is less than the file system's capacity",
        )
    rates = [
        r
        for r in ((near.bandwidth_per_node.read, near.bandwidth_per_node.write) if near else ())
        if r is not None
    ]
    shared = "; memory of the node, which the program uses, too" if in_memory else ""
    notes["storage.node_local.type"] = source_of_kind
    notes["storage.node_local.capacity_per_node"] = source + shared if capacity is not None else _NO_SYSTEM
    notes["storage.node_local.parallel_ops"] = (
        name if near is not None and near.parallel_ops is not None else _NO_SYSTEM
    )
    notes["storage.node_local.max_bandwidth_per_node"] = name if rates else _NO_SYSTEM
    storage = NodeLocalStorage(
        dir=directory,
        type=kind,
        capacity_per_node=capacity,
        parallel_ops=near.parallel_ops if near is not None else None,
        max_bandwidth_per_node=max(rates) if rates else None,
    )
    return storage, notes


def _shared(view: View) -> tuple[SharedStorage, Notes]:
    notes: Notes = {}
    path = _typical_path(view)
    system: FileSystem | None = None
    if view.system is not None:
        system = view.system.file_system_for(path) if path else None
        if system is None and len(view.system.file_systems) == 1:
            system = view.system.file_systems[0]
    mount = view.job.mount_of(path) if view.job is not None and path else None
    mounted = mount_above(path, list(view.measured.mounts)) if mount is None and path else None
    name = f"system: {view.system.name}" if view.system is not None else _NO_SYSTEM
    directory, kind = (mount.dir, mount.type) if mount is not None else mounted or (None, None)
    differs = ""
    if kind is not None and system is not None and system.type != kind.lower():
        differs = f"; system: {view.system.name} has {system.type} there"  # type: ignore[union-attr]
        system = None
    if kind is None and system is not None:
        directory, kind = system.mounts[0] if system.mounts else None, system.type
    rates = [
        r
        for r in ((system.max_bandwidth.read, system.max_bandwidth.write) if system else ())
        if r is not None
    ]
    capacity = (
        system.capacity
        if system is not None and system.capacity is not None
        else mount.capacity
        if mount
        else None
    )
    said = {
        "type": kind,
        "dir": directory,
        "capacity": capacity,
        "parallel_servers": system.servers if system is not None else None,
        "max_bandwidth": max(rates) if rates else None,
    }
    for key, value in said.items():
        from_job = mount is not None and (
            key in ("type", "dir") or (key == "capacity" and (system is None or system.capacity is None))
        )
        notes[f"storage.shared.{key}"] = (
            (view.job_name if from_job else _OF_MOUNTS if mounted and key in ("type", "dir") else name)
            + (differs if key == "type" else "")
            if value is not None
            else f"system: {view.system.name} does not give it{differs}"
            if view.system is not None
            else _NO_SYSTEM
        )
    return SharedStorage(**said), notes  # type: ignore[arg-type]


def _typical_path(view: View) -> str | None:
    """Path of the listed data set file with most I/O time."""
    for code in view.measured.listed.tolist():
        path: str = view.workload.paths[code]
        if view.workload.file_class[code] == FileClass.DATASET and path.startswith("/"):
            return path
    return None
