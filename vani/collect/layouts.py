"""Layouts that `vani tune` can try in a folder: other values than the present ones, on the file systems that have some.

Each family has one function, which returns the layouts, the most promising first. A layout is in the form of
`schema.tuned.Setting.layout`: options of `lfs setstripe`, or a command to which the folder is appended.
`file_systems.layout_problem` checks it, `render.script` sets and undoes it; a new family extends all three.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from vani.collect.file_systems import read_ceph, read_lustre
from vani.collect.mounts import mount_of, read_mounts
from vani.collect.node import Ask, NoAnswer, ask
from vani.models.striping import CEPH_DEFAULT, ObjectLayout
from vani.schema.job import Mount, family_of_mount
from vani.units import MiB, lfs_size, parse_bytes


def layouts_of(folder: Path, *, programs: Ask = ask, root: Path = Path("/")) -> list[str]:
    """Layouts that new files in a folder can get, other than the present one; none where it cannot be read.

    Parameters
    ----------
    programs
        Runs the file system's programs (`lfs`, `beegfs-ctl`).
    root
        Folder to use as `/`: the list of mounts is read below it.
    """
    mount = mount_of(os.path.realpath(folder), read_mounts(root) or [])
    family = None if mount is None else _FAMILIES.get(family_of_mount(mount.type))
    try:
        return [] if mount is None or family is None else family(str(folder), mount, programs)
    except NoAnswer:
        return []


def lustre_layouts(osts: int, count: int | None, size: int | None) -> list[str]:
    """Stripe counts other than `count`: all targets, a few, one; then larger stripes than `size` on all targets."""
    count = osts if count == -1 else count
    values = [f"-c {item}" for item in dict.fromkeys((osts, min(4, osts), 1)) if item != count]
    return values + ([f"-c {osts} -S {lfs_size(_LARGE)}"] if size is None or size < _LARGE else [])


def _lustre(folder: str, mount: Mount, programs: Ask) -> list[str]:
    facts, _ = read_lustre(mount.dir, programs, folder)
    return [] if facts.osts is None else lustre_layouts(facts.osts, facts.stripe_count, facts.stripe_size)


def _beegfs(folder: str, mount: Mount, programs: Ask) -> list[str]:
    """Target counts: all, one; then larger chunks on all targets."""
    del mount
    text = programs(["beegfs-ctl", "--getentryinfo", folder])
    desired, chunk = re.search(r"targets: desired: *(\d+)", text), re.search(r"Chunksize: *(\d+[kKMG]?)", text)
    listed = programs(["beegfs-ctl", "--listtargets", "--nodetype=storage"])
    targets = len(re.findall(r"^ *\d+ +\S+", listed, re.MULTILINE))
    if not desired or not chunk or not targets:
        return []
    count, size = int(desired[1]), parse_bytes(chunk[1])
    pairs = [(item, size) for item in dict.fromkeys((targets, min(4, targets), 1)) if item != count]
    pairs += [(targets, _LARGE)] if size < _LARGE else []
    command = "beegfs-ctl --setpattern --numtargets={} --chunksize={}k"
    return [command.format(number, length // 1024) for number, length in pairs]


def _ceph(folder: str, mount: Mount, programs: Ask) -> list[str]:
    """Objects of 1 MiB, and the default of 4 MiB, each followed by the next; none in place of the default."""
    layout = read_ceph(mount.dir, programs, folder)[0].layout
    if layout is None:
        return []
    now = ObjectLayout(layout.stripe_unit, layout.stripe_count, layout.object_size)
    # The default already spreads a file over the OSDs.
    others = [] if now == CEPH_DEFAULT else [ObjectLayout(MiB, 1, MiB), CEPH_DEFAULT]
    return [other.command for other in others if other != now]


_LARGE: Final = 16 * MiB
"""Size of large stripes and chunks in bytes (our choice)."""
_FAMILIES: Final[Mapping[str, Callable[[str, Mount, Ask], list[str]]]] = {
    "lustre": _lustre, "beegfs": _beegfs, "ceph": _ceph,
}  # fmt: skip
