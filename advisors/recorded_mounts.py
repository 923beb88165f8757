"""File systems recorded in the trace, which override a description of the same folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vani.models.observed_rates import with_observed_rates
from vani.units import format_count, format_rate

if TYPE_CHECKING:
    from vani.schema.profile import Mount, Profile
    from vani.schema.system import FileSystem, Rates, System

_WITH_RULES: Final = ("lustre", "gpfs", "beegfs", "fuse.daos", "dfuse")
"""Types with settings for which there are rules."""
_OF_ONE_NODE: Final = ("btrfs", "ext2", "ext3", "ext4", "overlay", "ramfs", "squashfs", "tmpfs", "xfs", "zfs")
"""Types that belong to a single node and have no settings for parallel I/O."""


def recorded_mount(path: str, profile: Profile, system: System) -> Mount | None:
    """The longest recorded mount that contains `path`.

    None if that is `/` and the description has a mount below it, because the recorded table may be of another node.
    """
    holding = [m for m in profile.storage.mounts or () if f"{path}/".startswith(f"{m.dir.rstrip('/')}/")]
    mount = max(holding, key=lambda mount: len(mount.dir), default=None)
    if mount is None or mount.dir != "/":
        return mount
    described = system.file_system_for(path)
    return mount if described is None or described.mounts == ["/"] else None


def as_recorded(system: System, profile: Profile) -> System:
    """The machine with file systems corrected by the trace: their types, numbers of targets, and rates as lower bounds.

    A file system of another type in the same folder is appended without figures, so that paths in the description
    stay valid.
    """
    systems = list(system.file_systems)
    differ = False
    for mount in profile.storage.mounts or ():
        described = system.file_system_for(mount.dir)
        if described is None and (mount.type in ("lustre", "gpfs") or system.burst_buffer_for(mount.dir)):
            # The description does not name the folder, but it may still be on one of its file systems.
            continue
        if described is None or not _is_same(described.type, mount.type):
            differ = True
            systems = [_without(disk, mount.dir) for disk in systems]
            systems.append(_bare(mount))
            continue
        number = system.file_systems.index(described)
        update: dict[str, object] = {"mounts": [*systems[number].mounts, mount.dir]}
        if system.generic and mount.targets:
            differ = differ or mount.targets != described.targets
            update["targets"] = mount.targets
        systems[number] = systems[number].model_copy(update=update)
    recorded = system.model_copy(update={"file_systems": systems}) if differ else system
    return with_observed_rates(recorded, profile)


def notes_on_mounts(system: System | None, profile: Profile) -> list[str]:
    """Sentences on differences between trace and description, and on file systems that get only generic advice."""
    notes = []
    for mount in profile.storage.mounts or ():
        described = None if system is None else system.file_system_for(mount.dir)
        if described is not None and system is not None and not _is_same(described.type, mount.type):
            notes.append(
                f"{mount.dir} is {mount.type} in the trace's mount table and {described.type} in {system.name}: the "
                "trace takes precedence."
            )
        elif described is not None and system is not None and mount.targets and mount.targets != described.targets:
            had = format_count(described.targets) if described.targets else "not stated"
            notes.append(
                f"{mount.dir} has {format_count(mount.targets)} storage targets in the trace, {had} in {system.name}"
                + (": the trace takes precedence." if system.generic else ".")
            )
        if mount.type not in (*_WITH_RULES, *_OF_ONE_NODE):
            notes.append(
                f"Vani has no settings for {mount.type} ({mount.dir}): advice for files there is generic and concerns "
                "the program only."
            )
    for before, observed in _corrected(system, profile):
        faster = [
            f"{format_rate(getattr(observed, kind))} in {kind}s, {format_rate(getattr(before, kind))}"
            for kind in ("read", "write")
            if getattr(observed, kind) != getattr(before, kind)
        ]
        if faster and system is not None:
            rates = " and ".join(faster)
            notes.append(f"A storage target reached {rates} in {system.name}: the trace takes precedence.")
    return list(dict.fromkeys(notes))


def _corrected(system: System | None, profile: Profile) -> list[tuple[Rates, Rates]]:
    """Rates of a target of each file system, as described and as corrected by the trace."""
    if system is None:
        return []
    observed = with_observed_rates(system, profile)
    return [
        (described.bandwidth_per_target, corrected.bandwidth_per_target)
        for described, corrected in zip(system.file_systems, observed.file_systems, strict=True)
    ]


def _is_same(described: str, recorded: str) -> bool:
    """True if both are the same type. The kernel's names may include a version, as in nfs4."""
    return recorded.rstrip("0123456789") == described.lower().rstrip("0123456789")


def _without(disk: FileSystem, folder: str) -> FileSystem:
    if folder not in disk.mounts:
        return disk
    return disk.model_copy(update={"mounts": [mount for mount in disk.mounts if mount != folder]})


def _bare(mount: Mount) -> FileSystem:
    from vani.schema.system import FileSystem  # noqa: PLC0415 - `vani explain` loads no pydantic

    return FileSystem(name=mount.dir, type=mount.type, mounts=[mount.dir], targets=mount.targets)
