"""Facts that a machine reveals about itself; `detect` puts them into a `vani.system/2` document.

It runs on a login or compute node, as any user. Each program is optional; without it, its figures are null,
and `sources` names the missing one. Rates are null, except the network's and those measured in one folder.
"""

import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any, Final

from vani.collect import mounts
from vani.collect.file_systems import read_ceph, read_gpfs, read_lustre, read_software
from vani.collect.node import Ask, NoAnswer, ask, count_cores, count_gpus, entries, memory_bytes, read
from vani.collect.scheduler import read_scheduler
from vani.collect.transfer_test import Measurement
from vani.schema.benchmark import Benchmark
from vani.schema.job import IN_MEMORY, Mount, family_of_mount, is_below
from vani.schema.system import FileSystem, Rates, StripeCurve, System
from vani.units import counted

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
        Runs `lfs`, `lctl`, `ceph`, `mmlsfs`, `scontrol`; by default the machine's own, and none if `root` is not `/`.
    measured
        Rates of one node in a folder: those of its file system or burst buffer.
    curves
        Rates by stripe count in the folder of `measured`, one for each pattern.

    Returns
    -------
    tuple
        The description, and a sentence for each fact that could not be determined.
    """
    is_real = root == Path("/")
    machine = _Machine(
        os.environ if environment is None else environment, root, programs or (ask if is_real else _no_answer)
    )
    return machine.described(data, measured, curves)


def parse_burst_buffers(text: str) -> list[tuple[str, int | None]]:
    """Name and capacity in bytes of each burst buffer that `scontrol show burst` prints."""
    buffers = []
    for block in re.split(r"(?m)^(?=Name=)", text):
        if name := re.search(r"(?m)^Name=(\S+)", block):
            # Slurm, burst_buffer.conf(5): K, M, G, T, P and KiB... are powers of 1024.
            space = re.search(r"\bTotalSpace=(\d{1,15}(?:\.\d+)?)(?![\d.])([KMGTP]?)", block)
            size = round(float(space[1]) * _UNITS[space[2]]) if space else None
            buffers.append((name[1], size))
    return buffers


def _no_answer(command: list[str]) -> str:
    raise NoAnswer(f"{command[0]} was not run")


class _Machine:
    """Finds the facts, the source of each, and the reasons for missing ones."""

    def __init__(self, environment: Mapping[str, str], root: Path, programs: Ask) -> None:
        self.environment, self.root, self.programs = environment, root, programs
        self.sources: dict[str, str] = {}
        self.missing: list[str] = []
        known = mounts.read_mounts(root, mounts.space_of if root == Path("/") else None)
        if known is None:
            self.missing.append("/proc/self/mountinfo cannot be read: no file system is known")
        self.mounts = known or []
        self.near, self.shared_near = mounts.burst_buffer_dirs(
            environment, self.mounts, lambda folder: (root / folder.lstrip("/")).is_dir()
        )
        self.disks: list[dict[str, Any]] = []
        self.buffers: list[dict[str, Any]] = []

    def described(
        self, data: Path | None, measured: Measurement | None, curves: Sequence[StripeCurve]
    ) -> tuple[System, list[str]]:
        """See `detect`."""
        self.sources["compute"] = "/proc and /sys of the node on which `vani systems detect` ran"
        self.sources["compute.nodes"] = "not known: a node cannot see their number"
        self._find_disks(mounts.places_of_data(data, self.environment, self.mounts, here=self.root == Path("/")))
        self._find_buffers()
        facts: dict[str, Any] = {
            "name": self._name(),
            "description": "Found by `vani systems detect`; "
            f"{'other ' if measured else ''}rates are not measured: fill them in",
            "compute": {
                "cores_per_node": count_cores(self.root),
                "memory_per_node": memory_bytes(self.root),
                "gpus_per_node": count_gpus(self.root),
            },
            "network": self._network(),
            "scheduler": self._scheduler(),
        }
        if measured is not None:
            self._fill_in(measured, curves)
        types = {disk["type"] for disk in self.disks}
        for kind, tool in (("lustre", "lfs"), ("gpfs", "mmlsfs")):
            if kind not in types:
                self.missing.append(f"no {kind} is mounted here: {tool} was not run")
        if not self.disks:
            self.missing.append("no shared file system is mounted here (Lustre, GPFS, BeeGFS, NFS, ...)")
        facts |= {"file_systems": self.disks, "burst_buffers": self.buffers, "sources": self.sources}
        return System(**facts), self.missing

    def _name(self) -> str:
        named = next(filter(None, (self.environment.get(variable) for variable in _CLUSTER)), None)
        return named or (read(self.root / "proc/sys/kernel/hostname") or "").strip() or "this-machine"

    def _find_disks(self, places: dict[str, str]) -> None:
        """Parallel file systems first, the largest first; mounts of one device are one file system."""
        by_device: dict[tuple[str, str], list[Mount]] = {}
        for mount in self.mounts:
            is_near = any(is_below(folder, mount.dir) and mount.dir != "/" for folder in self.shared_near)
            if mount.type in mounts.SHARED and not is_near:
                by_device.setdefault(_device(mount), []).append(mount)
        ordered = sorted(
            by_device.items(), key=lambda item: (item[0][0] not in mounts.PARALLEL, -(item[1][0].capacity or 0))
        )
        for (kind, device), same in ordered:
            place = f"file_systems[{len(self.disks)}]"
            facts: dict[str, Any] = {
                "name": _unique(PurePosixPath(device.rpartition(":")[2]).name or same[0].dir, self.disks),
                "type": family_of_mount(kind),
                "mounts": [mount.dir for mount in same],
                "capacity": same[0].capacity,
            }
            self.sources[place] = "/proc/self/mountinfo and statvfs"
            data = next((places[mount.dir] for mount in same if mount.dir in places), None)
            if kind == "lustre":
                facts |= self._lustre(same[0], data, place)
            elif facts["type"] == "ceph":
                facts |= self._ceph(same[0], data, place)
            elif kind == "gpfs":
                facts |= self._gpfs(same[0], place)
            self.disks.append(facts)

    def _lustre(self, mount: Mount, data: str | None, place: str) -> dict[str, Any]:
        """Facts from `lfs` and `lctl`, which do not know the site's policies (`layout_policy`, rules)."""
        folder = mount.dir
        lustre, problems = read_lustre(folder, self.programs, data)
        software = read_software(mount.device or folder, self.programs)
        first = re.match(r"-E (\d+) -L mdt\b", lustre.layout or "")
        df, layout = f"lfs df {folder}", f"lfs getstripe -d {lustre.layout_dir or folder}"
        dom = f"{layout}: its first component; the limit (lod.*.dom_stripesize) may be larger"
        why = "; ".join(dict.fromkeys(problems))
        facts: dict[str, Any] = {}
        for key, value, command, is_asked in (
            ("targets", lustre.osts, df, True),
            ("metadata_targets", lustre.mdts, df, True),
            ("metadata_capacity", lustre.mdt_capacity, df, False),
            ("metadata_free", lustre.mdt_free, df, False),
            ("stripe_count", lustre.stripe_count, layout, True),
            ("stripe_size", lustre.stripe_size, layout, True),
            ("site_pfl", lustre.layout, layout, True),
            ("dom_size", int(first[1]) if first else None, dom, False),
            ("version", software.version, software.why, False),
            ("overstriping", software.overstriping, software.why, False),
            ("capacity", lustre.capacity, df, False),
        ):
            if value is not None or key != "capacity":
                facts[key] = value
            if value is not None or (is_asked and why):
                self.sources[f"{place}.{key}"] = command if value is not None else f"not known: {why}"
        if software.overstriping is None:
            self.sources[f"{place}.overstriping"] = f"not known: {software.why}"
            problems = problems or [f"overstriping: {software.why}"]
        self.missing += [f"{folder}: {problem}" for problem in dict.fromkeys(problems)]
        return facts

    def _ceph(self, mount: Mount, data: str | None, place: str) -> dict[str, Any]:
        ceph, problems = read_ceph(mount.dir, self.programs, data)
        keys = {"stripe_count": "stripe_count", "stripe_size": "stripe_unit", "object_size": "object_size"}
        layout = {key: getattr(ceph.layout, name, None) for key, name in keys.items()}
        self._give_sources(place, layout, f"ceph.dir.layout of {ceph.layout_dir}", problems)
        self._give_sources(place, {"targets": ceph.osds}, "ceph osd stat: OSDs in use", problems)
        self.missing += [f"{mount.dir}: {problem}" for problem in problems]
        return {**layout, "targets": ceph.osds}

    def _gpfs(self, mount: Mount, place: str) -> dict[str, Any]:
        gpfs, problems = read_gpfs(mount.dir, mount.device or mount.dir, self.programs)
        sizes = {"block_size": gpfs.block_size, "subblock_size": gpfs.subblock_size}
        self._give_sources(place, sizes, f"mmlsfs {gpfs.device}", problems or ["mmlsfs does not print it"])
        self.missing += [f"{mount.dir}: {problem}" for problem in problems]
        return {**sizes, "version": gpfs.version}

    def _give_sources(self, place: str, facts: Mapping[str, Any], source: str, problems: Sequence[str]) -> None:
        for key, value in facts.items():
            self.sources[f"{place}.{key}"] = source if value is not None else f"not known: {'; '.join(problems)}"

    def _find_buffers(self) -> None:
        """Node-local storage in the order of `burst_buffer_dirs`, then storage that nodes share."""
        variables = {folder: name for name, folder in self.environment.items() if folder.startswith("/")}
        near = [(folder, "node_local") for folder in self.near] + [(folder, "shared") for folder in self.shared_near]
        for folder, kind in near:
            mount = mounts.mount_of(folder, self.mounts)
            variable = variables.get(folder, "")
            if variable.startswith(("DW_JOB_STRIPED", "DW_JOB_PRIVATE", "DW_PERSISTENT_STRIPED")):
                type_ = "datawarp"
            elif variable.startswith("DW_"):
                type_ = "rabbit"
            elif "beeond" in f"{folder} {mount.device if mount else ''}":
                type_ = "beeond"
            else:
                type_ = mount.type if mount else "unknown"
            # The path of files created for a job contains the job's number.
            by = f"${variable}" if variable else "/proc/self/mountinfo"
            uses_memory = mount is not None and mount.type in IN_MEMORY
            what = f": {mount.type}, files in the node's memory" if mount and uses_memory else ""
            facts = {"kind": kind, "type": type_, "dir": folder, "uses_memory": uses_memory}
            if mount is not None and kind == "node_local":
                facts["capacity_per_node"] = mount.capacity
            self._add_buffer(PurePosixPath(folder).name or "root", facts, f"{by}, on one node{what}")

    def _add_buffer(self, name: str, facts: Mapping[str, Any], source: str) -> dict[str, Any]:
        self.sources[f"burst_buffers[{len(self.buffers)}]"] = source
        self.buffers.append({"name": _unique(name, self.buffers), **facts})
        return self.buffers[-1]

    def _fill_in(self, measured: Measurement, curves: Sequence[StripeCurve]) -> None:
        """Insert the rates for the folder: on a shared file system, else on node-local storage, new if necessary."""
        folder = os.path.realpath(measured.folder)
        rates = {"read": measured.read, "write": measured.write}
        when = f"measured in {folder} on {date.today().isoformat()}"
        source = f"{when}: {'; '.join((measured.method, *measured.notes))}"
        mount = mounts.mount_of(folder, self.mounts)
        for index, disk in enumerate(self.disks):
            if mount is not None and mount.dir in disk["mounts"]:
                disk["bandwidth_per_client"] = rates
                self.sources[f"file_systems[{index}].bandwidth_per_client"] = source
                if curves:
                    disk["stripe_curves"] = [curve.model_dump() for curve in curves]
                    self.sources[f"file_systems[{index}].stripe_curves"] = (
                        f"{when} from {counted(curves[0].nodes, 'node')}, flushed; collective: stripes in turn, "
                        "without MPI-IO's data exchange"
                    )
                return
        same = [buffer for buffer in self.buffers if mount is not None and self._is_on(buffer, mount)]
        if not same:
            facts = {"kind": "node_local", "type": mount.type if mount else "unknown", "dir": folder}
            same = [self._add_buffer(PurePosixPath(folder).name or "root", facts, "the measured folder")]
        for buffer in same:
            buffer["bandwidth_per_node"] = rates
            self.sources[f"burst_buffers[{self.buffers.index(buffer)}].bandwidth_per_node"] = source

    def _is_on(self, buffer: Mapping[str, Any], mount: Mount) -> bool:
        of_buffer = mounts.mount_of(buffer["dir"], self.mounts) if buffer.get("dir") else None
        return of_buffer is not None and _device(of_buffer) == _device(mount)

    def _scheduler(self) -> str | None:
        """Name the scheduler, and add Slurm's burst buffers with the line that requests each."""
        inside = read_scheduler(self.environment, self.root).scheduler
        try:
            listed = parse_burst_buffers(self.programs(["scontrol", "show", "burst"]))
        except NoAnswer as error:
            if inside in (None, "slurm"):
                self.missing.append(f"burst buffers of the scheduler: {error}")
            if inside is None:
                self.missing.append("not inside a job: the scheduler's job variables are not set")
            unknown = f"not known: not inside a job, and {error}"
            self.sources["scheduler"] = "the environment of the job" if inside else unknown
            return inside
        self.sources["scheduler"] = "the environment of the job" if inside else "scontrol answers"
        for name, size in listed:
            kind = name.partition("/")[0]
            request = ["#DW jobdw type=scratch capacity=SIZE access_mode=striped"] if kind == "datawarp" else []
            same = next((buffer for buffer in self.buffers if buffer["type"] == kind), None)
            if same is None:
                same = self._add_buffer(name, {"kind": "shared", "type": kind}, "scontrol show burst")
            same |= {"capacity": size, "request": request}
            self.sources[f"burst_buffers[{self.buffers.index(same)}].capacity"] = "scontrol show burst"
        return inside or "slurm"

    def _network(self) -> dict[str, Any]:
        """All of the node's InfiniBand or Omni-Path ports together, or else its fastest Ethernet port."""
        rates, kind = [], None
        for device in entries(self.root / "sys/class/infiniband"):
            for port in entries(device / "ports"):
                match = re.match(r"(\d+(?:\.\d+)?) Gb/sec(?: \((.*)\))?", read(port / "rate") or "")
                if match and "ACTIVE" in (read(port / "state") or "ACTIVE"):
                    rates.append(float(match[1]))
                    kind = match[2] or kind
        if rates:
            self.sources["network"] = "/sys/class/infiniband: sum of the rates of active ports"
            return {"type": kind, "bandwidth_per_node": sum(rates) * 1e9 / 8}
        speeds = []
        for card in entries(self.root / "sys/class/net"):
            text = (read(card / "speed") or "").strip()
            if text.isdecimal() and int(text) > 0 and (card / "device").exists():
                speeds.append(int(text))
        if not speeds:
            self.sources["network"] = "not known: not in /sys/class/infiniband or /sys/class/net"
            return {}
        self.sources["network"] = "/sys/class/net: speed of the fastest card"
        return {"type": "ethernet", "bandwidth_per_node": max(speeds) * 1e6 / 8}


def _unique(name: str, named: Sequence[Mapping[str, Any]]) -> str:
    taken, number, unique = {entry["name"] for entry in named}, 2, name
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    return unique


def _device(mount: Mount) -> tuple[str, str]:
    return mount.type, mount.device or mount.dir


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
