"""Storage nearer to a job than the file system: what fits there, and how long the I/O would take.

Staging decision (mpiFileUtils and burst-buffer practice): copying F distinct bytes in, to read R bytes, pays if

    T_stage + T_local < T_now,   T_stage = F' / min(file system's read rate, nodes * local write rate)
    T_local = R / (nodes * local read rate) + operations * t_op / c

and the data is read at least twice, in small pieces, or with much metadata. F' is F if each node gets its
part, and nodes * F if each gets everything. t_op is the time of a call served by the node's memory. c is the mean
number of processes in I/O at the same time in the traced run (time summed over processes / time in which any was).

The model of the present file system is

    T_now = R / min(B_r, nodes * b) + W / min(B_w, nodes * b) + metadata operations / their rate

where B are the rates of the whole file system and b that of a node (of its client, or else its network). There is an
expected gain only if this explains the trace (see `calibration.py`), so not for requests that wait for latencies, locks
or a cache, which the model does not have. The Vani paper's results on Lassen's shared memory, 2.2 to 4.6 times faster
I/O for preloaded inputs (figure 7) and 3.9 to 8 for intermediate files (figure 8), are only quoted.
"""

from __future__ import annotations

import math
import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from vani.models.calibration import certainty
from vani.models.run_time import seconds
from vani.units import GiB, format_bytes, format_share

if TYPE_CHECKING:
    from vani.schema.profile import FileEntity, IOStats, Profile
    from vani.schema.system import BurstBuffer, FileSystem, System

# Linux typically serves a call from memory in 1 to 2 µs (general knowledge).
OPERATION_S = 2e-6
"""t_op: seconds of a call on a file in the node's memory."""

_ON_THE_NODE = ("/dev/shm", "/tmp", "/var/tmp")
"""Folders that are on the node itself by convention (Filesystem Hierarchy Standard)."""


UNKNOWN_MEMORY: Final = GiB
"""Most bytes that are put into a node's memory if its size is unknown (our choice)."""


@dataclass(frozen=True)
class Tier:
    """Storage near the compute nodes.

    `capacity` is the usable bytes, per node for a `node_local` tier and in total for a `shared` one; None if unknown.
    `read` and `write` are bytes per second of one node, `most_*` of the whole machine. If `certainty` is below 1,
    `because` states the assumption as part of a sentence.
    """

    name: str
    kind: str
    type: str
    dir: str | None
    uses_memory: bool
    capacity: int | None
    read: float | None
    write: float | None
    most_read: float | None = None
    most_write: float | None = None
    request: tuple[str, ...] = ()
    evidence: tuple[tuple[str, int | None], ...] = ()
    certainty: float = 1.0
    because: str = ""

    @property
    def is_shared(self) -> bool:
        return self.kind == "shared"

    @property
    def plain_dir(self) -> str | None:
        """The folder, if it is an absolute path without variables and can be used literally; otherwise None."""
        return self.dir if self.dir is not None and self.dir.startswith("/") and "$" not in self.dir else None

    def room(self, nodes: int) -> int | None:
        """Bytes that a job of `nodes` nodes may put there; None if unknown."""
        return self.capacity if self.is_shared or self.capacity is None else self.capacity * nodes

    def reads(self, nodes: int) -> float | None:
        """Bytes per second that `nodes` nodes together read from it; None if unknown."""
        return _together(self.read, self.most_read, nodes)

    def writes(self, nodes: int) -> float | None:
        """Bytes per second that `nodes` nodes together write to it; None if unknown."""
        return _together(self.write, self.most_write, nodes)


def tiers(profile: Profile, system: System, *, spare: float, memory_share: float) -> list[Tier]:
    """All tiers, the nearest first.

    Parameters
    ----------
    spare
        Share of a tier that must stay free, 0..1.
    memory_share
        Share of a node's memory that files may take if the program's own use is unknown.
    """
    usable = [
        _described(index, near, profile, system, spare=spare, memory_share=memory_share)
        for index, near in enumerate(system.burst_buffers)
    ]
    if not any(not tier.is_shared for tier in usable):
        guessed = _undescribed(profile, system, spare=spare, memory_share=memory_share)
        usable += [guessed] if guessed is not None else []
    return usable


def choose(
    candidates: Sequence[Tier], *, total: int, nodes: int, shared: bool, per_node: int | None = None
) -> Tier | str:
    """The nearest tier with room for the bytes, or why there is none, as part of a sentence.

    There are `total` bytes over all nodes and `per_node` on each (default: evenly). With `shared`, all nodes must see
    the same files, which rules out node-local storage for more than one node.
    """
    refused: list[str] = []
    share = math.ceil(total / nodes) if per_node is None else per_node
    for tier in candidates:
        if shared and not tier.is_shared and nodes != 1:
            refused.append(f"{tier.name} is seen by one node only, and other nodes need the same files")
            continue
        wanted = total if tier.is_shared else share
        if tier.capacity is None and tier.uses_memory and wanted > UNKNOWN_MEMORY:
            refused.append(
                f"{tier.name} is memory of unknown size, and {format_bytes(wanted)} may not fit: supply --job job.yaml "
                "of `vani collect`, or a system.yaml with memory_per_node"
            )
            continue
        if tier.capacity is not None and wanted > tier.capacity:
            per = "" if tier.is_shared else " per node"
            refused.append(
                f"{format_bytes(wanted)}{per} do not fit in {tier.name}, where {format_bytes(tier.capacity)}"
                f"{per} may be used"
            )
            continue
        return tier
    return "; ".join(dict.fromkeys(refused)) or "the machine has no storage nearer than the file system"


def is_near(path: str, profile: Profile, system: System) -> bool:
    """True if the file is already on a burst buffer or on the node itself."""
    if system.burst_buffer_for(path) is not None:
        return True
    folders = [*(profile.job.node_local_bb_dirs or ()), *(profile.job.shared_bb_dirs or ()), *_ON_THE_NODE]
    near = max((len(folder) for folder in folders if is_below(path, folder)), default=0)
    disk = system.file_system_for(path)
    mounts = [*(disk.mounts if disk is not None else ()), profile.storage.shared.dir or ""]
    # Without a description, the whole tree except /tmp counts as one file system.
    return near > max((len(mount) for mount in mounts if mount and is_below(path, mount)), default=0)


def file_system_of(files: Iterable[FileEntity], system: System) -> tuple[FileSystem | None, str]:
    """The files' file system, or else the first one, and its path in the description."""
    for file in files:
        file_system = system.file_system_for(file.path)
        if file_system is not None:
            return file_system, f"system.file_systems[{system.file_systems.index(file_system)}]"
    return (system.file_systems[0], "system.file_systems[0]") if system.file_systems else (None, "system")


def read_rate(disk: FileSystem | None, profile: Profile) -> float | None:
    """Bytes per second that the whole file system delivers; None if unknown."""
    return (disk.max_bandwidth.read if disk else None) or profile.storage.shared.max_bandwidth


def write_rate(disk: FileSystem | None, profile: Profile) -> float | None:
    """Bytes per second that the whole file system absorbs; None if unknown."""
    return (disk.max_bandwidth.write if disk else None) or profile.storage.shared.max_bandwidth


def local_s(
    tier: Tier, *, read: int, written: int, operations: float, nodes: int, concurrency: float
) -> float | None:
    """T_local: seconds for the same I/O on the tier; None if a rate that it needs is unknown."""
    seconds = operations * OPERATION_S / max(1.0, concurrency)
    for size, rate in ((read, tier.reads(nodes)), (written, tier.writes(nodes))):
        if size and not rate:
            return None
        seconds += size / rate if size and rate else 0.0
    return seconds


def present_s(
    disk: FileSystem | None,
    profile: Profile,
    system: System,
    *,
    read: int,
    written: int,
    metadata: float,
    nodes: int,
) -> float | None:
    """T_now: seconds that the present I/O should take on the file system; None if a rate is unknown."""
    seconds = 0.0
    for size, rate, of_client in (
        (read, read_rate(disk, profile), disk.bandwidth_per_client.read if disk else None),
        (written, write_rate(disk, profile), disk.bandwidth_per_client.write if disk else None),
    ):
        whole = _together(of_client or system.network.bandwidth_per_node, rate, nodes)
        if size and (not rate or not whole):
            return None
        seconds += size / whole if size and whole else 0.0
    served = disk.metadata_ops_per_s if disk else None
    return seconds + (metadata / served if served else 0.0)


def concurrency(io: IOStats) -> float:
    """c: mean number of processes in I/O at the same time; 1 if there was no I/O."""
    return seconds(io.time_s.total) / seconds(io.busy_s.total) if seconds(io.busy_s.total) > 0 else 1.0


def common_folder(paths: Iterable[str]) -> str:
    """The deepest folder above all paths; `.` if they share none."""
    folders = [posixpath.dirname(path) for path in paths]
    if not folders or len({folder.startswith("/") for folder in folders}) > 1:
        return "."
    return posixpath.commonpath(folders) or "."


def _described(
    index: int, near: BurstBuffer, profile: Profile, system: System, *, spare: float, memory_share: float
) -> Tier:
    where = f"system.burst_buffers[{index}]"
    is_node = near.kind == "node_local"
    key = "capacity_per_node" if is_node else "capacity"
    size = near.capacity_per_node if is_node else near.capacity
    figure = (f"{where}.{key}", size)
    of_profile = profile.storage.node_local.capacity_per_node
    if (
        is_node
        and near is system.node_local()
        and of_profile is not None
        and (size is None or of_profile < size)
    ):
        # The profile's figure is from this job; the description's is for any job.
        size, figure = of_profile, ("storage.node_local.capacity_per_node", of_profile)
    sure = certainty(system)
    because = f"the figures are typical of {system.name}" if system.generic else ""
    if size is None and is_node and near.in_memory:
        size, figure, because = _part_of_memory(profile, system, memory_share)
        sure = min(sure, 0.7)
    return Tier(
        name=near.dir or near.name,
        kind=near.kind,
        type=near.type.lower(),
        dir=near.dir,
        uses_memory=near.in_memory,
        capacity=None if size is None else int(size * (1 - spare)),
        read=near.bandwidth_per_node.read,
        write=near.bandwidth_per_node.write,
        most_read=near.max_bandwidth.read,
        most_write=near.max_bandwidth.write,
        request=tuple(near.request),
        evidence=(figure,) if size is not None else (),
        certainty=sure,
        because=because,
    )


def _undescribed(profile: Profile, system: System, *, spare: float, memory_share: float) -> Tier | None:
    """The node's storage that the job saw, or else shared memory, which every Linux has."""
    dirs = profile.job.node_local_bb_dirs
    local = profile.storage.node_local
    if dirs == [] and local.dir is None:
        return None
    folder = (dirs[0] if dirs else None) or local.dir
    known = local.type if folder == local.dir else None
    in_memory = folder is None or (is_below(folder, "/dev/shm") if known is None else local.in_memory)
    size: int | None = local.capacity_per_node
    figure, because, certainty = ("storage.node_local.capacity_per_node", size), "", 0.9
    if folder is None:
        because, certainty = "no storage of the node is described, and /dev/shm is on every Linux node", 0.5
    if size is None and in_memory:
        size, figure, assumption = _part_of_memory(profile, system, memory_share)
        because, certainty = "; ".join(part for part in (because, assumption) if part), min(certainty, 0.7)
    return Tier(
        name=folder or "/dev/shm",
        kind="node_local",
        type=known or ("tmpfs" if in_memory else "disk"),
        dir=folder or "/dev/shm",
        uses_memory=in_memory,
        capacity=None if size is None else int(size * (1 - spare)),
        read=local.max_bandwidth_per_node,
        write=local.max_bandwidth_per_node,
        evidence=(figure,) if size is not None else (),
        certainty=certainty,
        because=because,
    )


def _part_of_memory(
    profile: Profile, system: System, share: float
) -> tuple[int | None, tuple[str, int | None], str]:
    """Bytes of a node's memory that files may take, the figure behind it, and the assumption."""

    known = (
        ("job.memory_per_node", profile.job.memory_per_node),
        ("middleware.memory_per_node", profile.middleware.memory_per_node),
        ("system.compute.memory_per_node", system.compute.memory_per_node),
    )
    for name, memory in known:
        if memory:
            assumption = (
                f"how much memory the program leaves is not known, {format_share(share)} of the node's is assumed"
            )
            used = profile.middleware.memory_used_share
            if used is not None and 1 - used < share:
                share, assumption = 1 - used, f"{format_share(used)} of the node's memory was in use"
            return int(memory * share), (name, memory), assumption
    return None, ("", None), "its size is not known: look with `df -h` on a compute node"


def _together(of_node: float | None, of_all: float | None, nodes: int) -> float | None:
    rates = [rate for rate in (of_node and of_node * nodes, of_all) if rate]
    return min(rates) if rates else None


def is_below(path: str, folder: str) -> bool:
    """True if `path` is `folder` or inside it, by name only."""
    path, folder = posixpath.normpath(path), posixpath.normpath(folder).rstrip("/")
    return path == folder or path.startswith(folder + "/")
