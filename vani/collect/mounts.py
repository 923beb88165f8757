"""File systems that the job sees, and which of them are close to the node.

Source: proc(5) on `mountinfo`: fields are separated by blanks, which are octal escapes inside fields.
"""

import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from vani.collect.node import read
from vani.schema.job import IN_MEMORY, Mount, is_below

PARALLEL: Final = {
    "lustre",
    "gpfs",
    "beegfs",
    "panfs",
    "wekafs",
    "orangefs",
    "pvfs2",
    "fuse.dfuse",
    "fhgfs",
    "quobyte",
    "ceph",
    "fuse.ceph",
    "fuse.ceph-fuse",
}
"""Types of parallel file systems."""

SHARED: Final = PARALLEL | {"nfs", "nfs4", "cifs", "smb3", "9p", "dvs", "fuse.sshfs"}
"""Types of file systems on which all nodes can store the same files."""
_REMOTE: Final = SHARED | {"afs", "fuse.cvmfs2"}
_LOCAL: Final = {*IN_MEMORY, "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "overlay", "f2fs", "gfs2"}
_SYSTEM_DIRS: Final = ("/proc", "/sys", "/run", "/etc", "/boot", "/usr", "/lib", "/dev")

Space = tuple[int, int]
"""Total bytes, and bytes that the user may still write."""


def read_mounts(root: Path = Path("/"), space: Callable[[str], Space | None] | None = None) -> list[Mount] | None:
    """List the mounts that may contain data; None if the kernel's list cannot be read.

    `space` returns the capacity of a mount point; without it, capacities are null.
    """
    text = read(root / "proc/self/mountinfo")
    if text is None:
        return None
    mounts: dict[str, Mount] = {}
    for line in text.splitlines():
        before, separator, behind = line.partition(" - ")
        fields, source = before.split(" "), behind.split(" ")
        if not separator or len(fields) < 5 or len(source) < 2:
            continue
        folder, kind = _unescape(fields[4]), source[0]
        if kind not in _REMOTE | _LOCAL or (folder != "/dev/shm" and _is_system(folder)):
            continue
        # A later mount on the same folder hides an earlier one.
        mounts[folder] = Mount(dir=folder, type=kind, device=_unescape(source[1]))
    listed = sorted(mounts.values(), key=lambda mount: mount.dir)
    return [_with_space(mount, space(mount.dir)) for mount in listed] if space else listed


def parallel_dirs(mounts: Iterable[Mount], shared_bb_dirs: Iterable[str]) -> list[str]:
    """Mount points of parallel file systems that are not burst buffers of the job."""
    near = list(shared_bb_dirs)
    return [
        mount.dir
        for mount in mounts
        if mount.type in PARALLEL
        and not any(is_below(near_dir, mount.dir) and mount.dir != "/" for near_dir in near)
    ]


def burst_buffer_dirs(
    environment: Mapping[str, str], mounts: Iterable[Mount], exists: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Find folders of fast storage: on the node itself, and shared by the nodes of the job.

    Considers the variables of DataWarp (`DW_JOB_STRIPED`, `DW_JOB_PRIVATE`, `DW_PERSISTENT_STRIPED_*`),
    Rabbit (`DW_JOB_<name>`), Slurm and LSF, and the usual places. A folder on a network file system
    does not belong to the node.
    """
    mounts = list(mounts)
    local: dict[str, None] = {}
    shared: dict[str, None] = {}
    for name, folder in sorted(environment.items()):
        if not (name.startswith(("DW_JOB_", "DW_PERSISTENT_")) and folder.startswith("/")):
            continue
        if name == "DW_JOB_STRIPED" or name.startswith("DW_PERSISTENT_"):
            shared[folder] = None
        elif name == "DW_JOB_PRIVATE":
            local[folder] = None
        else:
            (shared if _type_of(folder, mounts) in _REMOTE else local)[folder] = None
    shared.update(
        (m.dir, None) for m in mounts if m.type in ("beegfs", "fhgfs") and "beeond" in f"{m.dir} {m.device}"
    )
    shared.update((folder, None) for folder in ("/unifyfs",) if any(m.dir == folder for m in mounts))
    user = environment.get("USER", "")
    named = [
        environment.get(name, "")
        for name in ("SLURM_TMPDIR", "LOCAL_SCRATCH", "JOBLOCAL", "BBPATH", "TMPDIR")
    ]
    usual = ["/dev/shm", *named, f"/mnt/bb/{user}" if user else "", "/l/ssd", "/local/scratch", "/tmp"]
    for folder in usual:
        near = folder.startswith("/") and _type_of(folder, mounts) not in _REMOTE and exists(folder)
        if near and folder.rstrip("/") not in local:
            local[folder.rstrip("/") or "/"] = None
    return list(local), list(shared)


def in_memory(folders: Iterable[str], mounts: Iterable[Mount]) -> list[str]:
    """Folders whose files are in the node's memory."""
    mounts = list(mounts)
    return [folder for folder in folders if _type_of(folder, mounts) in IN_MEMORY]


def places_of_data(
    dataset: Path | None, environment: Mapping[str, str], mounts: Iterable[Mount], *, here: bool
) -> dict[str, str]:
    """Find the folder of the job's data by mount point: the user's, or else the job's working folder.

    Parameters
    ----------
    dataset
        Folder or file that the user named.
    here
        Whether this process's working folder counts as the job's.
    """
    places: dict[str, str] = {}
    mounts = list(mounts)
    folders = [str(dataset.parent if dataset.is_file() else dataset)] if dataset is not None else []
    folders += ["."] if here else []
    folders += [environment.get(name, "") for name in ("SLURM_SUBMIT_DIR", "PBS_O_WORKDIR", "LS_SUBCWD")]
    for folder in filter(None, folders):
        try:
            # `lfs` gets the real folder, with links resolved.
            real = os.path.realpath(folder) if here else folder
        except OSError:  # this process's working folder is gone
            continue
        mount = mount_of(real, mounts) if real.startswith("/") else None
        if mount is not None:
            places.setdefault(mount.dir, real)
    return places


def space_of(folder: str, timeout_s: float = 5.0) -> Space | None:
    """Query the size of a file system; None if it does not answer in time, or has no size.

    A dead server blocks the call forever, so it is made in a thread for which the process does not wait.
    """
    answer: list[Space] = []

    def ask() -> None:
        try:
            status = os.statvfs(folder)
        except OSError:
            return
        # ramfs and rootfs have no limit, and report 0.
        if status.f_blocks:
            answer.append((status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize))

    thread = threading.Thread(target=ask, daemon=True, name="statvfs")
    thread.start()
    thread.join(timeout_s)
    return answer[0] if answer else None


def _with_space(mount: Mount, space: Space | None) -> Mount:
    return mount if space is None else mount.model_copy(update={"capacity": space[0], "free": space[1]})


def mount_of(folder: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that a folder is on; None if it is on none of them."""
    above = [mount for mount in mounts if is_below(folder, mount.dir)]
    return max(above, key=lambda mount: len(mount.dir), default=None)


def _type_of(folder: str, mounts: Iterable[Mount]) -> str | None:
    mount = mount_of(folder, mounts)
    return mount.type if mount is not None else None


def _is_system(folder: str) -> bool:
    return any(is_below(folder, system) for system in _SYSTEM_DIRS)


def _unescape(field: str) -> str:
    raw = re.sub(rb"\\([0-7]{3})", lambda match: bytes([int(match[1], 8) & 255]), field.encode())
    return raw.decode(errors="backslashreplace")
