"""Facts that a machine reveals about itself; `detect` puts them into a `vani.system/2` document.

It runs on a login or compute node, as any user. Each program is optional; without it, its figures are null,
and `sources` names the missing one. Rates are null, except the network's and those measured in one folder.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, Final

from vani.collect.file_systems import read_gpfs, read_lustre, read_software
from vani.collect.mounts import PARALLEL, burst_buffer_dirs, mount_of, places_of_data, read_mounts, space_of
from vani.collect.node import Ask, NoAnswer, ask, count_cores, count_gpus, entries, memory_bytes, read
from vani.collect.scheduler import read_scheduler
from vani.collect.transfer_test import Measurement
from vani.schema.benchmark import Benchmark
from vani.schema.job import IN_MEMORY, Mount, is_below
from vani.schema.system import FileSystem, Rates, StripeCurve, System
from vani.units import counted

_SHARED: Final = PARALLEL | {"nfs", "nfs4", "ceph", "fuse.ceph", "cifs", "smb3", "9p", "dvs", "fuse.sshfs"}
_NAMES: Final = {"nfs4": "nfs", "fhgfs": "beegfs", "smb3": "cifs", "fuse.ceph": "ceph", "fuse.dfuse": "daos"}
_CLUSTER: Final = ("SLURM_CLUSTER_NAME", "LSF_CLUSTER_NAME", "LMOD_SYSTEM_NAME", "NERSC_HOST", "CLUSTER")
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


def detect(
    environment: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    data: Path | None = None,
    *,
    programs: Ask | None = None,
    measured: Measurement | None = None,
    curves: Sequence[StripeCurve] = (),
) -> tuple[System, list[str]]:
    """Describe the machine on which this process runs.

    Parameters
    ----------
    environment
        Variables; by default those of this process.
    root
        Folder to use as `/`.
    data
        Folder of the data, for the default layout; by default the job's working
        folder if it is on Lustre, or else the mount point.
    programs
        Runs `lfs`, `lctl`, `mmlsfs` and `scontrol`; by default the machine's own, and none if `root` is not `/`.
    measured
        Rates of one node in a folder: those of its file system or burst buffer.
    curves
        Rates by stripe count in the folder of `measured`, one for each pattern.

    Returns
    -------
    tuple
        The description, and a sentence for each fact that could not be determined.
    """
    environment = os.environ if environment is None else environment
    is_real = root == Path("/")
    programs = programs or (ask if is_real else _no_answer)
    missing: list[str] = []
    sources: dict[str, str] = {}
    mounts = read_mounts(root, space_of if is_real else None)
    if mounts is None:
        missing.append("/proc/self/mountinfo cannot be read: no file system is known")
        mounts = []
    near, shared_near = burst_buffer_dirs(
        environment, mounts, lambda folder: (root / folder.lstrip("/")).is_dir()
    )
    facts: dict[str, Any] = {
        "name": _name(environment, root),
        "description": "Found by `vani systems detect`; "
        + ("other " if measured else "")
        + "rates are not measured: fill them in",
        "compute": _compute(root, sources),
        "file_systems": _file_systems(
            mounts,
            shared_near,
            places_of_data(data, environment, mounts, here=is_real),
            programs,
            sources,
            missing,
        ),
        "burst_buffers": _burst_buffers(near, shared_near, mounts, environment, sources),
        "network": _network(root, sources),
    }
    facts["scheduler"] = _scheduler(environment, root, programs, facts["burst_buffers"], sources, missing)
    if measured is not None:
        _fill_in(measured, curves, facts, mounts, sources)
    types = {file_system["type"] for file_system in facts["file_systems"]}
    for kind, tool in (("lustre", "lfs"), ("gpfs", "mmlsfs")):
        if kind not in types:
            missing.append(f"no {kind} is mounted here: {tool} was not run")
    if not facts["file_systems"]:
        missing.append("no shared file system is mounted here (Lustre, GPFS, BeeGFS, NFS, ...)")
    return System(**facts, sources=sources), missing


def parse_burst_buffers(text: str) -> list[tuple[str, int | None]]:
    """Name and capacity in bytes of each burst buffer that `scontrol show burst` prints."""
    buffers = []
    for block in re.split(r"(?m)^(?=Name=)", text):
        name = re.search(r"(?m)^Name=(\S+)", block)
        if name:
            # Slurm, burst_buffer.conf(5): K, M, G, T, P and KiB... are powers of 1024.
            space = re.search(r"\bTotalSpace=(\d{1,15}(?:\.\d+)?)(?![\d.])([KMGTP]?)", block)
            size = round(float(space[1]) * _UNITS[space[2]]) if space else None
            buffers.append((name[1], size))
    return buffers


def _no_answer(command: list[str]) -> str:
    raise NoAnswer(f"{command[0]} was not run")


def _name(environment: Mapping[str, str], root: Path) -> str:
    for variable in _CLUSTER:
        if environment.get(variable):
            return environment[variable]
    host = (read(root / "proc/sys/kernel/hostname") or "").strip()
    return host or "this-machine"


def _compute(root: Path, sources: dict[str, str]) -> dict[str, Any]:
    sources["compute"] = "/proc and /sys of the node on which `vani systems detect` ran"
    sources["compute.nodes"] = "not known: a node cannot see their number"
    return {
        "cores_per_node": count_cores(root),
        "memory_per_node": memory_bytes(root),
        "gpus_per_node": count_gpus(root),
    }


def _file_systems(
    mounts: list[Mount],
    shared_near: list[str],
    places: dict[str, str],
    programs: Ask,
    sources: dict[str, str],
    missing: list[str],
) -> list[dict[str, Any]]:
    """Parallel file systems first, the largest first; mounts of one device are one file system."""
    by_device: dict[tuple[str, str], list[Mount]] = {}
    for mount in mounts:
        is_near = any(is_below(folder, mount.dir) and mount.dir != "/" for folder in shared_near)
        if mount.type in _SHARED and not is_near:
            by_device.setdefault((mount.type, mount.device or mount.dir), []).append(mount)
    ordered = sorted(
        by_device.items(), key=lambda item: (item[0][0] not in PARALLEL, -(item[1][0].capacity or 0))
    )
    systems: list[dict[str, Any]] = []
    names: set[str] = set()
    for (kind, device), same in ordered:
        place = f"file_systems[{len(systems)}]"
        name = _unique(PurePosixPath(device.rpartition(":")[2]).name or same[0].dir, names)
        facts: dict[str, Any] = {
            "name": name,
            "type": _NAMES.get(kind, kind),
            "mounts": [mount.dir for mount in same],
            "capacity": same[0].capacity,
        }
        sources[place] = "/proc/self/mountinfo and statvfs"
        if kind == "lustre":
            data = next((places[mount.dir] for mount in same if mount.dir in places), None)
            facts |= _lustre(same[0], data, programs, place, sources, missing)
        elif kind == "gpfs":
            facts |= _gpfs(same[0], programs, place, sources, missing)
        systems.append(facts)
    return systems


def _unique(name: str, taken: set[str]) -> str:
    number, unique = 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    taken.add(unique)
    return unique


def _lustre(
    mount: Mount, data: str | None, programs: Ask, place: str, sources: dict[str, str], missing: list[str]
) -> dict[str, Any]:
    """Facts from `lfs` and `lctl`, which do not know the site's policies (`layout_policy`, rules)."""
    folder = mount.dir
    lustre, problems = read_lustre(folder, programs, data)
    software = read_software(mount.device or folder, programs)
    first = re.match(r"-E (\d+) -L mdt\b", lustre.layout or "")
    facts: dict[str, Any] = {
        "targets": lustre.osts,
        "metadata_targets": lustre.mdts,
        "metadata_capacity": lustre.mdt_capacity,
        "metadata_free": lustre.mdt_free,
        "stripe_count": lustre.stripe_count,
        "stripe_size": lustre.stripe_size,
        "site_pfl": lustre.layout,
        "dom_size": int(first[1]) if first else None,
        "version": software.version,
        "overstriping": software.overstriping,
    }
    if lustre.capacity is not None:
        facts["capacity"] = lustre.capacity
    by_df = ("targets", "metadata_targets", "metadata_capacity", "metadata_free", "capacity")
    commands = dict.fromkeys(by_df, f"lfs df {folder}")
    layout = f"lfs getstripe -d {lustre.layout_dir or folder}"
    commands |= dict.fromkeys(("stripe_count", "stripe_size", "site_pfl"), layout)
    commands["dom_size"] = f"{layout}: its first component; the limit (lod.*.dom_stripesize) may be larger"
    commands |= dict.fromkeys(("version", "overstriping"), software.why)
    why = "; ".join(dict.fromkeys(problems))
    for key, command in commands.items():
        if facts.get(key) is not None:
            sources[f"{place}.{key}"] = command
        elif key in ("targets", "metadata_targets", "stripe_count", "stripe_size", "site_pfl") and why:
            sources[f"{place}.{key}"] = f"not known: {why}"
    if software.overstriping is None:
        sources[f"{place}.overstriping"] = f"not known: {software.why}"
        problems = problems or [f"overstriping: {software.why}"]
    missing += [f"{folder}: {problem}" for problem in dict.fromkeys(problems)]
    return facts


def _gpfs(
    mount: Mount, programs: Ask, place: str, sources: dict[str, str], missing: list[str]
) -> dict[str, Any]:
    gpfs, problems = read_gpfs(mount.dir, mount.device or mount.dir, programs)
    for key in ("block_size", "subblock_size"):
        known = getattr(gpfs, key) is not None
        source = (
            f"mmlsfs {gpfs.device}" if known else f"not known: {'; '.join(problems) or 'mmlsfs does not print it'}"
        )
        sources[f"{place}.{key}"] = source
    missing += [f"{mount.dir}: {problem}" for problem in problems]
    return {"block_size": gpfs.block_size, "subblock_size": gpfs.subblock_size, "version": gpfs.version}


def _burst_buffers(
    near: list[str],
    shared_near: list[str],
    mounts: list[Mount],
    environment: Mapping[str, str],
    sources: dict[str, str],
) -> list[dict[str, Any]]:
    """Node-local storage in the order of `burst_buffer_dirs`, then storage that nodes share."""
    variables = {folder: name for name, folder in environment.items() if folder.startswith("/")}
    buffers: list[dict[str, Any]] = []
    names: set[str] = set()
    for folder, kind in [(path, "node_local") for path in near] + [(path, "shared") for path in shared_near]:
        mount = mount_of(folder, mounts)
        variable = variables.get(folder, "")
        is_datawarp = variable.startswith(("DW_JOB_STRIPED", "DW_JOB_PRIVATE", "DW_PERSISTENT_STRIPED"))
        type_ = "datawarp" if is_datawarp else "rabbit" if variable.startswith("DW_") else None
        if type_ is None:
            beeond = "beeond" in f"{folder} {mount.device if mount else ''}"
            type_ = "beeond" if beeond else mount.type if mount else "unknown"
        facts: dict[str, Any] = {
            "name": _unique(PurePosixPath(folder).name or "root", names),
            "kind": kind,
            "type": type_,
            "dir": folder,
            "uses_memory": mount is not None and mount.type in IN_MEMORY,
        }
        if mount is not None and kind == "node_local":
            facts["capacity_per_node"] = mount.capacity
        # The path of files created for a job contains the job's number.
        by = f"${variable}" if variable else "/proc/self/mountinfo"
        what = f": {mount.type}, files in the node's memory" if mount and facts["uses_memory"] else ""
        sources[f"burst_buffers[{len(buffers)}]"] = f"{by}, on one node{what}"
        buffers.append(facts)
    return buffers


def _fill_in(
    measured: Measurement,
    curves: Sequence[StripeCurve],
    facts: dict[str, Any],
    mounts: list[Mount],
    sources: dict[str, str],
) -> None:
    """Insert the rates for the folder: on a shared file system, otherwise on node-local storage, new if necessary."""
    folder = os.path.realpath(measured.folder)
    rates = {"read": measured.read, "write": measured.write}
    source = (
        f"measured in {folder} on {date.today().isoformat()}: {'; '.join((measured.method, *measured.notes))}"
    )
    mount = mount_of(folder, mounts)
    if mount is not None:
        for index, file_system in enumerate(facts["file_systems"]):
            if mount.dir in file_system["mounts"]:
                file_system["bandwidth_per_client"] = rates
                sources[f"file_systems[{index}].bandwidth_per_client"] = source
                if curves:
                    file_system["stripe_curves"] = [curve.model_dump() for curve in curves]
                    sources[f"file_systems[{index}].stripe_curves"] = (
                        f"measured in {folder} on {date.today().isoformat()} from {counted(curves[0].nodes, 'node')}, "
                        "flushed; collective: stripes in turn, without MPI-IO's data exchange"
                    )
                return
    buffers = facts["burst_buffers"]
    device = mount and (mount.type, mount.device or mount.dir)
    same = [
        index
        for index, buffer in enumerate(buffers)
        if _device_of(buffer["dir"], mounts) == device is not None
    ]
    if not same:
        kind = mount.type if mount else "unknown"
        name = _unique(PurePosixPath(folder).name or "root", {buffer["name"] for buffer in buffers})
        buffers.append({"name": name, "kind": "node_local", "type": kind, "dir": folder})
        sources[f"burst_buffers[{len(buffers) - 1}]"] = "the measured folder"
        same = [len(buffers) - 1]
    for index in same:
        buffers[index]["bandwidth_per_node"] = rates
        sources[f"burst_buffers[{index}].bandwidth_per_node"] = source


def _device_of(folder: str | None, mounts: list[Mount]) -> tuple[str, str] | None:
    mount = None if folder is None else mount_of(folder, mounts)
    return (mount.type, mount.device or mount.dir) if mount else None


def _scheduler(
    environment: Mapping[str, str],
    root: Path,
    programs: Ask,
    buffers: list[dict[str, Any]],
    sources: dict[str, str],
    missing: list[str],
) -> str | None:
    """Name the scheduler, and add Slurm's burst buffers with the line that requests each."""
    inside = read_scheduler(environment, root).scheduler
    try:
        listed = parse_burst_buffers(programs(["scontrol", "show", "burst"]))
    except NoAnswer as error:
        if inside in (None, "slurm"):
            missing.append(f"burst buffers of the scheduler: {error}")
        if inside is None:
            missing.append("not inside a job: the scheduler's job variables are not set")
            sources["scheduler"] = f"not known: not inside a job, and {error}"
        else:
            sources["scheduler"] = "the environment of the job"
        return inside
    sources["scheduler"] = "the environment of the job" if inside else "scontrol answers"
    for name, size in listed:
        kind = name.partition("/")[0]
        request = ["#DW jobdw type=scratch capacity=SIZE access_mode=striped"] if kind == "datawarp" else []
        same = next((buffer for buffer in buffers if buffer["type"] == kind), None)
        if same is None:
            same = {
                "name": _unique(name, {buffer["name"] for buffer in buffers}),
                "kind": "shared",
                "type": kind,
            }
            buffers.append(same)
            sources[f"burst_buffers[{len(buffers) - 1}]"] = "scontrol show burst"
        same |= {"capacity": size, "request": request}
        sources[f"burst_buffers[{buffers.index(same)}].capacity"] = "scontrol show burst"
    return inside or "slurm"


def _network(root: Path, sources: dict[str, str]) -> dict[str, Any]:
    """All of the node's InfiniBand or Omni-Path ports together, or else its fastest Ethernet port."""
    rates, kind = [], None
    for device in entries(root / "sys/class/infiniband"):
        for port in entries(device / "ports"):
            match = re.match(r"(\d+(?:\.\d+)?) Gb/sec(?: \((.*)\))?", read(port / "rate") or "")
            if match and "ACTIVE" in (read(port / "state") or "ACTIVE"):
                rates.append(float(match[1]))
                kind = match[2] or kind
    if rates:
        sources["network"] = "/sys/class/infiniband: sum of the rates of active ports"
        return {"type": kind, "bandwidth_per_node": sum(rates) * 1e9 / 8}
    speeds = []
    for card in entries(root / "sys/class/net"):
        text = (read(card / "speed") or "").strip()
        if text.isdecimal() and int(text) > 0 and (card / "device").exists():
            speeds.append(int(text))
    if not speeds:
        sources["network"] = "not known: not in /sys/class/infiniband or /sys/class/net"
        return {}
    sources["network"] = "/sys/class/net: speed of the fastest card"
    return {"type": "ethernet", "bandwidth_per_node": max(speeds) * 1e6 / 8}


def measured_system(result: Benchmark, system: System | None = None) -> System:
    """Describe the machine with measured rates of the file system that the benchmark used.

    Rates of ior-easy are the whole file system's, and with one node also the client's; creations of mdtest-easy are its
    metadata operations. They are lower bounds, because more nodes may reach more. Higher rates in `system`
    are kept. `sources` names the phase of every figure.
    """
    known = system
    if known is None or known.generic:
        known = System.model_validate({"schema": "vani.system/2", "name": "measured"})
    disks = list(known.file_systems)
    disk = known.file_system_for(result.folder) if result.folder else None
    at = disks.index(disk) if disk is not None else len(disks)
    if disk is None:
        mounts = [result.folder] if result.folder and posixpath.isabs(result.folder) else []
        disk = FileSystem(name="benchmarked", type="unknown", mounts=mounts)
        disks.append(disk)
    rates = {phase.name: phase.rate for phase in result.phases}
    scale = f"{_counted(result.nodes, 'node')}, {_counted(result.processes, 'process')}"
    tool = f"{result.tool.upper() if result.tool != 'mdtest' else 'mdtest'} {result.version or ''}".strip()
    place, sources = f"file_systems[{at}]", dict(known.sources)
    bandwidth: dict[str, float | None] = {}
    best = {way: _best(rates, f"ior-easy-{way}", f" {way}") for way in ("read", "write")}
    for direction, (rate, phase) in best.items():
        described = getattr(disk.max_bandwidth, direction)
        bandwidth[direction] = described if rate is None or (described or 0.0) > rate else rate
        if rate is not None and bandwidth[direction] == rate:
            sources[f"{place}.max_bandwidth.{direction}"] = f"{tool}, {phase}, {scale}: at least"
    update: dict[str, object] = {"max_bandwidth": Rates(**bandwidth)}
    if result.nodes == 1:
        update["bandwidth_per_client"] = Rates(**{direction: rate for direction, (rate, _) in best.items()})
        sources[f"{place}.bandwidth_per_client"] = f"{tool}, one node: at least"
    created, phase = _best(rates, "mdtest-easy-write", " file creation")
    if created is not None and created > (disk.metadata_ops_per_s or 0.0):
        update["metadata_ops_per_s"] = created
        sources[f"{place}.metadata_ops_per_s"] = f"{tool}, {phase}, {scale}: files created per second, at least"
    if disk.type == "unknown":
        sources[f"{place}.type"] = "not known: fill it in (lustre, gpfs, beegfs, nfs, ...)"
        if not disk.mounts:
            sources[f"{place}.mounts"] = "not known: fill it in, because the benchmark names no absolute path"
    disks[at] = disk.model_copy(update=update)
    return known.model_copy(update={"file_systems": disks, "sources": sources})


def _best(rates: dict[str, float], name: str, ending: str) -> tuple[float | None, str]:
    """The rate of a phase of IO500; without IO500, the highest rate of the phases whose names end so."""
    if name not in rates:
        name = max((key for key in rates if key.endswith(ending)), key=lambda key: rates[key], default="")
    return rates.get(name), name


def _counted(count: int | None, noun: str) -> str:
    return f"unknown ({noun})" if count is None else counted(count, noun)
