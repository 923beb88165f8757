"""Facts that only the running job knows; `collect` puts them into a `vani.job/1` document.

Every source has its own module, and reads below a root folder, which tests replace.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vani.collect import mounts, node
from vani.collect.dataset import Bounds, sample_dataset, type_of_values
from vani.collect.file_systems import read_ceph, read_gpfs, read_lustre
from vani.collect.scheduler import FIELDS, Allocation, read_scheduler
from vani.schema.job import Job, Limits, family_of_mount
from vani.schema.model import Model

__all__ = ["Bounds", "collect"]

_OF_MOUNTS = (
    "mounts", "node_local_bb_dirs", "node_local_memory_dirs", "shared_bb_dirs", "pfs_dirs", "lustre", "ceph",
    "gpfs",
)
_REASONS = {
    **dict.fromkeys(FIELDS, "not set by the scheduler"),
    "cpu_cores_per_node": "not in /proc/cpuinfo or /sys, and not set by the scheduler",
    "gpus_per_node": "not in /proc or /sys, and not set by the scheduler",
    "memory_per_node": "not in /proc/meminfo, and not set by the scheduler",
    "memory_used_per_node": "not in /proc/meminfo",
    **dict.fromkeys(_OF_MOUNTS, "/proc/self/mountinfo cannot be read"),
    "dataset": "no data set was named (`--dataset`)",
}


def collect(
    environment: Mapping[str, str] | None = None,
    root: Path = Path("/"),
    dataset: Path | None = None,
    *,
    bounds: Bounds | None = None,
    raw_type: str | None = None,
    programs: node.Ask | None = None,
) -> Job:
    """Collect facts from inside a job; values that cannot be determined are null, with reasons in `unknown`.

    Parameters
    ----------
    environment
        Variables; by default those of this process.
    root
        Folder to use as `/`: /proc, /sys and the mounts are read below it.
    dataset
        Folder or file of the input; it is searched within `bounds`, and its default layout is read.
    raw_type
        NumPy type name (`float32`) of the values in files of unknown format; without it, they are not read.
    programs
        Runs `lfs`, `ceph` and `mmlsfs`; by default the machine's own, and none if `root` is not `/`.

    Raises
    ------
    InputError
        There is no `dataset`, or no such type.
    """
    environment = os.environ if environment is None else environment
    is_real = root == Path("/")
    unknown: dict[str, str] = {}
    allocation = read_scheduler(environment, root)
    limits = node.read_limits(root)
    facts: dict[str, Any] = {
        **{name: getattr(allocation, name) for name in ("scheduler", *FIELDS)},
        "cpu_cores_per_node": _cores(allocation, limits, root),
        "gpus_per_node": _gpus(allocation, environment, root),
        "memory_per_node": _memory(allocation, limits, root),
        "memory_used_per_node": node.memory_used(root),
        "limits": limits,
    }
    facts |= _storage(environment, root, programs or (node.ask if is_real else None), unknown, dataset)
    if dataset is not None:
        type_ = type_of_values(raw_type) if raw_type is not None else None
        facts["dataset"] = sample_dataset(dataset, bounds or Bounds(), raw_type=type_, unknown=unknown)
    reasons = _REASONS | allocation.unknown | unknown
    # A dotted name belongs to a part, and is present only if the part is.
    missing = {name: why for name, why in reasons.items() if "[" in name or "." in name or facts.get(name) is None}
    return Job(**facts, unknown=missing)


def _storage(
    environment: Mapping[str, str],
    root: Path,
    programs: node.Ask | None,
    unknown: dict[str, str],
    dataset: Path | None,
) -> dict[str, Any]:
    listed = mounts.read_mounts(root, mounts.space_of if root == Path("/") else None)
    if listed is None:
        return {}
    local, shared = mounts.burst_buffer_dirs(
        environment, listed, lambda folder: (root / folder.lstrip("/")).is_dir()
    )
    facts: dict[str, Any] = {
        "mounts": listed,
        "node_local_bb_dirs": local,
        "node_local_memory_dirs": mounts.in_memory(local, listed),
        "shared_bb_dirs": shared,
        "pfs_dirs": mounts.parallel_dirs(listed, shared),
    }
    of_type = {
        kind: [mount for mount in listed if family_of_mount(mount.type) == kind]
        for kind in ("lustre", "ceph", "gpfs")
    }
    if programs is None:
        unknown |= {kind: "the machine's tools were not run" for kind, of_kind in of_type.items() if of_kind}
        return facts | {kind: [] for kind, of_kind in of_type.items() if not of_kind}
    places = mounts.places_of_data(dataset, environment, listed, here=root == Path("/"))
    answers: dict[str, Sequence[tuple[Model, list[str]]]] = {
        "lustre": [read_lustre(mount.dir, programs, places.get(mount.dir)) for mount in of_type["lustre"]],
        "ceph": [read_ceph(mount.dir, programs, places.get(mount.dir)) for mount in of_type["ceph"]],
        "gpfs": [read_gpfs(mount.dir, mount.device or mount.dir, programs) for mount in of_type["gpfs"]],
    }
    for kind, answered in answers.items():
        unknown |= {f"{kind}[{i}]": "; ".join(reasons) for i, (_, reasons) in enumerate(answered) if reasons}
    return facts | {kind: [fact for fact, _ in answered] for kind, answered in answers.items()}


def _cores(allocation: Allocation, limits: Limits, root: Path) -> int | None:
    if allocation.cpus_are_cores and allocation.cpus_per_node:
        return allocation.cpus_per_node
    cores = node.count_cores(root, node.allowed_cpus(root)) or allocation.cpus_per_node
    if cores is None or limits.cpus is None:
        return cores
    return min(cores, max(int(limits.cpus), 1))


def _gpus(allocation: Allocation, environment: Mapping[str, str], root: Path) -> int | None:
    if allocation.gpus_per_node is not None:
        return allocation.gpus_per_node
    visible = node.visible_gpus(environment)
    return node.count_gpus(root) if visible is None else visible


def _memory(allocation: Allocation, limits: Limits, root: Path) -> int | None:
    sizes = [allocation.memory_per_node, limits.memory, node.memory_bytes(root)]
    return min((size for size in sizes if size is not None), default=None)
