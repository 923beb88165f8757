"""Job, middleware and storage (tables II, VII, VIII, IX): facts that a trace cannot contain.

They come from job.yaml (`vani collect`) and system.yaml; values in neither are null, and provenance states that. So do
the file systems that the run used, unless its trace names them.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from vani.analyzers.entities.interfaces import middleware_access
from vani.analyzers.entities.view import Notes, View
from vani.calls import FileClass
from vani.columns import Ints
from vani.schema import profile
from vani.schema.job import IN_MEMORY, family_of_mount

if TYPE_CHECKING:
    from vani.analyzers.measurements import TraceFacts
    from vani.counts import JobFacts
    from vani.schema.system import FileSystem, System



NOT_A_KIND: Final = ("autofs", "dvs", "rootfs")
"""Types of mounts that point to file systems of other types."""
_SLOWEST: Final = 10
"""Maximum number of targets that a profile lists individually."""
_KEY: Final = "storage.mounts"
_BY_TABLE: Final = "the mounts in the logs or traces, which leave out / and may leave out others"
_NO_TABLE: Final = "the trace has no mount table: pass job.yaml of `vani collect` with --job"

Codes = Ints


def mount_above(path: str, table: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    """Folder and type of the mount in a mount table that contains a path; None if only / does."""
    return _innermost(path, [mount for mount in table if mount[0] != "/" and mount[1] not in NOT_A_KIND])


def _innermost(path: str, table: Sequence[tuple[str, str]]) -> tuple[str, str] | None:
    containing = [mount for mount in table if f"{path}/".startswith(f"{mount[0].rstrip('/')}/")]
    return max(containing, key=lambda mount: len(mount[0]), default=None)


def mounts(view: View) -> tuple[list[profile.Mount] | None, Notes]:
    """Every file system with a file of the data set; the trace's mounts take precedence over those in job.yaml."""
    table = list(view.measured.mounts)
    of_job = [(mount.dir, mount.type) for mount in view.of_job("mounts") or ()]
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
    place = mount_above(folder, table) or _innermost(folder, of_job)
    return None if place is None else (place[0], family_of_mount(place[1]))


def _mount(view: View, folder: str, kind: str, codes: Codes) -> profile.Mount:
    on_targets = view.measured.targets
    if on_targets is None or not (own := np.isin(on_targets.file, codes)).any():
        counts = {fact.dir: fact.osds for fact in view.of_job("ceph") or ()}
        return profile.Mount(dir=folder, type=kind, targets=counts.get(folder))
    target, place = np.unique(on_targets.target[own], return_inverse=True)
    files = np.bincount(place)
    moved = np.bincount(place, on_targets.bytes[own])
    read, write = (np.bincount(place, of[own]) / files / 1e9 for of in (on_targets.read_ns, on_targets.write_ns))
    slowest = np.argsort(-(read + write), kind="stable")[:_SLOWEST].tolist()
    targets = [on_targets.of_system[code] for code in codes.tolist() if code in on_targets.of_system]
    return profile.Mount(
        dir=folder,
        type=kind,
        targets=max(targets, default=None),
        used_targets=len(target),
        median_read_s=float(np.median(read)),
        median_write_s=float(np.median(write)),
        slowest_targets=[
            profile.TargetUse(
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
_ON_ONE_HOST = "strace sees the processes of one host"
_OF_MOUNTS = "by the mount table of the logs"
_NO_HEADER = "not in the trace"
_NO_SYSTEM = "not in the trace: name the machine with --system (`vani systems` lists them)"


Sourced = tuple[Any, str]
"""A value and its source, or None and the reason."""


def _first(*candidates: Sourced, otherwise: str = _NO_SYSTEM) -> Sourced:
    """The first known value."""
    return next((sourced for sourced in candidates if sourced[0] is not None), (None, otherwise))


def _apart(sourced: Mapping[str, Sourced], where: str) -> tuple[dict[str, Any], Notes]:
    """Values by attribute, and their sources by path."""
    return {n: value for n, (value, _) in sourced.items()}, {f"{where}.{n}": why for n, (_, why) in sourced.items()}


def job(view: View) -> tuple[profile.JobEntity, Notes]:
    """Job configuration from job.yaml, completed from the machine's description."""
    of_machine = {} if view.system is None else _of_machine(view.system)
    machine = "" if view.system is None else f"system: {view.system.name}"
    sourced = _of_header(view)
    for name in profile.JobEntity.model_fields:
        value = getattr(view.job, _IN_JOB_YAML.get(name, name), None)
        if value is None and name in profile.JobEntity.optional_keys:
            # They do not describe the machine, so a profile loses nothing without them.
            continue
        nodes = _nodes(view) if name == "nodes" else None
        unknown = _NO_JOB if view.job is None else f"{view.job_name}: {view.job.unknown.get(name, 'no reason given')}"
        sourced[name] = _first(
            (value, view.job_name),
            (nodes, _OF_LOGS),
            (of_machine.get(name), machine),
            (1 if name == "nodes" and _is_on_one_host(view) else None, _ON_ONE_HOST),
            otherwise=unknown + _silent(view.system, name),
        )
    values, notes = _apart(sourced, "job")
    return profile.JobEntity(**values), notes


def _nodes(view: View) -> int | None:
    """Number of nodes in the logs or traces; None if one of them does not name its nodes."""
    if view.measured.nodes is not None:
        return view.measured.nodes
    named = [next((args for name, args, _ in trace.facts if name == "hosts"), ()) for trace in view.measured.traces]
    return len({host for hosts in named for host in hosts}) if named and all(named) else None


def _is_on_one_host(view: View) -> bool:
    traces = view.measured.traces
    on_one = [any(name == "one_host" for name, _, _ in trace.facts) for trace in traces]
    return len({trace.source for trace in traces}) == 1 and all(on_one)


def _of_header(view: View) -> dict[str, Sourced]:
    """Id, user and command of the job from the traces; null if several traces differ; empty if none has any."""
    jobs = [_with_command(trace) for trace in view.measured.traces]
    sourced: dict[str, Sourced] = {}
    for name in profile.JobEntity.optional_keys:
        known = [(getattr(job, name), job.source) for job in jobs if getattr(job, name) is not None]
        different = len(dict(known))
        several = f"the traces have {different:,} of them" if different else _NO_HEADER
        sourced[name] = known[0] if different == 1 else (None, several)
    return sourced if any(value for value, _ in sourced.values()) else {}


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
    job_nodes, of_nodes = view.of_job("nodes"), view.of_job("processes_per_node")
    nodes = job_nodes or _nodes(view)
    if not nodes:
        return None, {_CORES: _NO_JOB}
    # Workflow instances may run in sequence, so only the largest certainly ran on a node at once.
    most = max((trace.ranks for trace in view.measured.traces), default=0)
    if per_node := max(of_nodes or [0]):
        return per_node, {_CORES: f"{view.job_name}: processes per node"}
    source = view.job_name if job_nodes else "the logs"
    return -(-most // nodes), {_CORES: f"processes of the largest trace / nodes of {source}"}


def gpus_used() -> tuple[None, Notes]:
    """GPUs in use, which only calls of a GPU layer could show."""
    why = "the trace contains no GPU calls, and job.yaml states only allocated GPUs"
    return None, {"workflow.gpus_used_per_node": why}


def middleware(view: View, cores: int | None) -> tuple[profile.Middleware, Notes]:
    """A node's cores and memory left for middleware, the libraries in use, and their requests."""
    compute = None if view.system is None else view.system.compute
    total = view.of_job("cpu_cores_per_node")
    if total is None and compute is not None:
        total = compute.cores_per_node
    extra = None if total is None or cores is None else max(0, total - cores)
    of_node = "" if view.system is None else f"system: {view.system.name} (memory of a node, not what is free)"
    memory, why = _first(
        (view.of_job("memory_per_node"), view.job_name),
        (None if compute is None else compute.memory_per_node, of_node),
        otherwise=_NO_JOB,
    )
    notes = {
        "middleware.memory_per_node": why,
        "middleware.extra_cores_per_node": _NO_JOB if extra is None else "cores per node - cores used per node",
    }
    libraries, granularity, pattern, of_access = middleware_access(view)
    notes["middleware.libraries"] = (
        "libraries whose calls are traced; buffering layers below leave no calls in a Recorder trace"
    )
    used = view.of_job("memory_used_per_node")
    entity = profile.Middleware(
        extra_cores_per_node=extra,
        memory_per_node=memory,
        memory_used_share=min(1.0, used / memory) if used is not None and memory else None,
        libraries=libraries,
        granularity=granularity,
        access_pattern=pattern,
    )
    return entity, notes | of_access


def storage(view: View) -> tuple[profile.Storage, Notes]:
    """Node-local storage, and the file system with most bytes of the data set."""
    node_local, notes = _node_local(view)
    shared, more = _shared(view)
    why = view.measured.unknown.get("storage.shared")
    if why is not None and (view.job or view.system) and not _on_one_file_system(view):
        more |= {f"storage.shared.{name}": why for name in profile.SharedStorage.model_fields}
        shared = profile.SharedStorage(type=None, dir=None, parallel_servers=None, capacity=None, max_bandwidth=None)
    used, of_mounts = mounts(view)
    return profile.Storage(node_local=node_local, shared=shared, mounts=used), notes | more | of_mounts


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


def _node_local(view: View) -> tuple[profile.NodeLocalStorage, Notes]:
    near = None if view.system is None else view.system.node_local()
    machine = "" if view.system is None else f"system: {view.system.name}"
    dirs = view.of_job("node_local_bb_dirs")
    of_job = (dirs[0] if dirs else None, view.job_name)
    directory = of_job if near is None or not near.dir else (near.dir, machine)
    mount = view.job.mount_of(directory[0]) if view.job is not None and directory[0] else None
    kind: Sourced = (None, _NO_SYSTEM) if near is None else (near.type, machine)
    if mount is not None and (near is None or near.dir is None):
        kind = (mount.type, view.job_name)
    capacity = _first(
        (None if near is None else near.capacity_per_node, machine),
        (None if mount is None else mount.capacity, view.job_name),
    )
    if (kind[0] in IN_MEMORY if near is None else near.in_memory) and capacity[0] is not None:
        memory = view.of_job("memory_per_node")
        if memory is not None and memory < capacity[0]:
            # A file's pages on tmpfs count as memory of the job that wrote it (cgroups, memory controller).
            less = f"{view.job_name}: the job's memory, which is less than the file system's capacity"
            capacity = (memory, less)
        capacity = (capacity[0], f"{capacity[1]}; memory of the node, which the program uses, too")
    rates = [] if near is None else [near.bandwidth_per_node.read, near.bandwidth_per_node.write]
    sourced = {
        "dir": _first(directory),
        "type": kind,
        "capacity_per_node": capacity,
        "parallel_ops": _first((None if near is None else near.parallel_ops, machine)),
        "max_bandwidth_per_node": _first((_largest(rates), machine)),
    }
    values, notes = _apart(sourced, "storage.node_local")
    return profile.NodeLocalStorage(**values), notes


def _largest(rates: Sequence[float | None]) -> float | None:
    return max((rate for rate in rates if rate is not None), default=None)


def _shared(view: View) -> tuple[profile.SharedStorage, Notes]:
    path = _typical_path(view)
    system: FileSystem | None = None
    machine = "" if view.system is None else f"system: {view.system.name}"
    if view.system is not None:
        system = view.system.file_system_for(path) if path else None
        if system is None and len(view.system.file_systems) == 1:
            system = view.system.file_systems[0]
    mount = view.job.mount_of(path) if view.job is not None and path else None
    mounted = mount_above(path, view.measured.mounts) if mount is None and path else None
    directory, kind = (mount.dir, mount.type) if mount is not None else mounted or (None, None)
    kind = None if kind is None else family_of_mount(kind)
    source = view.job_name if mount is not None else _OF_MOUNTS if mounted else machine
    differs = ""
    if kind is not None and system is not None and system.type != kind:
        differs = f"; {machine} has {system.type} there"
        system = None
    if kind is None and system is not None:
        directory, kind = system.mounts[0] if system.mounts else None, system.type
    rates = [] if system is None else [system.max_bandwidth.read, system.max_bandwidth.write]
    sourced = {
        "type": (kind, source + differs),
        "dir": (directory, source),
        "capacity": _first(
            (None if system is None else system.capacity, machine),
            (None if mount is None else mount.capacity, view.job_name),
        ),
        "parallel_servers": (None if system is None else system.servers, machine),
        "max_bandwidth": (_largest(rates), machine),
    }
    missing = _NO_SYSTEM if view.system is None else f"{machine} does not give it{differs}"
    values, notes = _apart({n: _first(value, otherwise=missing) for n, value in sourced.items()}, "storage.shared")
    return profile.SharedStorage(**values), notes


def _typical_path(view: View) -> str | None:
    """Path of the listed data set file with most I/O time."""
    for code in view.measured.listed.tolist():
        path: str = view.workload.paths[code]
        if view.workload.file_class[code] == FileClass.DATASET and path.startswith("/"):
            return path
    return None
